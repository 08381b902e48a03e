"""Warns of what a valid text probably does not mean: names that nothing has, and values that never compare.

The text is compared with what is known of events, their graphs, classes and networks. What is not known is not warned of: without
events no attribute is doubted, unless it stands where a text is probably meant; without a taxonomy no class. A warning is
never an error: the next event may have the name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

from tidings.errors import SubscriptionError, did_you_mean, nearest
from tidings.language.parser import parse
from tidings.language.property_names import PropertyNames, local_name, written_iri
from tidings.language.query import (
    And,
    AnyElement,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Exists,
    Folded,
    Leaf,
    Missing,
    Not,
    OneOf,
    Operand,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    leaves,
    operands,
)
from tidings.language.search_mistakes import doubtful_searches
from tidings.language.syntax.lexicon import Lexicon
from tidings.language.syntax.operands import NAMES, VALUES, name_of
from tidings.language.syntax.predicates import IS_A
from tidings.language.syntax.scanner import kind_of, tokens_with_offsets
from tidings.language.syntax.tokens import TERM
from tidings.model.observed_attributes import ObservedAttributes
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal
from tidings.model.values import BOOLEAN, INSTANT, NUMBER, RESOURCE, TEXT, constant_view, number

_MOST = 10  # warnings about one text
_TRIED = 25  # names of a text that are compared with known ones
_COMPARED = 10_000  # nodes or classes that are compared with a misspelt one: more would take too long
_TRIPLE = re.compile(rf"\({TERM},\s*+({TERM}),{TERM}\)")
_MANY = {NUMBER: "numbers", TEXT: "texts", INSTANT: "dates", BOOLEAN: "truth values"}
_TESTS = {"STARTS": "STARTS WITH", "ENDS": "ENDS WITH", "CIDR": "IN CIDR"}
_ONE = {NUMBER: "a number", TEXT: "a text", INSTANT: "a date", BOOLEAN: "a truth value", RESOURCE: "an IRI"}


@dataclass(frozen=True, slots=True)
class TextWarning:
    """A sentence about the characters of a text from `start` to before `end`."""

    message: str
    start: int
    end: int


class Nodes(Protocol):
    """A network, as far as it is looked at here."""

    def __contains__(self, name: object) -> bool: ...
    def nodes(self) -> Iterator[tuple[str, str | None]]: ...


@dataclass(frozen=True, slots=True)
class Known:
    """What texts are compared with. Subscriptions over `tables` name columns, which the engine checks."""

    attributes: ObservedAttributes
    prefixes: Mapping[str, str]
    taxonomy: Taxonomy
    networks: Mapping[str, Nodes]
    tables: Collection[str] = ()
    by_events: bool = True  # without events, `attributes` are those that the subscriptions test
    # Otherwise a property is doubted only if a known one is near: events of few sources lack those of the others.
    from_all_sources: bool = True


def likely_mistakes(text: str, known: Known) -> list[TextWarning]:
    """The first warnings about a text, in its order; none about a text that is no subscription."""
    try:
        query = parse(text, known.prefixes)
    except SubscriptionError:
        return []
    found = chain(
        _node(text, query, known),
        _classes(text, known),
        (TextWarning(*doubt) for doubt in doubtful_searches(text)),
    )
    if known.attributes and not is_over_tables(query, known.tables):
        attributes = _Attributes(text, known)
        warnings = attributes.warnings if known.by_events else attributes.unquoted
        found = chain(found, warnings(query.where))
    if known.attributes.properties and not known.attributes.properties_are_full:
        found = chain(found, _properties(text, query, known))
    first: dict[str, TextWarning] = {}
    for warning in found:
        first.setdefault(warning.message, warning)
        if len(first) == _MOST:
            break
    return sorted(first.values(), key=lambda warning: warning.start)


def is_over_tables(query: Query, tables: Collection[str]) -> bool:
    return bool(query.joined) or query.stream in tables


def tested_attributes(query: Query) -> set[str]:
    """The attributes that a query tests. Those at the right of a comparison are left out: they may be meant as texts."""
    return {
        name.path for leaf in leaves(query.where) for name in _tested(leaf) if isinstance(name, Attribute)
    }


def missing_node(network: str, node: str, nodes: Nodes) -> str:
    """The sentence about a node that a network does not have."""
    names = (name for name, _ in islice(nodes.nodes(), _COMPARED))
    advice = did_you_mean(node, names, "add the node, or look at its spelling")
    return f"the network {network!r} has no node {node!r}; {advice}"


class _Attributes:
    """The attributes of one text. `_elements` are the names of ANY, each with the path of its list."""

    def __init__(self, text: str, known: Known) -> None:
        self._known = known.attributes
        self._tokens = list(tokens_with_offsets(text))
        self._lexicon = Lexicon(known.prefixes)
        self._properties = PropertyNames(known.attributes, known.prefixes, known.taxonomy)
        self._elements: dict[str, str] = {}
        self._near: dict[tuple[str, float], str | None] = {}
        self._doubted: set[tuple[str, bool]] = set()  # paths, and whether they stand for a text

    def unquoted(self, condition: Condition) -> Iterator[TextWarning]:
        """Names that are only compared with; a dot or backquotes show that a name is meant."""
        for leaf in leaves(condition):
            if isinstance(leaf, Comparison) and leaf.op in ("=", "!=") and isinstance(leaf.right, Attribute):
                start, end = self._place(leaf.right)
                is_bare = "." not in leaf.right.path and end - start == len(leaf.right.path)
                if is_bare and self._is_new(leaf.right, True):
                    yield self._unquoted(leaf.right)

    def warnings(self, condition: Condition, negated: bool = False) -> Iterator[TextWarning]:
        for leaf, under_not in _with_negation(condition, negated):
            may_lack = under_not or isinstance(leaf, Missing)
            for name in _tested(leaf):
                if (
                    isinstance(name, Attribute)
                    # MISSING and NOT may hold because events lack the attribute: then a known name has to be near.
                    and (not may_lack or self._nearest(name) or (under_not and self._property(name)))
                    and self._is_new(name)
                ):
                    yield self._unknown(name, None if under_not else leaf)
            if isinstance(leaf, Comparison):
                for name in operands(leaf.right):
                    if isinstance(name, Attribute) and self._is_new(name, name is leaf.right):
                        yield self._unquoted(name) if name is leaf.right else self._unknown(name)
            yield from self._incomparable(leaf)
            if isinstance(leaf, AnyElement):
                outer, self._elements = (
                    self._elements,
                    {**self._elements, leaf.name: self._path(leaf.attribute)},
                )
                yield from self.warnings(leaf.condition, under_not)
                self._elements = outer

    def _path(self, attribute: Attribute) -> str:
        """The path in the event; an element of a list has the path of the list."""
        first, dot, rest = attribute.path.partition(".")
        return f"{self._elements.get(first, first)}{dot}{rest}"

    def _is_new(self, attribute: Attribute, for_text: bool = False) -> bool:
        """Whether an attribute is unknown, and not warned of yet."""
        key = attribute.path, for_text
        if self._known.is_full or self._path(attribute) in self._known or key in self._doubted:
            return False
        self._doubted.add(key)
        return True

    def _unknown(self, attribute: Attribute, leaf: Leaf | None = None) -> TextWarning:
        near, path = self._nearest(attribute), attribute.path
        advice = f"; did you mean {near}?" if near else ""
        found = (
            None if isinstance(leaf, Missing) else self._property(attribute)
        )  # no pattern says that it lacks
        if found is not None and not (near or "").casefold().endswith(path.casefold()):
            pattern = self._properties.pattern(found, leaf)
            advice = f", but graphs have the property {self._properties.written(found)}; write {pattern}"
        message = f"no {self._known.events_are} has the attribute {path}{advice}"
        return TextWarning(message, *self._place(attribute))

    def _property(self, attribute: Attribute) -> str | None:
        return None if self._elements else self._properties.of_attribute(attribute.path)

    def _unquoted(self, attribute: Attribute) -> TextWarning:
        path = attribute.path
        near = self._nearest(attribute, 0.8)
        advice = f"for the text write '{path}'" + (f", or did you mean {near}?" if near else "")
        return TextWarning(f"{path} is read as an attribute; {advice}", *self._place(attribute))

    def _nearest(self, attribute: Attribute, likeness: float = 0.7) -> str | None:
        """The known name that is spelled most like an attribute; of an element, among the names of its list. None after many
        others: comparing takes time."""
        key = attribute.path, likeness
        if key not in self._near and len(self._near) < _TRIED:
            self._near[key] = self._most_like(attribute, likeness)
        return self._near.get(key)

    def _most_like(self, attribute: Attribute, likeness: float) -> str | None:
        path, names = attribute.path, self._folded
        first = path.partition(".")[0]
        if first in self._elements:
            inside = f"{self._elements[first]}."
            inner = (f"{first}.{name.removeprefix(inside)}" for name in names if name.startswith(inside))
            names = {name: name.casefold() for name in inner}
        folded = path.casefold()
        same = [name for name, other in names.items() if other == folded]
        inside_others = [name for name, other in names.items() if other.endswith(f".{folded}")]
        return next(iter(same + inside_others), None) or nearest(path, names, likeness)

    @cached_property
    def _folded(self) -> dict[str, str]:
        """The known names, each with its form for a comparison in any case."""
        return {name: name.casefold() for name in self._known.names()}

    def _incomparable(self, leaf: Leaf) -> Iterator[TextWarning]:
        """A warning if no value of the attribute can be compared with the constants."""
        operand, constants = _test(leaf)
        if isinstance(operand, Folded):
            operand = operand.operand
        if not isinstance(operand, Attribute) or not constants:
            return
        seen = self._known.kinds(self._path(operand)) & _MANY.keys()
        views = [constant_view(constant) for constant in constants if not isinstance(constant, Parameter)]
        kinds = {view[0] for view in views if view is not None}
        if None in views or not kinds or len(views) < len(constants):
            return
        if not seen or not kinds <= _ONE.keys() or kinds & seen:
            return
        constant, kind = constants[0], constant_view(constants[0])[0]  # type: ignore[arg-type, index]
        assert isinstance(constant, Iri | Literal)
        has = " and ".join(sorted(_MANY[each] for each in seen))
        events = self._known.events_are.replace("event", "events", 1)
        message = f"{operand.path} has {has} in {events}, and"
        if isinstance(leaf, TextTest):
            message = f"{message} {_TESTS.get(leaf.op, leaf.op.partition(' ')[0])} looks at texts only"
            yield TextWarning(message, *self._place(operand))
            return
        written, start, end = self._constant(operand, constant)
        message = f"{message} {written} is {_ONE[kind]}; {_advice(written, constant, seen)}"
        yield TextWarning(message, start, end)

    def _place(self, attribute: Attribute) -> tuple[int, int]:
        return self._names.get(attribute.path, (0, 0))

    @cached_property
    def _names(self) -> dict[str, tuple[int, int]]:
        """Where each name is written first."""
        found: dict[str, tuple[int, int]] = {}
        for token, offset in self._tokens:
            if kind_of(token) in NAMES:
                found.setdefault(name_of(token), (offset, offset + len(token)))
        return found

    @cached_property
    def _constants(self) -> dict[object, tuple[str, int, int]]:
        """How each constant is written first, and where."""
        found: dict[object, tuple[str, int, int]] = {}
        for token, offset in self._tokens:
            if kind_of(token) in VALUES:
                found.setdefault(self._lexicon.term(token), (token, offset, offset + len(token)))
        return found

    def _constant(self, attribute: Attribute, constant: Iri | Literal) -> tuple[str, int, int]:
        """A constant as it is written beside an attribute, and its place; the attribute's own if it has a sign or a unit."""
        if constant in self._constants:
            return self._constants[constant]
        return constant.text if isinstance(constant, Literal) else f"<{constant.value}>", *self._place(
            attribute
        )


