"""The bars of joins: exact deltas through an engine, messages of the schemes, and what one would try before.

Ours goes from columns, or lines, to deltas as Arrow, on one core; the databases give numbers of rows alone. Deltas of all
contenders are compared on the changes that all of them were given. Many subscriptions are measured in a process of
their own, whose memory counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import join_spark
from benchmarks.bars import Bar, show
from benchmarks.join_baselines import COMES, DELTAS, GOES, Baseline, DuckBuckets, DuckQueries, DuckTable
from benchmarks.join_postgres import PostgresTable
from benchmarks.join_runs import WARM, Rate, engine_of, lines, measure, tell, timed
from benchmarks.join_schemes import growth, point
from benchmarks.join_workloads import SEED, Parameters, Workload, make
from benchmarks.measure import ROOT, context, write_json
from tests.postgresql import programs
from tidings.dissemination.schemes import DEFAULT
from tidings.kinds.joins.deltas import Deltas

FULL = Parameters()
# The seed whose numbers are nearest to the published ones is lighter than most: an insert affects 0.82 times as many
# subscriptions as on average over forty seeds. These are an average one and the heaviest.
OTHER_SEEDS = {2017: "an average seed", 2043: "the heaviest of forty seeds"}
MILLION = 10
_FIVE_TIMES = 5
_RENEWALS = 3_000
# Changes that each contender is given; the deltas of those that all were given are compared.
_GIVEN = {DuckTable: 400, DuckBuckets: 2_000, DuckQueries: 12, PostgresTable: 1_000}


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [
        bar for found in (rates(scale), million(scale), messages(scale), databases(scale)) for bar in found
    ]
    bars.append(join_spark.bar(scale))
    show(bars)
    write_json(
        folder / "join-bars.json",
        {"scale": scale, "seed": SEED, "bars": [asdict(bar) for bar in bars], **context()},
    )
    return all(bar.holds for bar in bars)


@cache
def workload_of(scale: float) -> Workload:
    return make(_scaled(FULL, scale))


def rates(scale: float) -> Iterator[Bar]:
    """100,000 subscriptions: typed columns, JSON lines, changes of all kinds, other seeds."""
    workload = workload_of(scale)
    ours = measure(workload)
    yield _rate(f"{len(workload):,} subscriptions, typed columns", ours, 5_000)
    yield _rate(f"{len(workload):,} subscriptions, JSON lines", measure(workload, form=lines), 5_000)
    mixed = make(replace(_scaled(FULL, scale), s_share=0.2, update_share=0.3))
    yield _rate("one change in five to S, three in ten updates", measure(mixed), 5_000)
    for seed, words in OTHER_SEEDS.items():
        other = measure(make(replace(_scaled(FULL, scale), seed=seed)))
        yield _rate(f"{seed}, {words}: {other.each / ours.each:.2f} x the deltas of {SEED}", other, 5_000)


@cache
def large(scale: float) -> dict[str, Any]:
    """A million subscriptions, in a process of their own."""
    words = (MILLION * FULL.subscriptions * scale, 5_000 * max(scale, 0.2), _RENEWALS * min(1.0, scale))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.join_runs", *(str(max(20, round(word))) for word in words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def million(scale: float) -> Iterator[Bar]:
    """Rate, memory, and what one subscription more or less costs."""
    found = large(scale)
    count = round(MILLION * FULL.subscriptions * scale)
    yield _rate(f"{count:,} subscriptions, typed columns", Rate(**found["rate"]), 2_000)
    memory = found["memory_at_the_end"] / 1e9
    yield Bar(
        f"{count:,} subscriptions, memory of the process",
        "under 2 GB",
        f"at most {memory:.2f} GB; rows and subscriptions are in after {found['built']:.0f} s",
        memory < 2,
    )
    renewal = found["renewal"]
    for what, call in (("add", "subscribe"), ("remove", "unsubscribe")):
        taken, alone = renewal[what] * 1e3, renewal[f"{what}_call"] * 1e3
        yield Bar(
            f"{what} a subscription among {count:,}, a change behind each",
            "under 1 ms on average",
            f"{taken:.2f} ms over {renewal['count']:,}, of which {call} takes {alone:.2f}, the next change the rest",
            taken < 1,
        )


def messages(scale: float) -> Iterator[Bar]:
    """Bytes that leave the server for a change, the description's size, and how time grows."""
    count = max(50, round(FULL.subscriptions * scale))
    tallies = point(count, FULL.s_rows, scale).tallies
    ours = tallies[DEFAULT.name]
    for name, least in (("Enum-J", 500), ("Enum-SJ", 50), ("Ref-J+", 20)):
        theirs = tallies[name]
        yield Bar(
            f"{DEFAULT.name} beside {name}, {count:,} subscriptions",
            f"bytes of a change lower by {least} x",
            f"{theirs.bytes / ours.bytes:,.0f} x ({ours.each(ours.bytes):,.0f} bytes, {theirs.each(theirs.bytes):,.0f})",
            theirs.bytes >= least * ours.bytes,
        )
    yield Bar(
        f"{DEFAULT.name}, description",
        "at most 25 bytes",
        f"{ours.description:.1f} bytes of a message that has one; {ours.each(ours.skyline_bytes):.1f} of a change",
        ours.description <= 25,
    )
    small, grown = growth(DEFAULT, count, _FIVE_TIMES * count, scale)
    yield Bar(
        f"{DEFAULT.name}, time of a change at {_FIVE_TIMES * count:,}",
        f"at most 1.5 x that at {count:,}",
        f"{grown / small:.2f} x ({small * 1e6:.0f} µs, {grown * 1e6:.0f} µs)",
        grown <= 1.5 * small,
    )


