"""Parses our own language by recursive descent over the tokens of one text (LANGUAGE.md).

WHERE may be left out where the text begins with its condition. Conjunctions in conjunctions and disjunctions in
disjunctions are flattened. A parenthesis may open arithmetic: `(a + b) > c` is parsed like a condition until the
parenthesis closes.
"""

from __future__ import annotations

import re

from tidings.errors import nearest
from tidings.language.faults import BEYOND_SUBSET, Misread, error_at, quoted
from tidings.language.query import (
    And,
    AnyElement,
    Attribute,
    Condition,
    Exists,
    JoinedTable,
    Missing,
    Not,
    Or,
    Query,
    TriplePattern,
    Variable,
    Via,
)
from tidings.language.syntax.operands import BONDS, MAX_NESTING, NAMES, VALUES, name_of, too_deep
from tidings.language.syntax.predicates import LONE, TESTS
from tidings.language.syntax.scanner import END
from tidings.language.syntax.tables import TableParser
from tidings.language.syntax.tokens import IRI, TERM
from tidings.model.terms import Literal

_JOINING = frozenset({"AND", "SUCHTHAT"})
# `any = 5` and `missing IN (1)` are about attributes of these names.
_ABOUT_A_NAME = TESTS | {"NOT", "IS", "COMPARE", *BONDS}
_OPENING_WORDS = ("SELECT", "FROM", "WHERE", "VIA")
_BEFORE_A_NAME = frozenset({"NOT", "EXISTS", "MISSING", "ANY"})
_BEGINNING = NAMES | VALUES | frozenset("QUANTITY VARIABLE IS_A TRIPLE CALL LPAR PLUS MINUS".split())
_BEFORE_IRI = re.compile(rf"\s*+\w++\s*+{IRI}")
_TRIPLE = re.compile(rf"\(({TERM}),({TERM}),({TERM})\)")


