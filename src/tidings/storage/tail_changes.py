"""Changes of subscriptions and networks as lines of an index's tail, one JSON object each.

The last member, "crc", is the CRC-32 of all before it. Lines of before there were checksums have none.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from inspect import signature
from typing import Any, NamedTuple

from tidings.engine.engine import Engine, check_id
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.network import Network
from tidings.language.printer import condition_text
from tidings.language.query import Condition, KindCondition, Query, leaves
from tidings.language.query_json import is_json, stored_text

_SEAL = b', "crc": '
ACTIONS = ("add_node", "add_edge", "remove_node", "remove_edge", "set_where")


class StoredQuery(NamedTuple):
    """The tree of a query as a tail has it; which kinds its conditions are of, the engine knows."""

    json: str


class Change(NamedTuple):
    """A subscription added or replaced, or removed when `text` is None. It may be given as a tree, too."""

    id: str
    text: str | Query | StoredQuery | None
    valid_until: str | None = None


class NetworkChange(NamedTuple):
    """A change of a network: one of `Network`'s methods for changing, and its arguments.

    NetworkChange("exchange", "add_edge", ("acme", "berlin", "topic = 'oil'"))
    """

    network: str
    action: str
    arguments: tuple[Any, ...]


def apply(change: Change | NetworkChange, engine: Engine) -> None:
    """Makes a change in an engine."""
    if isinstance(change, NetworkChange):
        _change_network(change, engine.networks)
    elif change.text is None:
        check_id(change.id)
        engine.unsubscribe(change.id)
    else:
        text = engine.tree(change.text.json) if isinstance(change.text, StoredQuery) else change.text
        engine.subscribe(change.id, text, valid_until=change.valid_until)


def _change_network(change: NetworkChange, networks: Mapping[str, Network]) -> None:
    network = networks.get(change.network)
    if network is None:
        known = ", ".join(sorted(networks)) or "none"
        raise NetworkError(
            f"there is no network {change.network!r} in the index, only: {known}; add it with 'tidings index network'"
        )
    if change.action not in ACTIONS:
        raise NetworkError(f"{change.action!r} is no change of a network; there are {', '.join(ACTIONS)}")
    make = getattr(network, change.action)
    takes = signature(make)
    try:
        takes.bind(*change.arguments)
    except TypeError:
        raise NetworkError(
            f"{change.action} takes {', '.join(takes.parameters)}; it was given {len(change.arguments)} arguments"
        ) from None
    try:
        make(*change.arguments)
    except TypeError as error:
        raise NetworkError(f"{change.action} cannot have {change.arguments!r}: {error}") from None


def to_line(change: Change | NetworkChange) -> bytes:
    """A change as a line of a tail."""
    if isinstance(change, Change):
        fields = change._asdict()
        if isinstance(change.text, Query):
            conditions = {type(leaf) for leaf in leaves(change.text.where) if isinstance(leaf, KindCondition)}
            text = fields["text"] = stored_text(change.text, conditions)
            if is_json(text):
                fields["query"] = fields.pop("text")
        return _sealed(json.dumps(fields))
    try:
        return _sealed(json.dumps(change._asdict(), default=_plain, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise NetworkError(f"{change!r} cannot be written: {error}; give texts, numbers and labels") from None


def _sealed(text: str) -> bytes:
    """A JSON object as a line with its checksum."""
    body = text.encode().removesuffix(b"}")
    return b"%b%b%d}\n" % (body, _SEAL, zlib.crc32(body))


def _plain(argument: object) -> object:
    """An expression as its text, labels as a list."""
    if isinstance(argument, Condition):
        return condition_text(argument)
    if isinstance(argument, set | frozenset):
        return sorted(argument)
    raise TypeError(f"{argument!r} has no text")


def from_line(line: bytes) -> Change | NetworkChange:
    """What `to_line` wrote; ValueError if it is not as it was written."""
    body, seal, crc = line.rstrip(b"\n").rpartition(_SEAL)
    if seal and crc != b"%d}" % zlib.crc32(body):
        raise ValueError("a change is not as it was written")
    fields = json.loads(body + b"}" if seal else line)
    if "query" in fields:
        return Change(text=StoredQuery(fields.pop("query")), **fields)
    if "network" not in fields:
        return Change(**fields)
    arguments = (tuple(value) if isinstance(value, list) else value for value in fields.pop("arguments"))
    return NetworkChange(arguments=tuple(arguments), **fields)
