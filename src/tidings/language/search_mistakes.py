"""Warns of searches that probably mean something else: `or` in small letters is a word to be found, and `*` is no wildcard."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.language.syntax.scanner import kind_of, tokens_with_offsets

_QUOTED = re.compile(r'"[^"]*"?')
_SMALL = re.compile(r"(?<=[^\s(-])\s+(or|and|not)\s+(?=\S)")
_WILD = re.compile(r"[^\s()]*\w[*%]+(?=[\s()'\"]|$)")
_ADVICE = {
    "or": "for either of both write OR",
    "and": "words beside each other are all needed: leave it out",
    "not": "to exclude a word write -word",
}


def doubtful_searches(text: str) -> Iterator[tuple[str, int, int]]:
    """A message for each doubt about the searches of a text, with its place."""
    before = ""
    for token, offset in tokens_with_offsets(text):
        if before.upper() == "SEARCH" and kind_of(token) == "STRING":
            for message, start, end in _doubts(token):
                yield message, offset + start, offset + end
        before = token


def _doubts(token: str) -> Iterator[tuple[str, int, int]]:
    """The doubts about a search in its quotes. What stands in a phrase is meant as it is."""
    outside = token[0] + _QUOTED.sub(lambda found: "x" * len(found[0]), token[1:-1]) + token[-1]
    for found in _SMALL.finditer(outside):
        word = found[1]
        yield f"{word} is a word to be found; {_ADVICE[word]}", *found.span(1)
    for found in _WILD.finditer(outside, 1):
        written = found[0]
        advice = "for a part of a word write CONTAINS, or STEMMED 'english' for its forms"
        yield f"{written} finds the whole word {written.rstrip('*%')} only; {advice}", *found.span()
