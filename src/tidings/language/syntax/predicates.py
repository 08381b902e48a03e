"""Parses predicates: conditions on values, each an operand and a test.

A constant moves to the right side of its comparison; otherwise the tree is as written. `IGNORE CASE` folds the operand;
NOT before a test negates the predicate, except in `NOT IN`.
"""

from __future__ import annotations

import re
from typing import Any

from tidings.language.faults import Misread, error_at, quoted
from tidings.language.query import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Exists,
    Folded,
    IsA,
    Missing,
    Not,
    OneOf,
    Operand,
    Parameter,
    TextTest,
    Variable,
)
from tidings.language.syntax.lexicon import expression_fault, network_fault
from tidings.language.syntax.operands import ATTRIBUTES, BONDS, VALUES, OperandParser
from tidings.language.syntax.scanner import END
from tidings.language.syntax.tokens import CLASS
from tidings.model.search.expression import search_fault
from tidings.model.search.stems import language_fault
from tidings.model.terms import Iri, Literal

MAX_PREDICATES = 10_000
REVERSED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TESTS = frozenset("BETWEEN IN_LIST IN LIKE ILIKE CONTAINS STARTS ENDS MATCHES SEARCH".split())
# A placeholder for an operand in parentheses, as in `(a + b) > c`, until the rest of the predicate is parsed.
LONE: Condition = And(())
_OPERATORS = {**{op: op for op in REVERSED}, "<>": "!="}
_CASELESS = {
    "MATCHES": "begin the expression with (?i)",
    "CIDR": "addresses have no case",
    "SEARCH": "it never regards case; leave it out",
}
_BEHIND = frozenset({"AND", "OR", "RPAR", END, "COMMA"})
# Variable, comparison and class of the token `?x ISA <= Sport`.
IS_A = re.compile(r"\?(\w+)\s+ISA\s*([<>]?=)?\s*(.+)", re.IGNORECASE | re.DOTALL)
_CLASS = re.compile(CLASS)


