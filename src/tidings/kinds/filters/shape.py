"""Compiles a condition on attributes to a tree of leaves, each a comparison of one attribute with constants.

Any other condition becomes a comparison with a derived attribute, which is computed from the event: the texts of
`title` in folded case, the patterns that `title` contains, the conditions that hold. So the index knows attributes,
constants and positions, and nothing else:

    title = 'Goal' IGNORE CASE    folded title  =  'goal'
    title CONTAINS 'goal'         CONTAINS title  =  'goal'     of all patterns of conditions, those it contains
    a + b > c                     conditions on a  =  'a + b > c'
    MISSING a                     NOT EXISTS (a as it stands there, null or empty too)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tidings.kinds.filters.kernels import layout
from tidings.language.parameters import parameters, substitute
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Exists,
    Folded,
    Missing,
    Not,
    OneOf,
    Operand,
    Or,
    Parameter,
    Query,
    TextTest,
)
from tidings.language.query_json import from_json, to_json
from tidings.model.terms import Iri, Literal, from_ntriples, ntriples

PLAIN, FOLDED, THERE, CONDITIONS = "plain", "folded", "there", "conditions"
_OPS = {"=": layout.EQ, "!=": layout.NE, "<": layout.LT, "<=": layout.LE, ">": layout.GT, ">=": layout.GE}
_CONSTANTS = (Parameter, Literal, Iri)
_LAST_CHARACTER = 0x10FFFF


class Key(NamedTuple):
    """An attribute of the index: a path, and how it is derived (`look`). A text test on folded texts ends in `~`."""

    look: str
    path: str


class Slot(NamedTuple):
    """A constant of a row, fixed or a parameter: as it is, in folded case, or the first text after all with this prefix."""

    constant: Constant
    folded: bool = False
    behind: bool = False

    def names(self) -> tuple[str, ...]:
        return (self.constant.name,) if isinstance(self.constant, Parameter) else ()

    def text(self, values: Mapping[str, str]) -> str | None:
        """Its N-Triples text; None when no text lies behind it."""
        if isinstance(self.constant, Parameter):
            text = values[self.constant.name]
        else:
            text = ntriples(self.constant)
        if self.folded or self.behind:
            literal = from_ntriples(text)
            if not isinstance(literal, Literal):
                return text
            plain = literal.text.casefold() if self.folded else literal.text
            if self.behind:
                following = text_after_prefix(plain)
                return None if following is None else ntriples(Literal(following))
            return ntriples(Literal(plain, literal.datatype, literal.language))
        return text


@dataclass(frozen=True, slots=True)
class ConditionSlot:
    """A whole condition as a constant: its tree in JSON, with the values of its parameters."""

    condition: Condition

    def names(self) -> tuple[str, ...]:
        return parameters(Query(self.condition))

    def text(self, values: Mapping[str, str]) -> str:
        terms = {name: from_ntriples(text) for name, text in values.items()}
        filled = substitute(Query(self.condition), terms).where  # type: ignore[arg-type]
        return ntriples(Literal(to_json(filled)))


@dataclass(frozen=True, slots=True)
class FilterShape:
    """The shape of filters that differ only in constants: `words` refer to attributes by their index in `keys`."""

    words: list[int]
    keys: list[Key]
    slots: list[Slot | ConditionSlot]

    def texts(self, values: Mapping[str, str]) -> list[str | None]:
        """The texts of a row's slots; `values` are the N-Triples texts of its parameters."""
        return [slot.text(values) for slot in self.slots]


@lru_cache(maxsize=100_000)
def read_condition(text: str) -> Condition:
    """The condition of a `ConditionSlot`. An index of version 0.1 has it in the language; then it is parsed, when the
    index is opened."""
    if text.startswith("{"):
        condition: Condition = from_json(text)
        return condition
    from tidings.language.parser import parse

    return parse(f"WHERE {text}").where


def compile_filter(condition: Condition) -> FilterShape:
    """The shape of a condition without triples and variables."""
    shape = FilterShape([], [], [])
    _Compiler(shape).node(condition, negated=False)
    return shape


def text_after_prefix(text: str) -> str | None:
    """The first text that comes after all texts which start with `text`."""
    while text:
        following = ord(text[-1]) + 1
        if following == 0xD800:
            following = 0xE000  # what lies between is no character
        if following <= _LAST_CHARACTER:
            return text[:-1] + chr(following)
        text = text[:-1]
    return None


