"""The tree of a filter, as a reader sees it."""

from __future__ import annotations

import random
from typing import Any

from tests.kinds.filters import cases
from tidings.formats.namespaces import XSD
from tidings.kinds.filters import naive
from tidings.language.condition_tree import clauses
from tidings.language.query import And, AnyElement, Attribute, Comparison, Condition, Exists, Not, Or
from tidings.model.explanation import Clause, Explanation
from tidings.model.terms import Literal


def equal(path: str, value: int) -> Comparison:
    return Comparison(Attribute(path), "=", Literal(str(value), XSD + "integer"))


def shown(condition: Condition, attributes: dict[str, Any]) -> list[str]:
    verdict = "match" if naive.matches(condition, attributes) else "no match"
    return str(Explanation("s", verdict, clauses(condition, attributes))).splitlines()


def test_one_leaf_needs_no_arrow() -> None:
    assert clauses(equal("a", 5), {"a": 5}) == (Clause("a = 5", True, "a is 5"),)


def test_what_was_seen() -> None:
    def evidence(value: Any) -> str:
        return clauses(equal("a", 9), value)[0].evidence

    assert evidence({}) == "a is missing"
    assert evidence({"a": None}) == evidence({"a": []}) == "a has no value"
    assert evidence({"a": "31"}) == "a is '31'"
    assert evidence({"a": [True, 2.5, None]}) == "a is true, 2.5"
    assert evidence({"a": {"b": 1, "c": 2}}) == "a is {b, c}"
    assert evidence({"a": list(range(1007))}) == "a is 0, 1, 2, 3, 4 and 1,002 more"
    assert evidence({"a": "x" * 1_000_000}) == f"a is '{'x' * 59}…"


def test_an_or_that_holds_is_decided_by_what_holds() -> None:
    condition = Or((equal("a", 1), And((equal("a", 2), equal("b", 3))), equal("b", 2)))
    assert shown(condition, {"a": 1, "b": 2}) == [
        "s: match",
        "  ✓ any of",
        "    ✓ a = 1   a is 1   ←",
        "    ✗ all of",
        "      ✗ a = 2   a is 1",
        "      ✗ b = 3   b is 2",
        "    ✓ b = 2   b is 2   ←",
    ]


def test_not_turns_what_decides_around() -> None:
    condition = And((Not(And((equal("a", 1), equal("b", 3)))), Not(equal("b", 3))))
    assert shown(condition, {"a": 1, "b": 2}) == [
        "s: match",
        "  ✓ not",
        "    ✗ all of",
        "      ✓ a = 1   a is 1",
        "      ✗ b = 3   b is 2   ←",
        "  ✓ NOT b = 3   b is 2   ←",
    ]


def test_the_element_that_decided() -> None:
    condition = AnyElement("i", Attribute("items"), And((equal("i.a", 1), equal("i.b", 2))))
    assert shown(condition, {"items": [{"a": 1}, {"a": 1, "b": 2}]}) == [
        "s: match",
        "  ✓ any i in items   i is {a, b}, 2 of 2",
        "    ✓ all of",
        "      ✓ i.a = 1   i.a is 1",
        "      ✓ i.b = 2   i.b is 2",
    ]
    assert shown(condition, {"items": [{"a": 1}, {"b": 2}]}) == [
        "s: no match",
        "  ✗ any i in items   i is {a}, 1 of 2",
        "    ✗ all of",
        "      ✓ i.a = 1   i.a is 1",
        "      ✗ i.b = 2   i.b is missing   ←",
    ]
    assert shown(condition, {}) == ["s: no match", "  ✗ any i in items   items is missing"]


def test_a_wide_condition() -> None:
    wide = Or(tuple(equal("a", n) for n in range(10_000)))
    found = clauses(wide, {"a": 9_999})
    assert len(found) == 10_001
    assert [clause.text for clause in found if clause.decides] == ["a = 9999"]


def test_the_tree_agrees_with_the_definition() -> None:
    rng = random.Random(9)
    for _ in range(300):
        condition, attributes = Or((cases.condition(rng, 2), Exists(Attribute("s")))), cases.attributes(rng)
        assert clauses(condition, attributes)[0].held == naive.matches(condition, attributes)
