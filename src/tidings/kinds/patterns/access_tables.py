"""Builds the access tables of a pattern index: each row is filed under its rarest clause.

Rarity is counted over the rows themselves; the rarity of a range is the number of ranges that overlap at a typical
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tidings.arrays.hashing import table_size
from tidings.kinds.patterns.kernels import filing
from tidings.kinds.patterns.kernels.layout import BLOCK, KINDS, POINT, Atoms, PatternRows, Programs, gather

_SAMPLE = 4096  # ranges of a property that are sampled to estimate how many overlap


def access_arrays(arrays: Mapping[str, np.ndarray], terms: int) -> dict[str, np.ndarray]:
    """Files every row under its cheapest access option."""
    programs, rows = gather(Programs, arrays, "program_"), gather(PatternRows, arrays, "row_")
    atoms = gather(Atoms, arrays, "atom_")
    counts = np.zeros(min(table_size(16 * len(rows.shape)), 1 << 22), dtype=np.int32)
    filing.count_keys(programs, rows, atoms, counts)
    ranges = _ranges(programs, rows, atoms, terms, None)
    coverage = _coverage(ranges, terms)
    chosen, used = np.full(len(rows.shape), -1, dtype=np.int64), np.zeros(KINDS, dtype=np.bool_)
    about = np.empty(len(rows.shape), dtype=np.int32)
    filing.choose_options(programs, rows, atoms, counts, coverage, chosen, about, used)
    rows = _grouped_by_subject(rows, programs.width, about)
    nothing = np.zeros(0, dtype=np.uint64)
    size = filing.file_rows(programs, rows, atoms, chosen, nothing, rows.start[:0].copy())
    keys, posted = np.empty(size, dtype=np.uint64), np.empty(size, dtype=rows.start.dtype)
    filing.file_rows(programs, rows, atoms, chosen, keys, posted)
    order = np.argsort(keys, kind="stable")
    keys, postings = keys[order], posted[order]
    # IN (1, 1.0) files a row twice under one key: once is enough, and no list may be longer than there are rows.
    new = np.ones(size, dtype=np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (postings[1:] != postings[:-1])
    keys, postings = keys[new], postings[new]
    size = len(keys)
    first = np.append(np.flatnonzero(np.diff(keys, prepend=np.uint64(0))), size).astype(np.int32)
    distinct = keys[first[:-1]]
    table = np.zeros((1 << max(3, (len(distinct) * 4 // 3).bit_length()), 2), dtype=np.uint64)
    filing.key_table(distinct, first, postings, table)
    points = np.zeros(4, dtype=np.bool_)
    points[:] = used[POINT]
    points[np.setdiff1d(np.arange(4), atoms.space)] = False
    filed = _ranges(programs, rows, atoms, terms, chosen)
    return {
        "row_start": rows.start,
        "row_slots": rows.slots,
        "access_used": used,
        "access_points": points,
        "access_table": table,
        "access_first": first,
        "access_postings": postings,
        "access_always": rows.start[chosen < 0],
        **_range_arrays(filed, terms),
    }


def _grouped_by_subject(rows: PatternRows, widths: np.ndarray, about: np.ndarray) -> PatternRows:
    """The rows, with those about one subject adjacent: an event is about few subjects, so its candidates lie in few
    regions of memory."""
    start, slots = np.empty_like(rows.start), np.empty_like(rows.slots)
    filing.gather_rows(
        rows, widths, about, np.zeros(int(about.max(initial=0)) + 3, dtype=np.int64), start, slots
    )
    return PatternRows(rows.shape, start, slots)


def _ranges(
    programs: Programs, rows: PatternRows, atoms: Atoms, terms: int, chosen: np.ndarray | None
) -> np.ndarray:
    """(group, low, high, row) of every range that rows could be filed under, or are by `chosen`.

    A group is a property's number for ranges of values, that number plus the number of terms for texts.
    """
    chosen = np.zeros(0, dtype=np.int64) if chosen is None else chosen
    size = filing.list_ranges(programs, rows, atoms, terms, chosen, np.zeros((0, 4), dtype=np.int64))
    out = np.empty((size, 4), dtype=np.int64)
    filing.list_ranges(programs, rows, atoms, terms, chosen, out)
    return out


def _coverage(ranges: np.ndarray, terms: int) -> np.ndarray:
    """The number of ranges of a group that hold a typical value, which is sampled from the ends of the ranges."""
    coverage = np.zeros(2 * terms)
    for group, low, high in _groups(ranges):
        every = max(1, len(low) // _SAMPLE)
        count, low, high = len(low), low[::every], high[::every]
        ends = np.sort(np.concatenate([low, high]))
        held = np.searchsorted(ends, high, side="right") - np.searchsorted(ends, low, side="left")
        coverage[group] = held.mean() / len(ends) * count
    return coverage


def _groups(ranges: np.ndarray) -> Iterable[tuple[int, np.ndarray, np.ndarray]]:
    alike = len(ranges) and ranges[0, 0] == ranges[:, 0].min() == ranges[:, 0].max()
    ordered = ranges if alike else ranges[np.argsort(ranges[:, 0], kind="stable")]
    distinct, first = np.unique(ordered[:, 0], return_index=True)
    for group, begin, end in zip(distinct.tolist(), first, np.append(first, len(ordered))[1:], strict=True):
        yield group, ordered[begin:end, 1], ordered[begin:end, 2]


def _range_arrays(ranges: np.ndarray, terms: int) -> dict[str, np.ndarray]:
    ordered = ranges[np.lexsort((-ranges[:, 2], ranges[:, 1], ranges[:, 0]))]
    distinct, first = np.unique(ordered[:, 0], return_index=True)
    range_of = np.full(2 * terms if len(ranges) else 0, -1, dtype=np.int32)
    range_of[distinct] = np.arange(len(distinct), dtype=np.int32)
    high = ordered[:, 2].astype(np.int32)
    block = 1 << BLOCK
    padded = np.concatenate([high, np.full(-len(high) % block, -1, dtype=np.int32)])
    return {
        "access_range_of": range_of,
        "access_range_first": np.append(first, len(ordered)).astype(np.int64),
        "access_range_low": ordered[:, 1].astype(np.int32),
        "access_range_high": high,
        "access_range_row": ordered[:, 3].astype(np.int64),
        "access_range_block": padded.reshape(-1, block).max(axis=1, initial=-1).astype(np.int32),
    }
