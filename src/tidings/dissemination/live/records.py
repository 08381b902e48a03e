"""The messages of one change for one population, in order, and their wire form.

    mark 1 byte | length of head 4 | head | packets, each with its length (dissemination/wire.py)

`sequence` counts the changes of a part of a population that have messages, so whoever gets all of them notices a gap.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidings.dissemination.packet import Packet, WireError, message_of, pack, row_packet, unpack
from tidings.dissemination.schemes.message import Message
from tidings.dissemination.wire import Frames, decode, encode, frame
from tidings.kinds.joins.schema.table import Row, Table, plain
from tidings.model.notification import RowChange

MARK = 0x4A
VERDICT = "messages"
"""The verdict of a notification that carries a record."""
MAX_RECORD = 48 << 20  # which an event carries in one packet
_MAX_HEAD = 1 << 20
_PREFIX = struct.Struct(">BI")


class MessageRecord(NamedTuple):
    """`part` is the bucket of the population, such as "3/16"; `event` and `source` name the change."""

    population: str
    part: str
    sequence: int
    event: str
    source: str
    packets: tuple[Packet, ...]

    def messages(self) -> list[Message]:
        """WireError if a payload was left out, or all messages because they were too large."""
        if not self.packets:
            raise WireError("the messages of a change were too large to be sent; request a snapshot")
        return [message_of(packet) for packet in self.packets]


def packets_of(
    messages: Iterable[Message], scheme: str, tables: Mapping[str, Table], source: str = ""
) -> tuple[Packet, ...]:
    return tuple(row_packet(message, scheme, tables, source=source) for message in messages)


def row_changes(
    rows: Iterable[tuple[str, Row]], tables: Mapping[str, Table], change: str = "+"
) -> tuple[RowChange, ...]:
    """Rows with the names of their tables as notifications have them."""
    return tuple(
        RowChange(name, change, dict(zip(tables[name].names, map(plain, row), strict=True)))
        for name, row in rows
    )


def encode_record(record: MessageRecord) -> bytes:
    head = pack([*record[:5]])
    packets = [frame(encode(packet)) for packet in record.packets]
    size = _PREFIX.size + len(head) + sum(map(len, packets))
    if size > MAX_RECORD or len(head) > _MAX_HEAD:
        raise WireError(
            f"the messages of one change have {size:,} bytes; at most {MAX_RECORD:,} are sent, so change fewer rows at once"
        )
    return b"".join([_PREFIX.pack(MARK, len(head)), head, *packets])


def stream_of(population: str) -> str:
    """What stands in the place of a subscription where the records of a population are kept among notifications."""
    return f"(messages) {population}"


def notification_of(record: MessageRecord) -> dict[str, Any]:
    """The columns of a notification that carries a record: its bytes as text in `message`. Messages that are too large are
    left out, all of them: a record without any says that rows have to be requested again."""
    try:
        content = encode_record(record)
    except WireError:
        content = encode_record(record._replace(packets=()))
    return {
        "subscription": stream_of(record.population),
        "source": record.source,
        "event": record.event,
        "verdict": VERDICT,
        "part": record.part,
        "sequence": record.sequence,
        "message": b2a_base64(content, newline=False).decode("ascii"),
    }


def read_records(notifications: pa.Table) -> Iterator[MessageRecord]:
    """The records among notifications, in their order."""
    chosen = notifications.filter(pc.equal(notifications["verdict"], VERDICT))
    for text in chosen["message"].to_pylist():
        yield record_of(text)


def record_of(text: str) -> MessageRecord:
    """The record in the `message` of a notification."""
    try:
        return decode_record(a2b_base64(text, strict_mode=True))
    except ValueError:
        raise WireError("the notification holds no record of messages; its text is no base64") from None


def decode_record(data: bytes) -> MessageRecord:
    """The record; WireError for anything that is none."""
    if len(data) > MAX_RECORD:
        raise WireError(f"the record has {len(data):,} bytes; at most {MAX_RECORD:,} are accepted")
    if len(data) < _PREFIX.size:
        raise WireError("the record ends before its head")
    mark, length = _PREFIX.unpack_from(data)
    end = _PREFIX.size + length
    if mark != MARK or length > _MAX_HEAD or end > len(data):
        raise WireError("the bytes are no record of messages, or end before its head does")
    population, part, sequence, event, source = _fields(unpack(data[_PREFIX.size : end], 5))
    frames = Frames()
    packets = tuple(map(decode, frames.feed(data[end:])))
    if frames.waiting:
        raise WireError("the record ends in the middle of a packet")
    if not all(isinstance(packet.content, Message) for packet in packets):
        raise WireError("the record has a packet of an event; it holds messages of a scheme")
    return MessageRecord(population, part, sequence, event, source, packets)


def _fields(head: Any) -> list[Any]:
    kinds = (str, str, int, str, str)
    if not isinstance(head, list) or tuple(map(type, head)) != kinds:
        raise WireError("the head of the record has other fields than its place needs")
    return head