class PredicateParser(OperandParser):
    """Parses the predicate at the next token."""

    def _predicate(self) -> Condition:
        start, kinds = self.at, self.kinds
        if (
            kinds[start] == "NAME"
            and kinds[start + 1] == "COMPARE"
            and kinds[start + 2] in VALUES
            and kinds[start + 3] in _BEHIND
        ):  # the rest would read the same; texts have most of these
            self._count()
            self.at = start + 3
            name, op = self.tokens[start : start + 2]
            return Comparison(ATTRIBUTES[name], _OPERATORS[op], self._read(start + 2))
        self._operations = 0
        left = self._primary("CONDITION")
        if kinds[self.at] in BONDS:
            left = self._arithmetic(left, start, 0)
        return self._continued(start, left)

    def _continued(self, start: int, left: Operand | Constant) -> Condition:
        """The condition whose left side, which began at `start`, is read."""
        kinds = self.kinds
        kind = kinds[self.at]
        if kind == "COMPARE":
            self._count()
            return self._comparison(start, left)
        if kind == "RPAR" and kinds[start - 1] == "LPAR":
            self._lone = left
            return LONE
        if isinstance(left, Iri | Literal | Parameter):
            self._fail("COMPARE")
        self._count()
        if kind == "IS":
            return self._is(left)
        negated = self._takes("NOT")
        if kinds[self.at] not in TESTS:
            if negated:
                self._fail("BETWEEN", "IN", "LIKE", "CONTAINS", "STARTS", "ENDS", "MATCHES", "SEARCH")
            if kind == "ISA" and isinstance(left, Variable):
                self.at += 1
                compared = self.kinds[self.at] == "COMPARE" and self.tokens[self.at] in ("<=", ">=", "=")
                self.at += compared
                self._fail("CLASS", *([] if compared else ["ISA_COMPARE"]))
            self._fail("COMPARISON", *(["ISA"] if isinstance(left, Variable) else []))
        return self._test(left, negated)

    def _comparison(self, start: int, left: Operand | Constant) -> Comparison:
        op = _OPERATORS[self.tokens[self.at]]
        self.at += 1
        right_at = self.at
        right: Operand | Constant = self._primary("VALUE", "NAME", "VARIABLE")
        if self.kinds[self.at] in BONDS:
            right = self._arithmetic(right, right_at, 0)
        folded = self.kinds[self.at] == "IGNORE" and self._ignores_case()
        if isinstance(left, Iri | Literal | Parameter):
            if isinstance(right, Iri | Literal | Parameter):
                self.at = right_at
                self._fail("NAME", "VARIABLE")
            self.regular &= not isinstance(right, Arithmetic)
            left, op, right = right, REVERSED[op], left
        if isinstance(left, Arithmetic) and not (_asks(left) or _asks(right)):
            advice = "put an attribute or a ?variable on one side"
            self._refuse(start, "a comparison has constants on both sides", advice)
        return Comparison(self._fold(left) if folded else left, op, right)

    def _is(self, left: Operand) -> Condition:
        self.at += 1
        negated = self._takes("NOT")
        kind = self.kinds[self.at]
        if kind not in ("MISSING", "NULL"):
            self._fail("MISSING", "NULL", *([] if negated else ["NOT"]))
        if not isinstance(left, Attribute):
            self._refuse(
                self.at, f"IS {kind} stands after something else than an attribute", "write topic IS NULL"
            )
        self.at += 1
        if kind == "NULL":
            return Exists(left) if negated else Not(Exists(left))
        return Not(Missing(left)) if negated else Missing(left)

    def _test(self, left: Operand, negated: bool) -> Condition:
        """Parses the BETWEEN, IN or text test at the next token."""
        kind = self.kinds[self.at]
        word = self.at
        self.at += 1
        folded = kind == "ILIKE"
        options: tuple[Constant, ...] = ()
        pattern: Literal | Parameter | None = None
        if kind == "IN_LIST":
            options = self._options()
        elif kind == "BETWEEN":
            low = self._constant()
            if not self._takes("AND"):
                self._fail("AND")
            options = (low, self._constant())
        else:
            if kind == "IN":
                kind = "CIDR"
                if not self._takes("CIDR"):
                    self._fail("LPAR", "CIDR")
            elif kind in ("STARTS", "ENDS") and not self._takes("WITH"):
                self._fail("WITH")
            if isinstance(left, Arithmetic):
                advice = "compare numbers with =, <, BETWEEN or IN"
                self._refuse(
                    word, f"{self.tokens[word].upper()} stands after arithmetic, which has no text", advice
                )
            pattern = self._pattern(kind)
            if kind == "SEARCH" and self._takes("STEMMED"):
                kind = f"SEARCH {self._language()}"
        if self.kinds[self.at] == "IGNORE":
            if (test := kind.partition(" ")[0]) in _CASELESS:
                self._refuse(self.at, f"IGNORE CASE cannot stand after {test}", _CASELESS[test])
            folded = self._ignores_case()
        if folded:
            left = self._fold(left)
        if kind == "IN_LIST":
            return OneOf(left, options, negated)
        condition: Condition
        if pattern is None:
            condition = Between(left, *options)
        else:
            condition = TextTest(left, "LIKE" if kind == "ILIKE" else kind, pattern)
        return Not(condition) if negated else condition

    def _options(self) -> tuple[Constant, ...]:
        kinds = self.kinds
        found: list[Any] = []
        at = self.at
        terms, tokens = self.lexicon.terms, self.tokens
        while True:
            if kinds[at] == "NUMBER":
                found.append(terms[tokens[at]])
                at += 1
            else:
                self.at = at
                found.append(self._constant())
                at = self.at
            kind = kinds[at]
            if kind == "COMMA":
                at += 1
                continue
            if kind == "RPAR":
                self.at = at + 1
                return tuple(found)
            self.at = at
            self._fail("RPAR", "COMMA")

    def _pattern(self, kind: str) -> Literal | Parameter:
        at = self.at
        if self.kinds[at] == "PARAMETER":
            self.at += 1
            return Parameter(self.tokens[at][1:])
        if self.kinds[at] != "STRING":
            self._fail("PARAMETER", "STRING")
        pattern = self._plain(at, "a pattern")
        if kind == "MATCHES" and (reason := expression_fault(pattern.text)):
            self._refuse(at, f"{quoted(pattern.text)} is not a regular expression", f"RE2 says: {reason}")
        if kind == "CIDR" and (reason := network_fault(pattern.text)):
            self._refuse(at, f"{quoted(pattern.text)} is not a network of addresses", reason)
        if kind == "SEARCH" and (fault := search_fault(pattern.text)):
            # Where it is written as it is, the error says where in the text; else where that begins.
            as_written = self.tokens[at][1:-1] == pattern.text
            begin = self.offset(at) + (1 + fault.at if as_written else 0)
            raise error_at(self.text, begin, fault.what, fault.advice)
        self.at += 1
        return pattern

    def _language(self) -> str:
        """The language after STEMMED."""
        at = self.at
        if self.kinds[at] != "STRING":
            self._fail("LANGUAGE")
        language = self._plain(at, "a language").text.casefold()
        if (fault := language_fault(language)) is not None:
            self._refuse(at, *fault)
        self.at += 1
        return language

    def _is_a(self) -> IsA:
        self._count()
        at = self.at
        self._check_variable(at)
        name, op, cls = IS_A.fullmatch(self.tokens[at]).groups()  # type: ignore[union-attr]
        self.at += 1
        if _CLASS.fullmatch(cls):
            return IsA(Variable(name), op or "<=", self.lexicon.name(cls))
        try:
            term = self.lexicon.term(cls)
        except Misread as fault:
            begin = self.offset(at) + len(self.tokens[at]) - len(cls)
            raise error_at(self.text, begin, fault.what, fault.advice) from None
        assert isinstance(term, Iri | Parameter)
        return IsA(Variable(name), op or "<=", term)

    def _ignores_case(self) -> bool:
        self.at += 1
        if not self._takes("CASE"):
            self._fail("CASE")
        return True

    def _fold(self, operand: Operand) -> Folded:
        if not isinstance(operand, Variable | Attribute):
            self._refuse(
                self.at - 2, "IGNORE CASE stands after arithmetic", "numbers have no case; leave it out"
            )
        return Folded(operand)

    def _check_size(self) -> None:
        """Refuses a text with far too many predicates before it is parsed: each of these tokens is one predicate."""
        if len(self.kinds) > MAX_PREDICATES:
            self._predicates = sum(map(self.kinds.count, ("COMPARE", "IN_LIST", "CALL"))) - 1
            self._count()
            self._predicates = 0

    def _count(self) -> None:
        self._predicates += 1
        if self._predicates > MAX_PREDICATES:
            what = f"the expression has more than {MAX_PREDICATES:,} predicates"
            advice = "at most that many are read; combine values of one attribute with IN, or make several subscriptions"
            self._refuse(0, what, advice)


def _asks(operand: Operand | Constant) -> bool:
    """Whether an operand has an attribute or a variable in it."""
    if isinstance(operand, Arithmetic):
        return _asks(operand.left) or _asks(operand.right)
    return not isinstance(operand, Iri | Literal | Parameter)
