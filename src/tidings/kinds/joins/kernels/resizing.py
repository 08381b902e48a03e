"""Makes room for rows: packs buckets into larger arrays, refills hash tables, gathers texts."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
from tidings.kinds.joins.kernels.rows import hash_of_bucket, mixed

Array = np.ndarray


@compiled
def pack(buckets: Array, count: int, entries: Array, out: Array) -> int:
    """Copies the entries of all buckets, each with room to grow by half; how many entries that takes."""
    at = 0
    for b in range(count):
        first, held = buckets[b]["first"], buckets[b]["count"]
        for i in range(held):
            out[at + i]["value"] = entries[first + i]["value"]
            out[at + i]["row"] = entries[first + i]["row"]
        buckets[b]["first"] = at
        buckets[b]["room"] = held + held // 2 + 4
        at += buckets[b]["room"]
    return at


@compiled
def rehash_buckets(buckets: Array, count: int, directory: Array) -> None:
    mask = len(directory) - 1
    for b in range(count):
        slot = hash_of_bucket(buckets[b]["order"], buckets[b]["key"]) & mask
        while directory[slot]:
            slot = (slot + 1) & mask
        directory[slot] = b + 1


@compiled
def rehash_keys(key_first: Array, key_values: Array, count: int, slots: Array) -> None:
    mask = len(slots) - 1
    for key in range(count):
        h = key_first[key + 1] - key_first[key]
        for i in range(key_first[key], key_first[key + 1]):
            h = mixed(h, key_values[i])
        slot = h & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = key + 1


@compiled
def gather(data: Array, first: Array, rows: Array, where: Array, out: Array) -> None:
    """Copies the texts of rows, one after another."""
    for i in range(len(rows)):
        start = first[rows[i]] - where[i]
        for j in range(where[i], where[i + 1]):
            out[j] = data[start + j]
