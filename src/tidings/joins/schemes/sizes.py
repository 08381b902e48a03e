"""What counts how many bytes; the only place. Select-joins, 6: integers of four bytes, payloads by their length.

A number, date, time or truth value is four bytes whatever column it stands in, because the published figures count
so; a text is its UTF-8 bytes; NULL is nothing. A joined row holds the columns that are equated once. A point of a
skyline is two numbers, a bound one. What all schemes pay alike (form, sign, addresses, framing) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NUMBER = 4
POINT = 2 * NUMBER


def size_of(value: Any) -> int:
    if value is None:
        return 0
    return len(value.encode()) if isinstance(value, str) else NUMBER


def size_of_all(values: Iterable[Any]) -> int:
    return sum(map(size_of, values))
