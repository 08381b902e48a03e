"""An index of searches: for many texts at once, the searches that each satisfies.

It agrees with `search_holds` on everything. Without stems the words of a text are found by a compiled loop; texts with other
characters than ASCII are folded before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from tidings.arrays.vocabulary import join_texts, thaw_texts
from tidings.model.search.filing import file_searches
from tidings.model.search.kernels.layout import UNKNOWN, SearchArrays, SearchSpace
from tidings.model.search.kernels.matching import are_ascii, find_searches, number_words
from tidings.model.search.words import LONGEST_STEMMED, accented_words, folded, stemmed

_REMEMBERED = 1 << 16  # words of texts, for which the number of the stem is kept


class Satisfied(NamedTuple):
    """Answer i says that `text` satisfies `search`; texts ascend."""

    text: np.ndarray
    search: np.ndarray


class SearchIndex:
    """Searches in one language, or without stems; numbered as they were given."""

    def __init__(self, arrays: SearchArrays, language: str = "") -> None:
        for array in arrays:  # one type for the compiled loops, mapped from a file or not
            array.flags.writeable = False
        self.arrays, self.language = arrays, language
        words = len(arrays.start) - 1
        longest = int(np.diff(arrays.start).max(initial=0))
        self._space = SearchSpace(
            there=np.zeros((words >> 3) + 1, dtype=np.uint8),
            distinct=np.zeros(0, dtype=np.int32),
            head=np.zeros(words if len(arrays.phrase_first) > 1 else 0, dtype=np.int32),
            before=np.zeros(0, dtype=np.int32),
            word=np.zeros(longest, dtype=np.uint8),
        )
        self._stems: Mapping[str, int] = {}
        self._numbers: dict[str, int] = {}
        if language:
            texts = thaw_texts({"blob": arrays.blob, "start": arrays.start})
            self._stems = {text: number for number, text in enumerate(texts)}
        self._lock = Lock()  # of the scratch

    @classmethod
    def build(cls, texts: Sequence[str], language: str = "") -> SearchIndex:
        return cls(file_searches(texts, language), language)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def satisfied(self, blob: np.ndarray, low: np.ndarray, high: np.ndarray) -> Satisfied:
        """The searches that the texts blob[low[i]:high[i]], in UTF-8, satisfy."""
        blob = blob.view()
        blob.flags.writeable = False
        low, high = low.astype(np.int64), high.astype(np.int64)
        with self._lock:
            first, numbers = self._stemmed(blob, low, high) if self.language else self._words(blob, low, high)
            return self._find(first, numbers)

    def satisfied_by(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the searches that each text satisfies, in ascending order."""
        blob, start = join_texts(texts)
        found = self.satisfied(blob, start[:-1], start[1:])
        ends = np.searchsorted(found.text, np.arange(len(texts) + 1))
        return [sorted(found.search[ends[i] : ends[i + 1]].tolist()) for i in range(len(texts))]

    def _words(self, blob: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the words of all texts, and where those of each text begin."""
        is_ascii = np.empty(len(low), dtype=np.bool_)
        are_ascii(blob, low, high, is_ascii)
        if not is_ascii.all():
            texts = [_text(blob, low[i], high[i]) for i in range(len(low))]
            texts = [text if plain else folded(text) for text, plain in zip(texts, is_ascii, strict=True)]
            blob, start = join_texts(texts)
            blob.flags.writeable = False  # of the type that the loop is compiled for
            low, high = start[:-1], start[1:]
        first = np.zeros(len(low) + 1, dtype=np.int64)
        numbers = np.empty(int((high - low + 1).sum()) // 2 + len(low), dtype=np.int32)
        number_words(blob, low, high, self.arrays, self._space.word, first, numbers)
        return first, numbers[: first[-1]]

    def _stemmed(self, blob: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for stems."""
        first = np.zeros(len(low) + 1, dtype=np.int64)
        numbers: list[int] = []
        for i in range(len(low)):
            for word in accented_words(_text(blob, low[i], high[i])):
                number = self._numbers.get(word)
                if number is None:
                    number = self._number_of(word)
                if number >= UNKNOWN:
                    numbers.append(number)
            first[i + 1] = len(numbers)
        return first, np.array(numbers, dtype=np.int32)

    def _number_of(self, word: str) -> int:
        """The number of a word's stem, UNKNOWN if no search has it, less if nothing is left of the word."""
        found = stemmed(word, self.language)
        number = self._stems.get(found, UNKNOWN) if found else UNKNOWN - 1
        if len(word) <= LONGEST_STEMMED:
            if len(self._numbers) >= _REMEMBERED:
                self._numbers.clear()
            self._numbers[word] = number
        return number

    def _find(self, first: np.ndarray, numbers: np.ndarray) -> Satisfied:
        most, total = int(np.diff(first).max(initial=0)), len(first) - 1
        if most > len(self._space.distinct):
            distinct, before = np.zeros(most, dtype=np.int32), np.zeros(most, dtype=np.int32)
            self._space = self._space._replace(distinct=distinct, before=before)
        done, room = 0, max(1024, 128 * total)
        pieces: list[Satisfied] = []
        while done < total:
            texts, searches = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
            done, count = find_searches(self.arrays, numbers, first, done, self._space, texts, searches)
            pieces.append(Satisfied(texts[:count], searches[:count]))
            room *= 4
        if len(pieces) == 1:
            return pieces[0]
        columns = zip(*pieces, strict=True) if pieces else ([np.zeros(0, np.int32)], [np.zeros(0, np.int32)])
        return Satisfied(*map(np.concatenate, columns))


def _text(blob: np.ndarray, low: int, high: int) -> str:
    return blob[low:high].tobytes().decode(errors="surrogatepass")
