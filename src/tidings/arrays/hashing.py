"""Hashes of byte spans and of small tuples of integers, and open-addressed tables keyed by them.

A table is a power of two of int32 slots, -1 when free, filled at most half; collisions go to the next slot.
What a slot points to is compared in full by the caller, so a hash collision costs time, never an answer.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled

_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xBF58476D1CE4E5B9)
_K3 = np.uint64(0x94D049BB133111EB)
_S8, _S16, _S24, _S32 = np.uint64(8), np.uint64(16), np.uint64(24), np.uint64(32)
_S40, _S48, _S56 = np.uint64(40), np.uint64(48), np.uint64(56)
_S29, _S31 = np.uint64(29), np.uint64(31)


@compiled
def mix(h, value):  # type: ignore[no-untyped-def]
    """Folds one more 64-bit value into a hash."""
    h = (h ^ np.uint64(value)) * _K2
    h ^= h >> _S29
    h *= _K3
    return h ^ (h >> _S32)


@compiled
def _word(blob, i):  # type: ignore[no-untyped-def]
    """Eight bytes as one number; LLVM makes one load of it."""
    return (
        np.uint64(blob[i])
        | (np.uint64(blob[i + 1]) << _S8)
        | (np.uint64(blob[i + 2]) << _S16)
        | (np.uint64(blob[i + 3]) << _S24)
        | (np.uint64(blob[i + 4]) << _S32)
        | (np.uint64(blob[i + 5]) << _S40)
        | (np.uint64(blob[i + 6]) << _S48)
        | (np.uint64(blob[i + 7]) << _S56)
    )


@compiled
def hash_span(blob, low, high):  # type: ignore[no-untyped-def]
    """Hash of blob[low:high], eight bytes a step."""
    h = _K1 ^ np.uint64(high - low)
    i = low
    while i + 8 <= high:
        h = (h ^ _word(blob, i)) * _K2
        h ^= h >> _S31
        i += 8
    w = np.uint64(0)
    while i < high:
        w = (w << _S8) | np.uint64(blob[i])
        i += 1
    return mix(h, w)


@compiled
def hash_spans(blob, start, out):  # type: ignore[no-untyped-def]
    """The hash of every span blob[start[i]:start[i + 1]]."""
    for i in range(start.shape[0] - 1):
        out[i] = hash_span(blob, start[i], start[i + 1])


@compiled
def same_bytes(a, a_low, a_high, b, b_low, b_high):  # type: ignore[no-untyped-def]
    size = a_high - a_low
    if size != b_high - b_low:
        return False
    i = 0
    while i + 8 <= size:
        if _word(a, a_low + i) != _word(b, b_low + i):
            return False
        i += 8
    while i < size:
        if a[a_low + i] != b[b_low + i]:
            return False
        i += 1
    return True


@compiled
def span_table(blob, start, slots):  # type: ignore[no-untyped-def]
    """Fills `slots` so that `find_span` finds span i = blob[start[i]:start[i+1]]; spans are distinct."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(start.shape[0] - 1):
        at = hash_span(blob, start[i], start[i + 1]) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i


@compiled
def find_span(h, text, low, high, blob, start, slots):  # type: ignore[no-untyped-def]
    """The number of the span equal to text[low:high], whose hash is `h`, or -1."""
    mask = np.uint64(slots.shape[0] - 1)
    at = h & mask
    while slots[at] >= 0:
        i = slots[at]
        if same_bytes(text, low, high, blob, start[i], start[i + 1]):
            return i
        at = (at + np.uint64(1)) & mask
    return -1


def table_size(count: int) -> int:
    """Slots for `count` entries: a power of two, at most half full."""
    return 1 << max(3, int(2 * count - 1).bit_length())


def make_span_table(blob: np.ndarray, start: np.ndarray) -> np.ndarray:
    slots = np.full(table_size(len(start) - 1), -1, dtype=np.int32)
    span_table(blob, start, slots)
    return slots
