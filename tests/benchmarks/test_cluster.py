"""The algorithms of RSS cluster against their definitions: every mapping of edges to edges is tried."""

import random
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.cluster.merger import Merger
from benchmarks.cluster.node import Graphs, Node
from benchmarks.cluster.patterns import EQUAL, FREE, GREATER, LESS, NO_TEST, OPERATORS, UNEQUAL, Patterns
from benchmarks.cluster.server import Pipeline, Server, Thresholds
from benchmarks.cluster.summaries import NUMBER, Summaries, Summary
from benchmarks.cluster.workload import Parameters, make
from benchmarks.workloads import NO_VALUE

NODES, NUMBERS, LABELS = 4, 5, 2
VALUE = np.append(np.full(NODES, NO_VALUE), np.arange(NUMBERS))


def holds(operator, bound, value):
    tests = {GREATER: value > bound, LESS: value < bound, EQUAL: value == bound, UNEQUAL: value != bound}
    return operator == NO_TEST or (value != NO_VALUE and tests[operator])


def mappings(edges, places):
    """The nodes of variables, for each way to lay edges upon places."""
    for chosen in product(places, repeat=len(edges)):
        bound, fits = {}, True
        for written, there in zip(edges, chosen, strict=True):
            fits = fits and written[1] == there[1]
            for end in (0, 2):
                node = written[end]
                if node >= 0:
                    fits = fits and node == there[end]
                elif node != FREE:
                    fits = fits and bound.setdefault(node, there[end]) == there[end]
                    fits = fits and (there[end] != FREE or list(bound.values()).count(FREE) < 2)
        if fits:
            yield bound


def matches(patterns, s, publication):
    test = int(patterns.columns.operator[s]), int(patterns.columns.bound[s])
    return any(
        -1 not in bound or holds(*test, int(VALUE[bound[-1]]))
        for bound in mappings(patterns.edges(s), publication)
    )


def contains(patterns, a, b):
    """By the paper's definition, with the test of a following from that of b for all numbers there are."""
    edges, others = patterns.edges(a), patterns.edges(b)
    test, given = ((int(patterns.columns.operator[s]), int(patterns.columns.bound[s])) for s in (a, b))
    if len(edges) > len(others):
        return False
    for bound in mappings(edges, others):
        node = bound.get(-1)
        if node is None or test[0] == NO_TEST:
            return True
        if node >= 0 and holds(*test, int(VALUE[node])):
            return True
        if node == -1 and given[0] != NO_TEST:
            numbers = [number for number in range(-1, 2 * NUMBERS) if holds(*given, number)]
            if all(holds(*test, number) for number in numbers):
                return True
    return False


def edge(rng, ends):
    return rng.choice(ends), rng.randrange(LABELS), rng.choice(ends)


def some_patterns(seed, count=40, longest=3):
    rng = random.Random(seed)
    given = []
    for _ in range(count):
        nodes = [0, 1, 2, 3, -2, -3, -2]
        edges = [edge(rng, nodes) for _ in range(rng.randint(1, longest))]
        operator = NO_TEST
        if rng.random() < 0.4:
            operator = rng.choice(OPERATORS)
            subject, label, _ = edges[-1]
            edges[-1] = (subject, label, -1)
        given.append((edges, operator, rng.randrange(NUMBERS)))
    return Patterns.of(given)


def some_publications(seed, count=12, edges=7):
    rng = random.Random(seed)
    ends = list(range(NODES + NUMBERS))
    drawn = [[edge(rng, ends) for _ in range(edges)] for _ in range(count)]
    columns = np.array(drawn, np.int32).transpose(2, 0, 1)
    return drawn, Graphs(*map(np.ascontiguousarray, columns))


def expected(patterns, subscriptions, publications):
    return {
        (p, s) for p, graph in enumerate(publications) for s in subscriptions if matches(patterns, s, graph)
    }


def as_set(pairs):
    found = [(int(p), int(s)) for p, s in pairs]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("seed", range(4))
def test_match_agrees_with_the_definition(seed):
    patterns, (publications, graphs) = some_patterns(seed), some_publications(seed)
    rows = np.arange(0, len(patterns), 2)
    found = as_set(Node(patterns, rows, VALUE).match(graphs))
    assert found == expected(patterns, rows.tolist(), publications)
    assert any(patterns.columns.operator[s] != NO_TEST for _, s in found)


@pytest.mark.parametrize("seed", range(4))
def test_containment_checking_agrees_with_the_definition(seed):
    patterns = some_patterns(seed)
    server = Server(patterns, VALUE, 3, contains=False)
    last = len(patterns) - 1
    for s in range(last):
        server.insert(s)
    container, contained = server.check(last)
    containers = {s for s in range(last) if contains(patterns, s, last)}
    assert (container in containers) if containers else container == -1
    if not containers:
        assert set(contained) == {s for s in range(last) if contains(patterns, last, s)}


