"""The bars of Boolean filters, each with what was measured beside it.

Times are processor seconds of one core, the best of five. Reading an event from its JSON text is part of all of them.
Texts and templates go through the engine; a million expressions are written into the index's table directly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from benchmarks import conjunctions, filter_texts
from benchmarks.bars import Bar, show
from benchmarks.filter_workloads import A_TREE, ABE_GEN, CONJUNCTIONS, Parameters, Workload, make
from benchmarks.measure import best, context, write_json
from benchmarks.tidings_filters import Tidings
from tidings import Engine, Event

_BATCH = 10_000


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measure in BARS for bar in measure(scale)]
    show(bars)
    seeds = {"expressions": ABE_GEN.seed, "conjunctions": conjunctions.Parameters().seed}
    result = {"scale": scale, "seeds": seeds, "bars": [asdict(bar) for bar in bars]}
    write_json(folder / "filter-bars.json", result | context())
    return all(bar.holds for bar in bars)


def arbitrary(scale: float) -> Iterator[Bar]:
    """A-Tree's published size: time of an event and memory."""
    workload = make(_scaled(A_TREE, scale))
    count = len(workload.expressions)
    index = Tidings(workload)
    taken, matches = _per_event(index, workload)
    yield Bar(
        f"{count:,} arbitrary expressions, depth 1 to 9",
        "at most 1.6 ms an event",
        f"{taken * 1e3:.2f} ms, {matches:,.0f} matches ({matches / count:.2%})",
        taken <= 1.6e-3,
    )
    size = index.nbytes / 1e6
    yield Bar("their index", "at most 205 MB", f"{size:.0f} MB", size <= 205)


def many_conjunctions(scale: float) -> Iterator[Bar]:
    """Three million, over 1,000 attributes and over the 21 of one schema."""
    fixed = conjunctions.Parameters(
        conjunctions=max(1000, round(3_000_000 * scale)), dimensions=21, zipf=0.0, pairs=20
    )
    for workload, words in (
        (make(_scaled(CONJUNCTIONS, scale)), "1,000 attributes"),
        (conjunctions.make(fixed), "21 attributes, 20 in each event"),
    ):
        taken, matches = _per_event(Tidings(workload), workload)
        yield Bar(
            f"{len(workload.expressions):,} conjunctions, {words}",
            "at most 0.5 ms an event",
            f"{taken * 1e3:.3f} ms, {matches:.0f} matches",
            taken <= 0.5e-3,
        )


def rules(scale: float) -> Iterator[Bar]:
    """JSON lines in, notifications out, in batches; and one event alone."""
    workload = conjunctions.make_rules(max(1000, round(100_000 * scale)), events=_BATCH)
    engine = Engine()
    for template, table in filter_texts.tables(workload):
        engine.subscribe_table(template, table)
    lines = filter_texts.ndjson(workload)
    events = lines.count(b"\n")
    found = engine.publish_lines(lines).num_rows
    for _ in range(5):  # the first batches are slower: memory comes from the system, not from the one before
        engine.publish_lines(lines)
    rate = events / best(lambda: engine.publish_lines(lines), clock=time.process_time)
    yield Bar(
        f"{len(workload.expressions):,} rules of 6 conditions, JSON lines in, batches of {events:,}",
        "at least 200,000 events a second",
        f"{rate:,.0f} a second, {found / events:.1f} matches each",
        rate >= 200_000,
    )
    single = [Event(source="bench", attributes=event) for event in filter_texts.event_dicts(workload)[:1000]]
    times = np.full(len(single), np.inf)
    for _ in range(6):
        for i, event in enumerate(single):
            start = time.perf_counter()
            engine.publish(event)
            times[i] = min(times[i], time.perf_counter() - start)
    median = float(np.median(times))
    yield Bar(
        "one event alone, published and answered",
        "at most 100 µs",
        f"{median * 1e6:.0f} µs (median of {len(single):,}, each the best of six)",
        median <= 100e-6,
    )


def growth(scale: float) -> Iterator[Bar]:
    """Ten times the expressions, equal matches."""
    times, counts = [], []
    for count in (100_000, 1_000_000):
        parameters = conjunctions.Parameters(conjunctions=max(1000, round(count * scale)))
        workload = conjunctions.make(parameters)
        taken, matches = _per_event(Tidings(workload), workload)
        times.append(taken)
        counts.append(matches)
    yield Bar(
        f"{round(100_000 * scale):,} expressions to {round(1_000_000 * scale):,}, {counts[0]:.0f} matches each",
        "at most 2 x the time",
        f"{times[1] / times[0]:.2f} x ({times[0] * 1e6:.1f} µs, {times[1] * 1e6:.1f} µs)",
        times[1] <= 2 * times[0],
    )


def loading(scale: float) -> Iterator[Bar]:
    """Arbitrary expressions as texts, each of its own shape."""
    workload = make(_scaled(replace(A_TREE, expressions=100_000), scale))
    texts = filter_texts.subscription_texts(workload)
    probe = Event(source="bench", attributes={"a0": 1})

    def load() -> None:
        engine = Engine()
        rejected = engine.subscribe_many(texts)
        assert not rejected, rejected[:1]
        engine.publish(probe)  # an index is built when it is first needed

    taken = best(load, runs=2, clock=time.process_time)
    yield Bar(
        f"adding {len(texts):,} arbitrary expressions as texts", "under 60 s", f"{taken:.1f} s", taken < 60
    )


BARS: tuple[Callable[[float], Iterator[Bar]], ...] = (arbitrary, many_conjunctions, rules, growth, loading)


def _scaled(parameters: Parameters, scale: float) -> Parameters:
    return replace(parameters, expressions=max(1000, round(parameters.expressions * scale)))


def _per_event(index: Tidings, workload: Workload) -> tuple[float, float]:
    """Seconds of reading and matching one event, and its matches, on average."""
    events = filter_texts.event_table(workload)
    count = len(workload.events)
    found = len(index.match(index.read(events)))
    taken = best(lambda: index.index.match(index.read(events)), clock=time.process_time)
    return taken / count, found / count
