"""What can be wrong with a network, told in one sentence: all of it counted, the first few named."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tidings.errors import TidingsError

_NAMED = 3


class NetworkError(TidingsError):
    """A network, or a question to one, that cannot be: an unknown node, one given twice, an unreadable expression."""


def first_names(names: Iterable[str], count: int) -> str:
    """The first few of so many names."""
    listed = ", ".join(repr(name) for name in islice(names, _NAMED))
    return listed if count <= _NAMED else f"{listed} and {count - _NAMED:,} more"
