"""Parses calls of operators, such as `locIn(Bronx)` and `mobPattern(?people)`, and explains misspelled ones.

A call is a condition of its own, one token like a triple. It has no value: it binds its results to variables, inside a
NOT for that NOT only. The language does not know which operators exist.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tidings.language.faults import Misread, error_at, quoted, syntax_error
from tidings.language.query import Call, Variable
from tidings.language.syntax.operands import BONDS, name_of
from tidings.language.syntax.predicates import TESTS, PredicateParser
from tidings.language.syntax.tokens import CALL, CALLED, STRING, TERM

MAX_ARGUMENTS = 100
_CALLED = re.compile(CALLED)
_CALL = re.compile(CALL)
_TERM = re.compile(TERM)
_ARGUMENT = re.compile(rf"[(,]({TERM})")
_WORD = re.compile(rf"{STRING}|[?$]?\w+|[<>!=]+|\S?")
_VALUED = TESTS | {"NOT", "IS", "ISA", "COMPARE", *BONDS}


def pieces(call: str) -> tuple[str, list[str]]:
    """The name of a call as written, and its arguments with the blanks around them."""
    opening = _CALLED.match(call).end() - 1  # type: ignore[union-attr]
    return call[:opening], _ARGUMENT.findall(call, opening)


class CallParser(PredicateParser):
    """Parses the call at the next token."""

    def _call(self) -> Call:
        at = self.at
        self._count()
        token = self.tokens[at]
        if self._element:
            self._refuse(at, "a call cannot stand in ANY ... SATISFIES", "put it beside the ANY, after AND")
        name, written = pieces(token)
        if len(written) > MAX_ARGUMENTS:
            what = f"the call of {quoted(name)} has {len(written):,} arguments"
            self._refuse(at, what, f"at most {MAX_ARGUMENTS} are read")
        argument = self.lexicon.argument
        try:
            arguments = tuple([argument(term) for term in written])
        except Misread:
            self._refuse_argument(at)
        bound = self.bound_under_not if self._negated else self.bound
        for term in arguments:
            if isinstance(term, Variable):
                bound.add(f"?{term.name}")
        self.has_calls = True
        self.at += 1
        if self.kinds[self.at] in _VALUED:
            self._refuse_value(at)
        return Call(name_of(name), arguments)

    def _refuse_argument(self, at: int) -> NoReturn:
        """The error for the first invalid argument, with its position."""
        start, token = self.offset(at), self.tokens[at]
        for found in _ARGUMENT.finditer(token, token.index("(", len(pieces(token)[0]))):
            try:
                self.lexicon.argument(found[1])
            except Misread as fault:
                offset = start + found.end() - len(found[1].lstrip())
                raise error_at(self.text, offset, fault.what, fault.advice) from None
        raise AssertionError(token)

    def _refuse_value(self, at: int) -> NoReturn:
        """The error for a call where a value is needed."""
        name = pieces(self.tokens[at])[0]
        advice = f"let it bind a ?variable and compare that, as in {quoted(name)[1:-1]}(?x) AND ?x > 5"
        self._refuse(at, f"the call of {quoted(name)} has no value", advice)

    def _fail(self, *acceptable: str) -> NoReturn:
        at = self.at
        if self.kinds[at] == "CALL" and ("VALUE" in acceptable or "SUM" in acceptable):
            self._refuse_value(at)
        named = at and self.kinds[at - 1] in ("NAME", "QUOTED_NAME")
        if named and self.kinds[at] in ("LPAR", "TRIPLE") and "COMPARISON" in acceptable:
            self._refuse_call(at - 1)
        super()._fail(*acceptable)

    def _refuse_call(self, at: int) -> NoReturn:
        """The error for a name and a parenthesis that look like a call and are none."""
        begin, opening = self.offset(at), self.offset(at + 1)
        name, text = quoted(self.tokens[at]), self.text
        if begin + len(self.tokens[at]) < opening:
            if _CALL.match(self.tokens[at] + text[opening:]):
                self._refuse(at + 1, f"a blank stands between {name} and its parenthesis", "leave it out")
            super()._fail("COMPARISON")
        here = opening + 1
        while found := _TERM.match(text, here):
            here = found.end()
            if text[here : here + 1] != ",":
                break
            here += 1
        here += len(text[here:]) - len(text[here:].lstrip())
        word = _WORD.match(text, here)[0]  # type: ignore[index]
        if not word:
            raise error_at(text, here, f"the call of {name} is never closed", "close it with ')'")
        if word == "(":
            advice = (
                "calls hold no calls: close this one first, or put quotes around a text with a parenthesis"
            )
            raise error_at(text, here, f"a parenthesis opens in the call of {name}", advice)
        if word in "'\"":
            raise syntax_error(text, here, ())
        advice = "an argument is a ?variable, a $parameter, a constant or a text; put quotes around ( ) , ? ' \" < > = !"
        raise error_at(text, here, f"found {quoted(word)} in the call of {name}", advice)
