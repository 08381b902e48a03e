"""The paths that subscriptions name, as an automaton over the names of members.

A state is a beginning of a path, up to a dot or the end: `user` and `user.age` for the path user.age. From each state
an edge leads to each longer one by the name between them, so that {"user": {"age": 5}} and {"user.age": 5} both end
at user.age. All edges lie in one open-addressed table of rows of four words; state 0 is the object itself.

    edges     the name's first eight bytes | state, size of the name | where it lies in `texts` | next state, path
    texts     the paths end to end, and eight zeros; path p is texts[start[p]:start[p + 1]]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import table_size
from tidings.arrays.vocabulary import join_texts
from tidings.errors import IndexFileError
from tidings.formats.kernels.json_tokens import full_word

# A path of k parts has k * (k + 1) / 2 edges. A longer one than this is found where each part is a member of its own
# or all of them are one name, and not where only some are joined.
MAX_PARTS = 16
FREE = np.uint64(0xFFFFFFFFFFFFFFFF)
_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_0, _1, _2, _3, _32 = map(np.uint64, (0, 1, 2, 3, 32))
_LOW = np.uint64(0xFFFFFFFF)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(8)], dtype=np.uint64)


class PathEdges(NamedTuple):
    """What the loops take of a `PathTable`; `shift` leaves as many of a hash's upper bits as rows have numbers."""

    rows: np.ndarray
    texts: np.ndarray
    shift: np.uint64


@inlined
def hash_begin(state):  # type: ignore[no-untyped-def]
    return np.uint64(state) * _K1


@inlined
def hash_word(h, w):  # type: ignore[no-untyped-def]
    h = (h ^ w) * _K2
    return h ^ (h >> _32)


@inlined
def first_bytes(blob, low, size):  # type: ignore[no-untyped-def]
    """The first eight bytes of a name, or all and zeros; eight bytes can be read."""
    w = full_word(blob, low)
    return w if size >= 8 else w & _MASKS[size]


@inlined
def hash_name(blob, low, high, state):  # type: ignore[no-untyped-def]
    h = hash_begin(state)
    while low + 8 <= high:
        h = hash_word(h, full_word(blob, low))
        low += 8
    w = _0
    for k in range(high - low):
        w |= np.uint64(blob[low + k]) << np.uint64(8 * k)
    return hash_word(h, w)


@inlined
def _same_rest(blob, i, texts, k, size):  # type: ignore[no-untyped-def]
    """Whether two names that begin with the same eight bytes are the same."""
    size -= 8
    i += 8
    k += 8
    while size >= 8:
        if full_word(blob, i) != full_word(texts, k):
            return False
        i += 8
        k += 8
        size -= 8
    while size > 0:
        if blob[np.uint64(i)] != texts[np.uint64(k)]:
            return False
        i += 1
        k += 1
        size -= 1
    return True


@inlined
def find_edge(rows, texts, shift, h, begin, blob, low, size, state):  # type: ignore[no-untyped-def]
    """The row of the edge from `state` by the name blob[low:low + size], of which `begin` are the first eight bytes
    and `h` the hash; -1 if there is none."""
    mask = np.uint64(rows.shape[0] - 1)
    key = (np.uint64(state) << _32) | np.uint64(size)
    at = h >> shift
    while True:
        found = rows[at, _1]
        if (
            found == key
            and rows[at, _0] == begin
            and (size <= 8 or _same_rest(blob, low, texts, np.int64(rows[at, _2]), size))
        ):
            return np.int64(at)
        if found == FREE:
            return -1
        at = (at + _1) & mask


@compiled
def _fill(table, texts, shift, edges):  # type: ignore[no-untyped-def]
    """Files edge i = (state, low, high, next state, path) of distinct names for each state."""
    mask = np.uint64(table.shape[0] - 1)
    for i in range(edges.shape[0]):
        state, low, high = edges[i, 0], edges[i, 1], edges[i, 2]
        at = hash_name(texts, low, high, state) >> shift
        while table[at, _1] != FREE:
            at = (at + _1) & mask
        table[at, _0] = first_bytes(texts, low, high - low)
        table[at, _1] = (np.uint64(state) << _32) | np.uint64(high - low)
        table[at, _2] = np.uint64(low)
        table[at, _3] = (np.uint64(edges[i, 3]) << _32) | np.uint64(edges[i, 4] + 1)


