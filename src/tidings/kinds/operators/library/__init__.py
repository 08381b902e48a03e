"""Operators that come with Tidings: places, keywords, tables. Each is made for the user's own data, and needs its
library's extra: `spatial`, `lookup`; keywords need none.

A module is loaded when it is first used: `tidings.library.spatial`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.kinds.operators.library import lookup, spatial, text

__all__ = ["lookup", "spatial", "text"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
