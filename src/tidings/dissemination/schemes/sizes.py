"""Defines the size of messages in bytes. Select-joins, 6: integers have four bytes, payloads their length.

A number, date, time or truth value is four bytes whatever column it stands in, because the published figures count
so; a text is its UTF-8 bytes; NULL is nothing. A joined row has equated columns once. A point of a skyline
is two numbers, or one if all points of the skyline have X = Y: that alone explains the published sizes of Ref-SJ-Tup
and Ref-SJ-Clu beside those of -Sub and -Clu+. What all schemes pay alike (form, sign, addresses, framing) counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

NUMBER = 4
BOUNDS = 3 * NUMBER  # A, A- and A+


def size_of(value: Any) -> int:
    if value is None:
        return 0
    return len(value.encode()) if isinstance(value, str) else NUMBER


def size_of_all(values: Iterable[Any]) -> int:
    return sum(map(size_of, values))


def skyline_size(points: npt.NDArray[np.int64]) -> int:
    plain = bool((points[:, 0] == points[:, 1]).all())
    return NUMBER * len(points) if plain else 2 * NUMBER * len(points)


def points_size(points: npt.NDArray[np.int64]) -> int:
    """Points of many attributes, a number for each coordinate."""
    return NUMBER * points.size
