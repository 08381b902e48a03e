"""Parses JSON strictly, value by value, so that an invalid value of many affects only itself.

Python's parser accepts NaN, turns large numbers into infinity, keeps the last of two members with one name, and
accepts lone surrogates, on which a writer fails later. This parser detects all of these; `fault` describes what
is wrong with a value, so that the other values of a list can be used.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from tidings.errors import EventError
from tidings.formats.documents import safe_text

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # pairs too: the walk sees the difference
_DIGITS = 300  # fewer are always within a float
_SHOWN = 40


class _InvalidNumber:
    """Stands for a number that JSON does not have."""

    def __init__(self, why: str) -> None:
        self.why = why


class _DuplicateMember(dict[str, Any]):
    """An object with two members of one name."""

    name = ""


class StrictJson:
    """Parses one body, or one line after the other. Not thread-safe."""

    def __init__(self) -> None:
        self._doubtful = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def read(self, data: bytes, charset: str | None = None) -> Any:
        """The parsed value; `EventError` if it is not JSON, or nests too deep."""
        text = safe_text(data, charset=charset)
        self._doubtful = _SURROGATE.search(text) is not None
        try:
            return self._decoder.decode(text.decode().rstrip(" \t\r\n"))
        except json.JSONDecodeError as error:
            # One line may be one of many: its number is known to who divided them.
            several = "\n" in error.doc.lstrip()
            place = f"{error.lineno}:{error.colno}" if several else f"column {error.colno}"
            message = f"{error.msg[0].lower()}{error.msg[1:]} at {place}"
            raise EventError(f"not readable as JSON: {message}") from None
        except (ValueError, RecursionError) as error:
            raise EventError(f"not readable as JSON: {error}") from None

    def fault(self, value: Any) -> str | None:
        """Describes what is wrong with a parsed value, or with a part of it; None if nothing is."""
        waiting = [value] if self._doubtful else []
        while waiting:
            part = waiting.pop()
            if isinstance(part, _InvalidNumber):
                return part.why
            if isinstance(part, _DuplicateMember):
                return f"an object has two members {_shown(part.name)}; leave one out"
            if isinstance(part, dict):
                waiting += part
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part
            elif isinstance(part, str) and not part.isascii() and _is_surrogate(part):
                return f"{_shown(part)} has half a surrogate pair in it; correct its Unicode"
        return None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self._doubtful = True
        doubled, seen = _DuplicateMember(found), set[str]()
        for name, _ in pairs:
            if name in seen:
                doubled.name = name
                break
            seen.add(name)
        return doubled

    def _integer(self, text: str) -> int | _InvalidNumber:
        if len(text) <= _DIGITS:
            return int(text)
        return self._invalid_number(f"the number {_shown(text)} is too large; numbers below 1.8e308 are kept")

    def _float(self, text: str) -> float | _InvalidNumber:
        number = float(text)
        if math.isfinite(number):
            return number
        return self._invalid_number(f"the number {_shown(text)} is too large; numbers below 1.8e308 are kept")

    def _constant(self, text: str) -> _InvalidNumber:
        return self._invalid_number(f"JSON has no {text}; leave the member out, or write null")

    def _invalid_number(self, why: str) -> _InvalidNumber:
        self._doubtful = True
        return _InvalidNumber(why)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _is_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
