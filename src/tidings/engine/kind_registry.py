"""The kinds of an engine: the five, those that it is given, and those of installed packages.

A package offers kinds by the entry point group "tidings.kinds": each is called without arguments and gives a `Kind`.
Kinds of the user's own come between: their checkers before operators, which cost most; their finders before filters,
which take what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from tidings.engine.contracts import Kind
from tidings.errors import TidingsError
from tidings.language.query_json import check_names

GROUP = "tidings.kinds"
ROLES = ("find", "check", "state")
BUILT_IN = ("networks", "operators", "patterns", "filters", "joins", "residuals", "every_event")


def all_kinds(given: Iterable[Kind]) -> list[Kind]:
    """Given kinds and those of installed packages, each name once."""
    found: dict[str, Kind] = {}
    for kind in (*given, *_installed()):
        role, name = getattr(kind, "role", None), getattr(kind, "name", None)
        if role not in ROLES or not isinstance(name, str) or not name.isidentifier() or name in BUILT_IN:
            raise TidingsError(
                f"{kind!r} is no kind of subscription; it needs a name of its own, and a role: find, check or state"
            )
        found.setdefault(name, kind)
    check_names([condition for kind in found.values() for condition in kind.conditions])
    return list(found.values())


@cache
def _installed() -> tuple[Kind, ...]:
    return tuple(point.load()() for point in entry_points(group=GROUP))


def arranged(networks: Any, operators: Any, patterns: Any, filters: Any, own: Sequence[Kind]) -> list[Any]:
    """The kinds that find and check, in the order in which they compile and check."""
    checking = [kind for kind in own if kind.role == "check"]
    finding = [kind for kind in own if kind.role == "find"]
    return [networks, *checking, operators, patterns, *finding, filters]
