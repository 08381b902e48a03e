"""All text tests of an index at once: which LIKE, CONTAINS and MATCHES hold for a text.

CONTAINS is one pass of an Aho-Corasick automaton over the text, however many words there are; LIKE and MATCHES
are RE2 sets, each of few enough expressions that its automaton cannot outgrow its memory and give up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import ahocorasick
import re2

from tidings.text_tests import regular_expression

SET_SIZE = 256


class TextTests:
    """Tests numbered by their place: (op, pattern)."""

    def __init__(self, tests: Sequence[tuple[str, str]]) -> None:
        self.tests = tests

    @cached_property
    def _words(self) -> ahocorasick.Automaton | None:
        found: dict[str, list[int]] = {}
        for number, (op, pattern) in enumerate(self.tests):
            if op == "CONTAINS" and pattern:
                found.setdefault(pattern, []).append(number)
        if not found:
            return None
        automaton = ahocorasick.Automaton()
        for word, numbers in found.items():
            automaton.add_word(word, numbers)
        automaton.make_automaton()
        return automaton

    @cached_property
    def _expressions(self) -> list[tuple[re2.Set, list[int]]]:
        numbers = [n for n, (op, pattern) in enumerate(self.tests) if op != "CONTAINS" or not pattern]
        options = re2.Options()
        options.max_mem = 1 << 28
        options.log_errors = False
        sets = []
        for first in range(0, len(numbers), SET_SIZE):
            some = numbers[first : first + SET_SIZE]
            expressions = re2.Set.SearchSet(options)
            for number in some:
                expressions.Add(regular_expression(*self.tests[number]))
            expressions.Compile()
            sets.append((expressions, some))
        return sets

    def satisfied(self, text: str) -> list[int]:
        """The numbers of the tests that hold for `text`, sorted."""
        found: set[int] = set()
        if self._words is not None:
            for _, numbers in self._words.iter(text):
                found.update(numbers)
        if self._expressions and not text.isascii():
            text = text.encode(errors="replace").decode()  # no expression can ask for half a character
        for expressions, numbers in self._expressions:
            found.update(numbers[i] for i in expressions.Match(text) or ())
        return sorted(found)
