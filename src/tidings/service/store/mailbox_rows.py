"""Converts a micro-batch to rows of the mailbox's tables, before the writer takes its lock.

The key of an event and the id of a notification are hashes of their contents: they are the same however often it
is recorded, from whatever batch. The id begins with the event's key, by which the notification is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord
from tidings.service.store.tables import clean

_ID = re.compile("([0-9a-f]{32})-[0-9a-f]{16}")
# Of one batch; how many there were is in its record.
FAULTS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class MailboxRows:
    """Columns by name, of plain values with clean texts. Notifications are numbered from 1 to `count`; `last` of an event
    is the largest number of its notifications."""

    count: int
    notifications: dict[str, Sequence[Any]]
    events: dict[str, Sequence[Any]]
    faults: dict[str, Sequence[Any]]


def event_key(source: str, id: str) -> bytes:
    """A hash of 16 bytes of an event's source and id."""
    encoded = source.encode(errors="surrogatepass")
    return blake2b(
        b"%d:%b%b" % (len(encoded), encoded, id.encode(errors="surrogatepass")), digest_size=16
    ).digest()


def notification_id(
    subscription: str, event: bytes, part: str | None, sequence: int | None, kind: str
) -> str:
    text = f"{subscription}\0{kind}\0{'' if part is None else part}\0{'' if sequence is None else sequence}"
    return f"{event.hex()}-{blake2b(text.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


def event_of(id: str) -> bytes | None:
    """The key of the event that a notification with this id is of; None for an id of another form."""
    found = _ID.fullmatch(id)
    return None if found is None else bytes.fromhex(found[1])


def mailbox_rows(batch: BatchRecord, notifications: pa.Table, events: pa.Table) -> MailboxRows:
    """The rows of a batch: notifications with their events, and faults for errors that belong to no subscription."""
    given = notifications.select(NOTIFICATION_SCHEMA.names).cast(NOTIFICATION_SCHEMA)
    notifications = given.filter(pc.is_valid(given["subscription"]))
    lost = given.filter(pc.is_null(given["subscription"])).slice(0, FAULTS_KEPT)
    about = list(zip(_texts(notifications["source"]), _texts(notifications["event"]), strict=True))
    lasts = dict(zip(about, range(1, len(about) + 1), strict=True))
    keys = {pair: event_key(*pair) for pair in lasts}
    columns: dict[str, Sequence[Any]] = {
        "subscription": _clean(notifications["subscription"]),
        "kind": _texts(notifications["verdict"]),
        "at": [batch.ended] * len(about),
        "event": [keys[pair] for pair in about],
        "bindings": _bindings(notifications["bindings"]),
        "part": _clean(notifications["part"]),
        "sequence": _values(notifications["sequence"]),
        "changes": _changes(notifications["changes"]),
        "message": _clean(notifications["message"]),
    }
    faults: dict[str, Sequence[Any]] = {
        **{name: _clean(pc.fill_null(lost[name], "")) for name in ("source", "event", "message")},
        "at": [batch.ended] * len(lost),
    }
    return MailboxRows(len(about), columns, _events(events, keys, lasts), faults)


def _events(
    events: pa.Table, keys: dict[tuple[str, str], bytes], lasts: dict[tuple[str, str], int]
) -> dict[str, Sequence[Any]]:
    """The events that notifications refer to, each once. One that is not given is stored with its name only."""
    given = events.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
    missing, rows, found = dict.fromkeys(keys), [], []
    for row, about in enumerate(zip(_texts(given["source"]), _texts(given["id"]), strict=True)):
        if about in missing:
            del missing[about]
            rows.append(row)
            found.append(about)
    names = [{"source": source, "id": id} for source, id in missing]
    kept = pa.concat_tables(
        [given.take(pa.array(rows, pa.int64())), pa.Table.from_pylist(names, EVENT_SCHEMA)]
    )
    columns = {
        name: kept[name].to_pylist() if name == "data" else _clean(kept[name]) for name in EVENT_SCHEMA.names
    }
    found += missing
    return {"key": [keys[about] for about in found], "last": [lasts[about] for about in found], **columns}


def _bindings(column: pa.ChunkedArray) -> list[str | None]:
    return [json.dumps(dict(value)) if value else None for value in _values(column)]


def _changes(column: pa.ChunkedArray) -> list[str | None]:
    return [
        json.dumps([(change["table"], change["change"], change["row"]) for change in value])
        if value
        else None
        for value in _values(column)
    ]


def _texts(column: pa.ChunkedArray) -> list[str]:
    return pc.fill_null(column, "").to_pylist()


def _values(column: pa.ChunkedArray) -> list[Any]:
    return [None] * len(column) if column.null_count == len(column) else column.to_pylist()


def _clean(column: pa.ChunkedArray) -> list[Any]:
    """The texts of a column without NUL. Arrow has no lone surrogates."""
    values = _values(column)
    if column.null_count == len(column) or not pc.any(pc.match_substring(column, "\0")).as_py():
        return values
    return [None if value is None else clean(value) for value in values]
