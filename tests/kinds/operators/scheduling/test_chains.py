"""The order of Sub-Order against enumeration: the cost of two chains, the greedy path, and the order that comes of it."""

import random
import time
import tracemalloc
from collections import defaultdict
from itertools import combinations, pairwise, product
from math import atan2, inf, prod
from statistics import fmean

import numpy as np
import pytest

from tidings.kinds.operators.kernels import chains as kernels
from tidings.kinds.operators.scheduling.chains import (
    NEIGHBOURS,
    Chains,
    difference,
    insert,
    order_chains,
    sort_members,
)


def evaluate(chains, order, truth):
    """Sub-Order 4.2.2 for one event: the predicates evaluated and the rows whose predicates all hold."""
    holders = defaultdict(list)
    for row, chain in enumerate(chains):
        for predicate in chain:
            holders[predicate].append(row)
    evaluated, dropped, matched = set(), set(), set()
    for row in order:
        for predicate in () if row in dropped else chains[row]:
            evaluated.add(predicate)
            if not truth[predicate]:
                dropped.update(holders[predicate])
                break
        if row not in dropped:
            matched.add(row)
    return evaluated, matched


def sequential(rows, truth, rng):
    """Sub-Order 4.1: every predicate of a row is evaluated while some undecided row holds it."""
    evaluated, undecided = set(), set(range(len(rows)))
    while undecided:
        for predicate in rows[rng.choice(sorted(undecided))]:
            if any(predicate in rows[row] for row in undecided):
                evaluated.add(predicate)
                undecided = {row for row in undecided if not is_decided(rows[row], evaluated, truth)}
    return evaluated


def is_decided(row, evaluated, truth):
    return evaluated.issuperset(row) or any(t in evaluated and not truth[t] for t in row)


def sorted_chain(members, p, cost):
    return sorted(members, key=lambda t: (cost[t] / (1 - p[t]) if p[t] < 1 else inf, t))


def to_arrays(rows):
    first = np.cumsum([0, *map(len, rows)])
    return first, np.array([t for row in rows for t in row], np.int32)


def to_rows(first, member):
    return [member[a:b].tolist() for a, b in pairwise(first.tolist())]


def random_costs(rng, count, equal):
    return np.array([1.0 if equal else rng.lognormvariate(0, 1.5) for _ in range(count)])


def random_case(rng, rows, predicates, longest, equal=True):
    p = np.array([rng.choice((rng.random(), 0.0, 0.2, 0.2, 1.0)) for _ in range(predicates)])
    members = [rng.sample(range(predicates), rng.randint(1, longest)) for _ in range(rows)]
    return members, p, random_costs(rng, predicates, equal)


def workload(rows, predicates, popularity, seed):
    """The paper's subscriptions: 3 to 5 predicates, drawn by popularity; selectivities around 0.2."""
    rng = np.random.default_rng(seed)
    weight = (
        rng.random(predicates)
        if popularity == "uniform"
        else 1 / rng.permutation(np.arange(1, predicates + 1))
    )
    drawn = rng.choice(predicates, (rows, 12), p=weight / weight.sum())
    lengths = rng.integers(3, 6, rows)
    members = [list(dict.fromkeys(row))[:n] for row, n in zip(drawn.tolist(), lengths.tolist(), strict=True)]
    return members, rng.uniform(0.05, 0.35, predicates)


@pytest.mark.parametrize("equal", [True, False])
def test_the_difference_of_two_chains_is_that_of_all_truth_assignments(equal):
    rng = random.Random(1)
    differing = 0
    for _ in range(300):
        count = rng.randint(1, 7)
        (one, two), p, cost = random_case(rng, 2, count, min(count, 5), equal)
        chains = [sorted_chain(one, p, cost), sorted_chain(two, p, cost)]
        expected = 0.0
        for truth in product((False, True), repeat=count):
            chance = prod(p[t] if truth[t] else 1 - p[t] for t in range(count))
            first, second = (
                sum(cost[t] for t in evaluate(chains, order, truth)[0]) for order in ((0, 1), (1, 0))
            )
            expected += chance * (first - second)
        found = difference(*(np.array(chain, np.int32) for chain in chains), p, cost)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * cost.max())
        differing += abs(expected) > 1e-6
    assert differing > 50


@pytest.mark.parametrize("equal", [True, False])
def test_a_chain_has_its_members_by_cost_over_the_chance_to_fail(equal):
    rng = random.Random(2)
    rows, p, cost = random_case(rng, 50, 12, 6, equal)
    first, member = to_arrays(rows)
    assert to_rows(first, sort_members(first, member, p, cost)) == [
        sorted_chain(row, p, cost) for row in rows
    ]


def test_no_order_of_its_members_costs_a_row_less():
    rng = random.Random(3)
    for _ in range(50):
        p, cost = np.array([rng.random() for _ in range(4)]), random_costs(rng, 4, False)
        chain = sort_members(np.array([0, 4]), np.arange(4, dtype=np.int32), p, cost)
        costs = [
            sum(cost[t] * prod(p[list(order[:i])]) for i, t in enumerate(order))
            for order in (chain, *product(range(4), repeat=4))
            if len(set(order)) == 4
        ]
        assert costs[0] == pytest.approx(min(costs))


