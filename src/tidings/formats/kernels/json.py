"""Attributes of events -> occurrences of known paths, from JSON in bytes or from documents of Python's.

One meaning for both: a dict's names are joined with dots, a list stands for its elements, a number is what is written,
and of a name that is twice in one object the last counts. A compiled loop reads nearly everything; Python reads what
the loop is not sure of, and says what is no JSON object.

    event e owns the occurrences first[e] to first[e + 1], in the order of its document
    occurrence o of path[o] is of kind[o]; if that is TEXT or NUMBER, it is blob[low[o]:high[o]]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tidings.formats.kernels.json_documents import FoundValues, reread, walk, write
from tidings.formats.kernels.json_paths import PathTable
from tidings.formats.kernels.json_reader import (
    DICT,
    ESCAPED,
    FALSE,
    LIST,
    MAX_DEPTH,
    NULL,
    NUMBER,
    TEXT,
    TRUE,
    read,
)
from tidings.formats.kernels.json_tokens import find_lines, unescape

__all__ = ["DICT", "FALSE", "LIST", "NULL", "NUMBER", "TEXT", "TRUE", "Occurrences", "PathTable"]
__all__ += ["lines", "occurrences_of", "read_objects", "reread"]

_Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # path, kind, and low above high

_ZERO = np.zeros(1, dtype=np.int64)
_ZERO.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Occurrences:
    """What stands at the paths of a table, for each event; `errors` has a sentence for each that has no attributes
    because what it gave cannot be read."""

    first: np.ndarray
    path: np.ndarray
    kind: np.ndarray
    low: np.ndarray
    high: np.ndarray
    blob: np.ndarray
    errors: dict[int, str]


def lines(data: bytes | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The spans of the lines of an NDJSON document; blank lines are left out."""
    blob = _fixed(np.frombuffer(data, dtype=np.uint8))
    starts, stops = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    offset = 0
    while offset < len(blob):
        room = 1024 + (len(blob) - offset) // 64
        start, stop = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count, offset = find_lines(blob, offset, start, stop)
        starts.append(start[:count])
        stops.append(stop[:count])
    return np.concatenate(starts), np.concatenate(stops)


def read_objects(blob: np.ndarray, start: np.ndarray, stop: np.ndarray, paths: PathTable) -> Occurrences:
    """What stands at `paths` in the JSON objects blob[start[e]:stop[e]]; a blank one, or null, has no members.

    The answer's blob is the one that was given, with the texts behind it that are not in it as they are meant.
    """
    return _read(
        blob, start, stop, paths, lambda event: reread(blob[start[event] : stop[event]].tobytes(), paths)
    )


def occurrences_of(documents: Sequence[Mapping[str, Any] | None], paths: PathTable) -> Occurrences:
    """What stands at `paths` in documents of Python's: dates are their ISO texts, and what JSON has no form for is
    there but compares with nothing."""
    written = [write(document) or b"?" for document in documents]
    if len(written) == 1 and (found := _read_one(written[0], paths)) is not None:
        return found
    where = np.array(list(accumulate(map(len, written), initial=0)), dtype=np.int64)
    blob = np.frombuffer(b"".join(written), dtype=np.uint8)
    return _read(blob, where[:-1], where[1:], paths, lambda event: walk(documents[event], paths))


