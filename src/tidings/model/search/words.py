"""Defines the words of a text, as SEARCH compares them: without regard to case and accents.

Each character is replaced by itself in Unicode's compatibility decomposition (NFKD), without the marks that combine (those
of a canonical combining class other than 0), and with its case folded. Of what results, letters, numbers and marks (general
categories L, N and M) form words, and all other characters separate them. A character of Han, Hiragana or Katakana is a
word of its own, because these scripts put no blanks between words.

Nothing depends on neighbouring characters, so a table of characters does it all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal
from unicodedata import category, combining, normalize

from tidings.model.search.stems import stem

LONGEST_STEMMED = 100  # characters: what is longer is no word of a language, and is not to be remembered
_WORD = frozenset("LNM")
# What a character of a word is in scripts that put no blanks between words; all of it is in these ranges.
UNSPACED = (
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip


class _Characters(dict[int, str]):
    """What stands for a character, by its code point; a blank for one that separates words."""

    def __init__(self, form: Literal["NFKC", "NFKD"]) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, code: int) -> str:
        parts = normalize(self._form, chr(code))
        if self._form == "NFKD":
            parts = "".join([part for part in parts if not combining(part)])
        self[code] = found = "".join(map(_spaced, parts.casefold()))
        return found


def _spaced(character: str) -> str:
    if category(character)[0] not in _WORD:
        return " "
    code = ord(character)
    return f" {character} " if any(low <= code <= high for low, high in UNSPACED) else character


_FOLDED = _Characters("NFKD")
_ACCENTED = _Characters("NFKC")


def folded(text: str) -> str:
    """The words of a text, with blanks around them."""
    return text.translate(_FOLDED)


def words(text: str, language: str = "") -> list[str]:
    """The words of a text in their order; with a language, the stems of its words."""
    if not language:
        return folded(text).split()
    return [found for word in accented_words(text) if (found := stemmed(word, language))]


def accented_words(text: str) -> list[str]:
    """The words of a text with their accents, which stemmers need: of its composition (NFKC), with its case folded."""
    return normalize("NFKC", text).translate(_ACCENTED).split()


def stemmed(word: str, language: str) -> str:
    """The stem of a word, without accents; empty for a word of accents alone. A very long word is its own stem."""
    return _plain(word) if len(word) > LONGEST_STEMMED else _stemmed(word, language)


@lru_cache(maxsize=1 << 16)
def _stemmed(word: str, language: str) -> str:
    return _plain(stem(word, language)) or _plain(word)


def _plain(word: str) -> str:
    return folded(word).replace(" ", "")
