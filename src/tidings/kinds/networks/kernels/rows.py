"""Edges sorted by counting: in linear time, and without keys wider than the numbers they are made of."""

from __future__ import annotations

from tidings.arrays.compiled import compiled


@compiled
def count_rows(numbers, first):  # type: ignore[no-untyped-def]
    """Where the rows of each number begin, if they are sorted by number; `first`, one longer, comes as zeros."""
    for i in range(numbers.shape[0]):
        first[numbers[i] + 1] += 1
    for n in range(first.shape[0] - 1):
        first[n + 1] += first[n]


@compiled
def sort_by(numbers, order, free, out):  # type: ignore[no-untyped-def]
    """Writes `order` sorted by the number of each, stably. `free` is a copy of where the numbers begin."""
    for i in range(order.shape[0]):
        n = numbers[order[i]]
        out[free[n]] = order[i]
        free[n] += 1
