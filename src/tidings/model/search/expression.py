"""Reads the text of a SEARCH, such as `solar OR "wind power" -nuclear`, and defines which texts satisfy it.

    search    branch OR branch OR …
    branch    items beside each other: all of them
    item      word, "phrase", (search), or one of them behind a minus sign, which excludes it

A search that a text without words would satisfy is refused: it could not be found by any word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tidings.model.search.words import words

MAX_WORDS = 1_000
MAX_DEPTH = 20
_TOKENS = re.compile(r'-?"[^"]*"?|-?\(|\)|[^\s()"]+')
PLAIN = re.compile(r"[a-z0-9]+(?: [a-z0-9]+)*")  # words alone, which read the same in any way
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that follow each other; usually it is one word. `written` is how the search spells it."""

    words: tuple[str, ...]
    written: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Search, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Search, ...]


@dataclass(frozen=True, slots=True)
class Without:
    part: Search


Search = Phrase | All | AnyOf | Without


class SearchFault(ValueError):
    """What is wrong with a search, the offset of that in its text, and advice."""

    def __init__(self, at: int, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.at, self.what, self.advice = at, what, advice


def search_fault(text: str) -> SearchFault | None:
    """Why a text is no search; None if it is one, in any language."""
    if PLAIN.fullmatch(text) and text.count(" ") < MAX_WORDS:
        return None
    try:
        _Reader(text, "").search()
    except SearchFault as fault:
        return fault
    return None


def read_anew(text: str, language: str = "") -> Search:
    """The search that a text writes; a `SearchFault` if it writes none."""
    return _Reader(text, language).search()


read_search = lru_cache(maxsize=4096)(read_anew)


@lru_cache(maxsize=4)
def _places(text: str, language: str) -> dict[str, list[int]]:
    """Where each word of a text is."""
    found: dict[str, list[int]] = {}
    for at, word in enumerate(words(text, language)):
        found.setdefault(word, []).append(at)
    return found


def search_holds(text: str, search: str, language: str = "") -> bool:
    """Whether a text satisfies a search."""
    return _holds(read_search(search, language), _places(text, language))


def _holds(search: Search, places: dict[str, list[int]]) -> bool:
    match search:
        case Phrase(wanted):
            others = [set(places.get(word, ())) for word in wanted[1:]]
            starts = places.get(wanted[0], ())
            return any(all(at + i in other for i, other in enumerate(others, 1)) for at in starts)
        case All(parts):
            return all(_holds(part, places) for part in parts)
        case AnyOf(parts):
            return any(_holds(part, places) for part in parts)
        case Without(part):
            return not _holds(part, places)


def unsatisfied(text: str, search: str, language: str = "") -> list[str]:
    """What a text lacks of a search, and what of it is excluded, in words; nothing if it satisfies the search."""
    return list(_reasons(read_search(search, language), _places(text, language)))


def _reasons(search: Search, places: dict[str, list[int]]) -> Iterator[str]:
    if _holds(search, places):
        return
    match search:
        case Phrase():
            yield f"{_shown(search)} is not there"
        case All(parts):
            for part in parts:
                yield from _reasons(part, places)
        case AnyOf(parts):
            if all(isinstance(part, Phrase) for part in parts):
                yield f"none of {', '.join(map(_shown, parts))} is there"
            else:
                yield " and ".join(", ".join(_reasons(part, places)) for part in parts)
        case Without(part):
            yield f"the excluded {_shown(part)} is there"


def _shown(search: Search) -> str:
    match search:
        case Phrase(wanted, written):
            return f'"{written[:_SHOWN]}"' if len(wanted) > 1 else f"'{written[:_SHOWN]}'"
        case All(parts):
            return " ".join(map(_inner, parts))
        case AnyOf(parts):
            return " OR ".join(map(_inner, parts))
        case Without(part):
            return f"-{_inner(part)}"


def _inner(search: Search) -> str:
    shown = _shown(search)
    return shown if isinstance(search, Phrase | Without) else f"({shown})"


def implies(known: Search, wanted: Search) -> bool:
    """Whether every text that satisfies one search satisfies the other, as far as their form shows it."""
    if isinstance(known, AnyOf):
        return all(implies(part, wanted) for part in known.parts)
    if isinstance(wanted, All):
        return all(implies(known, part) for part in wanted.parts)
    if isinstance(known, Phrase) and isinstance(wanted, Phrase):
        size = len(wanted.words)
        return any(known.words[i : i + size] == wanted.words for i in range(len(known.words) - size + 1))
    if isinstance(known, Without) and isinstance(wanted, Without):
        return implies(wanted.part, known.part)
    inside = known.parts if isinstance(known, All) else ()
    options = wanted.parts if isinstance(wanted, AnyOf) else ()
    return any(implies(part, wanted) for part in inside) or any(implies(known, part) for part in options)


def example(search: Search) -> str:
    """A text that is likely to satisfy a search."""
    match search:
        case Phrase(_, written):
            return written
        case All(parts):
            return " ".join(filter(None, map(example, parts)))
        case AnyOf(parts):
            return example(parts[0])
        case Without():
            return ""


class _Reader:
    """One text while it is read."""

    def __init__(self, text: str, language: str) -> None:
        self.text, self.language = text, language
        self.tokens = [(found[0], found.start()) for found in _TOKENS.finditer(text)]
        self.at = 0
        self.count = 0

    def search(self) -> Search:
        if not self.tokens:
            raise SearchFault(0, "the search is empty", "write words to find, such as 'solar power'")
        found = self._branches(0)
        if self.at < len(self.tokens):
            raise SearchFault(self.tokens[self.at][1], "a ')' closes nothing", "leave it out")
        self._check(found)
        return found

    def _branches(self, depth: int) -> Search:
        if depth > MAX_DEPTH:
            advice = f"at most {MAX_DEPTH} are read"
            raise SearchFault(self._place(), "the search has too many parentheses in each other", advice)
        branches = [self._branch(depth)]
        while self._token() == "OR":
            self.at += 1
            branches.append(self._branch(depth))
        return branches[0] if len(branches) == 1 else AnyOf(tuple(branches))

    def _branch(self, depth: int) -> Search:
        items: list[Search] = []
        while (token := self._token()) not in ("OR", ")", ""):
            items.append(self._item(token, depth))
        if not items:
            what = f"nothing stands before {token}" if token else "the search ends where a word is needed"
            advice = 'OR stands between words; the word itself is written "or"'
            if token == ")" or (not token and self.tokens[self.at - 1][0].endswith("(")):
                advice = "put words between the parentheses"
            raise SearchFault(self._place(), what, advice)
        return items[0] if len(items) == 1 else All(tuple(items))

    def _item(self, token: str, depth: int) -> Search:
        at = self._place()
        self.at += 1
        if token in ("AND", "NOT"):
            means = (
                "words beside each other are all needed: leave it out" if token == "AND" else "write -word"
            )
            advice = f'{means}; the word itself is written "{token.lower()}"'
            raise SearchFault(at, f"{token} is no word of a search", advice)
        if token[0] == "-" and len(token) > 1 and (token[1] in '"(' or words(token)):
            return Without(self._unsigned(token[1:], at + 1, depth))
        return self._unsigned(token, at, depth)

    def _unsigned(self, token: str, at: int, depth: int) -> Search:
        if token == "(":
            found = self._branches(depth + 1)
            if self._token() != ")":
                raise SearchFault(at, "the parenthesis is never closed", "close it with )")
            self.at += 1
            return found
        if token[0] == '"' and (len(token) == 1 or token[-1] != '"'):
            raise SearchFault(at, 'the quote " is never closed', 'close the phrase with another "')
        written = token.strip('"')
        found_words = words(written, self.language)
        if not found_words:
            advice = "a word has letters or digits; leave this out"
            if token == "-":
                advice = "put the minus sign right before the word to be excluded"
            raise SearchFault(at, f"{token[:_SHOWN]!r} holds no word", advice)
        self.count += len(found_words)
        if self.count > MAX_WORDS:
            advice = "make several subscriptions of it"
            raise SearchFault(at, f"the search has more than {MAX_WORDS:,} words", advice)
        return Phrase(tuple(found_words), written)

    def _check(self, search: Search) -> None:
        """Refuses a search that a text without words satisfies."""
        if _holds(search, {}):
            what = "the search has only words that are excluded"
            if isinstance(search, AnyOf):
                what = "a side of OR has only words that are excluded"
            advice = "add a word that has to be there, or write NOT before the condition"
            raise SearchFault(0, what, advice)

    def _token(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _place(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