def _with_negation(condition: Condition, negated: bool) -> Iterator[tuple[Leaf, bool]]:
    """The leaves of a condition, each with whether it is under NOT."""
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from _with_negation(part, negated)
    elif isinstance(condition, Not):
        yield from _with_negation(condition.part, True)
    else:
        yield condition, negated


def _tested(leaf: Leaf) -> Iterator[Operand]:
    """What a leaf tests: the left side of a comparison, or its only operand."""
    if isinstance(leaf, Comparison):
        yield from operands(leaf.left)
    elif isinstance(leaf, Between | OneOf | TextTest):
        yield from operands(leaf.operand)
    elif isinstance(leaf, Exists | Missing | AnyElement):
        yield leaf.attribute


def _test(leaf: Leaf) -> tuple[Operand | None, tuple[Constant, ...]]:
    """An operand and the constants it is compared with."""
    if isinstance(leaf, Comparison) and isinstance(leaf.right, Iri | Literal):
        return leaf.left, (leaf.right,)
    if isinstance(leaf, Between):
        return leaf.operand, (leaf.low, leaf.high)
    if isinstance(leaf, OneOf):
        return leaf.operand, leaf.options
    return (leaf.operand, (leaf.pattern,)) if isinstance(leaf, TextTest) else (None, ())


