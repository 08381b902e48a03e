"""Maps the names of a network's nodes to dense integers and back.

Names that were loaded in bulk are in arrays (arrays/vocabulary.py), later ones in a dict. A name keeps its number for
good, also when its node is removed and added again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tidings.arrays.hashing import make_span_table
from tidings.arrays.vocabulary import StoredTexts
from tidings.kinds.networks.kernels.lookup import find_text, find_texts


class NodeNames:
    def __init__(self, blob: np.ndarray, start: np.ndarray) -> None:
        self._slots = make_span_table(blob, start)
        for array in (blob, start, self._slots):
            array.flags.writeable = False  # one type for the compiled loops
        self._stored = StoredTexts(blob, start)
        self._added: dict[str, int] = {}
        self._new: list[str] = []

    def __len__(self) -> int:
        return len(self._stored) + len(self._new)

    def __getitem__(self, number: int) -> str:
        known = len(self._stored)
        return self._stored[number] if number < known else self._new[number - known]

    def __iter__(self) -> Iterator[str]:
        yield from self._stored
        yield from self._new

    def find(self, name: str) -> int:
        """The number of a name, or -1."""
        if (number := self._added.get(name)) is not None:
            return number
        if not len(self._stored):
            return -1
        text = np.frombuffer(name.encode(errors="surrogatepass"), dtype=np.uint8)
        return int(find_text(text, self._stored.blob, self._stored.start, self._slots))

    def find_all(self, texts: np.ndarray, start: np.ndarray) -> np.ndarray:
        """The numbers of many names that lie end to end, -1 for those that are not there. Bulk names only."""
        found = np.empty(len(start) - 1, dtype=np.int32)
        texts, start = texts.view(), start.view()
        texts.flags.writeable = start.flags.writeable = False  # one type for the compiled loop
        find_texts(texts, start, self._stored.blob, self._stored.start, self._slots, found)
        return found

    def number(self, name: str) -> int:
        """The number of a name, a new one if it is new."""
        number = self.find(name)
        if number < 0:
            number = self._added[name] = len(self)
            self._new.append(name)
        return number

    def texts(self, numbers: Iterable[int]) -> list[str]:
        return [self[number] for number in numbers]
