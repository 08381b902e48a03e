"""Numbers the words of texts, and finds the searches that texts satisfy.

A text leads to the searches that are filed under its words. Their other words are looked up in a set of bits, which stays in
the nearest cache; entries of one word lie side by side and are read in one go.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import find_span, hash_span
from tidings.model.search.kernels.layout import ACCEPT

_0, _9, _CAPITAL_A, _CAPITAL_Z, _A, _Z, _BEYOND, _TO_SMALL = 48, 57, 65, 90, 97, 122, 128, 32


@compiled
def are_ascii(blob, low, high, out):  # type: ignore[no-untyped-def]
    """Of each text blob[low[i]:high[i]] whether it has no other characters."""
    for i in range(low.shape[0]):
        bits = 0
        for at in range(low[i], high[i]):
            bits |= blob[at]
        out[i] = bits < _BEYOND


@compiled
def number_words(blob, low, high, arrays, word, first, numbers):  # type: ignore[no-untyped-def]
    """The numbers of the words of each text: those of text i are numbers[first[i]:first[i + 1]].

    Bytes that are not ASCII belong to words: what separates words among other characters is a blank by now.
    """
    used, longest = 0, word.shape[0]
    for i in range(low.shape[0]):
        at, end = low[i], high[i]
        while at < end:
            size = 0
            while at < end:
                c = blob[at]
                if _CAPITAL_A <= c <= _CAPITAL_Z:
                    c += _TO_SMALL
                elif not (_A <= c <= _Z or c >= _BEYOND or _0 <= c <= _9):
                    break
                if size < longest:
                    word[size] = c
                size += 1
                at += 1
            if size:
                number = -1
                if size <= longest:
                    h = hash_span(word, 0, size)
                    number = find_span(h, word, 0, size, arrays.blob, arrays.start, arrays.slots)
                numbers[used] = number
                used += 1
            at += 1
        first[i + 1] = used


@inlined
def _is_there(there, word):  # type: ignore[no-untyped-def]
    return there[word >> 3] >> (word & 7) & 1


@inlined
def _has_phrase(phrase, arrays, numbers, begin, end, space):  # type: ignore[no-untyped-def]
    phrases = arrays.phrases
    low, high = arrays.phrase_first[phrase], arrays.phrase_first[phrase + 1]
    for i in range(low + 1, high):
        if not _is_there(space.there, phrases[i]):
            return False
    offset, size = phrases[low], high - low - 1
    place = space.head[phrases[low + 1 + offset]]
    while place >= 0:
        start = begin + place - offset
        if start >= begin and start + size <= end:
            i = 0
            while i < size and numbers[start + i] == phrases[low + 1 + i]:
                i += 1
            if i == size:
                return True
        place = space.before[place]
    return False


@inlined
def _accepts(at, rank, arrays, numbers, begin, end, space):  # type: ignore[no-untyped-def]
    """Runs the program of a search that was found by word number `rank` of those it is filed under."""
    programs = arrays.programs
    filed = programs[at]
    for i in range(at + 2, at + 2 + rank):
        if _is_there(space.there, programs[i]):
            return False  # found by that word already
    base, step = at + 2 + filed, 0
    while step >= 0:
        leaf = programs[base + 3 * step]
        if leaf >= 0:
            holds = _is_there(space.there, leaf) != 0
        else:
            holds = _has_phrase(~leaf, arrays, numbers, begin, end, space)
        step = programs[base + 3 * step + (1 if holds else 2)]
    return step == ACCEPT


@inlined
def _note_words(numbers, begin, end, phrases, space):  # type: ignore[no-untyped-def]
    """Sets the bits of a text's words, and their places if there are phrases; how many distinct ones there are."""
    there, distinct, head, before = space.there, space.distinct, space.head, space.before
    count = 0
    for i in range(begin, end):
        word = numbers[i]
        if word < 0:
            continue
        is_new = not _is_there(there, word)
        if is_new:
            there[word >> 3] |= np.uint8(1 << (word & 7))
            distinct[count] = word
            count += 1
        if phrases:
            before[i - begin] = -1 if is_new else head[word]
            head[word] = i - begin
    return count


@compiled
def find_searches(arrays, numbers, first, done, space, texts, searches):  # type: ignore[no-untyped-def]
    """The searches that texts from number `done` on satisfy; (texts done, answers): fewer texts when room ran out."""
    entries, starts, there, distinct = arrays.entries, arrays.first, space.there, space.distinct
    found, room, phrases = 0, texts.shape[0], arrays.phrase_first.shape[0] > 1
    for text in range(done, first.shape[0] - 1):
        begin, end, before = first[text], first[text + 1], found
        count = _note_words(numbers, begin, end, phrases, space)
        for k in range(count):
            at, last = starts[distinct[k]], starts[distinct[k] + 1]
            while at < last and found <= room:
                search, size = entries[at], entries[at + 1]
                if size >= 0:
                    i, at = at + 2, at + 2 + size
                    while i < at and _is_there(there, entries[i]):
                        i += 1
                    if i < at:
                        continue
                else:
                    at += 3
                    if not _accepts(entries[at - 1], ~size, arrays, numbers, begin, end, space):
                        continue
                if found < room:
                    texts[found], searches[found] = text, search
                found += 1
        for k in range(count):
            there[distinct[k] >> 3] = 0
        if found > room:
            return text, before
    return first.shape[0] - 1, found
