"""Text operators: whether an event's text mentions a keyword of a set, and which. By Aho-Corasick.

One automaton holds the keywords of all sets, so a text is read once, however many sets and
operators there are. Case and the width of blanks are disregarded; a keyword is found as a whole word by default.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import ahocorasick

from tidings.errors import TidingsError
from tidings.kinds.operators.functions.operator import Operator, Out
from tidings.kinds.operators.library.names import KnownNames, NamingOperator
from tidings.model.attributes import values_at
from tidings.model.event import Event

REMEMBERED = 64  # texts, for the events that are processed concurrently

Found = Mapping[str, tuple[str, ...]]


def operators(
    keyword_sets: Mapping[str, Iterable[str]],
    attributes: str | Iterable[str] = "text",
    whole_words: bool = True,
) -> list[Operator]:
    """`mentions(set)`, true or false, and `mentioned(set, ?keyword)`, each keyword found.

    `attributes` names the event's texts (paths, such as `article.title`; a list is each of its texts). With
    `whole_words`, "cat" is found in "a Cat!" and not in "concat": a keyword that begins or ends with a letter or
    digit does not stand beside another one. Without, it is found anywhere, which suits part numbers and languages
    written without blanks. An event without any text mentions nothing.
    """
    paths = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    keywords = Keywords(keyword_sets, paths, whole_words)
    return [
        NamingOperator("mentions", keywords.mentions, cost=50e-6, names=keywords.names),
        NamingOperator("mentioned", keywords.mentioned, cost=50e-6, names=keywords.names),
    ]


class Keywords:
    """All sets in one automaton, what was found in the latest texts, and the operators as methods."""

    def __init__(
        self, keyword_sets: Mapping[str, Iterable[str]], paths: tuple[str, ...], whole_words: bool
    ) -> None:
        self.sets: dict[str, list[str]] = {}
        for name, words in keyword_sets.items():
            if isinstance(words, str):
                raise TidingsError(f"keyword set {name!r} is one text; give a list of keywords")
            self.sets[name] = list(words)
            if not all(isinstance(word, str) and word.strip() for word in self.sets[name]):
                raise TidingsError(
                    f"keyword set {name!r} has a keyword that is empty or no text; leave it out"
                )
        self.paths = paths
        self.whole_words = whole_words
        self.names = KnownNames("keyword set", self.sets)
        self.automaton = automaton(self.sets)
        self.found = lru_cache(maxsize=REMEMBERED)(self.find)

    def __reduce__(self) -> tuple[Any, ...]:
        return Keywords, (self.sets, self.paths, self.whole_words)

    def mentions(self, event: Event, keyword_set: str) -> bool:
        """Whether the event's texts have one of the set's keywords."""
        return bool(self._keywords(event, keyword_set))

    def mentioned(self, event: Event, keyword_set: str, keyword: Out[str]) -> Iterator[str]:
        """Each of the set's keywords in the event's texts once, as the set spells it."""
        yield from self._keywords(event, keyword_set)

    def _keywords(self, event: Event, keyword_set: str) -> tuple[str, ...]:
        self.names[keyword_set]
        values = (value for path in self.paths for value in values_at(event.attributes, path))
        return self.found(tuple(value for value in values if isinstance(value, str))).get(keyword_set, ())

    def find(self, texts: tuple[str, ...]) -> Found:
        """The keywords of each set in the texts, in the order in which they end."""
        found: dict[str, dict[str, None]] = {}
        for text in texts:
            read = folded(text)
            for end, (length, owners) in self.automaton.iter(read) if len(self.automaton) else ():
                if not self.whole_words or is_whole_word(read, end + 1 - length, end + 1):
                    for name, keyword in owners:
                        found.setdefault(name, {})[keyword] = None
        return {name: tuple(keywords) for name, keywords in found.items()}


def automaton(sets: Mapping[str, Iterable[str]]) -> ahocorasick.Automaton:
    """Folded keyword -> its length and, for each set that has it, the set's name and spelling."""
    owners: dict[str, dict[str, str]] = {}
    for name, words in sets.items():
        for word in words:
            owners.setdefault(folded(word), {}).setdefault(name, word)
    made = ahocorasick.Automaton()
    for word, names in owners.items():
        made.add_word(word, (len(word), tuple(names.items())))
    made.make_automaton()
    return made


def folded(text: str) -> str:
    """Normalises a text: folds case, the encoding of accents and the width of blanks."""
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).split())


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] cuts no word: where it has a letter or digit at its edge, none goes on beside it."""
    cut_before = start > 0 and is_word(text[start - 1]) and is_word(text[start])
    cut_after = end < len(text) and is_word(text[end]) and is_word(text[end - 1])
    return not (cut_before or cut_after)


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
