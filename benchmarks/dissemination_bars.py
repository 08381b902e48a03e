"""The bars of the network of dissemination: traffic of the schemes, server stress with caches, speed of the simulator, delivery.

Traffic is bytes times overlay links; a copy for one subscriber crosses one. 1,000 nodes, and the workload of Select-joins, 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.bars import Bar, show
from benchmarks.dissemination_runs import CHANGES, NODES, Point, Run, simulate
from benchmarks.join_workloads import SEED, Parameters
from benchmarks.measure import context, write_json
from tests.dissemination.simulator.test_delivery import World

STRAWMEN = ("Enum-J", "Enum-SJ", "Ref-J", "Ref-J+")
OURS = "Ref-SJ-Clu+"
_FULL = Parameters(events=CHANGES)
_CACHED = Parameters(r_rows=500, events=1_500)
_WARM = 2_000
_WORLDS = 2_000
STRESS = {"Ref-J+": 7, OURS: 3}


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for found in (traffic(scale), stress(scale), speed(scale), delivery(scale)) for bar in found]
    show(bars)
    content = {"scale": scale, "seed": SEED, "bars": [asdict(bar) for bar in bars], **context()}
    write_json(folder / "dissemination-bars.json", content)
    return all(bar.holds for bar in bars)


def _full(scale: float) -> dict[str, Run]:
    parameters = _scaled(_FULL, scale)
    return simulate(Point((*STRAWMEN, "Rel-Sel", OURS), parameters, nodes=_nodes(scale)))


def traffic(scale: float) -> Iterator[Bar]:
    found = _full(scale)
    ours = found[OURS].totals
    own = ours.each(ours.traffic)
    for name in STRAWMEN:
        totals = found[name].totals
        ratio = totals.each(totals.traffic) / own
        yield Bar(
            f"traffic of a change, {name} beside {OURS}, {_scaled(_FULL, scale).subscriptions:,} subscriptions",
            "at least 10 x",
            f"{ratio:,.1f} x: {totals.each(totals.traffic):,.0f} and {own:,.0f} bytes x links",
            ratio >= 10,
        )
    relaxed = found["Rel-Sel"].totals
    ratio = relaxed.each(relaxed.traffic) / own
    hops = relaxed.mean_depth / ours.mean_depth
    yield Bar(
        f"Rel-Sel beside {OURS}",
        "more traffic, and more links to a subscriber, as published",
        f"{ratio:,.1f} x the traffic, {hops:,.2f} x the links",
        ratio >= 10 and hops > 1,
    )


def stress(scale: float) -> Iterator[Bar]:
    """CN* in the setting of 6.2; where 400 entries are too few, how many are enough."""
    parameters = _scaled(_CACHED, scale)
    for name, least in STRESS.items():
        point = Point((name,), parameters, 1_000, nodes=_nodes(scale), warm=round(_WARM * scale))
        plain = _stress(simulate(point)[name])
        ratios = {
            entries: plain / _stress(simulate(replace(point, repository=entries))[name])
            for entries in (400, 800, 1_600)
        }
        paper = simulate(replace(point, repository=400, names_lost=False))[name]
        cached = simulate(replace(point, repository=400))[name].totals
        yield Bar(
            f"stress of the server, {name}, a repository of 400 payloads beside none; R = 500 rows of 1,000 bytes",
            f"at least {least} x lower",
            f"{ratios[400]:.1f} x; {plain / _stress(paper):.1f} x if lost rows bring their payload again; 800 payloads "
            f"{ratios[800]:.1f} x, 1,600 {ratios[1_600]:.1f} x. At 400, nodes fetch {cached.each(cached.fetches):.2f} "
            f"payloads a change that they purged, {cached.each(cached.fetched_from_server):.2f} of them from the server",
            ratios[400] >= least,
        )


def speed(scale: float) -> Iterator[Bar]:
    parameters = _scaled(_FULL, scale)
    plain = _full(scale)
    cached = simulate(Point(("Ref-J+", OURS), parameters, nodes=_nodes(scale), repository=400))
    slowest, name = min(
        (run.totals.messages / run.seconds, name) for name, run in plain.items() if name not in STRAWMEN[:2]
    )
    yield Bar(
        f"messages injected a second, {_nodes(scale):,} nodes, {parameters.subscriptions:,} subscriptions, one core",
        "at least 2,000",
        f"{slowest:,.0f} for {name}, the slowest",
        slowest >= 2_000,
    )
    slowest, name = min((run.totals.messages / run.seconds, name) for name, run in cached.items())
    yield Bar(
        "the same, if every node keeps payloads: each visit runs a real node",
        "at least 2,000",
        f"{slowest:,.0f} for {name}, the slower",
        slowest >= 2_000,
    )


def delivery(scale: float) -> Iterator[Bar]:
    """The worlds of the tests, others than theirs."""
    worlds = max(20, round(_WORLDS * scale))
    got = sum(World(seed).run(12) for seed in range(10_000, 10_000 + worlds))
    yield Bar(
        "random networks and workloads with purges, plain nodes, churn, losses",
        "every subscriber gets its messages, no others; contents equal naive joins after each change",
        f"{worlds:,} worlds, {got:,} deliveries, no difference",
        got > worlds,
    )


def _stress(run: Run) -> float:
    return run.totals.each(float(run.totals.stress[0]))


def _nodes(scale: float) -> int:
    return max(20, round(NODES * scale))


def _scaled(parameters: Parameters, scale: float) -> Parameters:
    return parameters if scale == 1 else parameters.scaled(scale)
