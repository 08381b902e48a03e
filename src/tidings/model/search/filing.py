"""Files searches under words: each under the rarest that a text needs to satisfy it.

Rarity is counted over the searches: a word is rare if few of them have it. A search with OR is filed under a word of each
side. See docs/decisions/rarest-clause.md and kernels/layout.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from tidings.arrays.vocabulary import Vocabulary
from tidings.model.search.expression import PLAIN, All, AnyOf, Phrase, Search, SearchFault, Without, read_anew
from tidings.model.search.kernels.layout import ACCEPT, REJECT, SearchArrays


def file_searches(texts: Sequence[str], language: str = "") -> SearchArrays:
    """The arrays of searches, which are numbered as they come."""
    return _Filing(texts, language).arrays()


class _Segments:
    """Lists of numbers, end to end, each filed under a word."""

    def __init__(self, word: np.ndarray, length: np.ndarray, numbers: np.ndarray) -> None:
        self.word, self.length, self.numbers = word, length, numbers

    def by_word(self, words: int) -> tuple[np.ndarray, np.ndarray]:
        """The lists in the order of their words, and where those of each word begin."""
        order = np.argsort(self.word, kind="stable")
        length = self.length[order]
        begin = (np.cumsum(self.length) - self.length)[order]
        at = np.repeat(begin - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
        first = np.zeros(words + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.word, weights=self.length, minlength=words), out=first[1:])
        return first, self.numbers[at].astype(np.int32)


class _Filing:
    def __init__(self, texts: Sequence[str], language: str) -> None:
        self._words = Vocabulary()
        # The searches for words alone: their numbers, how many words each has, and these words.
        self._plain, self._sizes, self._wanted = array("i"), array("i"), array("i")
        self._others: list[tuple[int, Search]] = []
        self._programs, self._phrases, self._phrase_first = array("i"), array("i"), array("q", [0])
        self._phrase_numbers: dict[tuple[str, ...], int] = {}
        counted = array("i")
        for number, text in enumerate(texts):
            try:
                search = None if not language and PLAIN.fullmatch(text) else read_anew(text, language)
            except SearchFault:  # a damaged file has such a text: nothing satisfies it
                continue
            wanted = text.split() if search is None else _plain_words(search)
            if wanted is not None:
                numbers = [self._words.number(word) for word in dict.fromkeys(wanted)]
                self._plain.append(number)
                self._sizes.append(len(numbers))
                self._wanted.extend(numbers)
            else:
                assert search is not None
                self._others.append((number, _positive(search, negated=False)))
                counted.extend({self._words.number(word) for word in _words(search)})
        both = np.concatenate([np.frombuffer(self._wanted, np.int32), np.frombuffer(counted, np.int32)])
        self._counts = np.bincount(both, minlength=len(self._words))

    def arrays(self) -> SearchArrays:
        plain, others = self._plain_segments(), self._other_segments()
        both = _Segments(
            np.concatenate([plain.word, others.word]),
            np.concatenate([plain.length, others.length]),
            np.concatenate([plain.numbers, others.numbers]),
        )
        first, entries = both.by_word(len(self._words))
        return SearchArrays(
            **self._words.freeze(),
            first=first,
            entries=entries,
            programs=np.array(self._programs, dtype=np.int32),
            phrase_first=np.array(self._phrase_first, dtype=np.int64),
            phrases=np.array(self._phrases, dtype=np.int32),
        )

    def _plain_segments(self) -> _Segments:
        sizes = np.array(self._sizes, dtype=np.int64)
        wanted = np.array(self._wanted, dtype=np.int64)
        of = np.repeat(np.arange(len(sizes)), sizes)
        wanted = wanted[np.lexsort((self._counts[wanted], of))]  # of each search the rarest word first
        begin = np.cumsum(sizes) - sizes
        numbers = np.empty(len(wanted) + len(sizes), dtype=np.int64)
        at = begin + np.arange(len(sizes))
        numbers[at], numbers[at + 1] = np.array(self._plain, dtype=np.int64), sizes - 1
        is_other = np.ones(len(wanted), dtype=np.bool_)
        is_other[begin] = False
        numbers[(np.arange(len(wanted)) + of + 1)[is_other]] = wanted[is_other]
        return _Segments(wanted[begin], sizes + 1, numbers)

    def _other_segments(self) -> _Segments:
        words, numbers = array("q"), array("q")
        for number, search in self._others:
            filed = self._access(search)
            assert filed is not None, "a text without words would satisfy it"
            at = len(self._programs)
            code = self._code(search)
            self._programs.extend([len(filed[1]), len(code) // 3, *filed[1], *code])
            for rank, word in enumerate(filed[1]):
                words.append(word)
                numbers.extend((number, ~rank, at))
        return _Segments(
            np.array(words, dtype=np.int64), np.full(len(words), 3), np.array(numbers, dtype=np.int64)
        )

    def _access(self, search: Search) -> tuple[int, list[int]] | None:
        """Words of which a text has one if it satisfies a search, and how many searches have them; None for a search
        that excludes only."""
        match search:
            case Phrase():
                word = min(map(self._words.number, search.words), key=self._counts.__getitem__)
                return int(self._counts[word]), [word]
            case All(parts):
                return min(filter(None, map(self._access, parts)), default=None)
            case AnyOf(parts):
                sides = list(map(self._access, parts))
                known = [side for side in sides if side is not None]
                if len(known) < len(sides):
                    return None
                return sum(cost for cost, _ in known), list(dict.fromkeys(w for _, ws in known for w in ws))
        return None

    def _code(self, search: Search) -> list[int]:
        """The instructions of a program."""
        written: list[tuple[int, int, int]] = []  # from the last to the first

        def emit(part: Search, true: int, false: int) -> int:
            match part:
                case All(parts):
                    for inner in reversed(parts):
                        true = emit(inner, true, false)
                    return true
                case AnyOf(parts):
                    for inner in reversed(parts):
                        false = emit(inner, true, false)
                    return false
                case Without(inner):
                    return emit(inner, false, true)
                case Phrase():
                    written.append((self._leaf(part), true, false))
                    return len(written) - 1

        emit(search, ACCEPT, REJECT)
        last = len(written) - 1
        return [
            number
            for leaf, true, false in reversed(written)
            for number in (leaf, *(jump if jump < 0 else last - jump for jump in (true, false)))
        ]

    def _leaf(self, phrase: Phrase) -> int:
        numbers = [self._words.number(word) for word in phrase.words]
        if len(numbers) == 1:
            return numbers[0]
        known = self._phrase_numbers.get(phrase.words)
        if known is None:
            known = self._phrase_numbers[phrase.words] = len(self._phrase_numbers)
            rarest = min(range(len(numbers)), key=lambda i: int(self._counts[numbers[i]]))
            self._phrases.extend([rarest, *numbers])
            self._phrase_first.append(len(self._phrases))
        return ~known


def _plain_words(search: Search) -> list[str] | None:
    """The words of a search that needs all of them and nothing else; None for any other."""
    parts = search.parts if isinstance(search, All) else (search,)
    single = [part.words[0] for part in parts if isinstance(part, Phrase) and len(part.words) == 1]
    return single if len(single) == len(parts) else None


def _words(search: Search) -> Iterator[str]:
    match search:
        case Phrase(words):
            yield from words
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _words(part)
        case Without(part):
            yield from _words(part)


def _positive(search: Search, negated: bool) -> Search:
    """The same search with all exclusions at its phrases."""
    match search:
        case Without(part):
            return _positive(part, not negated)
        case All(parts) | AnyOf(parts):
            form = All if isinstance(search, All) is not negated else AnyOf
            return form(tuple(_positive(part, negated) for part in parts))
    return Without(search) if negated else search
