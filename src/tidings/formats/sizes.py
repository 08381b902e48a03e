"""Reads sizes that people write: 5GB, 500 MB, 2GiB."""

from __future__ import annotations

import re
from typing import overload

from tidings.errors import TidingsError

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(I?)B?", re.IGNORECASE | re.ASCII)
_UNITS = ("", "K", "M", "G", "T")


@overload
def read_size(text: str | int) -> int: ...
@overload
def read_size(text: str | int | None) -> int | None: ...
def read_size(text: str | int | None) -> int | None:
    """The bytes. A number is one of bytes, and nothing is nothing."""
    if text is None or isinstance(text, int):
        return text
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise TidingsError(f"{text!r} is no size; give one like 5GB or 500MB")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _UNITS.index(found[2].upper()))
