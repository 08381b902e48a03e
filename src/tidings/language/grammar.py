"""Our own language, by recursive descent over the tokens of one text (LANGUAGE.md).

Conjunctions in conjunctions and disjunctions in disjunctions are flattened, a constant moves to the right of its
comparison; otherwise the tree is as written. What opens with a parenthesis may turn out to be arithmetic:
`(a + b) > c` is read like a condition until the parenthesis closes. Every level of nesting is counted, so the
descent is bounded.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from tidings.errors import SubscriptionError
from tidings.language.faults import Misread, error_at, shown, syntax_error
from tidings.language.lexicon import Lexicon, expression_fault, network_fault
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
    IsA,
    Missing,
    Not,
    OneOf,
    Operand,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    Via,
)
from tidings.language.remembered import Remembered
from tidings.language.scanner import END, JOINTS, places, scan
from tidings.language.tokens import CLASS, TERM, WORDS
from tidings.terms import XSD, Iri, Literal
from tidings.values import NUMBER, constant_view

MAX_NESTING = 100
MAX_PREDICATES = 10_000
MAX_OPERATIONS = 100
REVERSED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS = {**{op: op for op in REVERSED}, "<>": "!="}
_BONDS = {"PLUS": 1, "MINUS": 1, "STAR": 2, "SLASH": 2}
_JOINING = frozenset({"AND", "SUCHTHAT"})
_NAMES = WORDS | {"NAME", "QUOTED_NAME", "BOOLEAN"}
_ATTRIBUTES = WORDS | {"NAME", "QUOTED_NAME"}
_VALUES = frozenset({"NUMBER", "STRING", "DATE", "BOOLEAN", "IRI", "PNAME", "ABSOLUTE", "PARAMETER"})
_BEHIND = frozenset({"AND", "OR", "RPAR", END, "COMMA"})
_TESTS = frozenset("BETWEEN IN_LIST IN LIKE ILIKE CONTAINS STARTS ENDS MATCHES".split())
# `any = 5` and `missing IN (1)` are about attributes of these names.
_ABOUT_A_NAME = _TESTS | {"NOT", "IS", "COMPARE", *_BONDS}
_LONE: Condition = And(())
_ZERO = Literal("0", XSD + "integer")
_TRIPLE = re.compile(rf"\(({TERM}),({TERM}),({TERM})\)")
_IS_A = re.compile(r"\?(\w+)\s+ISA\s*([<>]?=)?\s*(.+)", re.IGNORECASE | re.DOTALL)
_CLASS = re.compile(CLASS)


def _name(token: str) -> str:
    return token[1:-1].replace("``", "`") if token[0] == "`" else token


_REMEMBERED = Remembered(lambda token: Attribute(_name(token)), 100_000)


class Reading:
    """One text while it is read; `query()` reads it."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text = text
        self.lexicon = lexicon
        self.tokens, self.kinds = scan(text)
        self.at = 0
        # The tokens that are variables, but not in triples; the variables that are.
        self.used: list[int] = []
        self.bound: set[str] = set()
        self.has_triples = False
        # Whether the constants stand in the tree in the order of the text, and no joint of the language is a name.
        self.regular = True
        self.deepest = 0
        self._depth = 0
        self._predicates = 0
        self._operations = 0
        self._negated = False
        self._element = False
        self._lone: Operand | Constant = _ZERO

    def query(self) -> Query:
        select: tuple[Variable, ...] | None = None
        stream: str | None = None
        via: Via | None = None
        where: Condition = _LONE
        opening = ["LBRACE", "FROM", "SELECT", "WHERE", "PLACE"]
        if self._takes("SELECT"):
            opening = ["LBRACE", "FROM", "WHERE", "PLACE"]
            if not self._takes("STAR"):
                opening = ["VARIABLE", "COMMA", *opening]
                select = self._selected()
        if self._takes("FROM"):
            stream = self._name()
            opening = ["LBRACE", "WHERE", "PLACE"]
        if self.kinds[self.at] != "VIA":
            named = self._takes("WHERE")
            braced = self._takes("LBRACE")
            if not (named or braced):
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
        return Query(where, select, stream, via)

    def offset(self, at: int) -> int:
        """Where a token begins."""
        return places(self.text)[at]

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
        elif kind in _NAMES or kind == "NUMBER":
            node = _name(token)
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
            if self.kinds[self.at + 1] == "COMPARE" and self.kinds[self.at + 3] in _BEHIND:
                return self._plain_comparison()
            return self._predicate()
        if kind == "LPAR":
            return self._parenthesis()
        if kind == "TRIPLE":
            return self._triple()
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
        if inner is _LONE:
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
            self._refuse(at, f"{shown(name)} names an element", "the name of an element has no dots in it")
        if self.kinds[self.at] == "IN_LIST" or not self._takes("IN"):
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
        if condition is _LONE:
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
                at, "a triple cannot stand in ANY ... SATISFIES", "there only attributes can be asked"
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

    def _is_a(self) -> IsA:
        self._count()
        at = self.at
        self._check_variable(at)
        name, op, cls = _IS_A.fullmatch(self.tokens[at]).groups()  # type: ignore[union-attr]
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

    def _predicate(self) -> Condition:
        start = self.at
        self._operations = 0
        left = self._primary("CONDITION")
        if self.kinds[self.at] in _BONDS:
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
            return _LONE
        if isinstance(left, Iri | Literal | Parameter):
            self._fail("COMPARE")
        self._count()
        if kind == "IS":
            return self._is(left)
        negated = self._takes("NOT")
        if kinds[self.at] not in _TESTS:
            if negated:
                self._fail("BETWEEN", "IN", "LIKE", "CONTAINS", "STARTS", "ENDS", "MATCHES")
            if kind == "ISA" and isinstance(left, Variable):
                self.at += 1
                compared = self.kinds[self.at] == "COMPARE" and self.tokens[self.at] in ("<=", ">=", "=")
                self.at += compared
                self._fail("CLASS", *([] if compared else ["ISA_COMPARE"]))
            self._fail("COMPARISON", *(["ISA"] if isinstance(left, Variable) else []))
        return self._test(left, negated)

    def _plain_comparison(self) -> Condition:
        """What `_predicate` would read too: a name compared with one token. It is what texts have most of."""
        at = self.at
        if self.kinds[at + 2] not in _VALUES:
            return self._predicate()
        self._count()
        self.at = at + 3
        return Comparison(_REMEMBERED[self.tokens[at]], _OPERATORS[self.tokens[at + 1]], self._read(at + 2))

    def _comparison(self, start: int, left: Operand | Constant) -> Comparison:
        op = _OPERATORS[self.tokens[self.at]]
        self.at += 1
        right_at = self.at
        right: Operand | Constant = self._primary("VALUE", "NAME", "VARIABLE")
        if self.kinds[self.at] in _BONDS:
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
        """BETWEEN, IN and the tests of texts, which stands next."""
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
        if self.kinds[self.at] == "IGNORE":
            if kind in ("MATCHES", "CIDR"):
                advice = "begin the expression with (?i)" if kind == "MATCHES" else "addresses have no case"
                self._refuse(self.at, f"IGNORE CASE cannot stand after {kind}", advice)
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
            self._refuse(at, f"{shown(pattern.text)} is not a regular expression", f"RE2 says: {reason}")
        if kind == "CIDR" and (reason := network_fault(pattern.text)):
            self._refuse(at, f"{shown(pattern.text)} is not a network of addresses", reason)
        self.at += 1
        return pattern

    def _plain(self, at: int, what: str) -> Literal:
        term = self._read(at)
        assert isinstance(term, Literal)
        if term.datatype or term.language:
            self._refuse(at, f"{what} is a plain text", "leave out its language or datatype")
        return term

    def _constant(self) -> Constant:
        kind = self.kinds[self.at]
        if kind in _VALUES:
            self.at += 1
            return self._read(self.at - 1)
        if kind in ("PLUS", "MINUS") and self.kinds[self.at + 1] == "NUMBER":
            return self._signed()
        self._fail("VALUE")

    def _signed(self) -> Constant:
        self.at += 2
        return self.lexicon.term(self.tokens[self.at - 2] + self.tokens[self.at - 1])  # type: ignore[return-value]

    def _primary(self, *expected: str) -> Operand | Constant:
        at = self.at
        kind = self.kinds[at]
        if kind in _ATTRIBUTES:
            self.at = at + 1
            self.regular &= kind not in JOINTS
            return _REMEMBERED[self.tokens[at]]
        if kind in _VALUES:
            self.at = at + 1
            return self._read(at)
        if kind == "VARIABLE":
            self._check_variable(at)
            self.at = at + 1
            return Variable(self.tokens[at][1:])
        if kind in ("PLUS", "MINUS"):
            if self.kinds[at + 1] == "NUMBER":
                return self._signed()
            if kind == "MINUS":
                return self._minus()
        if kind == "LPAR":
            self._descend(1)
            self.at = at + 1
            inner = self._arithmetic(self._primary("SUM"), at + 1, 0)
            if not self._takes("RPAR"):
                self._fail("RPAR")
            self._depth -= 1
            return inner
        self._fail(*expected)

    def _minus(self) -> Operand:
        """`-a` is `0 - a`."""
        self._operate()
        self._descend(1)
        at = self.at = self.at + 1
        operand = self._number(self._primary("SUM"), at)
        self._depth -= 1
        return Arithmetic("-", _ZERO, operand)

    def _arithmetic(self, left: Operand | Constant, start: int, level: int) -> Operand | Constant:
        """`left`, which began at `start`, and the operators behind it that bind closer than `level`."""
        kinds = self.kinds
        while (bond := _BONDS.get(kinds[self.at], 0)) > level:
            self._operate()
            left = self._number(left, start)
            op = self.tokens[self.at]
            at = self.at = self.at + 1
            right = self._number(self._primary("SUM"), at)
            if _BONDS.get(kinds[self.at], 0) > bond:
                right = self._arithmetic(right, at, bond)
            left = Arithmetic(op, left, right)
        return left

    def _number(self, term: Operand | Constant, at: int) -> Operand | Constant:
        if isinstance(term, Iri | Literal):
            view = constant_view(term)
            if view is None or view[0] != NUMBER:
                found = shown(self.tokens[at])
                self._refuse(
                    at, f"arithmetic with {found}, which is not a number", "write a number without quotes"
                )
        return term

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

    def _name(self) -> str:
        if self.kinds[self.at] not in _NAMES:
            self._fail("NAME")
        self.regular &= self.kinds[self.at] not in JOINTS
        self.at += 1
        return _name(self.tokens[self.at - 1])

    def _takes(self, kind: str) -> bool:
        """Whether the next token is of this kind, which is then taken."""
        if self.kinds[self.at] != kind:
            return False
        self.at += 1
        return True

    def _read(self, at: int) -> Constant:
        try:
            return self.lexicon.term(self.tokens[at])  # type: ignore[return-value]
        except Misread as fault:
            raise error_at(self.text, self.offset(at), fault.what, fault.advice) from None

    def _term(self, text: str, offset: int) -> None:
        try:
            self.lexicon.term(text)
        except Misread as fault:
            raise error_at(self.text, offset, fault.what, fault.advice) from None

    def _check_variable(self, at: int) -> None:
        if self._element:
            self._refuse(
                at, "a ?variable cannot stand in ANY ... SATISFIES", "there only attributes can be asked"
            )
        self.used.append(at)

    def _count(self) -> None:
        self._predicates += 1
        if self._predicates > MAX_PREDICATES:
            what = f"the expression has more than {MAX_PREDICATES:,} predicates"
            advice = "at most that many are read; ask for values of one attribute with IN, or make several subscriptions"
            self._refuse(self.at, what, advice)

    def _operate(self) -> None:
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            what = f"arithmetic has more than {MAX_OPERATIONS} operations"
            self._refuse(self.at, what, "compute what you can before subscribing")

    def _descend(self, levels: int) -> None:
        self._depth += levels
        if self._depth > MAX_NESTING:
            raise too_deep(self.text, self.offset(self.at))
        if self._depth > self.deepest:
            self.deepest = self._depth

    def _refuse(self, at: int, what: str, advice: str) -> NoReturn:
        raise error_at(self.text, self.offset(at), what, advice)

    def _fail(self, *acceptable: str) -> NoReturn:
        raise syntax_error(self.text, self.offset(self.at), acceptable)


def too_deep(text: str, offset: int) -> SubscriptionError:
    what = f"conditions are nested more than {MAX_NESTING} deep"
    return error_at(text, offset, what, "leave out the parentheses that AND and OR do not need")


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


def _asks(operand: Operand | Constant) -> bool:
    """Whether an operand has an attribute or a variable in it."""
    if isinstance(operand, Arithmetic):
        return _asks(operand.left) or _asks(operand.right)
    return not isinstance(operand, Iri | Literal | Parameter)


def flat(parts: list[Condition], kind: type[And] | type[Or]) -> tuple[Condition, ...]:
    for part in parts:
        if isinstance(part, kind):
            return tuple(
                [inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))]
            )
    return tuple(parts)
