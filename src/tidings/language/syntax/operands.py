"""Parses operands, the two sides of a comparison, from the tokens of one text.

A name is an attribute, `?x` a variable, everything else a constant, and `+ - * /` combine them with the usual
precedence. Nesting and repetitions are counted, so the recursion is bounded.
"""

from __future__ import annotations

from typing import NoReturn

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.language.faults import Misread, error_at, quoted, syntax_error
from tidings.language.query import Arithmetic, Attribute, Constant, Operand, Variable
from tidings.language.syntax.bounded_cache import BoundedCache
from tidings.language.syntax.lexicon import Lexicon
from tidings.language.syntax.scanner import JOINTS, scan, token_offset
from tidings.language.syntax.tokens import WORDS
from tidings.language.syntax.units import quantity
from tidings.model.terms import Iri, Literal
from tidings.model.values import NUMBER, constant_view

MAX_NESTING = 100
MAX_OPERATIONS = 100
BONDS = {"PLUS": 1, "MINUS": 1, "STAR": 2, "SLASH": 2}
NAMES = WORDS | {"NAME", "QUOTED_NAME", "BOOLEAN"}
VALUES = frozenset({"NUMBER", "STRING", "DATE", "BOOLEAN", "IRI", "PNAME", "ABSOLUTE", "PARAMETER"})
_UNSIGNED = frozenset({"NUMBER", "QUANTITY"})
_ATTRIBUTES = WORDS | {"NAME", "QUOTED_NAME"}
# What a programmer may write, and what is written here. SPARQL has && and || itself.
_OTHER_LANGUAGES = {"&&": "write AND", "||": "write OR"}
_ZERO = Literal("0", XSD + "integer")


def name_of(token: str) -> str:
    return token[1:-1].replace("``", "`") if token[0] == "`" else token


ATTRIBUTES = BoundedCache(lambda token: Attribute(name_of(token)), 100_000)


class OperandParser:
    """One text while it is read: its tokens, and `at`, the next one."""

    def __init__(self, text: str, lexicon: Lexicon, tokens: list[str] | None = None) -> None:
        self.text = text
        self.lexicon = lexicon
        self.tokens, self.kinds = scan(text, tokens)
        self.at = 0
        # The tokens that are variables, but not in triples or calls; the variables that are. Apart are those under NOT,
        # whose calls bind nothing outside of it.
        self.used: list[int] = []
        self.bound: set[str] = set()
        self.used_under_not: list[int] = []
        self.bound_under_not: set[str] = set()
        self.has_triples = False
        self.has_calls = False
        # Whether the constants of the tree are in the order of the text, and no keyword of the language is used as a name.
        self.regular = True
        self.deepest = 0
        self._depth = 0
        self._predicates = 0
        self._operations = 0
        self._negated = False
        self._element = False
        self._lone: Operand | Constant = _ZERO

    def offset(self, at: int) -> int:
        """The offset of a token in the text."""
        return token_offset(self.text, at)

    def _primary(self, *expected: str) -> Operand | Constant:
        at = self.at
        kind = self.kinds[at]
        if kind in _ATTRIBUTES:
            self.at = at + 1
            self.regular &= kind not in JOINTS
            return ATTRIBUTES[self.tokens[at]]
        if kind in VALUES:
            self.at = at + 1
            return self._read(at)
        if kind == "VARIABLE":
            self._check_variable(at)
            self.at = at + 1
            return Variable(self.tokens[at][1:])
        if kind in ("PLUS", "MINUS"):
            if self.kinds[at + 1] in _UNSIGNED:
                return self._signed()
            if kind == "MINUS":
                return self._minus()
        if kind == "QUANTITY":
            self.at = at + 1
            return self._quantity(at)
        if kind == "LPAR":
            self._descend(1)
            self.at = at + 1
            inner = self._arithmetic(self._primary("SUM"), at + 1, 0)
            if not self._takes("RPAR"):
                self._fail("RPAR")
            self._depth -= 1
            return inner
        return self._fail(*expected)

    def _signed(self) -> Constant:
        self.at += 2
        if self.kinds[self.at - 1] == "QUANTITY":
            return self._quantity(self.at - 1, self.tokens[self.at - 2])
        return self.lexicon.term(self.tokens[self.at - 2] + self.tokens[self.at - 1])  # type: ignore[return-value]

    def _quantity(self, at: int, sign: str = "") -> Literal:
        try:
            return quantity(sign + self.tokens[at])
        except Misread as fault:
            raise error_at(self.text, self.offset(at), fault.what, fault.advice) from None

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
        while (bond := BONDS.get(kinds[self.at], 0)) > level:
            self._operate()
            left = self._number(left, start)
            op = self.tokens[self.at]
            at = self.at = self.at + 1
            right = self._number(self._primary("SUM"), at)
            if BONDS.get(kinds[self.at], 0) > bond:
                right = self._arithmetic(right, at, bond)
            left = Arithmetic(op, left, right)
        return left

    def _number(self, term: Operand | Constant, at: int) -> Operand | Constant:
        if isinstance(term, Iri | Literal):
            view = constant_view(term)
            if view is None or view[0] != NUMBER:
                found = quoted(self.tokens[at])
                self._refuse(
                    at, f"arithmetic with {found}, which is not a number", "write a number without quotes"
                )
        return term

    def _constant(self) -> Constant:
        kind = self.kinds[self.at]
        if kind in VALUES:
            self.at += 1
            return self._read(self.at - 1)
        if kind == "QUANTITY":
            self.at += 1
            return self._quantity(self.at - 1)
        if kind in ("PLUS", "MINUS") and self.kinds[self.at + 1] in _UNSIGNED:
            return self._signed()
        return self._fail("VALUE")

    def _plain(self, at: int, what: str) -> Literal:
        term = self._read(at)
        assert isinstance(term, Literal)
        if term.datatype or term.language:
            self._refuse(at, f"{what} is a plain text", "leave out its language or datatype")
        return term

    def _read(self, at: int) -> Constant:
        try:
            return self.lexicon.term(self.tokens[at])  # type: ignore[return-value]
        except Misread as fault:
            raise error_at(self.text, self.offset(at), fault.what, fault.advice) from None

    def _name(self) -> str:
        if self.kinds[self.at] not in NAMES:
            self._fail("NAME")
        self.regular &= self.kinds[self.at] not in JOINTS
        self.at += 1
        return name_of(self.tokens[self.at - 1])

    def _takes(self, kind: str) -> bool:
        """Whether the next token is of this kind, which is then taken."""
        if self.kinds[self.at] != kind:
            return False
        self.at += 1
        return True

    def _check_variable(self, at: int) -> None:
        if self._element:
            self._refuse(
                at, "a ?variable cannot stand in ANY ... SATISFIES", "only attributes can be tested there"
            )
        (self.used_under_not if self._negated else self.used).append(at)

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
        offset = self.offset(self.at)
        if advice := _OTHER_LANGUAGES.get(self.text[offset : offset + 2]):
            raise error_at(self.text, offset, f"found {self.text[offset : offset + 2]!r}", advice)
        raise syntax_error(self.text, offset, acceptable)


def too_deep(text: str, offset: int) -> SubscriptionError:
    what = f"conditions are nested more than {MAX_NESTING} deep"
    return error_at(text, offset, what, "leave out the parentheses that AND and OR do not need")
