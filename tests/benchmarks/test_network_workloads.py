"""The exchange's statistics are those of Graph constraints, Table 1, and what is written says what the numbers say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks import network_kernels
from benchmarks.network_workloads import (
    ADVERTISER,
    ATTRIBUTES,
    NETWORK,
    PUBLISHER,
    SELECTIVITIES,
    Exchange,
    Graph,
    event_attributes,
    make,
    make_generated,
    make_large,
)
from tidings.language.parser import parse
from tidings.language.query import And, Comparison, Condition, OneOf, Or

TABLE_1 = {
    "nodes": 71_097,
    "edges": 87_799,
    "publishers": 60_011,
    "networks": 282,
    "advertisers": 10_804,
    "reachable": 4_802,
    "most reachable": 5_998,
    "components": 70_969,
    "largest component": 126,
    "out of a publisher": 1.3,
    "into a network": 224.4,
    "out of a network": 42.1,
    "into an advertiser": 2.3,
    "publisher to advertiser": 17_000,
}
# Table 2, by selectivity: valid, reachable, result, edges out of the result.
TABLE_2 = {"1/16": (693, 34, 3, 47), "1/4": (3_081, 452, 125, 740), "1": (11_086, 4_837, 4_837, 8_588)}


@cache
def exchange(selectivity: str) -> Exchange:
    return make(SELECTIVITIES[selectivity])


def components(graph: Graph) -> np.ndarray:
    """The sizes of the strongly connected components, the largest first."""
    first, target = graph.by_source()
    number, low, stack, path, edge = (np.zeros(len(graph) + 1, np.int64) for _ in range(5))
    count = network_kernels.components(first, target, number, low, stack, path, edge)
    sizes = np.sort(np.bincount(-low[:-1])[1:])[::-1]
    assert len(sizes) == count
    return sizes


def reachable(graph: Graph, publishers: np.ndarray) -> np.ndarray:
    first, target = graph.by_source()
    out = np.zeros((len(publishers), 3), np.int64)
    network_kernels.search_all(
        publishers.astype(np.int32),
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


def test_the_graph_has_the_statistics_of_table_1() -> None:
    graph = exchange("1").graph
    publisher, network, advertiser = (graph.kind == kind for kind in (PUBLISHER, NETWORK, ADVERTISER))
    sizes = components(graph)
    reached = reachable(graph, np.random.default_rng(1).permutation(int(publisher.sum()))[:3000])
    into, out = (np.bincount(ends, minlength=len(graph)) for ends in (graph.target, graph.source))
    found = {
        "nodes": len(graph),
        "edges": len(np.unique(graph.source.astype(np.int64) * len(graph) + graph.target)),
        "publishers": publisher.sum(),
        "networks": network.sum(),
        "advertisers": advertiser.sum(),
        "reachable": reached.mean(),
        "most reachable": reached.max(),
        "components": len(sizes),
        "largest component": sizes[0],
        "out of a publisher": out[publisher].mean(),
        "into a network": into[network].mean(),
        "out of a network": out[network].mean(),
        "into an advertiser": into[advertiser].mean(),
        "publisher to advertiser": (publisher[graph.source] & advertiser[graph.target]).sum(),
    }
    off = {
        name: (found[name], value) for name, value in TABLE_1.items() if abs(found[name] / value - 1) > 0.05
    }
    assert not off
    assert sizes[1:3].tolist() == [4, 1]
    assert reached.min() == 1
    assert into[publisher].max() == 0 == out[advertiser].max()
    assert into[~publisher].min() > 0 < out[publisher].min()


@pytest.mark.parametrize("selectivity", TABLE_2)
def test_node_sets_come_near_table_2(selectivity: str) -> None:
    valid, *others = exchange(selectivity).sizes().values()
    published, *rest = TABLE_2[selectivity]
    assert abs(valid / published - 1) < 0.05
    assert all(0.7 < ours / theirs < 1.4 for ours, theirs in zip(others, rest, strict=True))


def test_a_larger_graph_keeps_the_averages() -> None:
    one, two = make_generated(1, queries=10), make_generated(2, queries=10)
    assert len(two.graph) == 2 * len(one.graph)
    assert len(two.graph.source) == 2 * len(one.graph.source)
    assert components(two.graph)[0] == 2 * components(one.graph)[0]


def test_a_large_component_is_one() -> None:
    large = make_large(nodes=10_000, edges=30_000, component=1000, queries=5)
    assert components(large.graph)[:2].tolist() == [1000, 1]
    assert len(large.graph.source) == 30_000
    assert len(large.publishers) == len(large.queries()) == 5


def test_texts_say_what_the_truth_table_says() -> None:
    workload = exchange("1/4")
    for number, text in enumerate(workload.expressions.texts[:50]):
        condition = parse(f"WHERE {text}").where
        for event in workload.events[:20].tolist():
            assert holds(condition, event_attributes(event)) == workload.expressions.truth[event, number], (
                text
            )


def holds(condition: Condition, attributes: dict[str, str]) -> bool:
    match condition:
        case And(parts):
            return all(holds(part, attributes) for part in parts)
        case Or(parts):
            return any(holds(part, attributes) for part in parts)
        case Comparison(left, "=", right):
            return attributes[left.path] == right.text  # type: ignore[union-attr]
        case OneOf(operand, options):
            return attributes[operand.path] in {option.text for option in options}  # type: ignore[union-attr]
    raise AssertionError(condition)


def test_tables_name_every_node_and_edge() -> None:
    workload = exchange("1/16")
    nodes, edges = workload.node_table(), workload.edge_table()
    assert nodes.num_rows == 71_097 == len(set(nodes["id"].to_pylist()))
    assert nodes["where"].null_count == 60_011
    assert edges.num_rows == 87_799
    names = nodes["id"].to_pylist()
    assert edges["source"][5].as_py() == names[workload.graph.source[5]]
    publisher, attributes = workload.queries()[0]
    assert publisher.startswith("pub")
    assert list(attributes) == list(ATTRIBUTES)


def test_the_seed_decides_everything() -> None:
    first, second = make_generated(1, queries=10), make_generated(1, queries=10)
    assert (first.graph.target == second.graph.target).all()
    assert first.expressions.texts == second.expressions.texts
    assert (first.graph.target != make_generated(1, queries=10, seed=1).graph.target).any()
