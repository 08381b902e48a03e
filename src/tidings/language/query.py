"""The query tree: what a subscription means, independent of its spelling.

Every node is an immutable value, so equal queries are equal trees and `parse(print(q)) == q` can be tested. A
`Parameter` takes the place of a constant: in a template of `subscribe_table`, and in the shape that many texts share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.model.terms import Iri, Literal


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`: a constant given later, by a table's column or by the text that has this shape."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value in the event's envelope or payload, such as `topic` or `user.age`."""

    path: str


Constant = Iri | Literal | Parameter
Node = Variable | Constant


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` with op one of + - * /, over numbers; it has no value where a side has none."""

    op: str
    left: Operand | Constant
    right: Operand | Constant


@dataclass(frozen=True, slots=True)
class Folded:
    """An operand whose texts are compared without regard to case (`IGNORE CASE`), the other side's folded alike."""

    operand: Variable | Attribute


Operand = Variable | Attribute | Arithmetic | Folded


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """`(subject, property, object)`. A literal matches by value, an IRI by its address."""

    subject: Node
    property: Node
    object: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right` with op one of = != < <= > >=; the left side is never a constant."""

    left: Operand
    op: str
    right: Operand | Constant


@dataclass(frozen=True, slots=True)
class Between:
    operand: Operand
    low: Constant
    high: Constant


@dataclass(frozen=True, slots=True)
class OneOf:
    """`IN (…)`, or `NOT IN (…)` when negated: then comparable with some option and equal to none."""

    operand: Operand
    options: tuple[Constant, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TextTest:
    """`operand op pattern` with op one of LIKE, CONTAINS, STARTS, ENDS, MATCHES, CIDR, SEARCH, or `SEARCH english`.

    LIKE looks at the whole text: % stands for any run of characters, _ for one, a backslash before %, _ or itself
    takes away that meaning. CONTAINS, STARTS (WITH) and ENDS (WITH) look for the pattern as it is; MATCHES finds an
    RE2 expression anywhere. CIDR holds for an address in the network that the pattern writes, such as 10.0.0.0/8. SEARCH finds words, and
    `SEARCH english` (STEMMED 'english') their stems in that language.
    """

    operand: Operand
    op: str
    pattern: Literal | Parameter


@dataclass(frozen=True, slots=True)
class IsA:
    """`operand ISA class` is op "<="; `ISA >= class` and `ISA = class` are the other two."""

    operand: Variable
    op: str
    cls: Iri | Parameter


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS attribute`."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Missing:
    """`MISSING attribute`: the event does not have it at all, not even as null or as an empty list."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class AnyElement:
    """`ANY name IN attribute SATISFIES (condition)`: one element fulfils the whole condition.

    Inside, `name` is the element and `name.x` what is in it; other names are the event's own.
    """

    name: str
    attribute: Attribute
    condition: Condition


@dataclass(frozen=True, slots=True)
class Call:
    """`name(argument, …)`: the result of an operator for the event. Its variables are inputs or are bound by it."""

    name: str
    arguments: tuple[Variable | Constant, ...]


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


class KindCondition(ABC):
    """A condition that a kind of subscription adds to those of the language: a frozen dataclass of texts, numbers,
    truth values, other nodes of the tree and tuples of them. It has no syntax, and is subscribed to as a part of a
    `Query`: `Query(And((parse("WHERE topic = 'x'").where, MyCondition(3))))`.

    `str()` is for reading, in explanations and errors. An explanation also shows the values of each `Attribute` among
    its fields.
    """

    __slots__ = ()

    @abstractmethod
    def holds(self, attributes: Mapping[str, Any]) -> bool:
        """The definition: whether it holds for an event. It is used wherever no index decides, such as under NOT.

        `attributes` are those of `Batch.attributes`, the envelope among them: a document, whose values at a path
        `values_at` gives; a list stands for several values.
        """


Leaf = (
    TriplePattern
    | Comparison
    | Between
    | OneOf
    | TextTest
    | IsA
    | Exists
    | Missing
    | AnyElement
    | Call
    | KindCondition
)
Condition = Leaf | And | Or | Not


@dataclass(frozen=True, slots=True)
class Via:
    """`VIA network AT 'node'`: only events that reach the node along a path whose every part lets them pass."""

    network: str
    node: str


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """`JOIN table USING (column, …)`, or `JOIN table ON a.x = b.y AND …`."""

    name: str
    using: tuple[str, ...] = ()
    on: tuple[tuple[Attribute, Attribute], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """`SELECT select FROM stream JOIN joined … WHERE where VIA via`; select is None for `*`, stream is None for every
    event. With `joined` the stream is a table, and so are they."""

    where: Condition
    select: tuple[Variable, ...] | None = None
    stream: str | None = None
    via: Via | None = None
    joined: tuple[JoinedTable, ...] = ()


def leaves(condition: Condition) -> Iterator[Leaf]:
    """The leaves of a condition, left to right; an `AnyElement` is one leaf, whatever its condition."""
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from leaves(part)
    elif isinstance(condition, Not):
        yield from leaves(condition.part)
    else:
        yield condition


def variables(condition: Condition) -> tuple[Variable, ...]:
    """The variables of a condition in the order in which they first appear; an `AnyElement` has none."""
    found: dict[Variable, None] = {}
    for leaf in leaves(condition):
        if isinstance(leaf, TriplePattern):
            operands_of: tuple[Operand | Constant, ...] = (leaf.subject, leaf.property, leaf.object)
        elif isinstance(leaf, Comparison):
            operands_of = (leaf.left, leaf.right)
        elif isinstance(leaf, Between | OneOf | TextTest | IsA):
            operands_of = (leaf.operand,)
        elif isinstance(leaf, Call):
            operands_of = leaf.arguments
        else:
            continue
        for operand in operands_of:
            for name in operands(operand):
                if isinstance(name, Variable):
                    found[name] = None
    return tuple(found)


def operands(term: Operand | Constant) -> Iterator[Variable | Attribute]:
    """The variables and attributes of one side of a condition, left to right."""
    if isinstance(term, Variable | Attribute):
        yield term
    elif isinstance(term, Arithmetic):
        yield from operands(term.left)
        yield from operands(term.right)
    elif isinstance(term, Folded):
        yield term.operand


def conjuncts(condition: Condition) -> list[Condition]:
    """The parts of an AND, and of the ANDs among them."""
    if not isinstance(condition, And):
        return [condition]
    return [part for conjunct in condition.parts for part in conjuncts(conjunct)]


def has_calls(condition: Condition) -> bool:
    return any(isinstance(leaf, Call) for leaf in leaves(condition))
