"""LIKE, CONTAINS and MATCHES: three ways to look at a text, all in linear time (RE2, never backtracking)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2


def regular_expression(op: str, pattern: str) -> str:
    """The RE2 expression that finds what `op pattern` means, anywhere in a text."""
    if op == "MATCHES":
        return pattern
    if op == "CONTAINS":
        return re2.escape(pattern)
    pieces, escaped = [], False
    for char in pattern:
        if escaped or char not in "%_\\":
            pieces.append(re2.escape(char))
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            pieces.append(".*" if char == "%" else ".")
    return rf"(?s)\A{''.join(pieces)}\z"


@lru_cache(maxsize=4096)
def _compiled(op: str, pattern: str) -> Any:
    return re2.compile(regular_expression(op, pattern))


def text_holds(text: str, op: str, pattern: str) -> bool:
    """Whether `text op pattern` holds."""
    if op == "CONTAINS":
        return pattern in text
    return _compiled(op, pattern).search(text) is not None