def databases(scale: float) -> Iterator[Bar]:
    """What one would try before, on the same changes; deltas are equal. All are timed by the clock on the wall, ours
    right before and after each of the others, because PostgreSQL is a process of its own."""
    workload = workload_of(scale)
    engine = engine_of(workload)
    given = {kind: max(4, round(count * min(1.0, 10 * scale))) for kind, count in _GIVEN.items()}
    wanted = _ours(workload, max(given.values()))
    size = (len(workload.stream) - WARM) // (2 * len(given))
    turns = iter(range(WARM, len(workload.stream) - size + 1, size))
    tell(engine, workload.events(0, WARM))

    def own() -> Rate:
        first = next(turns)
        return timed(engine, workload, first, first + size, clock=time.perf_counter)

    for kind, count in given.items():
        folder = programs()
        if kind is PostgresTable and folder is None:
            continue
        contender: Baseline = (
            PostgresTable(workload, folder)
            if kind is PostgresTable and folder is not None
            else kind(workload)  # type: ignore[call-arg]
        )
        try:
            before = own()
            found = contender.apply(0, count)
            after = own()
        finally:
            contender.close()
        agrees = _sorted(found) == _sorted(wanted.filter(pa.array(wanted["event"].to_numpy() < count)))
        ours = (before.changes + after.changes) / (before.seconds + after.seconds)
        theirs = count / contender.seconds
        yield Bar(
            f"{contender.name}, {len(workload):,} subscriptions",
            "ours at least 10 x its rate, deltas equal"
            if kind is DuckTable
            else "shown beside; deltas equal",
            f"{ours / theirs:,.1f} x ({ours:,.0f} changes/s, {theirs:,.1f}); {len(found):,} deltas of {count:,} "
            f"changes {'are equal' if agrees else 'DIFFER'}",
            agrees and (ours >= 10 * theirs or kind is not DuckTable),
        )


def _ours(workload: Workload, count: int) -> pa.Table:
    """Our deltas of the first changes, as the databases give them."""
    return numbered(engine_of(workload).correlate(workload.events(0, count)), workload)


def numbered(deltas: Deltas, workload: Workload) -> pa.Table:
    """Deltas by numbers: of the subscription, and of the row's image, which its payload ends with."""
    images = [int(json.loads(text)["payload"].rpartition(".")[2]) for text in deltas.texts.to_pylist()]
    subscriptions = np.array([int(id.removeprefix("q")) for id in deltas.ids.to_pylist()])
    names = [rows.name for rows in workload.tables]
    places = np.array([names.index(name) for name in deltas.tables.to_pylist()])
    columns = (
        deltas.event,
        subscriptions[deltas.number],
        np.where(deltas.sign > 0, COMES, GOES),
        places[deltas.table[deltas.row]],
        np.array(images, np.int64)[deltas.row],
    )
    return pa.table(dict(zip(DELTAS.names, columns, strict=True))).cast(DELTAS)


def _sorted(deltas: pa.Table) -> pa.Table:
    return deltas.sort_by([(name, "ascending") for name in DELTAS.names]).combine_chunks()


def _rate(what: str, rate: Rate, least: float) -> Bar:
    return Bar(
        what,
        f"at least {least:,} changes/s",
        f"{rate.per_second:,.0f}/s, {rate.each:,.0f} deltas each",
        rate.per_second >= least,
    )


def _scaled(parameters: Parameters, scale: float) -> Parameters:
    """Fewer subscriptions and changes; the tables keep their sizes, or rows would join nothing."""
    return replace(
        parameters,
        subscriptions=max(50, round(parameters.subscriptions * scale)),
        events=WARM + max(200, round(parameters.events * scale)),
    )