def _advice(written: str, constant: Iri | Literal, seen: Iterable[str]) -> str:
    """How a constant is written that can be compared with values of the seen kinds."""
    if TEXT in seen:
        return f"for the text write '{constant.value if isinstance(constant, Iri) else written}'"
    text = constant.text if isinstance(constant, Literal) and not constant.datatype else ""
    if (NUMBER in seen and number(text) is not None) or (BOOLEAN in seen and text in ("true", "false")):
        return f"write {text} without quotes"
    return "they never compare"


def _classes(text: str, known: Known) -> Iterator[TextWarning]:
    lexicon = Lexicon(known.prefixes)
    if not len(known.taxonomy):
        return
    names: list[str] = []
    doubted: set[str] = set()
    for token, offset in tokens_with_offsets(text):
        found = IS_A.fullmatch(token) if kind_of(token) == "IS_A" else None
        if found is None or found[3].startswith("$"):
            continue
        written = found[3]
        iri = lexicon.iri(written[1:-1]) if written[0] == "<" else lexicon.name(written)
        if iri.value in known.taxonomy or written in doubted:
            continue
        doubted.add(written)
        names = names or [
            written_iri(name, lexicon.prefixes) for name in islice(known.taxonomy.classes(), _COMPARED)
        ]
        near = nearest(written, names)
        advice = f"; did you mean {near}?" if near else ""
        message = f"the taxonomy has no class {written}{advice}"
        yield TextWarning(message, offset + found.start(3), offset + found.end(3))