class _Compiler:
    def __init__(self, shape: FilterShape) -> None:
        self.shape = shape
        self.numbers: dict[Key, int] = {}

    def node(self, condition: Condition, negated: bool) -> None:
        words = self.shape.words
        while isinstance(condition, Not):
            condition, negated = condition.part, not negated
        if isinstance(condition, And | Or):
            if len(condition.parts) == 1:
                return self.node(condition.parts[0], negated)
            is_and = isinstance(condition, And) is not negated
            if not condition.parts:  # AND of nothing holds, OR of nothing does not
                return self.leaf(layout.NEVER, Key(PLAIN, ""), [], is_and)
            at = len(words)
            words += [layout.AND if is_and else layout.OR, 0, len(condition.parts)]
            for part in condition.parts:
                self.node(part, negated)
            words[at + 1] = len(words) - at
            return None
        return self.test(condition, negated)

    def test(self, leaf: Condition, negated: bool) -> None:
        # The most frequent forms first, without the patterns below.
        if type(leaf) is Comparison and type(leaf.left) is Attribute and type(leaf.right) in _CONSTANTS:
            return self.leaf(_OPS[leaf.op], Key(PLAIN, leaf.left.path), (Slot(leaf.right),), negated)  # type: ignore[arg-type]
        if type(leaf) is OneOf and type(leaf.operand) is Attribute:
            form = layout.NOT_IN if leaf.negated else layout.IN
            return self.leaf(form, Key(PLAIN, leaf.operand.path), list(map(Slot, leaf.options)), negated)
        match leaf:
            case Exists(Attribute(path)):
                self.leaf(layout.EXISTS, Key(PLAIN, path), [], negated)
            case Missing(Attribute(path)):
                self.leaf(layout.EXISTS, Key(THERE, path), [], not negated)
            case Comparison(
                Attribute() | Folded() as operand, op, Iri() | Literal() | Parameter() as constant
            ):
                self.leaf(_OPS[op], *_looked_at(operand, (constant,)), negated)
            case Between(Attribute() | Folded() as operand, low, high):
                self.leaf(layout.BETWEEN, *_looked_at(operand, (low, high)), negated)
            case OneOf(Attribute() | Folded() as operand, options, none):
                self.leaf(layout.NOT_IN if none else layout.IN, *_looked_at(operand, options), negated)
            case TextTest(operand, "STARTS", pattern):
                key, slots = _looked_at(operand, (pattern,))
                behind = Slot(pattern, folded=key.look == FOLDED, behind=True)
                self.leaf(layout.STARTS, key, [*slots, behind], negated)
            case TextTest(operand, op, pattern):
                key, slots = _looked_at(operand, (pattern,))
                look = f"{op}~" if key.look == FOLDED else op
                # Folding would turn an expression's \\S around; RE2 has a flag of its own.
                self.leaf(
                    layout.EQ, Key(look, key.path), [Slot(pattern)] if op == "MATCHES" else slots, negated
                )
            case _:
                path = _first_path(leaf)
                if path:
                    self.leaf(layout.EQ, Key(CONDITIONS, path), [ConditionSlot(leaf)], negated)
                else:  # a variable that no triple binds has no value
                    self.leaf(layout.NEVER, Key(PLAIN, ""), [], negated)
        return None

    def leaf(self, op: int, key: Key, slots: Sequence[Slot | ConditionSlot], negated: bool) -> None:
        shape = self.shape
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(shape.keys)
            shape.keys.append(key)
        shape.words.extend((op | layout.NEGATED if negated else op, number, len(shape.slots), len(slots)))
        shape.slots.extend(slots)


def _looked_at(operand: Operand, constants: tuple[Constant, ...]) -> tuple[Key, list[Slot]]:
    if isinstance(operand, Folded):
        assert isinstance(operand.operand, Attribute)
        return Key(FOLDED, operand.operand.path), [Slot(constant, folded=True) for constant in constants]
    assert isinstance(operand, Attribute)
    return Key(PLAIN, operand.path), [Slot(constant) for constant in constants]


def _first_path(part: object) -> str:
    """A path without which the condition cannot hold: that of its first attribute."""
    match part:
        case Attribute(path) | AnyElement(_, Attribute(path), _):
            return path
        case Folded(inner):
            return _first_path(inner)
        case Arithmetic(_, left, right) | Comparison(left, _, right):
            return _first_path(left) or _first_path(right)
        case Between(operand, _, _) | OneOf(operand, _, _) | TextTest(operand, _, _):
            return _first_path(operand)
    return ""
