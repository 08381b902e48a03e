"""The bars of word search, each with what was measured beside it.

Times are processor seconds of one core, the best of five. The match itself is what finds the subscriptions of events whose
JSON was read before; end to end is from JSON lines to notifications.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.measure import best, context, write_json
from benchmarks.search_workloads import Parameters, Searches, make
from tidings import Engine, Event
from tidings.engine.snapshot import Snapshot
from tidings.kinds.filters.columns import read_events
from tidings.kinds.filters.kind import FilterFinder
from tidings.model.event import to_table

_SINGLE = 300


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    parameters = Parameters()
    bars = list(words(replace(parameters, searches=max(1000, round(parameters.searches * scale)))))
    show(bars)
    result = {"scale": scale, "parameters": asdict(parameters), "bars": [asdict(bar) for bar in bars]}
    write_json(folder / "search-bars.json", result | context())
    return all(bar.holds for bar in bars)


def words(parameters: Parameters) -> Iterator[Bar]:
    """A million searches of three words against texts of 1 KB."""
    workload = make(parameters)
    engine = Engine()
    start = time.process_time()
    engine.subscribe_table("WHERE body SEARCH $words", workload.table())
    finder = _finder(engine)
    built = time.process_time() - start
    events = [Event(source="bench", attributes={"body": text}) for text in workload.texts]
    taken, matches = _find(finder, events)
    of, size = (
        f"{parameters.searches:,} searches of {parameters.wanted} words",
        np.mean(list(map(len, workload.texts))),
    )
    yield Bar(
        f"{of}, texts of {size:,.0f} bytes in batches of {len(events):,}, the match itself",
        "at most 300 µs a text",
        f"{taken / len(events) * 1e6:.0f} µs, {matches / len(events):.0f} matches",
        taken / len(events) <= 300e-6,
    )
    lines = b"".join(json.dumps({"body": text}).encode() + b"\n" for text in workload.texts)
    taken = best(lambda: engine.publish_lines(lines), clock=time.process_time) / len(events)
    yield Bar(
        "the same, JSON lines in, notifications out",
        "at most 600 µs",
        f"{taken * 1e6:.0f} µs",
        taken <= 600e-6,
    )
    alone = _alone(engine, events[:_SINGLE])
    yield Bar(
        "one event alone, published and answered",
        "at most 1 ms",
        f"{alone * 1e6:.0f} µs (median of {_SINGLE}, each the best of five)",
        alone <= 1e-3,
    )
    memory = finder.index.nbytes / parameters.searches
    own = finder.index.searches(0).nbytes / parameters.searches
    yield Bar(
        "memory of a search in the index",
        "at most 150 bytes",
        f"{memory:.0f} bytes, {own:.0f} of them its words",
        memory <= 150,
    )
    yield Bar("adding them from a table, and the index", "under 120 s", f"{built:.0f} s", built < 120)


def _finder(engine: Engine) -> FilterFinder:
    snapshot: Snapshot = engine.index_snapshot()
    found = [part.finder for part in snapshot.finders if isinstance(part.finder, FilterFinder)]
    return max(found, key=lambda finder: len(finder.index))


def _find(finder: FilterFinder, events: list[Event]) -> tuple[float, int]:
    """Processor seconds in which the filters of all events are found, and how many there are."""
    reader = finder._reader
    found = read_events(to_table(events), reader.wanted)

    def match() -> int:
        return len(finder.index.match(reader.pairs(found, lambda _: {})).row)

    matches = match()
    return best(match, clock=time.process_time), matches


def _alone(engine: Engine, events: list[Event]) -> float:
    times = np.full(len(events), np.inf)
    for _ in range(5):
        for i, event in enumerate(events):
            start = time.process_time()
            engine.publish(event)
            times[i] = min(times[i], time.process_time() - start)
    return float(np.median(times))


def expected(workload: Searches, text: int) -> set[int]:
    """The searches that a text satisfies, by looking at each: what an engine from elsewhere has to find too."""
    there = set(workload.texts[text].split())
    return {number for number, search in enumerate(workload.searches) if there.issuperset(search.split())}
