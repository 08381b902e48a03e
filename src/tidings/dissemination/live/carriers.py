"""Events that carry records of messages, and rows of a subscription, from a stream to the relays below it.

A stream that answers some subscriptions by messages stores each record as an event of its own, so that whatever keeps, sends and
deduplicates events does the same for records. Publishers cannot make such events (`is_carrier`).

    tidings.messages       source "(messages) POPULATION", id "PART SEQUENCE", data: the record (records.py)
    tidings.member-rows    source "(rows) SUBSCRIPTION",   id "EVENT PART",    data: text, part, sequence, rows
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidings.dissemination.live.records import (
    VERDICT,
    MessageRecord,
    decode_record,
    encode_record,
    stream_of,
)
from tidings.dissemination.packet import WireError
from tidings.model.event import EVENT_SCHEMA, Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA, RowChange

MESSAGES, MEMBER_ROWS = "tidings.messages", "tidings.member-rows"
_MEDIA = "application/octet-stream"


class MemberRows(NamedTuple):
    """The rows that a subscription of this text has from messages, in one part, up to the record `sequence`."""

    text: str
    part: str
    sequence: int
    rows: tuple[RowChange, ...]


def is_carrier(event: Event) -> bool:
    """Whether an event is of a type that only a stream makes."""
    return event.type in (MESSAGES, MEMBER_ROWS)


def record_event(record: MessageRecord) -> Event:
    """The event that carries a record."""
    return Event(
        stream_of(record.population),
        {},
        f"{record.part} {record.sequence}",
        MESSAGES,
        None,
        _MEDIA,
        encode_record(record),
    )


def record_in(event: Event) -> MessageRecord:
    """The record that an event carries; WireError for any other event."""
    if event.type != MESSAGES:
        raise WireError(
            f"the event is of type {event.type!r}; one that carries messages is of type {MESSAGES!r}"
        )
    record = decode_record(event.data)
    if event.source != stream_of(record.population):
        raise WireError("the event names another population than its messages do")
    return record


def rows_event(subscription: str, event: str, found: MemberRows) -> Event:
    """The event that carries the rows of a subscription, which were requested by an event."""
    rows = [(change.table, change.row) for change in found.rows]
    data = json.dumps([found.text, found.part, found.sequence, rows]).encode()
    source = f"(rows) {subscription}"
    return Event(source, {}, f"{event} {found.part}", MEMBER_ROWS, None, "application/json", data)


def rows_in(event: Event) -> MemberRows:
    """The rows that an event carries; WireError for any other event."""
    try:
        text, part, sequence, rows = json.loads(event.data)
        changes = tuple(RowChange(str(table), "+", dict(row)) for table, row in rows)
        bucket, total = map(int, str(part).split("/"))
        if type(sequence) is not int or not 0 <= bucket < total <= 1 << 20:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise WireError(
            f"the event is none that carries rows; such a one is of type {MEMBER_ROWS!r}"
        ) from None
    return MemberRows(str(text), str(part), sequence, changes)


def carried(notifications: pa.Table, events: pa.Table, members: str) -> tuple[pa.Table, pa.Table]:
    """Notifications and their events, with events of their own for records of messages, and for the snapshots of
    subscriptions whose ids begin with `members`. The texts of these are in `message`."""
    is_record = pc.equal(notifications["verdict"], VERDICT)
    is_rows = pc.and_(
        pc.equal(notifications["verdict"], "snapshot"),
        pc.fill_null(pc.starts_with(notifications["subscription"], members), False),
    )
    special = pc.or_(is_record, is_rows)
    if not pc.any(special).as_py():
        return notifications, events
    made = []
    for row in notifications.filter(special).to_pylist():
        if row["verdict"] == VERDICT:
            event = record_event(decode_record(a2b_base64(row["message"])))
        else:
            changes = tuple(
                RowChange(change["table"], "+", json.loads(change["row"])) for change in row["changes"] or ()
            )
            rows = MemberRows(row["message"], row["part"], row["sequence"], changes)
            event = rows_event(row["subscription"], row["event"], rows)
        made.append((row["subscription"], event))
    stored = [carrier_notification(id, event) for id, event in made]
    kept = notifications.filter(pc.invert(special)).cast(NOTIFICATION_SCHEMA)
    return (
        pa.concat_tables([kept, pa.Table.from_pylist(stored, schema=NOTIFICATION_SCHEMA)]),
        pa.concat_tables(
            [events.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA), to_table([event for _, event in made])]
        ),
    )


def carrier_notification(subscription: str, event: Event) -> dict[str, object]:
    """The columns of the notification by which an event that carries something is stored."""
    return {"subscription": subscription, "source": event.source, "event": event.id, "verdict": "match"}
