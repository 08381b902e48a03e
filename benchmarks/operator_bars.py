"""The bars of operators: how much schedulers evaluate, what deciding what to evaluate costs, and how fast it is learnt.

Evaluations and costs are means over the same events for all, in every point of Figures 4 to 8 and under both models of
events. Times are of one process; the ordering of chains has a process of its own, whose memory counts.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.figures.operators import EVENTS
from benchmarks.measure import ROOT, context, write_json
from benchmarks.operator_runs import (
    ADAPTIVE,
    HINDSIGHT,
    SUB_ORDER,
    PrintedSubOrder,
    Replay,
    lower_bound,
    measure,
)
from benchmarks.operator_workloads import (
    AROUND,
    FACTOR,
    FAR_APART,
    FIGURES,
    INDEPENDENT,
    MODELS,
    SPREADS,
    Bools,
    Floats,
    Model,
    Parameters,
    make,
)
from tidings import Engine, Event, operator
from tidings.kinds.operators.evaluator import FRONTIER
from tidings.kinds.operators.kernels.layout import FALSE, TRUE
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.scheduling.schedulers import Adaptive

# Unequal costs, the frontier and readings of "factor 100": fewer events, ratios move little.
FEW = 6
LEARNING, AFTER = 200, 50
ASYNC_EVENTS, ASYNC_SECONDS = 1000, 10e-3
_ORDERING = """
import json, re, sys, time
from benchmarks.operator_workloads import INDEPENDENT, Parameters, make
from tidings.kinds.operators.scheduling.chains import order_chains

