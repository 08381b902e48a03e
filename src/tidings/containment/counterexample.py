"""An event that matches one subscription and not another, found by trying witnesses of the first.

What is found is certain, by the definition; that none is found says nothing. Hints are the constants of the other
subscription, and what it does not want: the values that it has under NOT and MISSING.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tidings.containment.frozen_ways import is_of_tables
from tidings.containment.naive import matches
from tidings.containment.witness import attribute_values, witnesses
from tidings.language.parameters import lift
from tidings.language.query import Condition, Missing, Not, Query, conjuncts, has_calls, leaves
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Term

_VARIANTS = 12


def counterexample(a: Query, b: Query, taxonomy: Taxonomy) -> Event | None:
    """An event that matches `b` and not `a`, if one is found. Whether events pass a network or an operator is not known
    here, so for subscriptions that need either there is none."""
    if is_of_tables(a) or is_of_tables(b) or b.via is not None or has_calls(a.where) or has_calls(b.where):
        return None
    for event in _attempts(a, b, taxonomy):
        if not matches(a, event, taxonomy) and matches(b, event, taxonomy):
            return event
    return None


def _attempts(a: Query, b: Query, taxonomy: Taxonomy) -> Iterator[Event]:
    hints: list[Term] = list(dict.fromkeys(lift(a)[1]))
    unwanted = attribute_values(list(_unwanted(a.where)), hints=hints)
    for event in witnesses(b, taxonomy, _VARIANTS, hints):
        yield event
        if unwanted:
            yield replace(event, id="", attributes=_united(event.attributes, unwanted))


def _unwanted(condition: Condition) -> Iterator[Condition]:
    for part in conjuncts(condition):
        if isinstance(part, Not):
            yield from conjuncts(part.part)
        else:
            found = [leaf for leaf in leaves(part) if isinstance(leaf, Missing)]
            yield from (Not(leaf) for leaf in found)


def _united(attributes: Any, more: dict[str, list[Any]]) -> dict[str, Any]:
    united = {path: value if isinstance(value, list) else [value] for path, value in attributes.items()}
    for path, values in more.items():
        united[path] = united.get(path, []) + values
    return {path: values[0] if len(values) == 1 else values for path, values in united.items()}