def check_trees(server, subscriptions):
    """Nothing in the index contains anything else there, and everything else is below what contains it."""
    assert server.index - server.mergers | server.parent.keys() == set(subscriptions)
    for a, b in combinations(sorted(server.index), 2):
        assert not contains(server.patterns, a, b) or a in server.mergers or b in server.mergers
    for s, parent in server.parent.items():
        assert contains(server.patterns, parent, s)
        assert s in server.children[parent]
        assert 0 <= server.node[s] < server.nodes


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_containment_after_removals_in_every_position(seed):
    patterns, (publications, graphs) = some_patterns(seed, count=30), some_publications(seed)
    server, left = Server(patterns, VALUE, 3), set(range(30))
    for s in range(30):
        server.insert(s)
    check_trees(server, left)
    assert max(map(len, server.children.values())) > 2
    rng, positions = random.Random(seed), set()
    while left:
        s = rng.choice(sorted(left))
        positions.add((s in server.index, bool(server.children.get(s))))
        server.remove(s)
        left.discard(s)
        check_trees(server, left)
        if len(left) % 6 == 0:
            assert as_set(Pipeline(server).filter(graphs)) == expected(patterns, left, publications)
    assert positions == {(True, True), (True, False), (False, False)} or (False, True) in positions


def test_an_inner_subscription_leaves_its_children_to_its_parent():
    wide, narrow, narrower = [(0, 0, -2)], [(0, 0, 1)], [(0, 0, 1), (1, 1, 2)]
    patterns = Patterns.of([(edges, NO_TEST, 0) for edges in (narrower, narrow, wide)])
    server = Server(patterns, VALUE, 2)
    for s in range(3):
        server.insert(s)
    assert server.parent == {0: 1, 1: 2}
    server.remove(1)
    assert server.parent == {0: 2}
    assert server.index == {2}
    server.remove(2)
    assert server.parent == {}
    assert server.index == {0}


def test_summaries_are_replaced_by_what_they_share():
    summaries = Summaries(threshold=0.5)
    first = frozenset((0, 0, n) for n in range(8))
    summaries.add(Summary(first, 3))
    summaries.add(Summary(first - {(0, 0, 0)} | {(9, 9, 9)}, 4))
    summaries.add(Summary(frozenset({(5, 1, 5)}), 9))
    assert [(summary.matches, len(summary.edges)) for summary in summaries.by_frequency()] == [(9, 1), (7, 7)]


def test_summaries_that_are_left_are_not_similar():
    _, graphs = some_publications(5, count=60)
    summaries = Summaries(threshold=0.3)
    summaries.collect(graphs, np.array([[0, 1], [0, 2], [3, 1]]), VALUE)
    found = [summary.edges for summary in summaries.by_frequency()]
    assert sum(summary.matches for summary in summaries.by_frequency()) == 3
    assert 1 < len(found) < 60
    assert any(NUMBER in edge for edges in found for edge in edges)
    assert all(len(a & b) / len(a | b) <= 0.3 for a, b in combinations(found, 2))


@pytest.mark.parametrize("contained", [True, False])
def test_merging_and_removals_of_merged_leaves(contained):
    patterns, (publications, graphs) = some_patterns(7, count=40), some_publications(7, count=20)
    server, left = Server(patterns, VALUE, 3, contained), set(range(40))
    for s in range(40):
        server.insert(s)
    summaries = Summaries()
    summaries.collect(graphs, Node(patterns, np.arange(40), VALUE).match(graphs), VALUE)
    before = len(server.index)
    server.merge_if_needed(summaries, Thresholds(before, before - 6))
    assert len(server.index) == before
    server.merge_if_needed(summaries, Thresholds(before - 1, before - 6))
    assert len(server.index) == before - 6
    server.merge(summaries, 0)
    assert server.mergers
    assert all(patterns.edges(merger) for merger in server.mergers)
    assert as_set(Pipeline(server).filter(graphs)) == expected(patterns, left, publications)
    for s in [s for s, parent in server.parent.items() if parent in server.mergers][::2]:
        server.remove(s)
        left.discard(s)
        assert server.index - server.mergers | server.parent.keys() == left
        assert all(contains(patterns, parent, child) for child, parent in server.parent.items())
    assert as_set(Pipeline(server).filter(graphs)) == expected(patterns, left, publications)


def test_a_merger_has_the_shared_edges_and_the_widest_bound():
    price = (0, 1, -1)
    patterns = Patterns.of(
        [
            ([price, (0, 0, -2), (1, 0, 2)], GREATER, 3),
            ([price, (0, 0, -3)], GREATER, 1),
            ([price], LESS, 1),
        ]
    )
    first, second, third = (Merger.of(patterns, s) for s in range(3))
    assert first.with_other(second).pattern() == ([(0, 0, FREE), price], GREATER, 1)
    assert first.with_other(third).pattern() == ([(0, 1, FREE)], NO_TEST, 0)


def test_the_workload_has_the_overlap_and_the_matches_that_were_asked_for():
    parameters = Parameters(subscriptions=3000, matches=60)
    workload = make(parameters)
    patterns = workload.subscriptions
    server = Server(patterns, workload.value, 3)
    for s in range(len(patterns)):
        server.insert(s)
    assert abs(len(server.parent) / 3000 - 0.5) < 0.05
    publications = Graphs.of(workload.publications(400))
    pairs = Node(patterns, np.arange(3000), workload.value).match(publications)
    assert 0.6 < len(pairs) / 400 / 60 < 1.5
    assert as_set(Pipeline(server).filter(publications)) == as_set(pairs)
    sizes = np.diff(patterns.columns.first)
    assert sizes.min() >= 6
    assert len(np.unique(sizes)) > 4