subscriptions, predicates, zipf = json.loads(sys.argv[1])
small = make(Parameters(100, 50, zipf))
order_chains(small.first, small.member, small.chance, small.cost)
workload = make(Parameters(subscriptions, predicates, zipf))
start = time.perf_counter()
order_chains(workload.first, workload.member, workload.chance, workload.cost)
taken = time.perf_counter() - start
# Not ru_maxrss: a process begins with its parent's.
memory = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([taken, memory]))
"""


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measured in BARS for bar in measured(scale)]
    show(bars)
    write_json(
        folder / "operator-bars.json",
        {"scale": scale, "seed": 2007, "bars": [asdict(bar) for bar in bars], **context()},
    )
    return all(bar.holds for bar in bars)


def evaluations(scale: float) -> Iterator[Bar]:
    """Equal costs: Adaptive beside hindsight and Sub-Order, at the worst point of every figure."""
    for other, most, words in ((HINDSIGHT, 1.2, "at most 1.2 x"), (SUB_ORDER, 1.0, "never above")):
        for number, model in _figures():
            found = [
                measure(point.scaled(scale), model, EVENTS).ratio(ADAPTIVE, other)
                for point in FIGURES[number]
            ]
            yield Bar(
                f"Adaptive, Figure {number}, {model}", f"{words} {other}", _span(found), max(found) <= most
            )


def unequal_costs(scale: float) -> Iterator[Bar]:
    """Costs that differ by a factor of 100: beside Sub-Order, beside what nobody can do without, and beside Sub-Order
    as its 4.3 is printed."""
    spread = SPREADS[FACTOR]
    for number, model in _figures():
        found = [_costs(replace(point.scaled(scale), spread=spread), model) for point in FIGURES[number]]
        ours = [one[ADAPTIVE] / one[SUB_ORDER] for one in found]
        least = [one["bound"] / one[SUB_ORDER] for one in found]
        yield Bar(
            f"Adaptive, unequal costs, Figure {number}, {model}",
            "at most 0.8 x Sub-Order's cost",
            f"{_span(ours)}; nobody below {_span(least)}",
            max(ours) <= 0.8,
        )
    for number, model in _figures():
        found = [_costs(replace(point.scaled(scale), spread=spread), model) for point in FIGURES[number]]
        ours = [one[ADAPTIVE] / one["printed"] for one in found]
        yield Bar(
            f"the same, beside chains by selectivity alone (4.3 as printed), Figure {number}, {model}",
            "at most 0.8 x that Sub-Order's cost",
            _span(ours),
            max(ours) <= 0.8,
        )


def readings(scale: float) -> Iterator[Bar]:
    """Other readings of "lognormal, factor 100", over the last points of all figures."""
    points = [figure[-1].scaled(scale) for figure in FIGURES.values()]
    for words, spread in SPREADS.items():
        if words == FACTOR:
            continue
        for model in MODELS:
            found = [_costs(replace(point, spread=spread), model) for point in points]
            ours = [one[ADAPTIVE] / one[SUB_ORDER] for one in found]
            least = [one["bound"] / one[SUB_ORDER] for one in found]
            yield Bar(
                f"Adaptive, costs of which {words}, last points, {model}",
                "at most 0.8 x Sub-Order's cost",
                f"{_span(ours)}; nobody below {_span(least)}",
                max(ours) <= 0.8,
            )


@cache
def _costs(parameters: Parameters, model: Model) -> dict[str, float]:
    """The mean cost of an event by contender."""
    workload = make(parameters)
    replay = Replay(workload, model)
    printed = PrintedSubOrder(replay)
    truths = list(workload.truths(model, FEW))
    return measure(parameters, model, FEW).cost | {
        "printed": float(np.mean([replay.decide(printed, truth).cost for truth in truths])),
        "bound": float(np.mean([lower_bound(workload, truth) for truth in truths])),
    }


def frontier(scale: float) -> Iterator[Bar]:
    """Several evaluations at once beside one at a time."""
    for model in MODELS:
        found = []
        for point in dict.fromkeys(point for figure in FIGURES.values() for point in figure):
            workload = make(point.scaled(scale))
            replay, scheduler = Replay(workload, model), Adaptive()
            one, many = (
                sum(
                    replay.decide(scheduler, truth, limit).evaluations
                    for truth in workload.truths(model, FEW)
                )
                for limit in (1, FRONTIER)
            )
            found.append(many / one)
        yield Bar(
            f"up to {FRONTIER} evaluations at once, all points, {model}",
            "at most 10 % more than one at a time",
            _span(found),
            max(found) <= 1.1,
        )


def learning(scale: float) -> Iterator[Bar]:
    """Selectivities learnt from nothing, and learnt anew when all have changed, beside known ones. Around 0.2 they
    matter little; there is one workload more, where they are far apart."""
    points = {
        "20K of 40K, uniform": FIGURES[4][2],
        "20K of 5K, uniform": FIGURES[8][0],
        "20K of 5K, Zipf 1, up to 11 long": FIGURES[7][-1],
        "20K of 5K, uniform, far apart": replace(FIGURES[8][0], chances=FAR_APART),
    }
    for words, point in points.items():
        workload = make(point.scaled(scale))
        # Under the other model selectivities follow from the subscriptions: they are not drawn, and cannot change.
        for model in MODELS if point.chances == AROUND else (INDEPENDENT,):
            learner = Replay(workload, None)
            yield _learnt(f"nothing known, {words}, {model}", learner, Replay(workload, model), model, 0)
            if model == INDEPENDENT:
                learner.workload = workload.with_other_chances(seed=1)
                knower = Replay(learner.workload, model)
                yield _learnt(f"all selectivities changed, {words}", learner, knower, model, LEARNING + AFTER)


def _learnt(what: str, learner: Replay, knower: Replay, model: Model, first: int) -> Bar:
    """How many more evaluations than one who knows, at once and after learning for a while."""
    scheduler, spent = Adaptive(), []
    for truth in knower.workload.truths(model, LEARNING + AFTER, first):
        ours = learner.decide(scheduler, truth, learns=True).evaluations
        spent.append((ours, knower.decide(scheduler, truth).evaluations))
    (before, known), (after, known_after) = (
        np.sum(part, axis=0) for part in (spent[: AFTER // 10], spent[LEARNING:])
    )
    return Bar(
        f"{what}, after {LEARNING} events",
        "within 5 % of known selectivities",
        f"{after / known_after - 1:+.1%} ({before / known - 1:+.1%} in the first {AFTER // 10} events)",
        bool(after <= 1.05 * known_after),
    )


def overhead(scale: float) -> Iterator[Bar]:
    """What an event costs besides the operators themselves, from its docket to the last verdict."""
    for words, point in (("uniform", FIGURES[4][-1]), ("Zipf", FIGURES[5][-1])):
        workload = make(point.scaled(scale))
        some = np.random.default_rng(1).choice(len(workload), max(1, len(workload) // 100), replace=False)
        for model in MODELS:
            replay, truths = Replay(workload, model), list(workload.truths(model, FEW))
            for touched, rows, most in (
                ("all undecided", replay.rows, 25e-3),
                ("1 % touched", np.sort(some).astype(np.int32), 1e-3),
            ):
                times = np.array([[_timed(replay, rows, truth) for truth in truths] for _ in range(5)])
                opening, choosing, settling = times.min(axis=0).mean(axis=0) * 1e3
                taken = times.sum(axis=2).min(axis=0).mean()
                yield Bar(
                    f"scheduling, {len(workload):,} subscriptions, {words}, {model}, {touched}",
                    f"under {most * 1e3:.0f} ms an event",
                    f"{taken * 1e3:.3g} ms (opening {opening:.2g}, choosing {choosing:.2g}, settling {settling:.2g})",
                    bool(taken < most),
                )


def _timed(replay: Replay, rows: np.ndarray, truth: Bools) -> Floats:
    """Seconds spent opening the docket, choosing evaluations, and settling what they say."""
    clock, scheduler = time.process_time, Adaptive()
    spent = np.zeros(3)
    start = clock()
    docket = Docket(replay.table, rows, scheduler.shared)
    scheduler.open(docket)
    spent[0] = clock() - start
    while docket.undecided:
        start = clock()
        chosen = scheduler.next(docket, FRONTIER)
        spent[1] += clock() - start
        numbers = docket.arrays.ev_id[chosen]
        values, seconds = np.where(truth[numbers], TRUE, FALSE), replay.workload.cost[numbers]
        start = clock()
        docket.settle(chosen, values, seconds)
        spent[2] += clock() - start
    return spent


def ordering(scale: float) -> Iterator[Bar]:
    """Linked chains of Figures 4 and 5 at their largest."""
    for words, figure in (("uniform", 4), ("Zipf", 5)):
        point = FIGURES[figure][-1].scaled(scale)
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                _ORDERING,
                json.dumps([point.subscriptions, point.predicates, point.zipf]),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        taken, memory = json.loads(done.stdout)
        what = f"ordering {point.subscriptions:,} chains, {words}"
        yield Bar(f"{what}: time", "under 60 s", f"{taken:.2f} s", taken < 60)
        yield Bar(f"{what}: memory", "under 1 GB", f"{memory / 1e9:.2f} GB", memory < 1e9)


def in_flight(scale: float) -> Iterator[Bar]:
    """Many events through an async operator, on one core."""
    flying = most = 0

    @operator(cost=ASYNC_SECONDS)
    async def near(event: Event, place: int) -> bool:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(ASYNC_SECONDS)
        flying -= 1
        return event.attributes["place"] == place

    engine = Engine(operators=[near])
    for place in range(20):
        engine.subscribe(f"s{place}", f"{{near({place}), near({(place + 1) % 20})}}")
    events = [
        Event(id=f"e{i}", attributes={"place": i % 20}) for i in range(max(20, round(ASYNC_EVENTS * scale)))
    ]
    start = time.perf_counter()
    engine.publish_many(events)
    taken = time.perf_counter() - start
    calls = sum(engine.learnt().rows["calls"].to_pylist())
    yield Bar(
        f"{len(events):,} events through an async operator of {ASYNC_SECONDS * 1e3:.0f} ms",
        "at least 20 evaluations in flight",
        f"{most}; {calls:,.0f} evaluations in {taken:.1f} s, {calls * ASYNC_SECONDS / taken:.0f} at once on average",
        most >= 20,
    )


def _figures() -> Iterator[tuple[int, Model]]:
    return ((number, model) for number in FIGURES for model in MODELS)


def _span(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f} x"


BARS: tuple[Callable[[float], Iterator[Bar]], ...] = (
    evaluations,
    unequal_costs,
    readings,
    frontier,
    learning,
    overhead,
    ordering,
    in_flight,
)
