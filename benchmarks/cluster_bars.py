"""The bars of a cluster that divides subscriptions: throughput with the paper's algorithms, and mergers, false positives and visits with ours.

One seed each, on the workload of `cluster/workload.py`; the figures of RSS cluster have three.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from benchmarks.bars import Bar, show
from benchmarks.cluster import ours
from benchmarks.cluster.node import Graphs
from benchmarks.cluster.runs import (
    cpu,
    divided,
    everywhere,
    merging_server,
    our_stages,
    sampled,
    stages,
    summaries,
)
from benchmarks.cluster.server import Pipeline
from benchmarks.cluster.workload import Parameters, make
from benchmarks.figures.cluster_placements import PARTS, RATES, table
from benchmarks.measure import context, write_json
from tidings import Engine
from tidings.containment import forest
from tidings.containment.merging import merge
from tidings.containment.summaries import Summaries
from tidings.storage.division import Placement
from tidings.storage.placement_choice import BuildFacts, write_best

_CHOICES = 5
_BACK_ENDS = 6
_PUBLICATIONS = 400


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measure in BARS for bar in measure(scale)]
    show(bars)
    write_json(
        folder / "cluster-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def throughput(scale: float) -> Iterator[Bar]:
    """Figure 9(i), computed from the CPU times of stages that are measured alone."""
    workload = make(Parameters(subscriptions=round(100_000 * scale), matches=max(1, 500 * scale)))
    node, graphs = everywhere(workload), Graphs.of(workload.publications(_PUBLICATIONS, seed=2))
    node.match(graphs)
    taken = cpu(lambda: node.match(graphs)) / _PUBLICATIONS
    server = merging_server(workload, _BACK_ENDS)
    server.merge(summaries(workload, node), round(0.3 * workload.parameters.subscriptions))
    found = stages(Pipeline(server), graphs)
    ratio = taken * found.throughput
    yield Bar(
        f"throughput, {_BACK_ENDS + 1} machines, 70 % merging, the paper's algorithms; from stage times",
        "at least 4 x one machine",
        f"{ratio:.2f} x ({taken * 1e6:.0f} µs an event; server {found.front * 1e6:.0f}, back-ends up to {max(found.nodes) * 1e6:.0f})",
        ratio >= 4,
    )


def mergers(scale: float) -> Iterator[Bar]:
    """Figure 9(g)."""
    workload = make(Parameters(subscriptions=round(100_000 * scale), matches=max(1, 100 * scale)))
    engine, count = ours.engine(workload), workload.parameters.subscriptions
    roots = forest.parents(engine) < 0
    made = merge(engine, roots, round(count / 100))
    share = (int(roots.sum()) - int((made.merger >= 0).sum()) + len(made.mergers)) / count
    yield Bar(
        f"front of {count:,} patterns, 99 % merging",
        "at most 1.5 % of all",
        f"{share:.2%} ({len(made.mergers):,} mergers)",
        share <= 0.015,
    )


def false_positives(scale: float) -> Iterator[Bar]:
    """Figure 9(e)."""
    workload = make(Parameters(subscriptions=round(10_000 * scale), matches=max(1, 100 * scale)))
    engine, count = ours.engine(workload), round(20_000 * scale)
    events = ours.events(workload, workload.publications(count, seed=2))
    found = Summaries.collect(engine, ours.events(workload, sampled(workload)))
    for words, given, apart in (("", None, False), (", by a sample, apart as in the paper", found, True)):
        placement = Placement("contain", _BACK_ENDS, 90, apart)
        with divided(engine, placement, forest.parents(engine), given) as index:
            wrong = our_stages(index, events, 1).false_positives
        yield Bar(
            f"false positives, 90 % merging{words}, {len(engine):,} subscriptions, {count:,} publications, {_BACK_ENDS} parts",
            "at most 0.2 %",
            f"{wrong:.3%}",
            wrong <= 0.002,
        )


def visits(scale: float) -> Iterator[Bar]:
    count, rate = round(100_000 * scale), 0.01
    found = next(each for each in table(count, rate) if each.placement == "contain")
    yield Bar(
        f"parts visited by contain, {count:,} subscriptions, {rate} % matching",
        f"at most half of {PARTS} parts",
        f"{found.parts:.2f}",
        found.parts <= PARTS / 2,
    )


def chosen(scale: float) -> Iterator[Bar]:
    """The place `auto`, with memory for the whole index and without, beside the times of all places at every match rate."""
    count, worst = round(100_000 * scale), dict.fromkeys(("whole", "divided"), (0.0, "", 0.0))
    for rate in RATES:
        taken = {each.placement: each.total for each in table(count, rate)}
        workload = make(Parameters(subscriptions=count, matches=count * rate / 100))
        engine = ours.engine(workload)
        sample = ours.events(workload, sampled(workload))
        found = Summaries.collect(engine, sample)
        choices = [_choice(engine, found, sample) for _ in range(_CHOICES)]
        for name, places in (("whole", ("replicate", "split", "contain")), ("divided", ("split", "contain"))):
            best = min(taken[place] for place in places)
            ratios = [taken[min(places, key=choice.__getitem__)] / best for choice in choices]
            worst[name] = max(worst[name], (statistics.median(ratios), f"{rate} %", max(ratios)))
    for name, (ratio, rate, most) in worst.items():
        yield Bar(
            f"place auto, {count:,} subscriptions, {name}, the worst of {len(RATES)} match rates, median of {_CHOICES}",
            "at most 1.2 x the best place",
            f"{ratio:.2f} x at {rate} (at most {most:.2f} x)",
            ratio <= 1.2,
        )


def _choice(engine: Engine, found: Summaries, sample: pa.Table) -> dict[str, float]:
    """The microseconds by which a place is chosen."""
    with tempfile.TemporaryDirectory() as folder:
        facts = BuildFacts(sample=sample)
        return write_best(engine, Path(folder) / "base", Placement("auto", PARTS), found, facts).microseconds


BARS: tuple[Callable[[float], Iterator[Bar]], ...] = (throughput, mergers, false_positives, visits, chosen)