def _properties(text: str, query: Query, known: Known) -> Iterator[TextWarning]:
    """Properties of triples that no graph has."""
    names = PropertyNames(known.attributes, known.prefixes, known.taxonomy)
    used = (leaf.property for leaf in leaves(query.where) if isinstance(leaf, TriplePattern))
    doubted = dict.fromkeys(iri.value for iri in used if isinstance(iri, Iri) and iri.value not in names)
    places = _property_places(text, known) if doubted else {}
    for iri in islice(doubted, _TRIED):
        near = names.nearest(iri)
        if near is None and not known.from_all_sources:
            continue
        start, end = places.get(iri) or _place_in_sparql(text, iri)
        written = text[start:end] or names.written(iri)
        advice = f"; did you mean {near}?" if near else ""
        message = f"no {known.attributes.events_are} has the property {written}{advice}"
        yield TextWarning(message, start, end)


def _property_places(text: str, known: Known) -> dict[str, tuple[int, int]]:
    """Where each property of the triples is written first."""
    lexicon = Lexicon(known.prefixes)
    places: dict[str, tuple[int, int]] = {}
    for token, offset in tokens_with_offsets(text):
        found = _TRIPLE.fullmatch(token) if kind_of(token) == "TRIPLE" else None
        if found is not None and isinstance(iri := lexicon.term(found[1]), Iri):
            start = offset + found.start(1)
            places.setdefault(iri.value, (start, start + len(found[1].rstrip())))
    return places


def _place_in_sparql(text: str, iri: str) -> tuple[int, int]:
    """The same in SPARQL, which may have prefixes of its own; (0, 0) if it cannot be found."""
    name = re.escape(local_name(iri))
    found = re.search(rf"<{re.escape(iri)}>|(?<![\w:.-])[\w.-]*+:{name}(?![\w:])", text)
    return found.span() if found else (0, 0)


def _node(text: str, query: Query, known: Known) -> Iterator[TextWarning]:
    via = query.via
    network = known.networks.get(via.network) if via is not None else None
    if via is None or network is None or via.node in network:
        return
    token, offset = list(tokens_with_offsets(text))[-1]  # a text with VIA ends with its node
    yield TextWarning(missing_node(via.network, via.node, network), offset, offset + len(token))
