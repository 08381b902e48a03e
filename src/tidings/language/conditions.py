"""Evaluates conditions without triples: defines what each form of condition means.

An operand has any number of values; a comparison holds if it holds for one of them, or for one pair if both sides have
several. An operand without a value satisfies nothing. AND, OR and NOT are two-valued.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    IsA,
    KindCondition,
    Missing,
    Not,
    OneOf,
    Operand,
    Or,
    Parameter,
    TextTest,
    Variable,
)
from tidings.model import values
from tidings.model.attributes import has_path, values_at, with_element
from tidings.model.terms import Iri, Literal
from tidings.model.text_tests import text_holds

MAX_COMBINATIONS = 10_000
_ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def holds(
    condition: Condition,
    attributes: Mapping[str, Any],
    binding: Mapping[str, Any] | None = None,
    is_a: Callable[[IsA], bool] | None = None,
) -> bool:
    """Whether `condition` holds for an event's attributes and, where it has variables, under a binding.

    `is_a` decides the leaves that need a taxonomy; without it nothing is of any class.
    """

    def each(operand: Operand) -> list[Any]:
        return operand_values(operand, attributes, binding)

    match condition:
        case And(parts):
            return all(holds(part, attributes, binding, is_a) for part in parts)
        case Or(parts):
            return any(holds(part, attributes, binding, is_a) for part in parts)
        case Not(part):
            return not holds(part, attributes, binding, is_a)
        case Comparison(left, op, Iri() | Literal() as right):
            fold = isinstance(left, Folded)
            return any(values.compare(a, op, right, fold) for a in each(left))
        case Comparison(left, op, Variable() | Attribute() | Arithmetic() | Folded() as right):
            fold = isinstance(left, Folded) or isinstance(right, Folded)
            return any(values.compare_values(a, op, b, fold) for a, b in product(each(left), each(right)))
        case Between(operand, Iri() | Literal() as low, Iri() | Literal() as high):
            fold = isinstance(operand, Folded)
            return any(values.between(a, low, high, fold) for a in each(operand))
        case OneOf(operand, options, negated):
            fold = isinstance(operand, Folded)
            constants = [option for option in options if not isinstance(option, Parameter)]
            test = values.none_of if negated else values.one_of
            return any(test(a, constants, fold) for a in each(operand))
        case TextTest(operand, op, Literal() as pattern):
            fold = isinstance(operand, Folded)
            texts = [text for a in each(operand) if (text := values.text_of(a)) is not None]
            return any(text_holds(text, op, pattern.text, fold) for text in texts)
        case Exists(attribute):
            return bool(values_at(attributes, attribute.path))
        case Missing(attribute):
            return not has_path(attributes, attribute.path)
        case AnyElement(name, attribute, inner):
            elements = values_at(attributes, attribute.path)
            return any(holds(inner, with_element(attributes, name, e), binding, is_a) for e in elements)
        case IsA():
            return is_a is not None and is_a(condition)
        case KindCondition():
            return condition.holds(attributes)
    raise TypeError(f"{condition!r} is not a condition on values")


def operand_values(
    operand: Operand, attributes: Mapping[str, Any], binding: Mapping[str, Any] | None = None
) -> list[Any]:
    """The values of an operand: a variable's term, the values at a path, the results of arithmetic."""
    match operand:
        case Attribute(path):
            return values_at(attributes, path)
        case Variable(name):
            return [binding[name]] if binding and name in binding else []
        case Folded(inner):
            return operand_values(inner, attributes, binding)
        case Arithmetic(op, left, right):
            sides = _numbers(left, attributes, binding), _numbers(right, attributes, binding)
            # Lists multiply: a few of them would keep a hostile event busy for ever.
            if len(sides[0]) * len(sides[1]) > MAX_COMBINATIONS:
                return []
            return [_ARITHMETIC[op](a, b) for a, b in product(*sides) if op != "/" or b]


def _numbers(
    side: Operand | Iri | Literal | Parameter,
    attributes: Mapping[str, Any],
    binding: Mapping[str, Any] | None,
) -> list[Fraction]:
    """The distinct numbers of one side; a constant counts as written, a value also if its text reads as a number."""
    if isinstance(side, Iri | Literal):
        view = values.constant_view(side)
        return [view[1]] if view is not None and view[0] == values.NUMBER else []
    if isinstance(side, Parameter):
        raise TypeError(f"${side.name} has no value yet")
    found = (dict(values.views(value)) for value in operand_values(side, attributes, binding))
    return list(dict.fromkeys(kinds[values.NUMBER] for kinds in found if values.NUMBER in kinds))