class PathTable:
    """Paths, numbered from 0 in the order they are given, that objects are read for."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        """From the `arrays` of another; an `IndexFileError` if they cannot be those of one."""
        self._arrays = {name: arrays[name].view() for name in ("edges", "texts", "start")}
        for array in self._arrays.values():  # one type for the compiled loops, mapped from a file or not
            array.flags.writeable = False
        rows, texts, start = self._arrays.values()
        _refuse_damage(rows, texts, start)
        shift = np.uint64(64 - (rows.shape[0] - 1).bit_length())
        self.edges = PathEdges(rows, texts, shift)
        self._spare: list[np.ndarray] = []
        self._steps: dict[tuple[int, str], tuple[int, int]] | None = None

    @classmethod
    def build(cls, paths: Sequence[str]) -> PathTable:
        """A table for distinct paths."""
        blob, start = join_texts(paths)
        edges = np.array(list(_edges(paths, start)), dtype=np.int64).reshape(-1, 5)
        texts = np.concatenate([blob, np.zeros(8, dtype=np.uint8)])
        rows = np.full((table_size(len(edges)), 4), FREE, dtype=np.uint64)
        _fill(rows, texts, np.uint64(64 - (rows.shape[0] - 1).bit_length()), edges)
        return cls({"edges": rows, "texts": texts, "start": start})

    def arrays(self) -> dict[str, np.ndarray]:
        """The table as arrays, fit for a folder."""
        return dict(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays["start"]) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return PathTable, (self._arrays,)

    @contextmanager
    def stamps(self) -> Iterator[np.ndarray]:
        """For each edge the number of the dict that had it last, and the last number given; a reader's own while it
        reads. They are kept for the next, because to clear them takes longer than to read an event."""
        try:
            stamps = self._spare.pop()
        except IndexError:
            stamps = np.zeros(len(self.edges.rows) + 1, dtype=np.int64)
        yield stamps
        self._spare.append(stamps)

    @property
    def steps(self) -> Mapping[tuple[int, str], tuple[int, int]]:
        """(state, name) -> (next state, path or -1), for what Python reads."""
        if self._steps is None:
            rows, whole = self.edges.rows, self.edges.texts.tobytes()
            self._steps = {}
            for _, key, low, target in rows[rows[:, 1] != FREE].tolist():
                name = whole[low : low + (key & 0xFFFFFFFF)].decode(errors="surrogatepass")
                self._steps[key >> 32, name] = (target >> 32, (target & 0xFFFFFFFF) - 1)
        return self._steps


def _edges(paths: Sequence[str], start: np.ndarray) -> Iterator[tuple[int, int, int, int, int]]:
    """(state, low, high, next state, path) for each edge, names as spans of the texts."""
    numbers = {path: number for number, path in enumerate(paths)}
    states: dict[str, int] = {}
    known: set[tuple[int, int]] = set()
    for path, begin in zip(paths, start.tolist(), strict=False):
        parts = path.split(".")
        ends = list(accumulate((len(part.encode(errors="surrogatepass")) + 1 for part in parts), initial=0))
        prefixes = list(accumulate(parts, lambda a, b: f"{a}.{b}"))
        nodes = [0, *(states.setdefault(prefix, len(states) + 1) for prefix in prefixes)]
        whole = len(parts)
        for i in range(whole):
            for j in range(i + 1, whole + 1):
                if (whole > MAX_PARTS and j > i + 1 and (i, j) != (0, whole)) or (
                    nodes[i],
                    nodes[j],
                ) in known:
                    continue
                known.add((nodes[i], nodes[j]))
                name = begin + ends[i], begin + ends[j] - 1
                yield nodes[i], *name, nodes[j], numbers.get(prefixes[j - 1], -1)


def _refuse_damage(rows: np.ndarray, texts: np.ndarray, start: np.ndarray) -> None:
    """The loops trust the table: names lie in the texts, paths have texts, and a search comes to an end."""
    used = rows[rows[:, 1] != FREE] if rows.ndim == 2 and rows.shape[1] == 4 else None
    fits = (
        used is not None
        and 2 * len(used) <= len(rows)
        and len(rows) & (len(rows) - 1) == 0
        and len(rows) > 1
        and len(texts) >= 8
        and bool((used[:, 2] <= len(texts)).all())
        and bool((used[:, 2] + (used[:, 1] & _LOW) + np.uint64(8) <= len(texts)).all())
        and bool((used[:, 3] & _LOW < len(start)).all())
    )
    if not fits:
        raise IndexFileError(
            "the table of attributes holds values that cannot be right; build the index anew"
        )
