"""LIKE, CONTAINS and MATCHES: three ways to look at a text, all in linear time (RE2, never backtracking)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

_LIKE = re.compile(r"\\[%_\\]|.", re.DOTALL)  # a backslash before anything else is itself


def regular_expression(op: str, pattern: str) -> str:
    """The RE2 expression that finds what `op pattern` means, anywhere in a text."""
    if op == "MATCHES":
        return pattern
    if op == "CONTAINS":
        return re2.escape(pattern)
    wild = {"%": ".*", "_": "."}
    pieces = [wild.get(piece) or re2.escape(piece[-1]) for piece in _LIKE.findall(pattern)]
    return rf"(?s)\A{''.join(pieces)}\z"


@lru_cache(maxsize=4096)
def _compiled(op: str, pattern: str) -> Any:
    return re2.compile(regular_expression(op, pattern))


def text_holds(text: str, op: str, pattern: str) -> bool:
    """Whether `text op pattern` holds."""
    if op == "CONTAINS":
        return pattern in text
    # An attribute may hold half a character (JSON's "\ud800"), which no expression can ask for.
    return _compiled(op, pattern).search(text.encode(errors="replace").decode()) is not None
