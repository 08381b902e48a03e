"""Defines the text tests LIKE, CONTAINS, STARTS, ENDS, MATCHES, CIDR and SEARCH, all in linear time (RE2, never backtracking).

A SEARCH by stems has their language in its name: `SEARCH english`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import re2

from tidings.model.search.expression import search_holds

_LIKE = re.compile(r"\\[%_\\]|.", re.DOTALL)  # a backslash before anything else is itself


def regular_expression(op: str, pattern: str) -> str:
    """The RE2 expression that finds what `op pattern` means, anywhere in a text; CIDR and SEARCH have none."""
    if op == "MATCHES":
        return pattern
    if op == "CONTAINS":
        return re2.escape(pattern)
    if op == "STARTS":
        return rf"\A{re2.escape(pattern)}"
    if op == "ENDS":
        return rf"{re2.escape(pattern)}\z"
    wild = {"%": ".*", "_": "."}
    pieces = [wild.get(piece) or re2.escape(piece[-1]) for piece in _LIKE.findall(pattern)]
    return rf"(?s)\A{''.join(pieces)}\z"


@lru_cache(maxsize=4096)
def _compiled(op: str, pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(regular_expression(op, pattern), options)


@lru_cache(maxsize=4096)
def like_pieces(pattern: str) -> tuple[str, ...] | None:
    """The texts between the % of a LIKE; None if it has a _ that means any character."""
    pieces = [""]
    for part in _LIKE.findall(pattern):
        if part == "_":
            return None
        if part == "%":
            pieces.append("")
        else:
            pieces[-1] += part[-1]
    return tuple(pieces)


def _fits(text: str, pieces: tuple[str, ...]) -> bool:
    """Whether a text is these pieces with anything between them: each is taken where it comes first."""
    first, *middle, last = pieces if len(pieces) > 1 else (*pieces, "")
    if len(pieces) == 1:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - len(last) >= at and text.endswith(last)


@lru_cache(maxsize=4096)
def network(pattern: str) -> IPv4Network | IPv6Network:
    """The network that a CIDR pattern writes, such as 10.0.0.0/8; bits behind the prefix do not matter.

    Raises ValueError for a text that is none.
    """
    return ip_network(pattern, strict=False)


def in_network(text: str, pattern: str) -> bool:
    """Whether `text` is an address in the network. ::ffff:10.0.0.1 is also the IPv4 address that it wraps."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    wrapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address in network(pattern) or (wrapped is not None and wrapped in network(pattern))


def is_search(op: str) -> bool:
    """Whether a text test searches for words, or for their stems."""
    return op.startswith("SEARCH")


def search_language(op: str) -> str:
    """The language of the stems that a SEARCH compares; empty for one that compares words."""
    return op[len("SEARCH ") :]


def text_holds(text: str, op: str, pattern: str, fold: bool = False) -> bool:
    """Whether `text op pattern` holds; `fold` disregards case, which MATCHES and CIDR never do, and SEARCH always."""
    if is_search(op):
        return search_holds(text, pattern, search_language(op))
    if fold:
        text, pattern = text.casefold(), pattern.casefold()
    if op == "CIDR":
        return in_network(text, pattern)
    if op == "CONTAINS":
        return pattern in text
    if op == "STARTS":
        return text.startswith(pattern)
    if op == "ENDS":
        return text.endswith(pattern)
    if op == "LIKE" and (pieces := like_pieces(pattern)) is not None:
        return _fits(text, pieces)
    # An attribute may hold half a character (JSON's "\ud800"), which no expression can match.
    return _compiled(op, pattern).search(text.encode(errors="replace").decode()) is not None
