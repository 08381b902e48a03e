"""The filters' workloads: shaped as asked, matching as often as asked, written as the numbers say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import conjunctions, filter_texts
from benchmarks.expression_kernels import AND, EQUAL, IN, NOT_IN, OR, RANGE, UNEQUAL
from benchmarks.filter_baselines import Interval, OneByOne
from benchmarks.filter_workloads import A_TREE, ABE_GEN, OPERATORS, Compiled, Workload, make
from benchmarks.interval_kernels import LEAVES
from benchmarks.tidings_filters import Tidings
from tidings.language.parser import parse
from tidings.language.query import And, Between, Comparison, Condition, OneOf, Or

SAMPLE = 20_000


def depths(workload: Workload) -> np.ndarray:
    """Levels of AND and OR of each expression."""
    roots, trees = workload.expressions.first, workload.expressions.trees
    found = []
    for row in range(len(workload.expressions)):
        ends: list[int] = []
        deepest = 0
        for node in range(roots[row], roots[row + 1]):
            while ends and node >= ends[-1]:
                ends.pop()
            if trees.kind[node] <= OR:
                ends.append(node + trees.size[node])
                deepest = max(deepest, len(ends))
        found.append(deepest)
    return np.array(found)


@pytest.mark.slow
def test_a_tree_sized_workload_matches_as_asked() -> None:
    workload = make(replace(A_TREE, expressions=SAMPLE))  # the first of 1.39M are the same
    matches = Compiled.of(workload).matches(workload.events)
    assert 0.0025 < len(matches) / SAMPLE / len(workload.events) < 0.0035
    leaves = (workload.expressions.trees.kind > OR).sum() / SAMPLE
    assert 8 < leaves < 14
    assert workload.events.attribute.shape[1] == 20


@pytest.mark.slow
def test_depth_is_uniform_and_operators_alternate() -> None:
    workload = make(replace(A_TREE, expressions=3000))
    counts = np.bincount(depths(workload), minlength=10)
    assert counts[0] == 0
    assert len(counts) == 10
    assert (np.abs(counts[1:] / 3000 - 1 / 9) < 0.03).all()
    for condition in filter_texts.conditions(workload, 0, 300):
        assert alternates(condition)


def alternates(condition: Condition) -> bool:
    if not isinstance(condition, And | Or):
        return True
    return 2 <= len(condition.parts) <= 6 and all(
        type(part) is not type(condition) and alternates(part) for part in condition.parts
    )


def test_operators_have_the_shares_of_abe_gen() -> None:
    workload = make(replace(ABE_GEN, expressions=SAMPLE))
    kinds = workload.expressions.trees.kind
    leaves = kinds[kinds > OR]
    for kind, share in OPERATORS.items():
        assert abs((leaves == kind).mean() - share) < 0.01
    assert depths(make(replace(ABE_GEN, expressions=500))).max() == 4
    attributes = np.bincount(workload.expressions.trees.attribute[kinds > OR], minlength=1000)
    assert attributes[:10].sum() > 5 * attributes[100:110].sum() > 0  # Zipf


def test_more_expressions_begin_with_the_same() -> None:
    few, many = (make(replace(ABE_GEN, expressions=count)).expressions for count in (100, 1000))
    assert (few.first == many.first[:101]).all()
    assert (few.trees.low == many.trees.low[: few.first[-1]]).all()
    other = make(replace(ABE_GEN, expressions=100, seed=1)).expressions
    assert len(other.trees.kind) != len(few.trees.kind) or (other.trees.kind != few.trees.kind).any()


@pytest.mark.slow
def test_conjunctions_match_equally_often_whatever_their_number() -> None:
    for count in (10_000, 40_000):
        workload = conjunctions.make(conjunctions.Parameters(conjunctions=count, events=20))
        assert len(workload.expressions) == count
        matches = Compiled.of(workload).matches(workload.events)
        assert 95 < len(matches) / 20 < 110


@pytest.mark.slow
def test_rules_match_ten_times_and_lines_are_short() -> None:
    workload = conjunctions.make_rules(events=100)
    assert len(workload.expressions) == 100_000
    assert 9 < len(Compiled.of(workload).matches(workload.events)) / 100 < 11
    lines = filter_texts.ndjson(workload).splitlines()
    assert 200 < np.mean([len(line) for line in lines]) < 300
    members = [len(json.loads(line)) for line in lines]
    assert 10 <= np.mean(members) <= 12


def holds(condition: Condition, event: dict[str, str | int | float]) -> bool:
    """A definition apart: our query tree on one event."""
    if isinstance(condition, And | Or):
        results = [holds(part, event) for part in condition.parts]
        return all(results) if isinstance(condition, And) else any(results)
    operand = condition.left if isinstance(condition, Comparison) else condition.operand  # type: ignore[union-attr]
    value = event.get(operand.path)  # type: ignore[union-attr]
    if value is None:
        return False
    of = type(value)
    match condition:
        case Comparison(_, op, right):
            other = of(right.text)  # type: ignore[union-attr]
            return {"=": value == other, "!=": value != other, "<=": value <= other, ">=": value >= other}[op]
        case Between(_, low, high):
            return of(low.text) <= value <= of(high.text)  # type: ignore[union-attr]
        case OneOf(_, options, negated):
            return (value in [of(option.text) for option in options]) != negated  # type: ignore[union-attr]
    raise AssertionError(condition)


def test_query_trees_and_texts_say_what_the_numbers_say() -> None:
    drawn = (
        make(replace(A_TREE, expressions=200, events=40)),
        conjunctions.make(conjunctions.Parameters(conjunctions=200, matches=10, events=20, forms=20)),
        conjunctions.make_rules(rules=200, events=20),
    )
    for workload in drawn:
        events = filter_texts.event_dicts(workload)
        trees = list(filter_texts.conditions(workload))
        texts = filter_texts.subscription_texts(workload)
        assert [parse(text).where for _, text in texts] == trees
        expected = {
            (i, row) for i, event in enumerate(events) for row, tree in enumerate(trees) if holds(tree, event)
        }
        assert set(map(tuple, Compiled.of(workload).matches(workload.events).tolist())) == expected
        assert expected
        kinds = set(workload.expressions.trees.kind.tolist())
        assert {AND, EQUAL, IN, RANGE} <= kinds <= {AND, OR, EQUAL, UNEQUAL, IN, NOT_IN, RANGE}


def test_tables_hold_the_constants_of_the_texts() -> None:
    workload = conjunctions.make_rules(rules=300, events=10)
    texts = dict(filter_texts.subscription_texts(workload))
    seen = 0
    for template, table in filter_texts.tables(workload):
        for record in table.slice(0, 1).to_pylist():
            text = texts[record["id"]]
            for name, value in record.items():
                if name != "id" and f"${name}" in template and isinstance(value, str):
                    assert f"'{value}'" in text
                    seen += 1
        assert {f"${name}" for name in table.column_names if name != "id"} == {
            word.strip("(),") for word in template.split() if "$" in word
        }
    assert seen > 50
    assert sum(table.num_rows for _, table in filter_texts.tables(workload)) == 300


@pytest.mark.slow
def test_contenders_agree() -> None:
    drawn = (
        make(replace(A_TREE, expressions=3000, events=30)),
        make(replace(ABE_GEN, expressions=2000, events=30, conjunctions=0.5, inner=0.5)),
        make(
            replace(
                A_TREE, expressions=300, events=30, conjunctions=0.5, inner=0.3, children=(0.0, 0.5, 0.0, 0.5)
            )
        ),
        conjunctions.make(conjunctions.Parameters(conjunctions=2000, matches=50, events=10)),
        conjunctions.make_rules(rules=1000, events=50),
    )
    longest = 0
    for workload in drawn:
        one, interval = OneByOne(workload), Interval(workload)
        expected, found = (
            set(map(tuple, contender.match(contender.prepare(workload, 50)).tolist()))
            for contender in (one, interval)
        )
        assert found == expected != set()
        assert set(map(tuple, interval.match(interval.prepare(workload, 50)).tolist())) == expected
        ours = Tidings(workload)
        assert set(map(tuple, ours.match(ours.prepare(workload, 50)).tolist())) == expected
        longest = max(longest, int(np.diff(Compiled.of(workload).first).max()))
    assert longest > LEAVES
