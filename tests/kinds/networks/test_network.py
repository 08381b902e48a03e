"""The public face: what is refused and how it is said, tables, folders, snapshots, batches, sizes."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from tests.kinds.networks.networks import random_event, random_twin
from tests.kinds.networks.test_updates import change
from tidings import Network, NetworkError
from tidings.errors import EventError, IndexFileError
from tidings.kinds.networks import naive


def small() -> Network:
    network = Network()
    for name, where in (("p", None), ("a", "topic = 'x'"), ("b", None), ("c", "age > 5")):
        network.add_node(name, where)
    network.add_edge("p", "a")
    network.add_edge("a", "b", "geo = 'CA'")
    network.add_edge("b", "c")
    return network


EVENT = {"topic": "x", "geo": "CA", "age": 7}


def test_what_there_is() -> None:
    network = small()
    assert len(network) == 4
    assert "a" in network
    assert "z" not in network
    assert dict(network.nodes()) == {"p": None, "a": "topic = 'x'", "b": None, "c": "age > 5"}
    assert set(network.edges()) == {("p", "a", None), ("a", "b", "geo = 'CA'"), ("b", "c", None)}
    assert list(network.evaluate("p", EVENT)) == ["a", "b", "c"]
    assert network.name(network.number("b")) == "b"


def test_a_condition_is_an_expression_too() -> None:
    from tidings.language.parser import parse

    network = small()
    network.set_where("a", parse("WHERE topic IN ('y', 'z')").where)
    assert dict(network.nodes())["a"] == "topic IN ('y', 'z')"
    assert list(network.evaluate("p", {**EVENT, "topic": "z"})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda n: n.add_node("p"), "node 'p' is there already"),
        (lambda n: n.add_node(5), "a text, not 5"),
        (lambda n: n.add_edge("p", "z"), "no node 'z'"),
        (lambda n: n.add_edge("p", "a"), "edge 'p' -> 'a' is there already"),
        (lambda n: n.add_node("z", "topic = = 1"), "expression of node 'z' cannot be read: found '=' at 1:9"),
        (lambda n: n.add_edge("p", "b", "topic ="), "expression of edge 'p' -> 'b' cannot be read"),
        (lambda n: n.add_node("z", "(?a, b, ?c)"), "has a graph pattern"),
        (lambda n: n.add_node("z", ["x"]), "labels need Network(match=…)"),
        (lambda n: n.add_node("z", cost=-1), "cost of node 'z' is -1"),
        (lambda n: n.add_node("z", cost=float("nan")), "cost of node 'z' is nan"),
        (lambda n: n.remove_node("z"), "no node 'z'"),
        (lambda n: n.remove_edge("p", "c"), "no edge 'p' -> 'c'"),
        (lambda n: n.set_where(("p", "c"), None), "no edge 'p' -> 'c'"),
        (lambda n: n.evaluate("z", {}), "no node 'z'"),
        (lambda n: n.evaluate("p", {}, "magic"), "no algorithm 'magic'; give one of auto"),
        (lambda n: Network(match="magic"), "cannot match by 'magic'"),
    ],
)
def test_mistakes(wrong, said: str) -> None:
    network = small()
    before = list(network.nodes()), list(network.edges())
    with pytest.raises(NetworkError) as error:
        wrong(network)
    assert said in str(error.value)
    assert (list(network.nodes()), list(network.edges())) == before


def test_a_cycle_has_no_topological_order() -> None:
    network = small()
    assert list(network.evaluate("p", EVENT, "dag")) == ["a", "b", "c"]
    network.add_edge("c", "a")
    network.rebuild()
    with pytest.raises(NetworkError, match="without cycles"):
        network.evaluate("p", EVENT, "dag")


def test_an_event_is_a_document() -> None:
    with pytest.raises(EventError):
        small().evaluate("p", 5)  # type: ignore[arg-type]


# ------------------------------------------------------------------ tables

NODES = {"id": ["p", "a", "b"], "where": [None, "x = 1", " "], "cost": [None, 1, 2.5]}
EDGES = {"source": ["p", "a"], "target": ["a", "b"], "where": ["y = 2", None]}


def test_tables() -> None:
    network = Network.from_tables(pa.table(NODES), pa.table(EDGES))
    assert dict(network.nodes()) == {"p": None, "a": "x = 1", "b": None}
    assert set(network.edges()) == {("p", "a", "y = 2"), ("a", "b", None)}
    assert list(network.top("p", {"x": 1, "y": 2})) == [("a", 1.0), ("b", 3.5)]


def test_numbers_are_names_too_and_pieces_of_tables_are_put_together() -> None:
    nodes = pa.concat_tables([pa.table({"id": [1, 2]}), pa.table({"id": [3]})])
    network = Network.from_tables(nodes.slice(1), pa.table({"source": [2], "target": [3]}))
    assert list(network.evaluate("2", {})) == ["3"]
    assert "1" not in network


@pytest.mark.parametrize(
    ("nodes", "edges", "said"),
    [
        ({"id": ["p", "a", "p"]}, {}, "1 ids are given to more than one node: 'p'"),
        ({}, {"target": ["a", "z"], "source": ["y", "p"]}, "2 edges name nodes that are not there: 'y', 'z'"),
        ({"id": ["p", None, "b"]}, {}, "1 nodes have no id"),
        ({"where": [None, "x = = 1", None]}, {}, "expression of node 'a' cannot be read: found '=' at 1:5"),
        ({}, {"where": [None, "x ="]}, "expression of edge 'a' -> 'b' cannot be read"),
        ({"cost": [0, -1, 0]}, {}, "1 costs are no numbers from 0 up, such as -1 of node 'a'"),
        ({"cost": ["x", "y", "z"]}, {}, "'cost' is not of numbers"),
        (
            {},
            {"source": ["p", "p"], "target": ["a", "a"]},
            "1 edges are given more than once, such as edge 'p'",
        ),
    ],
)
def test_tables_that_cannot_be(nodes: dict, edges: dict, said: str) -> None:
    with pytest.raises(NetworkError) as error:
        Network.from_tables(pa.table({**NODES, **nodes}), pa.table({**EDGES, **edges}))
    assert said in str(error.value)


def test_a_missing_column() -> None:
    with pytest.raises(NetworkError, match="needs a column 'target'; its columns are: source"):
        Network.from_tables(pa.table(NODES), pa.table({"source": ["p"]}))


def test_many_unknown_nodes_are_counted_and_a_few_named() -> None:
    edges = pa.table({"source": ["p"] * 9, "target": [f"z{i}" for i in range(9)]})
    with pytest.raises(
        NetworkError, match="9 edges name nodes that are not there: 'z0', 'z1', 'z2' and 6 more"
    ):
        Network.from_tables(pa.table(NODES), edges)


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    ("match", "labels", "expected"),
    [
        ("subset", ["A"], True),
        ("subset", ["A", "B"], True),
        ("subset", ["A", "D"], False),
        ("subset", [], True),
        ("superset", ["A", "B", "C"], True),
        ("superset", ["A", "B", "C", "D"], True),
        ("superset", ["A", "B"], False),
        ("superset", [], False),
        ("overlap", ["C", "D"], True),
        ("overlap", ["D"], False),
        ("overlap", [], False),
    ],
)
def test_match_functions(match: str, labels: list[str], expected: bool) -> None:
    network = Network(match)
    network.add_node("p")
    network.add_node("n", labels)
    network.add_edge("p", "n")
    event = {"labels": ["A", "B", "C"]}
    assert list(network.evaluate("p", event)) == ["n"] * expected
    nodes = pa.table({"id": ["p", "n"], "labels": pa.array([None, labels], pa.list_(pa.string()))})
    edges = pa.table({"source": ["p"], "target": ["n"]})
    tables = Network.from_tables(nodes, edges, match=match)
    assert list(tables.evaluate("p", event)) == ["n"] * expected


def test_labels_of_an_event_without_any() -> None:
    network = Network("superset", labels="tags")
    network.add_node("p")
    network.add_node("n", [])
    network.add_edge("p", "n")
    assert list(network.evaluate("p", {})) == ["n"]
    assert list(network.evaluate("p", {"tags": ["A"]})) == []


# ------------------------------------------------------------------ folders


@pytest.mark.parametrize("seed", range(3))
def test_saved_and_loaded(tmp_path, seed: int) -> None:
    rng = random.Random(seed)
    for case in range(10):
        twin = random_twin(rng, 8, 2, costly=True)
        for _ in range(6):
            change(twin, rng)
        twin.network.save(tmp_path / str(case))
        loaded = Network.load(tmp_path / str(case))
        assert sorted(loaded.nodes()) == sorted(twin.network.nodes())
        assert sorted(loaded.edges(), key=str) == sorted(twin.network.edges(), key=str)
        for source in twin.nodes:
            event = random_event(rng)
            assert dict(loaded.top(source, event)) == dict(twin.network.top(source, event))


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("source", 0, 99),
        ("target", 1, -1),
        ("node_where", 0, 7),
        ("edge_where", 0, -2),
        ("edge_cost", 0, -1.0),
        ("node_cost", 0, np.nan),
        ("name_start", 1, 99),
        ("text_blob", 0, 0xFF),
        ("text_blob", 6, ord("!")),
    ],
)
def test_damage_is_refused(tmp_path, name: str, at: int, value: float) -> None:
    small().save(tmp_path)
    array = np.load(tmp_path / f"{name}.npy")
    array[at] = value
    np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(IndexFileError, match="damaged"):
        Network.load(tmp_path)


def test_a_folder_without_a_network(tmp_path) -> None:
    with pytest.raises(IndexFileError, match="holds no index"):
        Network.load(tmp_path)


# ------------------------------------------------------------------ moments


@pytest.mark.parametrize("seed", range(4))
def test_an_evaluation_goes_on_over_the_network_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        twin = random_twin(rng, 10, 2.0)
        twin.network.rebuild()
        under_way = []
        for _ in range(5):
            if twin.nodes:
                source, event = rng.choice(list(twin.nodes)), random_event(rng)
                expected = naive.reached(twin.nodes, twin.edges, source, event)
                evaluation = twin.network.evaluate(source, event, rng.choice(["auto", "scc-skip", "general"]))
                begun = list(islice(evaluation, rng.randrange(3)))
                under_way.append((evaluation, begun, expected))
            change(twin, rng)
            if rng.random() < 0.2:
                twin.network.rebuild()
        for evaluation, begun, expected in under_way:
            rest = list(evaluation)
            assert len(begun) + len(rest) == len(expected)
            assert {*begun, *rest} == expected


def test_ids_are_made_anew_aside_while_the_network_changes() -> None:
    rng = random.Random(7)
    for _ in range(15):
        twin = random_twin(rng, 12, 2.0)
        twin.network.rebuild()
        for _ in range(5):
            change(twin, rng)
        thread = twin.network.rebuild_aside()
        for _ in range(5):
            change(twin, rng)
        thread.join()
        assert len(twin.network) == len(twin.nodes)
        for source in twin.nodes:
            event = random_event(rng)
            expected = naive.reached(twin.nodes, twin.edges, source, event)
            assert set(twin.network.evaluate(source, event, "scc-skip")) == expected


def test_batches() -> None:
    rng = random.Random(3)
    twin = random_twin(rng, 12, 2.0)
    twin.network.rebuild()
    change(twin, rng)
    sources = [rng.choice(list(twin.nodes)) for _ in range(50)]
    events = [random_event(rng) for _ in range(50)]
    places, numbers = twin.network.reached(sources, events)
    for i, (source, event) in enumerate(zip(sources, events, strict=True)):
        names = {twin.network.name(number) for number in numbers[places == i].tolist()}
        assert names == naive.reached(twin.nodes, twin.edges, source, event)
    assert [len(column) for column in twin.network.reached([], [])] == [0, 0]


# ------------------------------------------------------------------ sizes


def test_a_chain_of_200_000_nodes_needs_no_recursion() -> None:
    count = 200_000
    ids = np.arange(count)
    where = pa.array(["x = 1", None]).take(pa.array(ids % 2))
    nodes = pa.table({"id": ids, "where": where})
    edges = pa.table({"source": ids, "target": np.roll(ids, -1)})  # a cycle, so that it is one group
    network = Network.from_tables(nodes, edges)
    for algorithm in ("auto", "scc-skip", "index"):
        assert len(network.evaluate("5", {"x": 1}, algorithm).numbers()) == count
    assert len(network.evaluate("5", {"x": 2}).numbers()) == 0
