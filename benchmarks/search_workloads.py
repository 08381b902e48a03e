"""Texts and searches of the same language: words by Zipf's law, searches of three of them without the most frequent ones.

Words are of small letters, and texts have blanks between them, so that any engine that divides texts at blanks finds the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


@dataclass(frozen=True, slots=True)
class Parameters:
    """With 36 stop words each text satisfies about a hundred of a million searches."""

    searches: int = 1_000_000
    texts: int = 1_000
    vocabulary: int = 100_000
    words: int = 170  # of a text, which is about 1 KB
    wanted: int = 3  # words of a search
    stop_words: int = 36
    seed: int = 2026


@dataclass(frozen=True, slots=True)
class Searches:
    searches: list[str]
    texts: list[str]

    def table(self) -> pa.Table:
        """The rows of a template `body SEARCH $words`."""
        ids = [f"s{number}" for number in range(len(self.searches))]
        return pa.table({"id": ids, "words": self.searches})


def make(parameters: Parameters) -> Searches:
    rng = np.random.default_rng(parameters.seed)
    words = _vocabulary(rng, parameters.vocabulary)
    weight = 1 / np.arange(1, parameters.vocabulary + 1)
    size = (parameters.texts, parameters.words)
    texts = words[_drawn(rng, weight, size)]
    wanted = weight.copy()
    wanted[: parameters.stop_words] = 0
    searches = words[_drawn(rng, wanted, (parameters.searches, parameters.wanted))]
    return Searches([" ".join(row) for row in searches.tolist()], [" ".join(row) for row in texts.tolist()])


def _vocabulary(rng: np.random.Generator, count: int) -> np.ndarray:
    """Different words of three to eight letters."""
    found: dict[str, None] = {}
    while len(found) < count:
        letters = _LETTERS[rng.integers(0, len(_LETTERS), 8)]
        found["".join(letters[: rng.integers(3, 9)])] = None
    return np.array(list(found))


def _drawn(rng: np.random.Generator, weight: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Numbers of words, each as often as its weight says."""
    upto = np.cumsum(weight / weight.sum())
    return np.minimum(np.searchsorted(upto, rng.random(size), side="right"), len(weight) - 1)
