"""What stands at known paths in a document of Python's, value by value.

This is the meaning that the compiled loop has for JSON in bytes; it decides where the loop is not sure, and where a
document holds what JSON has no form for. A number is kept as it is written.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Any

from tidings.formats.kernels.json_paths import PathTable
from tidings.formats.kernels.json_reader import DICT, FALSE, LIST, NULL, NUMBER, TEXT, TRUE

# (path, kind, text or number) of each occurrence, in the order of the document
FoundValues = list[tuple[int, int, bytes]]

_BLANK = b" \t\n\r"
_SCALARS, _LISTS = (str, int, float, NoneType), (list, tuple)  # asking for a union takes ten times as long
_MAX_NESTING = 10_000  # of lists: one that is in itself has no end


def reread(data: bytes, paths: PathTable) -> FoundValues | str:
    """What stands at `paths` in one JSON object; a sentence if it is none. A blank one, or null, has no members."""
    try:
        document = json.loads(
            data.strip(_BLANK) or b"null", parse_float=_Float, parse_int=_Integer, parse_constant=_Float
        )
        if document is None or isinstance(document, dict):
            return _walk(document or {}, paths)
    except (ValueError, RecursionError):
        pass
    return _complaint(data.decode(errors="replace").strip())


def walk(document: object, paths: PathTable) -> FoundValues | str:
    """What stands at `paths` in a document; a sentence if it is none. None has no members."""
    try:
        if document is None or isinstance(document, Mapping):
            return _walk(document or {}, paths)
    except RecursionError:
        pass
    return _complaint(reprlib.repr(document))


def write(document: object) -> bytes | None:
    """A document as JSON that says the same; None if there is none."""
    if document is not None and not isinstance(document, Mapping):
        return None
    try:
        return _WRITER.encode(document).encode()
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        raise TypeError  # as a float it would be another number
    return {}  # it is there but compares with nothing


_WRITER = json.JSONEncoder(ensure_ascii=False, default=_plain)


class _Integer(str):
    """A whole number as it is written, if Python can read it."""

    def __new__(cls, text: str) -> _Integer:
        int(text)
        return super().__new__(cls, text)


class _Float(str):
    """Another number as it is written."""


def _walk(document: Mapping[str, Any], paths: PathTable) -> FoundValues:
    steps = paths.steps
    found: FoundValues = []
    # What is still to be visited: the state and the path of a value, in how many lists it is, the value.
    ahead: list[tuple[int, int, int, Any]] = [(0, -1, 0, document)]
    while ahead:
        state, path, listed, value = ahead.pop()
        if isinstance(value, _LISTS):
            if listed == _MAX_NESTING:
                raise RecursionError
            if path >= 0 and not listed:
                found.append((path, LIST, b""))
            ahead.extend((state, path, listed + 1, element) for element in reversed(value))
            continue
        if path >= 0:
            found.append((path, *_kind_and_text(value)))
        if not isinstance(value, _SCALARS) and isinstance(value, Mapping):
            members = [(steps.get((state, str(name))), member) for name, member in value.items()]
            ahead.extend((*step, 0, member) for step, member in reversed(members) if step)
    return found


def _kind_and_text(value: object) -> tuple[int, bytes]:
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
