"""G-ToPSS, Figures 9(a), 9(c) and 9(d): memory by number, overlap and size of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.baselines import Counting
from benchmarks.contenders import COUNTING, GTOPSS, OURS, scaled
from benchmarks.measure import Figure, ratios
from benchmarks.tidings_index import Tidings
from benchmarks.workloads import Parameters, make

_BYTES = "index size, relative"


def run(scale: float) -> Iterator[Figure]:
    yield _figure(
        "gtopss-9a",
        "Memory by number of subscriptions",
        "subscriptions",
        {
            n: scaled(GTOPSS, scale * n / GTOPSS.subscriptions)
            for n in (10_000, 20_000, 30_000, 40_000, 50_000)
        },
        "linear",
    )
    overlaps = {
        overlap: replace(scaled(GTOPSS, scale), overlap=overlap / 100) for overlap in (10, 30, 50, 70, 90)
    }
    yield _figure(
        "gtopss-9c",
        "Memory by overlap of subscriptions",
        "overlap of subscriptions, %",
        overlaps,
        "falls with overlap, for the matrix and for matrix and subscriptions together",
        parts=True,
    )
    sizes = {
        m: replace(scaled(GTOPSS, scale), subscription_size=(k, m))
        for k, m in ((3, 4), (4, 6), (5, 8), (6, 10), (7, 12))
    }
    yield _figure(
        "gtopss-9d",
        "Memory by size of subscriptions",
        "edges in a subscription",
        sizes,
        "grows with the number of edges",
    )


def _figure(
    name: str, title: str, x_label: str, points: dict[int, Parameters], published: str, parts: bool = False
) -> Figure:
    ours: list[float] = []
    counting: list[float] = []
    matrix: list[float] = []
    for parameters in points.values():
        workload = make(parameters)
        ours.append(Tidings(workload).nbytes)
        baseline = Counting(workload)
        counting.append(baseline.nbytes)
        matrix.append(baseline.matrix_bytes)
    first = next(iter(points.values()))
    series = {OURS: ratios(ours, ours[0]), COUNTING: ratios(counting, ours[0])}
    if parts:
        series["counting, matrix alone"] = ratios(matrix, ours[0])
    return Figure(
        name=name,
        title=title,
        x_label=x_label,
        y_label=_BYTES,
        x=list(points),
        series=series,
        reference=f"{ours[0] / first.subscriptions:.0f} bytes a subscription, the leftmost point of Tidings",
        published=published,
    )