class QueryParser(TableParser):
    """Parses a whole text; `query()` returns the query."""

    def query(self) -> Query:
        select: tuple[Variable, ...] | None = None
        stream: str | None = None
        joined: tuple[JoinedTable, ...] = ()
        via: Via | None = None
        where: Condition = LONE
        self._check_size()
        self._check_first_word()
        opening = ["LBRACE", "FROM", "SELECT", "WHERE", "PLACE"]
        if self._takes("SELECT"):
            opening = ["LBRACE", "FROM", "WHERE", "PLACE"]
            if not self._takes("STAR"):
                opening = ["VARIABLE", "COMMA", *opening]
                select = self._selected()
        if self._takes("FROM"):
            stream, joined = self._tables()
            opening = ["LBRACE", "WHERE", *(["JOIN", END] if joined else ["TABLES"]), "PLACE"]
        # All rows of tables; whether these are tables is known to the engine.
        is_whole = stream is not None and select is None and self.kinds[self.at] == END
        if self.kinds[self.at] != "VIA" and not is_whole:
            named = self._takes("WHERE")
            braced = self._takes("LBRACE")
            if not (named or braced or self._begins_condition()):
                self._fail(*opening)
            where = self._conditions()
            if braced and not self._takes("RBRACE"):
                self._fail("COMMA", "AND", "OR", "RBRACE", "MORE")
            if not braced and self.kinds[self.at] not in (END, "VIA"):
                self._fail("COMMA", "AND", "OR", END, "MORE")
        if self._takes("VIA"):
            via = self._via()
        if self.kinds[self.at] != END:
            self._fail(END, *(["MORE"] if via is None else []))
        return Query(where, select, stream, via, joined)

    def _check_first_word(self) -> None:
        """Refuses `from = 'bob'`: after WHERE it would be about an attribute of this name."""
        if self.kinds[0] in ("SELECT", "FROM", "VIA") and self.kinds[1] in ("COMPARE", "IN_LIST"):
            word = self.tokens[0]
            advice = f"for an attribute of this name write WHERE {word} {self.tokens[1].split()[0]} …"
            self._refuse(0, f"{quoted(word)} begins no condition", advice)

    def _begins_condition(self) -> bool:
        """Whether the text begins with its condition, and WHERE is left out. A misspelt WHERE or SELECT begins none, nor
        does a word of SPARQL that is not understood, be it before an IRI, whose `<` is read as a comparison."""
        kind, after = self.kinds[self.at], self.kinds[self.at + 1]
        if self.at or kind not in _BEGINNING:
            return False
        if self.tokens[0].upper() in BEYOND_SUBSET and (
            after not in _ABOUT_A_NAME or _BEFORE_IRI.match(self.text)
        ):
            return False
        if kind not in NAMES or kind in _BEFORE_A_NAME or after in _ABOUT_A_NAME:
            return True
        return nearest(self.tokens[self.at].upper(), _OPENING_WORDS) is None

    def _selected(self) -> tuple[Variable, ...]:
        found: dict[Variable, None] = {}
        if self.kinds[self.at] != "VARIABLE":
            self._fail("STAR", "VARIABLE")
        while self.kinds[self.at] == "VARIABLE":
            self.used.append(self.at)
            found[Variable(self.tokens[self.at][1:])] = None
            self.at += 1
            if self._takes("COMMA") and self.kinds[self.at] != "VARIABLE":
                self._fail("VARIABLE")
        return tuple(found)

    def _via(self) -> Via:
        network = self._name()
        if not self._takes("AT"):
            self._fail("AT")
        token, kind = self.tokens[self.at], self.kinds[self.at]
        if kind == "STRING":
            node = self._plain(self.at, "a node").text
        elif kind in NAMES or kind == "NUMBER":
            node = name_of(token)
        else:
            self._fail("STRING", "NAME", "NUMBER")
        self.at += 1
        return Via(network, node)

    def _conditions(self) -> Condition:
        """A comma joins conditions at the top only: inside parentheses it belongs to triples and lists."""
        first = self._either()
        if self.kinds[self.at] != "COMMA":
            return first
        parts = [first]
        while self._takes("COMMA"):
            parts.append(self._either())
        return And(flat(parts, And))

    def _either(self) -> Condition:
        kinds = self.kinds
        choices: list[Condition] = []
        while True:
            part = self._item()
            if kinds[self.at] in _JOINING:
                parts = [part]
                while kinds[self.at] in _JOINING:
                    self.at += 1
                    parts.append(self._item())
                part = And(flat(parts, And))
            if kinds[self.at] != "OR":
                break
            self.at += 1
            choices.append(part)
        if not choices:
            return part
        choices.append(part)
        return Or(flat(choices, Or))

    def _item(self) -> Condition:
        kind = self.kinds[self.at]
        if kind == "NAME":
            return self._predicate()
        if kind == "LPAR":
            return self._parenthesis()
        if kind == "TRIPLE":
            return self._triple()
        if kind == "CALL":
            return self._call()
        if kind == "NOT":
            return self._negation()
        if kind == "IS_A":
            return self._is_a()
        if kind == "EXISTS" or (kind in ("MISSING", "ANY") and self.kinds[self.at + 1] not in _ABOUT_A_NAME):
            self._count()
            self.at += 1
            if kind == "ANY":
                return self._any()
            attribute = Attribute(self._name())
            return Exists(attribute) if kind == "EXISTS" else Missing(attribute)
        return self._predicate()

    def _parenthesis(self) -> Condition:
        opening = self.at
        self._descend(1)
        self.at += 1
        inner = self._either()
        if self.kinds[self.at] != "RPAR":
            self._fail("RPAR", "AND", "OR", "MORE")
        self.at += 1
        self._depth -= 1
        if inner is LONE:
            return self._continued(opening, self._arithmetic(self._lone, opening, 0))
        return inner

    def _negation(self) -> Condition:
        start = self.at
        while self.kinds[self.at] == "NOT":
            self.at += 1
        times = self.at - start
        self._descend(times)
        outer, self._negated = self._negated, True
        condition = self._item()
        self._negated = outer
        self._depth -= times
        for _ in range(times):
            condition = Not(condition)
        return condition

    def _any(self) -> AnyElement:
        at = self.at
        name = self._name()
        if "." in name:
            self._refuse(at, f"{quoted(name)} names an element", "the name of an element has no dots in it")
        if self.kinds[self.at] == "IN_LIST":
            self._refuse(self.at, f"ANY {name} IN stands before a list", "name an attribute that holds one")
        if not self._takes("IN"):
            self._fail("IN")
        attribute = Attribute(self._name())
        if not self._takes("SATISFIES"):
            self._fail("SATISFIES")
        if self.kinds[self.at] not in ("LPAR", "TRIPLE"):
            self._fail("LPAR")
        outer, self._element = self._element, True
        opening = self.at
        self._descend(1)
        if self.kinds[opening] == "TRIPLE":
            self._triple()
        self.at += 1
        condition = self._either()
        if condition is LONE:
            self._fail("COMPARISON")
        if not self._takes("RPAR"):
            self._fail("RPAR", "AND", "OR", "MORE")
        self._depth -= 1
        self._element = outer
        return AnyElement(name, attribute, condition)

    def _triple(self) -> TriplePattern:
        at = self.at
        if self._negated:
            advice = "negate a condition on a variable instead, as in NOT ?x = 5"
            self._refuse(at, "a triple cannot stand under NOT", advice)
        if self._element:
            self._refuse(
                at, "a triple cannot stand in ANY ... SATISFIES", "only attributes can be tested there"
            )
        parts = _TRIPLE.fullmatch(self.tokens[at]).groups()  # type: ignore[union-attr]
        term = self.lexicon.term
        try:
            nodes = term(parts[0]), term(parts[1]), term(parts[2])
        except Misread:
            begin = self.offset(at) + 1
            for part in parts:
                self._term(part, begin + len(part) - len(part.lstrip()))
                begin += len(part) + 1
            raise
        subject, property = nodes[:2]
        if isinstance(subject, Literal) or isinstance(property, Literal):
            role = "subject" if isinstance(subject, Literal) else "property"
            advice = "only the object of a triple may be a text, a number or a date"
            self._refuse(at, f"a literal cannot be the {role} of a triple", advice)
        for node in nodes:
            if isinstance(node, Variable):
                self.bound.add(f"?{node.name}")
        self.has_triples = True
        self.at += 1
        return TriplePattern(*nodes)

    def _term(self, text: str, offset: int) -> None:
        try:
            self.lexicon.term(text)
        except Misread as fault:
            raise error_at(self.text, offset, fault.what, fault.advice) from None


def check_depth(where: Condition, text: str) -> None:
    """Refuses a condition that nests too deep, by its tree."""
    level: list[Condition] = [where]
    depth = 0
    while level := [inner for condition in level for inner in _parts(condition)]:
        depth += 1
        if depth > MAX_NESTING:
            raise too_deep(text, 0)


def _parts(condition: Condition) -> tuple[Condition, ...]:
    if isinstance(condition, And | Or):
        return condition.parts
    if isinstance(condition, Not):
        return (condition.part,)
    return (condition.condition,) if isinstance(condition, AnyElement) else ()


def flat(parts: list[Condition], kind: type[And] | type[Or]) -> tuple[Condition, ...]:
    for part in parts:
        if isinstance(part, kind):
            return tuple(
                [inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))]
            )
    return tuple(parts)
