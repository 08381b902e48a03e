"""The paper's own examples: what is found, and what the index is spared."""

from __future__ import annotations

import pytest

from tidings import Network

ABC = {"labels": ["A", "B", "C"]}


def labelled(match: str, labels: dict[str, str], edges: dict[str, str]) -> Network:
    """Nodes with a label for each letter, and their children, named by one letter each."""
    network = Network(match)
    for name, letters in labels.items():
        network.add_node(name, list(letters))
    for source, targets in edges.items():
        for target in targets:
            network.add_edge(source, target)
    network.rebuild()
    return network


@pytest.fixture
def figure_4() -> Network:
    """Valid for {A, B, C} are 2, 3, 5, 6 and 8; 0 leads to 1, 4 and 5, and 2 and 3 are behind 1, which is not valid."""
    labels = {"0": "", "1": "AD", "2": "A", "3": "B", "4": "D", "5": "AB", "6": "C", "7": "CE", "8": "ABC"}
    edges = {"0": "145", "1": "2", "2": "3", "4": "7", "5": "67", "6": "8", "7": "8"}
    return labelled("subset", labels, edges)


@pytest.mark.parametrize("algorithm", ["dag", "dag-skip", "general", "scc-skip", "bfs", "index", "auto"])
def test_figure_4(figure_4: Network, algorithm: str) -> None:
    assert set(figure_4.evaluate("0", ABC, algorithm)) == {"5", "6", "8"}


def test_figure_5_skips_what_is_not_reached(figure_4: Network) -> None:
    plain, skipping = (figure_4.evaluate("0", ABC, name) for name in ("dag", "dag-skip"))
    assert set(plain) == set(skipping)
    assert plain.retrieved == 5  # 2, 3, 5, 6, 8
    assert skipping.retrieved < 5


def test_figures_7_and_9() -> None:
    """Valid if a label is among {A, B, C}: 1, 2, 5, 6 and 8; from 3 an event comes to 8 and then to 1."""
    labels = {"0": "D", "1": "A", "2": "B", "3": "", "4": "D", "5": "C", "6": "A", "7": "D", "8": "AB"}
    # 2 stands before all; 5 and 6 are a component of their own; 0, 1 and 8 are one.
    edges = {"2": "56", "3": "478", "4": "5", "5": "6", "6": "58", "8": "01", "0": "8", "1": "0"}
    network = labelled("overlap", labels, edges)
    for algorithm in ("general", "scc-skip", "bfs", "index", "auto"):
        assert set(network.evaluate("3", ABC, algorithm)) == {"8", "1"}, algorithm
    plain, skipping = (network.evaluate("3", ABC, name) for name in ("general", "scc-skip"))
    assert set(plain) == set(skipping)
    assert plain.retrieved == 4  # 1, 5, 6 and 8: no edge leads to 2, so it is not in the index
    assert skipping.retrieved == 3  # looking for 4 it comes to 5 or 6, and passes over the other
    assert plain.looked == skipping.looked == 6  # the edges out of the publisher and of both results


@pytest.mark.parametrize("algorithm", ["general", "scc-skip"])
def test_figure_10_the_first_result_needs_one_retrieval(algorithm: str) -> None:
    """A ring is numbered from where it is entered, whatever the order in which its nodes were given."""
    network = Network("subset")
    ring = [f"n{i}" for i in range(50)]
    network.add_node("p")
    for name in reversed(ring):
        network.add_node(name, ["A"])
    for source, target in zip(ring, [*ring[1:], ring[0]], strict=True):
        network.add_edge(source, target)
    network.add_edge("p", "n20")
    network.rebuild()
    evaluation = network.evaluate("p", ABC, algorithm)
    assert next(evaluation) == "n20"
    assert evaluation.retrieved == 1
    assert len(list(evaluation)) == 49
    assert evaluation.retrieved == 50


def test_the_index_baseline_retrieves_all_before_the_first_result() -> None:
    network = Network()
    network.add_node("p")
    for i in range(40):
        network.add_node(f"n{i}", "x = 1")
        network.add_edge(f"n{i - 1}" if i else "p", f"n{i}")
    network.rebuild()
    evaluation = network.evaluate("p", {"x": 1}, "index")
    next(evaluation)
    assert evaluation.retrieved == 40


def test_auto_takes_the_index_where_a_node_has_far_more_children_than_accept() -> None:
    network = Network()
    network.add_node("p")
    for i in range(3000):
        network.add_node(f"n{i}", f"x = {i}")
        network.add_edge("p", f"n{i}")
    network.rebuild()
    evaluation = network.evaluate("p", {"x": 7})
    assert list(evaluation) == ["n7"]
    assert evaluation.verified == 0
    assert evaluation.retrieved == 1
    # From a node of few children it verifies those.
    evaluation = network.evaluate("n7", {"x": 7})
    assert list(evaluation) == []
    assert evaluation.retrieved == 0
