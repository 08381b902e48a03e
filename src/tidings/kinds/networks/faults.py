"""Errors of a network: one sentence with the number of faults and the first few names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tidings.errors import TidingsError

_NAMED = 3


class NetworkError(TidingsError):
    """A network, or a call on one, is wrong: an unknown node, a node given twice, an unreadable expression."""


def first_names(names: Iterable[str], count: int) -> str:
    """The first few of `count` names, and how many more there are."""
    listed = ", ".join(repr(name) for name in islice(names, _NAMED))
    return listed if count <= _NAMED else f"{listed} and {count - _NAMED:,} more"
