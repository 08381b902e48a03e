"""Evaluates all text tests of an index at once: which LIKE, CONTAINS, ENDS, MATCHES and SEARCH hold for texts.

CONTAINS is one pass of an Aho-Corasick automaton over the text, however many words there are; endings are looked up
by their lengths; LIKE and MATCHES are RE2 sets, halved until their automata fit into their memory limit. A pattern that
does not fit alone, or is so long that RE2 would be slow, is evaluated by itself. Searches have an index (search/index.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import ahocorasick
import re2

from tidings.model.search.index import SearchIndex
from tidings.model.text_tests import is_search, regular_expression, search_language, text_holds

SET_SIZE = 256
LONG = 256  # characters


class TextTests:
    """Tests numbered by their position: (op, pattern)."""

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
    def _endings(self) -> dict[int, dict[str, list[int]]]:
        """The endings by length, then by text."""
        found: dict[int, dict[str, list[int]]] = {}
        for number, (op, pattern) in enumerate(self.tests):
            if op == "ENDS":
                found.setdefault(len(pattern), {}).setdefault(pattern, []).append(number)
        return found

    @cached_property
    def _expressions(self) -> tuple[list[tuple[re2.Set, list[int]]], list[int]]:
        """Sets with the numbers of their tests, and the tests that are tried one by one."""
        waiting, alone = [], []
        for number, (op, pattern) in enumerate(self.tests):
            if op == "LIKE" and len(pattern) > LONG:
                alone.append(number)
            elif op != "ENDS" and not is_search(op) and (op != "CONTAINS" or not pattern):
                waiting.append(number)
        sets = []
        pieces = [waiting[first : first + SET_SIZE] for first in range(0, len(waiting), SET_SIZE)]
        while pieces:
            piece = pieces.pop()
            try:
                sets.append((self._set(piece), piece))
            except re2.error:
                if len(piece) == 1:
                    alone += piece
                else:
                    middle = len(piece) // 2
                    pieces += [piece[:middle], piece[middle:]]
        return sets, alone

    def _set(self, numbers: list[int]) -> re2.Set:
        options = re2.Options()
        options.max_mem = 1 << 28
        options.log_errors = False
        expressions = re2.Set.SearchSet(options)
        for number in numbers:
            expressions.Add(regular_expression(*self.tests[number]))
        expressions.Compile()
        return expressions

    @cached_property
    def _searches(self) -> list[tuple[SearchIndex, list[int]]]:
        """Searches, by the language of their stems, with the numbers of their tests."""
        found: dict[str, list[int]] = {}
        for number, (op, _) in enumerate(self.tests):
            if is_search(op):
                found.setdefault(search_language(op), []).append(number)
        return [
            (SearchIndex.build([self.tests[number][1] for number in numbers], language), numbers)
            for language, numbers in found.items()
        ]

    def satisfied_by(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the tests that hold for each text, sorted."""
        found = [self._satisfied(text) for text in texts]
        for index, numbers in self._searches:
            for held, searches in zip(found, index.satisfied_by(texts), strict=True):
                held.update(numbers[search] for search in searches)
        return list(map(sorted, found))

    def satisfied(self, text: str) -> list[int]:
        """The numbers of the tests that hold for `text`, sorted."""
        return self.satisfied_by([text])[0]

    def _satisfied(self, text: str) -> set[int]:
        """The tests that hold for `text`, without searches."""
        found: set[int] = set()
        if self._words is not None:
            for _, numbers in self._words.iter(text):
                found.update(numbers)
        for length, endings in self._endings.items():
            if length <= len(text):
                found.update(endings.get(text[len(text) - length :], ()))
        sets, alone = self._expressions
        found.update(number for number in alone if text_holds(text, *self.tests[number]))
        if sets and not text.isascii():
            text = text.encode(errors="replace").decode()  # no expression can match half a character
        for expressions, numbers in sets:
            found.update(numbers[i] for i in expressions.Match(text) or ())
        return found
