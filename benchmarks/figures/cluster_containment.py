"""RSS cluster, Figures 9(c), 9(d) and 9(f): how many subscriptions are in front by containment, and what it takes to insert one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.cluster import ours
from benchmarks.cluster.runs import SEEDS, Points
from benchmarks.cluster.server import Server
from benchmarks.cluster.workload import Parameters, Workload, make
from benchmarks.measure import Figure
from tidings import Engine
from tidings.containment import forest

ALL, CHECKED, OURS = "RSS cluster, no index", "RSS cluster, containment", "Tidings, containment"
_COUNTS = (20_000, 40_000, 60_000, 80_000, 100_000)
_OVERLAPS = (10, 50, 90)
_LAST = 1_000  # insertions of which the mean is taken
_TEXT_ONLY = "The curve is lost; what is published is read from the text."


def run(scale: float) -> Iterator[Figure]:
    sizes, times, by_overlap = Points(), Points(), Points()
    for seed in SEEDS:
        parameters = Parameters(
            subscriptions=round(_COUNTS[-1] * scale), matches=max(1, 100 * scale), seed=seed
        )
        workload = make(parameters)
        _by_count(workload, scale, sizes, times)
        for overlap in _OVERLAPS:
            if overlap / 100 == parameters.overlap:
                entries = sizes.last(CHECKED), sizes.last(OURS)
            else:
                other = make(replace(parameters, overlap=overlap / 100))
                entries = len(_inserted(other, True)[0].index), _roots(ours.engine(other))
            by_overlap.add(CHECKED, overlap, entries[0])
            by_overlap.add(OURS, overlap, entries[1])
    whole = round(_COUNTS[-1] * scale)
    yield sizes.figure(
        "a subscription",
        name="cluster-9c",
        title="Subscriptions in front by number of subscriptions, half of them contained",
        x_label="subscriptions",
        y_label="subscriptions in front",
        published="reduced to 50 % by indexing",
        published_series={"RSS cluster": [count * scale / 2 for count in _COUNTS]},
        note=_TEXT_ONLY,
    )
    yield by_overlap.figure(
        "a subscription",
        name="cluster-9d",
        title=f"Subscriptions in front by overlap, {whole:,} subscriptions",
        x_label="subscriptions that have a container by construction, %",
        y_label="subscriptions in front",
        published="about the number of subscriptions x (1 - overlap)",
        published_series={"RSS cluster": [whole * (1 - overlap / 100) for overlap in _OVERLAPS]},
        note=f"{_TEXT_ONLY} Some subscriptions have a container by chance besides, the more the more roots there are.",
    )
    reference = times.medians()[ALL][0]
    yield times.figure(
        f"{reference * 1e6:.0f} µs, the first point without an index",
        reference,
        name="cluster-9f",
        title="CPU time to insert a subscription",
        x_label="subscriptions",
        y_label="time, relative",
        published="containment takes longer than no index, and grows with the number of subscriptions",
        log_y=True,
        note=f"RSS cluster: the mean of the last {_LAST:,} insertions. Tidings: the mean of as many that are subscribed by their texts, and the time of the forest of containment of all, by subscription.",
    )


def _by_count(workload: Workload, scale: float, sizes: Points, times: Points) -> None:
    stops = [round(count * scale) for count in _COUNTS]
    _inserted(workload, True, [100])  # compiles
    _, plain_times, _ = _inserted(workload, False, stops)
    _, checked_times, roots = _inserted(workload, True, stops)
    engine = ours.engine(workload)
    for i, (count, stop) in enumerate(zip(_COUNTS, stops, strict=True)):
        some = Engine()
        some.index.take_over(engine.index, _first(engine, stop))
        start = time.process_time()
        found = _roots(some)
        each = (time.process_time() - start) / stop + _subscribe(some)
        for name, size in ((ALL, stop), (CHECKED, roots[i]), (OURS, found)):
            sizes.add(name, count, size)
        for name, taken in ((ALL, plain_times[i]), (CHECKED, checked_times[i]), (OURS, each)):
            times.add(name, count, taken)


def _inserted(
    workload: Workload, contains: bool, stops: list[int] | None = None
) -> tuple[Server, list[float], list[int]]:
    """A server with all subscriptions; before each stop, the CPU time of one of the last, and the entries of the index."""
    server = Server(workload.subscriptions, workload.value, 6, contains)
    times, sizes, first = [], [], 0
    for stop in stops or [len(workload.subscriptions)]:
        last = max(first, stop - _LAST)
        for s in range(first, last):
            server.insert(s)
        start = time.process_time()
        for s in range(last, stop):
            server.insert(s)
        times.append((time.process_time() - start) / (stop - last))
        sizes.append(len(server.index))
        first = stop
    return server, times, sizes


def _subscribe(engine: Engine) -> float:
    """CPU seconds to add one more, by its text."""
    ids = engine.index.subscriptions.id_list(list(range(_LAST)))
    texts = [(f"again {id}", engine.text(id)) for id in ids]
    start = time.process_time()
    for id, text in texts:
        engine.subscribe(id, text)
    return (time.process_time() - start) / len(texts)


def _first(engine: Engine, count: int) -> np.ndarray:
    ids = engine.index.subscriptions.id_list(list(range(len(engine))))
    return np.array([int(id[1:]) < count for id in ids])


def _roots(engine: Engine) -> int:
    return int((forest.parents(engine) < 0).sum())