def test_compared_with_all_neighbours_the_sharing_graph_is_every_pair_that_differs():
    rng = random.Random(4)
    rows, p, cost = random_case(rng, 30, 20, 4, equal=False)
    chains = [np.array(sorted_chain(row, p, cost), np.int32) for row in rows]
    expected = {}
    for a, b in combinations(range(len(rows)), 2):
        saving = difference(chains[b], chains[a], p, cost)
        if saving:
            expected[(a, b) if saving > 0 else (b, a)] = abs(saving)
    assert sharing_graph(rows, p, cost, len(rows)) == pytest.approx(expected)


def test_a_predicate_of_all_rows_costs_few_comparisons():
    p, cost = np.linspace(0.9, 0.1, 301), np.ones(301)
    graph = sharing_graph([[0, t] for t in range(1, 301)], p, cost, NEIGHBOURS)
    assert 0 < len(graph) <= 300 * NEIGHBOURS


def sharing_graph(rows, p, cost, neighbours):
    first, member = to_arrays(rows)
    member = sort_members(first, member, p, cost)
    row = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(first))
    key = np.array([c / (1 - q) if q < 1 else inf for c, q in zip(cost, p, strict=True)])
    room = len(member) * neighbours
    source, target, saving = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    slot = np.argsort(member, kind="stable")
    count = kernels.compare_neighbours(
        slot, row, first, member, key, p, cost, neighbours, source, target, saving
    )
    return dict(
        zip(zip(source[:count].tolist(), target[:count].tolist(), strict=True), saving.tolist(), strict=False)
    )


def test_the_greedy_path_takes_each_edge_that_leaves_only_paths():
    rng = random.Random(5)
    for rows in (2, 3, 8, 30):
        edges = [tuple(rng.sample(range(rows), 2)) for _ in range(rows * 4)]
        following, preceding = {}, {}
        for u, v in edges:
            last = v
            while last in following:
                last = following[last]
            if u not in following and v not in preceding and last != u:
                following[u], preceding[v] = v, u
        found, back = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32)
        source, target = np.array(edges, np.int32).T.copy()
        kernels.join_paths(
            np.arange(len(edges)), source, target, found, back, np.arange(rows, dtype=np.int32)
        )
        assert found.tolist() == [following.get(row, -1) for row in range(rows)]
        assert back.tolist() == [preceding.get(row, -1) for row in range(rows)]


def naive_order(rows, p, cost):
    """Sub-Order 4.2.5 in plain steps: edges of the sharing graph, greedy paths, the paths by precedence."""
    chains = [np.array(sorted_chain(row, p, cost), np.int32) for row in rows]
    reach, spent, holders = {}, {}, defaultdict(list)
    for row, chain in enumerate(chains):
        for i, t in enumerate(chain.tolist()):
            reach[row, t] = prod(p[chain[:i]])
            spent[row, t] = sum(cost[chain[k]] * prod(p[chain[:k]]) for k in range(i))
            holders[t].append(row)
    edges = []
    for t, held in sorted(holders.items()):
        held.sort(key=lambda row: spent[row, t] / reach[row, t])
        for i, a in enumerate(held):
            for b in held[i + 1 : i + 1 + NEIGHBOURS]:
                more = difference(chains[a], chains[b], p, cost)
                edges.append((abs(more), b, a) if more > 0 else (abs(more), a, b))
    following = {}
    for saving, u, v in sorted(edges, key=lambda edge: -edge[0]):
        path = [v]
        while path[-1] in following:
            path.append(following[path[-1]])
        if saving and u not in following and v not in following.values() and u not in path:
            following[u] = v

    def precedence(row):
        pairs = [(t, other) for t in rows[row] for other in holders[t] if other != row]
        saved = sum((1 - p[t]) * reach[row, t] * spent[other, t] for t, other in pairs)
        return atan2(saved, sum((1 - p[t]) * spent[row, t] * reach[other, t] for t, other in pairs))

    paths = []
    for head in sorted(set(range(len(rows))).difference(following.values())):
        path = [head]
        while path[-1] in following:
            path.append(following[path[-1]])
        paths.append(path)
    paths.sort(key=lambda path: -round(fmean(map(precedence, path)), 9))
    return [row for path in paths for row in path]


@pytest.mark.parametrize("equal", [True, False])
def test_the_order_is_that_of_the_plain_steps(equal):
    rng = random.Random(14)
    for _ in range(20):
        rows = [rng.sample(range(15), rng.randint(2, 5)) for _ in range(25)]
        p, cost = np.array([rng.uniform(0.05, 0.95) for _ in range(15)]), random_costs(rng, 15, equal)
        assert order_chains(*to_arrays(rows), p, cost).order.tolist() == naive_order(rows, p, cost)


def test_the_chain_that_reaches_what_they_share_sooner_comes_first():
    p, cost = np.array([0.5, 0.1, 0.2, 0.9]), np.ones(4)
    first, member = to_arrays([[0, 1], [0, 3], [0, 2]])
    chains = order_chains(first, member, p, cost)
    assert to_rows(chains.first, chains.member) == [[1, 0], [0, 3], [2, 0]]
    assert chains.order.tolist() == [1, 2, 0]


