"""Query trees <-> JSON: how an index keeps conditions, so that none of their texts is parsed while events are matched.

    {"And": [[{"Comparison": [{"Attribute": ["a"]}, ">", {"Variable": ["x"]}]}, …]]}

A node is an object of one member, its class and its fields; a tuple is a list. Only classes of the query tree, and
the conditions of kinds that the reader is given, can be read: nothing in a file says what to import.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from tidings.errors import SubscriptionError, TidingsError
from tidings.language.parser import parse
from tidings.language.printer import to_text
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
    leaves,
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


def stored_text(query: Query, conditions: Iterable[type[KindCondition]] = ()) -> str:
    """A tree as an index stores it: its text, or its JSON if it has `conditions` of kinds, which have no syntax.

    A `SubscriptionError` if it is no tree. What the language can say of it is checked by the parser.
    """
    try:
        own = [leaf for leaf in leaves(query.where) if isinstance(leaf, KindCondition)]
        if not own:
            return to_text(query)
        text = to_json(query)
        _check(query, tuple(conditions))
        if from_json(text, conditions) == query:
            return text
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        pass
    raise SubscriptionError(
        f"{query!r:.200} is no tree of a subscription; build it of the classes of tidings.language.query, with tuples"
    )


def _check(query: Query, conditions: tuple[type[KindCondition], ...]) -> None:
    """Checks the leaves of a tree: those that the language can say, by saying them."""
    said = []
    for leaf in leaves(query.where):
        if not isinstance(leaf, KindCondition):
            said.append(leaf)
        elif not isinstance(leaf, conditions):
            raise SubscriptionError(
                f"{leaf} is of no kind that the engine knows; give its kind, as in Engine(kinds=[...])"
            )
    if said:
        parse(to_text(Query(And(tuple(said)))))


def check_names(conditions: Sequence[type[KindCondition]]) -> None:
    """Refuses conditions of kinds whose names mean something else in a tree."""
    names = Counter([*_NODES, *(condition.__name__ for condition in conditions)])
    if twice := [name for name, count in names.items() if count > 1]:
        raise TidingsError(f"{twice[0]} is the name of two conditions; give the one of your kind another")


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


def json_calls(text: str) -> list[Call]:
    """The calls in a tree, with a variable for every argument; of whatever kinds its conditions are."""
    found, waiting = list[Call](), [json.loads(text)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "Call" in value:
                name, arguments = value["Call"]
                found.append(Call(name, tuple(Variable(str(i)) for i in range(len(arguments)))))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found
