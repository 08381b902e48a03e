"""While nodes, edges and expressions come and go, every answer is right at every moment."""

from __future__ import annotations

import random
from threading import Event, Thread

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.examples import seeds
from tests.kinds.networks.networks import Twin, random_event, random_text, random_twin
from tidings import Network
from tidings.kinds.networks import naive

ALGORITHMS = ("auto", "general", "scc-skip", "bfs", "index")


def change(twin: Twin, rng: random.Random) -> None:
    """One random change; edges against the order of ids and into publishers among them."""
    nodes, edges = list(twin.nodes), list(twin.edges)
    where = random_text(rng) if rng.random() < 0.5 else None
    kind = rng.random()
    if kind < 0.45 and nodes:
        edge = rng.choice(nodes), rng.choice(nodes)
        if edge not in twin.edges:
            twin.add_edge(*edge, where)
    elif kind < 0.6:
        name = f"n{rng.randrange(2 * len(nodes) + 2)}"
        if name not in twin.nodes:
            twin.add_node(name, where)
    elif kind < 0.67 and nodes:
        twin.remove_node(rng.choice(nodes))
    elif kind < 0.8 and edges:
        twin.remove_edge(*rng.choice(edges))
    elif kind < 0.9 and nodes:
        twin.set_where(rng.choice(nodes), where)
    elif edges:
        twin.set_where(rng.choice(edges), where)


def check(twin: Twin, rng: random.Random) -> None:
    if not twin.nodes:
        return
    source, event = rng.choice(list(twin.nodes)), random_event(rng)
    expected = naive.reached(twin.nodes, twin.edges, source, event)
    for algorithm in ALGORITHMS:
        found = list(twin.network.evaluate(source, event, algorithm))
        assert len(found) == len(set(found)), algorithm
        assert set(found) == expected, (algorithm, source, event, twin.nodes, twin.edges)


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_random_interleavings(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        twin = random_twin(rng, rng.randrange(1, 14), rng.choice((0.5, 1.0, 2.0)))
        twin.network.rebuild()
        for _ in range(25):
            change(twin, rng)
            check(twin, rng)
            if rng.random() < 0.03:
                twin.network.rebuild()
        assert dict(twin.network.nodes()).keys() == twin.nodes.keys()
        assert {(a, b) for a, b, _ in twin.network.edges()} == twin.edges.keys()


# ------------------------------------------------------------------ groups


def ladder(count: int) -> Network:
    """p -> g0 -> g1 -> …, each accepting every event with x = 1."""
    network = Network()
    network.add_node("p")
    for i in range(count):
        network.add_node(f"g{i}", "x = 1")
        network.add_edge(f"g{i - 1}" if i else "p", f"g{i}")
    network.add_node("q")
    network.add_edge("q", f"g{count - 1}")
    network.rebuild()
    return network


def retrieved(network: Network, source: str) -> int:
    evaluation = network.evaluate(source, {"x": 1}, "scc-skip")
    list(evaluation)
    return evaluation.retrieved


def test_an_edge_against_the_order_merges_the_groups_between_and_no_others() -> None:
    network = ladder(20)
    assert retrieved(network, "q") == 1
    network.add_node("r")
    network.add_edge("r", "g10")
    network.add_edge("g12", "g8")  # g8 to g12 are one group now
    assert set(network.evaluate("r", {"x": 1}, "scc-skip")) == {f"g{i}" for i in range(8, 20)}
    assert retrieved(network, "r") == 12
    assert retrieved(network, "q") == 1  # skipping stays on elsewhere


def test_edges_out_of_a_publisher_are_exempt_until_something_leads_to_it() -> None:
    network = ladder(20)
    network.add_edge("q", "g0")
    assert network._wiring.merged == 0
    network.add_edge("g19", "q")
    assert network._wiring.merged > 0
    network.rebuild()
    assert network._wiring.merged == 0
    assert len(set(network.evaluate("q", {"x": 1}, "scc-skip"))) == 21


def test_a_new_node_between_two_groups_merges_none() -> None:
    network = ladder(20)
    network.add_node("between", "x = 1")
    network.add_edge("g3", "between")
    network.add_edge("between", "g15")
    network.add_edge("g7", "between")  # lifts it
    assert network._wiring.merged == 0
    network.add_edge("g16", "between")  # now g15 has to come after g16
    assert network._wiring.merged == 1
    assert "between" in set(network.evaluate("p", {"x": 1}, "scc-skip"))


def test_many_new_expressions_get_an_index_of_their_own() -> None:
    rng = random.Random(1)
    twin = random_twin(rng, 150, 3.0)
    twin.network.rebuild()
    for name in list(twin.nodes)[:140]:
        twin.set_where(name, f"a >= {rng.randrange(3)} OR b = {rng.randrange(9)} OR c > {rng.random():.3f}")
    for _ in range(5):
        check(twin, rng)
    assert twin.network._tail._expression_index is not None


def test_changes_while_other_threads_ask() -> None:
    """Whatever is asked while edges come and go is the answer of some moment: here, of two there are."""
    network = ladder(200)
    whole = {f"g{i}" for i in range(200)}
    wrong: list[set[str]] = []
    stopped = Event()

    def ask() -> None:
        while not stopped.is_set():
            found = set(network.evaluate("p", {"x": 1}, "scc-skip"))
            if found not in (whole, {f"g{i}" for i in range(100)}):
                wrong.append(found)

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(150):
        network.remove_edge("g99", "g100")
        if i % 50 == 0:
            network.rebuild_aside().join()
        network.add_edge("g99", "g100", "x > 0" if i % 2 else None)
    stopped.set()
    for thread in threads:
        thread.join()
    assert wrong == []


# ------------------------------------------------------------------ whatever comes to Hypothesis

NAMES = st.sampled_from([f"n{i}" for i in range(7)])
WHERES = st.sampled_from([None, "a = 1", "a != 1", "b > 0 OR NOT EXISTS a", "NOT (a = 0 AND b = 1)"])
EVENTS = st.fixed_dictionaries({}, optional={"a": st.integers(0, 2), "b": st.integers(0, 2)})


class Changes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.twin = Twin()

    @rule(name=NAMES, where=WHERES)
    def add_or_change_node(self, name: str, where: str | None) -> None:
        if name in self.twin.nodes:
            self.twin.set_where(name, where)
        else:
            self.twin.add_node(name, where)

    @rule(a=NAMES, b=NAMES, where=WHERES)
    def add_or_change_edge(self, a: str, b: str, where: str | None) -> None:
        if (a, b) in self.twin.edges:
            self.twin.set_where((a, b), where)
        elif a in self.twin.nodes and b in self.twin.nodes:
            self.twin.add_edge(a, b, where)

    @rule(name=NAMES)
    def remove_node(self, name: str) -> None:
        if name in self.twin.nodes:
            self.twin.remove_node(name)

    @rule(a=NAMES, b=NAMES)
    def remove_edge(self, a: str, b: str) -> None:
        if (a, b) in self.twin.edges:
            self.twin.remove_edge(a, b)

    @rule()
    def rebuild(self) -> None:
        self.twin.network.rebuild()

    @rule(source=NAMES, event=EVENTS, algorithm=st.sampled_from(ALGORITHMS))
    def ask(self, source: str, event: dict[str, int], algorithm: str) -> None:
        if source in self.twin.nodes:
            expected = naive.reached(self.twin.nodes, self.twin.edges, source, event)
            assert set(self.twin.network.evaluate(source, event, algorithm)) == expected


Changes.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
TestChanges = Changes.TestCase
