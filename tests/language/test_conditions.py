"""The forms of a condition where a fixture cannot say it: variables, classes, bounds."""

from __future__ import annotations

import pytest

from tidings.formats.namespaces import XSD
from tidings.language.conditions import MAX_COMBINATIONS, holds, operand_values
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Comparison,
    Folded,
    IsA,
    Not,
    Or,
    Parameter,
    TriplePattern,
    Variable,
)
from tidings.model.terms import Iri, Literal

FIVE = Literal("5", XSD + "integer")
A, X = Attribute("a"), Variable("x")


def test_variables_and_attributes_in_one_condition() -> None:
    condition = Comparison(Arithmetic("+", X, A), "=", FIVE)
    assert holds(condition, {"a": 2}, {"x": Literal("3")})
    assert not holds(condition, {"a": 2}, {"x": Iri("urn:3")})
    assert not holds(condition, {"a": 2})
    assert holds(Comparison(Folded(X), "=", A), {"a": "red"}, {"x": Literal("RED", None, "en")})
    assert holds(AnyElement("e", A, Comparison(Attribute("e"), "=", X)), {"a": [1, 5]}, {"x": FIVE})


def test_classes_are_asked_of_the_caller() -> None:
    leaf = IsA(X, "<=", Iri("urn:c"))
    assert holds(Not(And((leaf, leaf))), {}, {}, lambda asked: asked != leaf)
    assert holds(leaf, {}, {}, lambda asked: asked == leaf)
    assert not holds(leaf, {})


def test_the_empty_conjunction_holds() -> None:
    assert holds(And(()), {})
    assert not holds(Or(()), {})


def test_arithmetic_over_long_lists_has_no_value() -> None:
    side = list(range(MAX_COMBINATIONS // 100))
    assert len(operand_values(Arithmetic("+", A, Attribute("b")), {"a": side, "b": side})) == MAX_COMBINATIONS
    assert operand_values(Arithmetic("+", A, Attribute("b")), {"a": [*side, -1], "b": side}) == []
    hostile = Arithmetic("*", Arithmetic("*", Arithmetic("*", A, A), A), A)
    assert not holds(Comparison(hostile, "=", FIVE), {"a": [n + 2**100 for n in range(1_000)]})
    assert holds(
        Comparison(Arithmetic("*", A, A), "=", FIVE), {"a": [1, 5] * 10_000}
    )  # two different numbers


def test_what_is_no_condition_on_values() -> None:
    with pytest.raises(TypeError):
        holds(TriplePattern(X, X, X), {})
    with pytest.raises(TypeError):
        holds(Comparison(A, "=", Parameter("p")), {"a": 5})
    with pytest.raises(TypeError):
        holds(Comparison(Arithmetic("+", A, Parameter("p")), "=", FIVE), {"a": 5})
