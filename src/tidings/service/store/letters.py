"""What a micro-batch told, as columns of rows for the mailbox's tables. All of it is made before a writer's turn.

An event's key and a notification's id are hashes of what they are about: the same thing has the same id however
often it comes, from whatever batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.event import EVENT_SCHEMA
from tidings.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord
from tidings.service.store.tables import clean

# Of one batch; how many there were is in its record.
FAULTS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Letters:
    """Columns by name, of plain values with clean texts. Notifications have yet to be numbered, from 1 to `count`."""

    count: int
    notifications: dict[str, Sequence[Any]]
    events: dict[str, Sequence[Any]]
    faults: dict[str, Sequence[Any]]


def event_key(source: str, id: str) -> bytes:
    """16 bytes that stand for an event."""
    told = source.encode(errors="surrogatepass")
    return blake2b(b"%d:%b%b" % (len(told), told, id.encode(errors="surrogatepass")), digest_size=16).digest()


def notification_id(
    subscription: str, event: bytes, part: str | None, sequence: int | None, kind: str
) -> str:
    told = f"{subscription}\0{kind}\0{'' if part is None else part}\0{'' if sequence is None else sequence}"
    return blake2b(event + told.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def letters_of(batch: BatchRecord, notifications: pa.Table, events: pa.Table) -> Letters:
    """The rows of a batch: notifications and their events, and faults for what no subscription is told of."""
    given = notifications.select(NOTIFICATION_SCHEMA.names).cast(NOTIFICATION_SCHEMA)
    told = given.filter(pc.is_valid(given["subscription"]))
    lost = given.filter(pc.is_null(given["subscription"])).slice(0, FAULTS_KEPT)
    keys: dict[tuple[str, str], bytes] = {}
    told_of = []
    for about in zip(_texts(told["source"]), _texts(told["event"]), strict=True):
        key = keys.get(about)
        if key is None:
            key = keys[about] = event_key(*about)
        told_of.append(key)
    subscriptions, kinds = _texts(told["subscription"]), _texts(told["verdict"])
    parts, sequences = _texts_or_none(told["part"]), told["sequence"].to_pylist()
    columns: dict[str, Sequence[Any]] = {
        "subscription": _cleaned(subscriptions),
        "id": list(map(notification_id, subscriptions, told_of, parts, sequences, kinds)),
        "kind": kinds,
        "at": [batch.ended] * len(told),
        "event": told_of,
        "bindings": _bindings(told["bindings"]),
        "part": _cleaned(parts),
        "sequence": sequences,
        "changes": _changes(told["changes"]),
        "message": _cleaned(_texts_or_none(told["message"])),
        "query": [clean(batch.query)] * len(told),
        "batch": [batch.batch] * len(told),
    }
    faults: dict[str, Sequence[Any]] = {
        "source": _cleaned(_texts(lost["source"])),
        "event": _cleaned(_texts(lost["event"])),
        "message": _cleaned(_texts(lost["message"])),
        "at": [batch.ended] * len(lost),
    }
    return Letters(len(told), columns, _events(events, keys), faults)


def _events(events: pa.Table, keys: dict[tuple[str, str], bytes]) -> dict[str, Sequence[Any]]:
    """Those of the events that somebody is told of, each once. One that is told of and not given is kept by name."""
    given = events.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
    missing = dict(keys)
    rows, found = [], []
    for row, about in enumerate(zip(_texts(given["source"]), _texts(given["id"]), strict=True)):
        if (key := missing.pop(about, None)) is not None:
            rows.append(row)
            found.append(key)
    kept = given.take(pa.array(rows, pa.int64()))
    columns: dict[str, Sequence[Any]] = {}
    for name in EVENT_SCHEMA.names:
        values = kept[name].to_pylist()
        columns[name] = values if name == "data" else _cleaned(values)
    nothing = [None] * len(missing)
    columns = {name: [*values, *nothing] for name, values in columns.items()}
    if missing:
        sources, ids = zip(*missing, strict=True)
        columns["source"] = [*columns["source"][: len(found)], *_cleaned(sources)]
        columns["id"] = [*columns["id"][: len(found)], *_cleaned(ids)]
    return {"key": [*found, *missing.values()], **columns}


def _bindings(column: pa.ChunkedArray) -> list[str | None]:
    filled = pc.greater(pc.list_value_length(_as_lists(column)), 0)
    if not pc.any(filled).as_py():
        return [None] * len(column)
    return [json.dumps(dict(value)) if value else None for value in column.to_pylist()]


def _changes(column: pa.ChunkedArray) -> list[str | None]:
    if column.null_count == len(column):
        return [None] * len(column)
    return [
        json.dumps([(one["table"], one["change"], one["row"]) for one in value]) if value else None
        for value in column.to_pylist()
    ]


def _as_lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def _texts(column: pa.ChunkedArray) -> list[str]:
    return pc.fill_null(column, "").to_pylist()


def _texts_or_none(column: pa.ChunkedArray) -> list[str | None]:
    return [None] * len(column) if column.null_count == len(column) else column.to_pylist()


def _cleaned(values: Iterable[Any]) -> list[Any]:
    return [None if value is None else clean(value) for value in values]
