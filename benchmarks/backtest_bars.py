"""The bars of a backtest: one subscription over a log of a million events of about 300 bytes, in one process and by Spark.

Spark has two workers on this machine, and is warm: the session has run a backtest before. CPU seconds are those of this process
and all that it has started.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import pyarrow as pa

from benchmarks.bars import Bar, show
from benchmarks.measure import context, write_json
from tidings.engine.backtest import Tally, backtest_engine
from tidings.engine.backtest import backtest as count
from tidings.engine.engine import Engine
from tidings.storage.event_log import EventLog
from tidings.storage.log_times import LogTimes

EVENTS = 1_000_000
_DAYS = 30
_AT_ONCE = 1_000
_SEED = 20
TEXT = "WHERE topic = 'sport' AND price < 200 AND NOT city = 'Linz'"
_TICKS = os.sysconf("SC_CLK_TCK")


class Measured(NamedTuple):
    found: Tally
    seconds: float
    cpu: float


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    events = max(10 * _AT_ONCE, round(EVENTS * scale))
    with tempfile.TemporaryDirectory(prefix="tidings-backtest-") as place:
        log = write_log(Path(place), events)
        size = sum(path.stat().st_size for path in Path(place).glob("*.log")) / events
        click.echo(f"{events:,} events of {size:.0f} bytes in the log")
        here = measured(lambda: _here(log))
        spark, recent = _by_spark(log)
    bars = [
        _bar(f"one process, {events:,} events", here, 30),
        _bar(f"Spark local[2,4], {events:,} events", spark, 30),
        Bar(
            "Spark counts what one process counts",
            f"{here.found.matched:,}",
            f"{spark.found.matched:,}",
            spark.found == here.found,
        ),
        Bar(
            "the last day alone is read in less time than all",
            f"{spark.seconds:.1f} s",
            f"{recent.seconds:.1f} s",
            recent.seconds < spark.seconds and recent.found.events < 2 * events / _DAYS,
        ),
    ]
    show(bars)
    kept = {
        name: {"seconds": each.seconds, "cpu": each.cpu} for name, each in (("here", here), ("spark", spark))
    }
    found = {"scale": scale, "bars": [asdict(bar) for bar in bars], "measured": kept, **context()}
    write_json(folder / "backtest-bars.json", found)
    return all(bar.holds for bar in bars)


def write_log(folder: Path, events: int) -> EventLog:
    """Events of thirty days, the last of which arrives now."""
    chance, now = random.Random(_SEED), time.time()
    at = now
    with EventLog(folder, clock=lambda: at) as log:
        for first in range(0, events, _AT_ONCE):
            at = now - _DAYS * 86_400 * (1 - (first + _AT_ONCE) / events)
            log.append(
                pa.table(
                    {
                        "id": [f"event-{first + k}" for k in range(_AT_ONCE)],
                        "source": ["https://example.org/news"] * _AT_ONCE,
                        "attributes": [json.dumps(_attributes(chance)) for _ in range(_AT_ONCE)],
                    }
                )
            )
    return log


def _attributes(chance: random.Random) -> dict[str, Any]:
    return {
        "topic": chance.choice(("sport", "oil", "opera", "news", "weather")),
        "price": chance.randrange(1_000),
        "city": chance.choice(("Linz", "Wien", "Graz", "Salzburg")),
        "title": " ".join(chance.choices(_WORDS, k=12)),
        "text": " ".join(chance.choices(_WORDS, k=20)),
    }


_WORDS = "storm goal price river market opera night final cup rain stone bridge".split()


def _here(log: EventLog) -> Tally:
    return count(backtest_engine(Engine(), TEXT), LogTimes(log).read(log.start(), log.end()))


def _by_spark(log: EventLog) -> tuple[Measured, Measured]:
    """All events, and those of the last day."""
    from tidings.spark import backtest, session

    spark = session("local[2,4]")
    try:
        yesterday = time.time() - 86_400
        backtest(log.folder, TEXT, since=yesterday, spark=spark)  # starts the workers
        return (
            measured(lambda: backtest(log.folder, TEXT, spark=spark)),
            measured(lambda: backtest(log.folder, TEXT, since=yesterday, spark=spark)),
        )
    finally:
        spark.stop()


def measured(run: Callable[[], Tally]) -> Measured:
    before, began = _cpu(), time.perf_counter()
    found = run()
    seconds = time.perf_counter() - began
    return Measured(found, seconds, _cpu() - before)


def _cpu() -> float:
    """CPU seconds of this process and those that it has started, directly or not."""
    parents, used = dict[int, int](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = sum(map(int, fields[11:15]))  # its own, and of children that have ended
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine and pid not in mine}:
        mine |= more
    return sum(used[pid] for pid in mine) / _TICKS


def _bar(what: str, found: Measured, most: float) -> Bar:
    rate = found.found.events / found.seconds
    shown = f"{found.seconds:.1f} s ({rate:,.0f} events/s, {found.cpu:.1f} CPU s)"
    return Bar(what, f"at most {most:.0f} s", shown, found.seconds <= most)
