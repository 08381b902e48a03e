"""The bars of networks, and Tables 1 to 3 of Graph constraints beside the published ones.

Evaluations are whole ones, from the event's attributes to the last result, one event at a time. Algorithms are compared
query by query (the median of the ratios). The large network is loaded in a process of its own, whose memory counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import network_kernels, network_workloads
from benchmarks.bars import Bar, show
from benchmarks.measure import ROOT, best, context, write_json
from benchmarks.network_runs import ALGORITHMS, AUTO, INDEX, LABELS, SKIPPING, Runs, load, mean, measure
from benchmarks.network_workloads import (
    ADVERTISER,
    EXCHANGE,
    NETWORK,
    PUBLISHER,
    SELECTIVITIES,
    Exchange,
    Graph,
)

SIZES = (1, 2, 3, 4, 5)
_COLUMNS = ("valid", "reachable", "result", "edges")
_TABLE_2 = {
    "1/16": (693, 34, 3, 47),
    "1/8": (1_336, 83, 11, 127),
    "1/4": (3_081, 452, 125, 740),
    "1/2": (7_064, 1_756, 1_126, 3_310),
    "1": (11_086, 4_837, 4_837, 8_588),
}
_TABLE_3 = {
    1: (2_751, 596, 166, 1_000),
    2: (5_489, 1_153, 320, 1_934),
    3: (8_263, 1_675, 466, 2_833),
    4: (10_968, 2_141, 593, 3_613),
    5: (13_677, 2_806, 782, 4_746),
}
_LARGE = """
import json, re, sys, time
import pyarrow.parquet as pq
from tidings import Network

folder, queries = sys.argv[1], json.loads(open(sys.argv[1] + "/queries.json").read())
start = time.perf_counter()
nodes, edges = pq.read_table(folder + "/nodes.parquet"), pq.read_table(folder + "/edges.parquet")
network = Network.from_tables(nodes, edges)
results = [len(network.evaluate(*queries[0], "scc-skip").numbers())]
loaded = time.perf_counter() - start
del nodes, edges
for query in queries[1:]:
    results.append(len(network.evaluate(*query).numbers()))
spent = (time.perf_counter() - start - loaded) / max(1, len(queries) - 1)
# Not ru_maxrss: a process begins with its parent's.
status = open("/proc/self/status").read()
memory = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024
print(json.dumps({"load": loaded, "evaluate": spent, "memory": memory, "results": results}))
"""


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    queries = max(50, round(1000 * scale))
    bars = [*statistics(), *table_1_network(queries), *choice(queries), *large(scale)]
    show(bars)
    result = {"scale": scale, "seed": 2011, "bars": [asdict(bar) for bar in bars]}
    write_json(folder / "network-bars.json", result | context())
    write_json(folder / "network-tables.json", {"tables": tables(queries), "seed": 2011, **context()})
    return all(bar.holds for bar in bars)


@cache
def exchange(selectivity: str) -> Exchange:
    return network_workloads.make(SELECTIVITIES[selectivity])


@cache
def runs(selectivity: str, queries: int) -> Runs:
    """The queries of one column of Table 2 by every algorithm."""
    return measure(exchange(selectivity), queries=queries)


@cache
def runs_of_size(times: int, queries: int) -> Runs:
    """The queries of one column of Table 3 by every algorithm."""
    return measure(network_workloads.make_generated(times), queries=queries)


def statistics() -> Iterator[Bar]:
    """The generator's graph beside Table 1."""
    rows = _table_1()
    name, published, ours = max(rows, key=lambda row: abs(row[2] / row[1] - 1))
    yield Bar(
        f"the generator's {len(rows)} statistics of Table 1",
        "within 5 %",
        f"at most {abs(ours / published - 1):.1%} off ({name})",
        abs(ours / published - 1) <= 0.05,
    )


def table_1_network(queries: int) -> Iterator[Bar]:
    """Selectivity 1/4: entities, first result, time of auto."""
    found = runs("1/4", queries)
    ours, theirs = (mean(found.retrieved[name]) for name in (SKIPPING, INDEX))
    yield Bar(
        "SCC skipping at 1/4, entities retrieved",
        "at most 0.4 x the index baseline's",
        f"{ours / theirs:.3f} x ({ours:,.0f}, {theirs:,.0f})",
        ours <= 0.4 * theirs,
    )
    first = float(np.nanmedian(found.first[SKIPPING] / found.first[INDEX]))
    yield Bar(
        "SCC skipping at 1/4, first result",
        "at most 0.5 x the index baseline's time",
        f"{first:.2f} x ({mean(found.first[SKIPPING]) * 1e6:.0f} µs, {mean(found.first[INDEX]) * 1e6:.0f} µs)",
        first <= 0.5,
    )
    asked = exchange("1/4").queries()[:queries]
    publishers, events = [publisher for publisher, _ in asked], [event for _, event in asked]
    network = load(exchange("1/4"))
    network.reached(publishers, events)
    together = best(lambda: network.reached(publishers, events), clock=time.process_time) / len(asked)
    for words, taken in (
        (f"events in batches of {len(asked):,}", together),
        ("one event alone, on average", mean(found.whole[AUTO])),
    ):
        yield Bar(
            f"auto at 1/4, {words}", "at most 100 µs an event", f"{taken * 1e6:.0f} µs", taken <= 100e-6
        )