@pytest.mark.parametrize("equal", [True, False])
def test_the_order_has_every_row_once_and_depends_on_no_other_unit_of_cost(equal):
    rng = random.Random(6)
    for _ in range(20):
        rows, p, cost = random_case(rng, 40, 25, 5, equal)
        first, member = to_arrays([*rows, []])
        chains = order_chains(first, member, p, cost)
        assert sorted(chains.order.tolist()) == list(range(41))
        assert order_chains(first, member, p, cost * 1024).order.tolist() == chains.order.tolist()


def test_no_rows_have_an_order():
    first, member = to_arrays([])
    chains = order_chains(first, member, np.array([]), np.array([]))
    assert len(chains.order) == len(chains.member) == 0
    assert insert(chains, np.array([0]), np.array([0.5]), np.array([1.0])).order.tolist() == [0]


def test_a_new_row_gets_the_place_where_all_differences_add_up_to_least():
    rng = random.Random(7)
    for _ in range(30):
        rows, p, cost = random_case(rng, 20, 12, 4, equal=False)
        new = rows.pop()
        before = order_chains(*to_arrays(rows), p, cost)
        after = insert(before, np.array(new), p, cost)
        chains = [np.array(chain, np.int32) for chain in to_rows(after.first, after.member)]
        assert chains[-1].tolist() == sorted_chain(new, p, cost)
        assert [row for row in after.order.tolist() if row != 19] == before.order.tolist()

        def total(position, order=before.order, chains=chains, p=p, cost=cost):
            return sum(difference(chains[row], chains[19], p, cost) for row in order[:position])

        position = after.order.tolist().index(19)
        assert total(position) == pytest.approx(min(map(total, range(20))), abs=1e-12)


def test_a_new_row_of_new_predicates_comes_last():
    rows, p = workload(50, 30, "uniform", 8)
    before = order_chains(*to_arrays(rows), p, np.ones(30))
    after = insert(before, np.array([31, 30]), np.append(p, (0.3, 0.2)), np.ones(32))
    assert after.order.tolist() == [*before.order.tolist(), 50]
    assert after.member[after.first[50] :].tolist() == [31, 30]


def test_sequential_evaluates_at_most_d_times_the_optimum():
    rng = random.Random(9)
    for _ in range(200):
        rows = [rng.sample(range(8), rng.randint(1, 4)) for _ in range(rng.randint(1, 8))]
        truth = [rng.random() < 0.4 for _ in range(8)]
        optimum = next(
            size
            for size in range(9)
            for chosen in combinations(range(8), size)
            if all(is_decided(row, set(chosen), truth) for row in rows)
        )
        assert optimum <= len(sequential(rows, truth, rng)) <= max(map(len, rows)) * optimum


def expected_cost(chains: Chains, order, p, cost, events=60):
    rows = to_rows(chains.first, chains.member)
    truths = np.random.default_rng(10).random((events, len(p))) < p
    return sum(cost[list(evaluate(rows, order, truth)[0])].sum() for truth in truths) / events


@pytest.mark.parametrize(("popularity", "equal", "most"), [
    ("uniform", True, 0.95),
    ("uniform", False, 0.98),
    ("zipf", True, 0.93),
    ("zipf", False, 0.97),
])  # fmt: skip
def test_the_order_costs_less_than_a_random_one(popularity, equal, most):
    rows, p = workload(2000, 1000, popularity, 11)
    rng = random.Random(11)
    cost = random_costs(rng, 1000, equal)
    chains = order_chains(*to_arrays(rows), p, cost)
    shuffled = expected_cost(chains, rng.sample(range(2000), 2000), p, cost)
    assert expected_cost(chains, chains.order.tolist(), p, cost) < most * shuffled

    grown = order_chains(*to_arrays(rows[:1500]), p, cost)
    for row in rows[1500:]:
        grown = insert(grown, np.array(row), p, cost)
    assert expected_cost(grown, grown.order.tolist(), p, cost) < most * shuffled


def test_every_order_finds_the_rows_that_hold():
    rng = random.Random(12)
    for _ in range(50):
        rows, p, cost = random_case(rng, 12, 8, 3, equal=False)
        chains = order_chains(*to_arrays(rows), p, cost)
        truth = [rng.random() < 0.7 for _ in range(8)]
        _, matched = evaluate(to_rows(chains.first, chains.member), chains.order.tolist(), truth)
        assert matched == {row for row, members in enumerate(rows) if all(truth[t] for t in members)}


@pytest.mark.parametrize("popularity", ["zipf", pytest.param("uniform", marks=pytest.mark.slow)])
def test_80_thousand_chains_are_ordered_in_seconds_and_little_memory(popularity):
    rows, p = workload(80_000, 40_000, popularity, 13)
    first, member = to_arrays(rows)
    cost = np.ones(40_000)
    begin = time.perf_counter()
    order_chains(first, member, p, cost)
    assert time.perf_counter() - begin < 30
    tracemalloc.start()
    order_chains(first, member, p, cost)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