def _read_one(data: bytes, paths: PathTable) -> Occurrences | None:
    """One plain object, in a third of the time that `_read` takes for it; None if it is not plain."""
    if b"\\" in data:  # there may be escapes
        return None
    blob, stop = np.frombuffer(data, dtype=np.uint8), np.array([len(data)])
    stop.flags.writeable = False
    first, odd = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.bool_)
    path, kind, span = _room(len(data) // 2 + 2)
    stack = np.empty((MAX_DEPTH, 4), dtype=np.int64)
    with paths.stamps() as stamps:
        done = read(blob, _ZERO, stop, 0, paths.edges, stamps, stack, first, path, kind, span, odd)
    if not done or odd[0]:
        return None
    count = int(first[1])
    return Occurrences(first, path[:count], kind[:count], span[0, :count], span[1, :count], blob, {})


def _read(
    blob: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    paths: PathTable,
    by_python: Callable[[int], FoundValues | str],
) -> Occurrences:
    """Reads all objects; `by_python` has the occurrences of one that the loop is not sure of, or a sentence."""
    blob = _fixed(blob)
    start, stop = (_fixed(np.ascontiguousarray(a, dtype=np.int64)) for a in (start, stop))
    events = len(start)
    first, odd = np.zeros(events + 1, dtype=np.int64), np.zeros(events, dtype=np.bool_)
    stack = np.empty((MAX_DEPTH, 4), dtype=np.int64)
    columns, done = _room(512 + 16 * events), 0
    with paths.stamps() as stamps:
        while True:
            done = int(read(blob, start, stop, done, paths.edges, stamps, stack, first, *columns, odd))
            count = int(first[done])
            if done == events:
                break
            needed = count + int(stop[done] - start[done]) // 2 + 2
            columns = _grown(columns, count, max(needed, 2 * len(columns[0])))
    path, kind, span = (column[..., :count] for column in columns)
    low, high = span

    side: list[bytes] = []  # what goes behind the blob
    if ESCAPED in kind:
        escaped = np.flatnonzero(kind == ESCAPED)
        kind[escaped] = TEXT
        out = np.empty(int((high[escaped] - low[escaped]).sum()), dtype=np.uint8)
        side.append(out[: unescape(blob, escaped, low, high, len(blob), out)].tobytes())
    errors: dict[int, str] = {}
    found: dict[int, FoundValues] = {}
    for event in np.flatnonzero(odd).tolist() if odd.any() else ():
        answer = by_python(event)
        if isinstance(answer, str):
            errors[event] = answer
        else:
            found[event] = answer
    if found:
        offset = len(blob) + sum(map(len, side))
        first, (path, kind, (low, high)) = _spliced(first, (path, kind, span), found, offset)
        side += [text for answer in found.values() for _, _, text in answer]
    if side:
        blob = _fixed(np.concatenate([blob, np.frombuffer(b"".join(side), dtype=np.uint8)]))
    return Occurrences(first, path, kind, low, high, blob, errors)


def _fixed(array: np.ndarray) -> np.ndarray:
    """The array as the loops know it: one that may be written would compile them once more."""
    view = array.view()
    view.flags.writeable = False
    return view


def _room(size: int) -> _Columns:
    return np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int8), np.empty((2, size), dtype=np.int64)


def _grown(columns: _Columns, count: int, size: int) -> _Columns:
    grown = _room(size)
    for new, old in zip(grown, columns, strict=True):
        new[..., :count] = old[..., :count]
    return grown


def _spliced(
    first: np.ndarray, columns: _Columns, found: Mapping[int, FoundValues], offset: int
) -> tuple[np.ndarray, _Columns]:
    """Occurrences with those of some events, which had none, put in; the texts of these lie at `offset`."""
    counts = np.diff(first)
    late = np.zeros(len(counts), dtype=np.bool_)
    for event, answer in found.items():
        counts[event], late[event] = len(answer), True
    new_first = np.zeros(len(first), dtype=np.int64)
    np.cumsum(counts, out=new_first[1:])
    put_in = np.repeat(late, counts)
    answers = [occurrence for answer in found.values() for occurrence in answer]
    sizes = np.array([len(text) for _, _, text in answers], dtype=np.int64)
    high = offset + np.cumsum(sizes)
    new = [path for path, _, _ in answers], [kind for _, kind, _ in answers], [high - sizes, high]
    spliced = _room(len(put_in))
    for column, old, late_ones in zip(spliced, columns, new, strict=True):
        column[..., ~put_in] = old
        column[..., put_in] = late_ones
    return new_first, spliced