def choice(queries: int) -> Iterator[Bar]:
    """`auto` beside the fastest, at every selectivity and every size."""
    points = {f"selectivity {name}": runs(name, queries) for name in SELECTIVITIES}
    points |= {f"size x{times}": runs_of_size(times, queries) for times in SIZES}
    for words, found in points.items():
        fastest = max(ALGORITHMS[1:], key=lambda name: found.slowdown(AUTO, name))
        ratio = found.slowdown(AUTO, fastest)
        yield Bar(
            f"auto, {words}",
            "within 1.25 x of the fastest",
            f"{ratio:.2f} x of {LABELS[fastest]} ({np.median(found.whole[AUTO]) * 1e6:.0f} µs)",
            ratio <= 1.25,
        )


def large(scale: float) -> Iterator[Bar]:
    """A million nodes, one component of 100,000."""
    nodes = max(10_000, round(1_000_000 * scale))
    workload = network_workloads.make_large(nodes, 3 * nodes, nodes // 10, queries=20)
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(workload.node_table(), Path(folder) / "nodes.parquet")
        pq.write_table(workload.edge_table(), Path(folder) / "edges.parquet")
        (Path(folder) / "queries.json").write_text(json.dumps(workload.queries()), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _LARGE, folder], cwd=ROOT, capture_output=True, text=True, check=True
        )
    found: dict[str, Any] = json.loads(done.stdout)
    assert abs(np.mean(found["results"]) - workload.sizes()["result"]) < 1e-6, "a wrong answer"
    what = f"{nodes:,} nodes, {3 * nodes:,} edges, a component of {nodes // 10:,}"
    yield Bar(f"{what}: loaded", "under 60 s", f"{found['load']:.1f} s", found["load"] < 60)
    memory = found["memory"] / 1e9
    yield Bar(
        f"{what}: memory",
        "under 1 GB",
        f"{memory:.2f} GB, {found['evaluate'] * 1e3:.1f} ms an event",
        memory < 1,
    )


def tables(queries: int) -> list[dict[str, Any]]:
    """Tables 1 to 3: rows of (name, published, ours)."""
    second, third = [], []
    for name, published in _TABLE_2.items():
        ours = exchange(name).sizes()
        second += [
            (f"{name}, {column}", there, ours[column])
            for column, there in zip(_COLUMNS, published, strict=True)
        ]
    for times, published in _TABLE_3.items():
        ours = network_workloads.make_generated(times).sizes()
        third += [
            (f"x{times}, {column}", there, ours[column])
            for column, there in zip(_COLUMNS, published, strict=True)
        ]
    return [
        {"title": "Table 1: the graph", "rows": _table_1()},
        {"title": "Table 2: node sets by selectivity", "rows": second},
        {"title": "Table 3: node sets by size of the graph", "rows": third},
    ]


@cache
def _table_1() -> list[tuple[str, float, float]]:
    graph = exchange("1").graph
    publisher, network, advertiser = (graph.kind == kind for kind in (PUBLISHER, NETWORK, ADVERTISER))
    into, out = (np.bincount(ends, minlength=len(graph)) for ends in (graph.target, graph.source))
    sizes, reached = component_sizes(graph), reachable(graph)
    found = (
        ("nodes", 71_097, len(graph)),
        ("edges", 87_799, len(graph.source)),
        ("publishers", 60_011, publisher.sum()),
        ("networks", 282, network.sum()),
        ("advertisers", 10_804, advertiser.sum()),
        ("reachable from a publisher, average", 4_802, reached.mean()),
        ("reachable from a publisher, most", 5_998, reached.max()),
        ("reachable from a publisher, fewest", 1, reached.min()),
        ("components", 70_969, len(sizes)),
        ("largest component", EXCHANGE.core, sizes[0]),
        ("next component", 4, sizes[1]),
        ("edges out of a publisher", 1.3, out[publisher].mean()),
        ("edges into a network", 224.4, into[network].mean()),
        ("edges out of a network", 42.1, out[network].mean()),
        ("edges into an advertiser", 2.3, into[advertiser].mean()),
        (
            "edges from publisher to advertiser",
            17_000,
            (publisher[graph.source] & advertiser[graph.target]).sum(),
        ),
    )
    return [(name, published, round(float(ours), 2)) for name, published, ours in found]


def component_sizes(graph: Graph) -> network_workloads.Longs:
    """The sizes of the strongly connected components, the largest first."""
    first, target = graph.by_source()
    number, low, stack, path, edge = (np.zeros(len(graph) + 1, np.int64) for _ in range(5))
    network_kernels.components(first, target, number, low, stack, path, edge)
    return np.sort(np.bincount(-low[:-1])[1:])[::-1]


def reachable(graph: Graph) -> network_workloads.Longs:
    """How many nodes are reachable from a publisher, for every tenth of them."""
    first, target = graph.by_source()
    publishers = np.flatnonzero(graph.kind == PUBLISHER)[::10].astype(np.int32)
    out = np.zeros((len(publishers), 3), np.int64)
    network_kernels.search_all(
        publishers,
        np.zeros(len(publishers), np.int64),
        first,
        target,
        np.full(len(graph), -1, np.int32),
        np.zeros((1, 0), np.bool_),
        np.zeros(len(graph), np.int32),
        np.zeros(len(graph) + 1, np.int64),
        out,
    )
    return out[:, 0]
