"""Query trees <-> JSON: how an index keeps conditions, so that none of their texts is parsed while events are matched.

    {"And": [[{"Comparison": [{"Attribute": ["a"]}, ">", {"Variable": ["x"]}]}, …]]}

A node is an object of one member, its class and its fields; a tuple is a list. Only classes of the query tree, and
the conditions of kinds that the reader is given, can be read: nothing in a file says what to import.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Exists,
    Folded,
    IsA,
    JoinedTable,
    KindCondition,
    Missing,
    Not,
    OneOf,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    Via,
)
from tidings.model.terms import Iri, Literal

_NODES: dict[str, type] = {
    node.__name__: node
    for node in (
        And, AnyElement, Arithmetic, Attribute, Between, Call, Comparison, Exists, Folded, Iri, IsA, JoinedTable,
        Literal, Missing, Not, OneOf, Or, Parameter, Query, TextTest, TriplePattern, Variable, Via,
    )
}  # fmt: skip


def to_json(node: Any) -> str:
    """A node of a query tree, or a tuple of them, as JSON."""
    return json.dumps(_plain(node), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str, conditions: Iterable[type[KindCondition]] = ()) -> Any:
    """What `to_json` has written; a ValueError if it is something else. `conditions` are those of kinds."""
    nodes = _NODES | {node.__name__: node for node in conditions}
    try:
        return _node(json.loads(text), nodes)
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{text[:60]!r} is no query tree: {error!r}") from None


def is_json(text: str) -> bool:
    """Whether a stored text is a query tree; no text of the language begins like one."""
    return text.startswith('{"Query":')


def _plain(node: Any) -> Any:
    if isinstance(node, tuple):
        return [_plain(part) for part in node]
    if node is None or isinstance(node, str | int | float):
        return node
    return {type(node).__name__: [_plain(getattr(node, field.name)) for field in fields(node)]}


def _node(value: Any, nodes: dict[str, type]) -> Any:
    if isinstance(value, list):
        return tuple([_node(part, nodes) for part in value])
    if isinstance(value, dict):
        ((name, parts),) = value.items()
        return nodes[name](*[_node(part, nodes) for part in parts])
    return value
