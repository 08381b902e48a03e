"""Whether the arrays of searches, read from a file, lead the compiled loops out of bounds or into an endless loop."""

from __future__ import annotations

from tidings.arrays.compiled import compiled
from tidings.model.search.kernels.layout import REJECT


@compiled
def phrases_fit(arrays, words):  # type: ignore[no-untyped-def]
    """Whether each phrase has words that exist, and an offset of one of them."""
    for p in range(arrays.phrase_first.shape[0] - 1):
        low, high = arrays.phrase_first[p], arrays.phrase_first[p + 1]
        if high - low < 2 or not 0 <= arrays.phrases[low] < high - low - 1:
            return False
        for i in range(low + 1, high):
            if not 0 <= arrays.phrases[i] < words:
                return False
    return True


@compiled
def _program_fits(programs, at, rank, words, phrases):  # type: ignore[no-untyped-def]
    """Whether a program is there, is filed under so many words, and each instruction leads to a later one or to the end."""
    size = programs.shape[0]
    if at < 0 or at + 2 > size:
        return False
    filed, count = programs[at], programs[at + 1]
    if not rank < filed <= size or not 0 < count <= size or at + 2 + filed + 3 * count > size:
        return False
    for i in range(at + 2, at + 2 + filed):
        if not 0 <= programs[i] < words:
            return False
    base = at + 2 + filed
    for step in range(count):
        if not -phrases <= programs[base + 3 * step] < words:
            return False
        for i in range(base + 3 * step + 1, base + 3 * step + 3):
            jump = programs[i]
            if not (REJECT <= jump < 0 or step < jump < count):
                return False
    return True


@compiled
def entries_fit(arrays, words, searches):  # type: ignore[no-untyped-def]
    """Whether the entries of every word end where those of the next begin, and have words, searches and programs that exist."""
    entries, phrases = arrays.entries, arrays.phrase_first.shape[0] - 1
    for word in range(words):
        at, end = arrays.first[word], arrays.first[word + 1]
        while at < end:
            if at + 2 > end or not 0 <= entries[at] < searches:
                return False
            size = entries[at + 1]
            if size < 0:
                if at + 3 > end or not _program_fits(arrays.programs, entries[at + 2], ~size, words, phrases):
                    return False
                at += 3
                continue
            if size > end - at - 2:
                return False
            for i in range(at + 2, at + 2 + size):
                if not 0 <= entries[i] < words:
                    return False
            at += 2 + size
    return True
