"""Maps terms to dense integers and back.

A vocabulary grows while subscriptions are added, one number for each distinct N-Triples text, but never by events: a
term that no subscription has gets a number above all of these, for its batch only. A frozen vocabulary is three arrays:
the concatenated texts, their starts, and an open-addressed table of their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tidings.arrays.hashing import make_span_table


class Vocabulary:
    """Numbers for texts, in the order of their first appearance."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.numbers: dict[str, int] = {}
        self._texts: list[str] = []
        for text in texts:
            self.number(text)

    def __len__(self) -> int:
        return len(self.numbers)

    def number(self, text: str) -> int:
        """The number of `text`, a new one if it is new."""
        return self.numbers.setdefault(text, len(self.numbers))

    def text(self, number: int) -> str:
        """The text with this number."""
        if len(self._texts) != len(self.numbers):
            self._texts = list(self.numbers)
        return self._texts[number]

    def number_all(self, texts: list[str]) -> np.ndarray:
        """The numbers of many texts."""
        numbers = self.numbers
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32)

    def freeze(self) -> dict[str, np.ndarray]:
        return freeze_texts(self.numbers)


def freeze_texts(texts: Iterable[str]) -> dict[str, np.ndarray]:
    """Distinct texts as arrays: `blob`, `start` and the table `slots`."""
    blob, start = join_texts(texts)
    return {"blob": blob, "start": start, "slots": make_span_table(blob, start)}


def join_texts(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The concatenated texts, and where each starts."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    start = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=start[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), start


def thaw_texts(arrays: Mapping[str, np.ndarray]) -> list[str]:
    whole, start = arrays["blob"].tobytes(), arrays["start"].tolist()
    return [whole[a:b].decode(errors="surrogatepass") for a, b in pairwise(start)]


class StoredTexts(Sequence[str]):
    """Concatenated texts in arrays, which are decoded when they are used."""

    def __init__(self, blob: np.ndarray, start: np.ndarray) -> None:
        self.blob, self.start = blob, start

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return self.blob[self.start[i] : self.start[i + 1]].tobytes().decode(errors="surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return iter(thaw_texts({"blob": self.blob, "start": self.start}))
