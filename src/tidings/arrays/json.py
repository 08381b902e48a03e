"""Attributes of events -> occurrences of known paths, from JSON in bytes or from Python's own values.

One meaning for both: a dict's names are joined with dots, a list stands for its elements, a number is what is written,
and of a name that is twice in one object the last counts. The compiled loop reads nearly everything; `json.loads`
reads what it is not sure of, and says what is no JSON object.

    event e owns the occurrences first[e] to first[e + 1], in the order of the document
    occurrence o   of path[o] is of kind[o]; its text or number, if it has one, is blob[low[o]:high[o]]
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np

from tidings.arrays.json_paths import PathTable
from tidings.arrays.json_reader import (
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
from tidings.arrays.json_tokens import find_lines, unescape

__all__ = ["DICT", "FALSE", "LIST", "NULL", "NUMBER", "TEXT", "TRUE", "Occurrences", "PathTable"]
__all__ += ["lines", "occurrences_of", "read_objects", "reread"]

_BLANK = b" \t\n\r"
_MAX_NESTING = 10_000  # of Python's lists: one that is in itself has no end

# (path, kind, text)
Found = list[tuple[int, int, bytes]]
_Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # path, kind, low, high


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
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    place = 0
    while place < len(blob):
        room = 1024 + (len(blob) - place) // 64
        start, stop = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count, place = find_lines(blob, place, start, stop)
        pieces.append((start[:count], stop[:count]))
    if not pieces:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate([a for a, _ in pieces]), np.concatenate([b for _, b in pieces])


def read_objects(blob: np.ndarray, start: np.ndarray, stop: np.ndarray, paths: PathTable) -> Occurrences:
    """What stands at `paths` in the JSON objects blob[start[e]:stop[e]]; a blank one, or null, has no members."""
    blob = _fixed(blob)
    start, stop = (_fixed(np.ascontiguousarray(a, dtype=np.int64)) for a in (start, stop))
    events = len(start)
    first, odd = np.zeros(events + 1, dtype=np.int64), np.zeros(events, dtype=np.bool_)
    stamp = np.zeros(len(paths.edges.rows), dtype=np.int64)
    stack = np.empty((MAX_DEPTH, 4), dtype=np.int64)
    columns = _room(64 + 16 * events)
    done = 0
    while True:
        done = int(read(blob, start, stop, done, paths.edges, stamp, stack, first, *columns, odd))
        if done == events:
            break
        needed = int(first[done] + (stop[done] - start[done]) // 2 + 2)
        columns = _grown(columns, int(first[done]), max(needed, 2 * len(columns[0])))
    count = int(first[events])
    path, kind, low, high = (column[:count] for column in columns)
    side: list[bytes] = []
    size = len(blob)
    escaped = np.flatnonzero(kind == ESCAPED)
    if len(escaped):
        kind[escaped] = TEXT
        out = np.empty(int((high[escaped] - low[escaped]).sum()), dtype=np.uint8)
        side.append(out[: unescape(blob, escaped, low, high, size, out)].tobytes())
        size += len(side[0])
    errors: dict[int, str] = {}
    if odd.any():
        found: dict[int, Found] = {}
        for event in np.flatnonzero(odd).tolist():
            answer = reread(blob[start[event] : stop[event]].tobytes(), paths)
            if isinstance(answer, str):
                errors[event] = answer
            else:
                found[event] = answer
        first, (path, kind, low, high) = _spliced(first, (path, kind, low, high), found, size)
        side += [text for answer in found.values() for _, _, text in answer]
    if side:
        blob = _fixed(np.concatenate([blob, np.frombuffer(b"".join(side), dtype=np.uint8)]))
    return Occurrences(first, path, kind, low, high, blob, errors)


def reread(data: bytes, paths: PathTable) -> Found | str:
    """What stands at `paths` in one JSON object, by Python; a sentence if it is none."""
    try:
        document = json.loads(
            data.strip(_BLANK) or b"null", parse_float=_Float, parse_int=_Integer, parse_constant=_Float
        )
        if document is None or isinstance(document, dict):
            return _walk(document or {}, paths)
    except (ValueError, RecursionError):
        pass
    return _complaint(data.decode(errors="replace").strip())


def occurrences_of(documents: Sequence[Mapping[str, Any] | None], paths: PathTable) -> Occurrences:
    """The same for events that are already Python's: dates are their ISO texts, and what JSON has no form for is
    there but compares with nothing."""
    errors: dict[int, str] = {}
    found: dict[int, Found] = {}
    for event, document in enumerate(documents):
        try:
            if document is not None and not isinstance(document, Mapping):
                raise ValueError
            found[event] = _walk(document or {}, paths)
        except (ValueError, RecursionError):
            errors[event] = _complaint(reprlib.repr(document))
    first, columns = _spliced(np.zeros(len(documents) + 1, dtype=np.int64), _room(0), found, 0)
    texts = b"".join(text for answer in found.values() for _, _, text in answer)
    return Occurrences(first, *columns, _fixed(np.frombuffer(texts, dtype=np.uint8)), errors)


class _Integer(str):
    """A whole number as it is written, if Python can read it."""

    def __new__(cls, text: str) -> _Integer:
        int(text)
        return super().__new__(cls, text)


class _Float(str):
    """Another number as it is written."""


def _walk(document: Mapping[str, Any], paths: PathTable) -> Found:
    """The occurrences in a document, in its order."""
    steps = paths.steps
    found: Found = []
    # What is still to be visited: the state and the path of a value, and in how many lists it is.
    ahead: list[tuple[int, int, int, Any]] = [(0, -1, 0, document)]
    while ahead:
        state, path, listed, value = ahead.pop()
        if isinstance(value, list | tuple):
            if listed == _MAX_NESTING:
                raise RecursionError
            if path >= 0 and not listed:
                found.append((path, LIST, b""))
            ahead.extend((state, path, listed + 1, element) for element in reversed(value))
            continue
        if path >= 0:
            found.append((path, *_scalar(value)))
        if isinstance(value, Mapping):
            members = [(steps.get((state, str(name))), member) for name, member in value.items()]
            ahead.extend((*step, 0, member) for step, member in reversed(members) if step)
    return found


def _scalar(value: object) -> tuple[int, bytes]:
    """The kind of a value and, if it has one, its text."""
    if isinstance(value, _Integer):
        return NUMBER, value.encode()
    if isinstance(value, _Float):
        return (NUMBER, value.encode()) if isfinite(float(value)) else (DICT, b"")
    if isinstance(value, str):
        return TEXT, value.encode(errors="surrogatepass")
    if value is None:
        return NULL, b""
    if isinstance(value, bool):
        return (TRUE if value else FALSE), b""
    if isinstance(value, int):
        try:
            return NUMBER, int.__repr__(value).encode()
        except ValueError:  # Python writes no more than some thousands of digits
            return DICT, b""
    if isinstance(value, float):
        return (NUMBER, float.__repr__(value).encode()) if isfinite(value) else (DICT, b"")
    if isinstance(value, Decimal):
        return (NUMBER, str(value).encode()) if value.is_finite() else (DICT, b"")
    if isinstance(value, date):
        return TEXT, value.isoformat().encode()
    return DICT, b""


def _complaint(given: str) -> str:
    return f"the event's attributes are {given[:40]!r}; give a JSON object"


def _fixed(array: np.ndarray) -> np.ndarray:
    """The array as the loops know it: one that may be written would compile them once more."""
    view = array.view()
    view.flags.writeable = False
    return view


def _room(size: int) -> _Columns:
    path, kind = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int8)
    return path, kind, np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)


def _grown(columns: _Columns, count: int, size: int) -> _Columns:
    grown = _room(size)
    for new, old in zip(grown, columns, strict=True):
        new[:count] = old[:count]
    return grown


def _spliced(
    first: np.ndarray, columns: _Columns, found: Mapping[int, Found], place: int
) -> tuple[np.ndarray, _Columns]:
    """Occurrences with those of some events, which had none, put in; the texts of these lie at `place`."""
    counts = np.diff(first)
    late = np.zeros(len(counts), dtype=np.bool_)
    for event, answer in found.items():
        counts[event], late[event] = len(answer), True
    new_first = np.zeros(len(first), dtype=np.int64)
    np.cumsum(counts, out=new_first[1:])
    put_in = np.repeat(late, counts)
    answers = [occurrence for event in sorted(found) for occurrence in found[event]]
    high = place + np.cumsum([len(text) for _, _, text in answers], dtype=np.int64)
    low = high - np.array([len(text) for _, _, text in answers], dtype=np.int64)
    spliced = _room(len(put_in))
    for column, old, new in zip(
        spliced,
        columns,
        ([path for path, _, _ in answers], [kind for _, kind, _ in answers], low, high),
        strict=True,
    ):
        column[~put_in] = old
        column[put_in] = new
    return new_first, spliced
