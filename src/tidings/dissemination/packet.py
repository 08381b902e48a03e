"""Packets: what crosses a link of the network, an event or a scheme's message, with its payload apart. Select-joins, 5.

A payload is the bulky part that nobody routes by: of an event its document and its long texts, of a row the columns of
`Table.payload` and its long texts. It is bytes to everyone but its reader, and its id is the hash of these bytes, so a payload that is known
need not be sent again. The rest of a packet is always there. A joined row has one payload for each table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

import msgpack

from tidings.dissemination.schemes.message import GAINED, LOST, Form, Image, Message, SelectionForm
from tidings.dissemination.schemes.signature import LongSemijoin, Semijoin
from tidings.dissemination.schemes.sizes import size_of_all
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.order_keys import EPOCH, TYPE_OF, key_of
from tidings.kinds.joins.schema.table import Row, Table
from tidings.model.event import Event

BULKY = 512  # bytes: a text of an event that is longer is payload, and a payload of an event is longer
ID_BYTES = 16


class WireError(TidingsError):
    """Bytes that are no packet, or a packet that cannot be written or completed."""


class Payload(NamedTuple):
    """`content` is None where it was left out, because the receiver had it before."""

    id: bytes
    names: tuple[str, ...]
    """The attributes or columns that it consists of."""
    content: bytes | None
    source: str = ""
    """The address of the last node that had it; empty: the server."""
    row: int = 0
    """Which row of a message it belongs to."""
    is_known: bool = False
    """Whoever wants the packet has the content: that of a lost row, which its subscribers hold. It is never sent."""


@dataclass(frozen=True, slots=True, eq=False)
class Packet:
    content: Event | Message
    """Without its payloads: `event_of` and `message_of` put them in again."""
    sequence: int = 0
    scheme: str = ""
    """The name of the scheme that made a message; empty for an event."""
    payloads: tuple[Payload, ...] = ()

    @property
    def missing(self) -> tuple[Payload, ...]:
        """The payloads whose content was left out, and that subscribers need."""
        return tuple(payload for payload in self.payloads if payload.content is None and not payload.is_known)


def payload_id(content: bytes) -> bytes:
    return blake2b(content, digest_size=ID_BYTES).digest()


def event_packet(event: Event, sequence: int = 0, source: str = "") -> Packet:
    """A packet of an event; its data and long texts are payload, if together they are bulky."""
    long = (
        (name, value)
        for name, value in event.attributes.items()
        if isinstance(value, str) and len(value.encode(errors="surrogatepass")) > BULKY
    )
    texts = dict(islice(long, _MOST_TEXTS))  # the rest stays where it is
    if len(event.data) + sum(map(len, texts.values())) <= BULKY:
        return Packet(event, sequence)
    names = (*(("data",) if event.data else ()), *texts)
    content = pack([event.data, *(part for item in texts.items() for part in item)])
    rest = {name: value for name, value in event.attributes.items() if name not in texts}
    stripped = replace(event, data=b"", attributes=rest)
    return Packet(stripped, sequence, payloads=(Payload(payload_id(content), names, content, source),))


def row_packet(
    message: Message,
    scheme: str,
    tables: Mapping[str, Table],
    sequence: int = 0,
    source: str = "",
    *,
    names_lost: bool = False,
) -> Packet:
    """A packet of a scheme's message; the payload columns of each row, if its table has any, are a payload. So are its
    long texts, but for those that nodes look at.

    `names_lost`: of a lost row only the id of its payload is sent, by which subscribers find the row that they hold; a
    joined row is lost whole (`HeldPayloads`).
    """
    payloads, rows = [], []
    is_known = names_lost and message.sign == LOST
    for number, (image, looked_at) in enumerate(zip(message.rows, routed_by(message.form), strict=True)):
        table = tables[image.table]
        places = [
            place
            for place, name in enumerate(table.names)
            if name in table.payload or (place not in looked_at and _is_bulky(image.row[place]))
        ]
        names = [table.names[place] for place in places]
        values = [image.row[place] for place in places]
        if any(value is not None for value in values):
            content = pack([part for pair in zip(places, values, strict=True) for part in pair])
            payloads.append(
                Payload(
                    payload_id(content), tuple(names), None if is_known else content, source, number, is_known
                )
            )
            image = replaced(image, dict.fromkeys(places))
        rows.append(image)
    return Packet(replace(message, rows=tuple(rows)), sequence, scheme, tuple(payloads))


def routed_by(form: Form) -> list[tuple[int | None, ...]]:
    """Of each row of a message the columns that filters look at."""
    if isinstance(form, SelectionForm):
        return [()]
    if isinstance(form, Semijoin):
        return [(*form.base.join, form.base.selection)]
    if isinstance(form, LongSemijoin):
        return [(form.signature.selections[form.base],)]
    return [(column,) for column in form.selections]


def _is_bulky(value: Any) -> bool:
    return isinstance(value, str) and len(value) > BULKY


def without_payload(packet: Packet, *ids: bytes) -> Packet:
    """The packet without the contents of these payloads, or of all if none is named."""
    kept = tuple(
        payload._replace(content=None) if not ids or payload.id in ids else payload
        for payload in packet.payloads
    )
    return replace(packet, payloads=kept)


def with_payload(packet: Packet, *contents: bytes) -> Packet:
    """The packet with contents put in where they were left out; a content that does not belong to it is refused."""
    found = {payload_id(content): content for content in contents}
    wanted = {payload.id for payload in packet.payloads}
    if not found.keys() <= wanted:
        raise WireError("the payload given has another hash than the packet names; fetch it again")
    completed = tuple(
        payload._replace(content=found[payload.id])
        if payload.content is None and payload.id in found
        else payload
        for payload in packet.payloads
    )
    return replace(packet, payloads=completed)


def event_of(packet: Packet) -> Event:
    """The whole event; WireError if a payload is missing or is none of an event."""
    event = packet.content
    if not isinstance(event, Event):
        raise WireError("the packet carries rows of a join, not an event; read it with message_of")
    for payload in packet.payloads:
        data, *texts = _values(payload)
        if not isinstance(data, bytes) or not all(isinstance(text, str) for text in texts) or len(texts) % 2:
            raise WireError("the payload of an event is its data and texts; this one holds other values")
        named = dict(zip(texts[::2], texts[1::2], strict=True))
        event = replace(event, data=data, attributes={**event.attributes, **named})
    return event


def message_of(packet: Packet) -> Message:
    """The whole message of a scheme; WireError if a payload is missing or does not fit its row."""
    message = packet.content
    if not isinstance(message, Message):
        raise WireError("the packet carries an event, not rows of a join; read it with event_of")
    rows = list(message.rows)
    for payload in packet.payloads:
        values = _values(payload)
        columns = dict(zip(values[::2], values[1::2], strict=False))
        width = len(rows[payload.row].row) if payload.row < len(rows) else 0
        if len(values) % 2 or not all(type(place) is int and 0 <= place < width for place in columns):
            raise WireError("the payload of a row names columns that the row does not have; fetch it again")
        check_values(columns.values())
        rows[payload.row] = replaced(rows[payload.row], columns)
    return replace(message, rows=tuple(rows))


class HeldPayloads:
    """The payloads of the rows that a subscriber holds, to complete packets that only name them."""

    def __init__(self) -> None:
        self._contents: dict[bytes, tuple[bytes, int]] = {}

    def message_of(self, packet: Packet) -> Message:
        """The whole message; remembers the payloads of gained rows until as many were lost."""
        known = {
            payload.id: self._contents[payload.id][0]
            for payload in packet.payloads
            if payload.id in self._contents
        }
        for payload in packet.payloads:
            if payload.is_known and payload.id not in known:
                raise WireError(
                    f"a row with the payload {payload.id.hex()} is lost that was never received; start anew"
                )
        filled = tuple(
            payload._replace(content=known[payload.id]) if payload.is_known else payload
            for payload in packet.payloads
        )
        message = message_of(replace(packet, payloads=filled))
        for payload in filled:
            assert payload.content is not None
            count = self._contents.get(payload.id, (b"", 0))[1] + (1 if message.sign == GAINED else -1)
            if count > 0:
                self._contents[payload.id] = payload.content, count
            else:
                self._contents.pop(payload.id, None)
        return message


def image_of(table: str, row: Row) -> Image:
    """A row as a node knows it: the order key of a value follows from the value."""
    keys = tuple(key_of(TYPE_OF.get(type(value), "integer"), value) for value in row)
    return Image(table, row, keys, size_of_all(row))


def check_values(values: Iterable[Any]) -> None:
    """Refuses what `Table.read` gives for no column."""
    for value in values:
        if (
            not isinstance(value, _VALUES)
            or (type(value) is int and not -(2**63) < value < 2**63)
            or (isinstance(value, float) and not isfinite(value))
        ):
            raise WireError("the packet's row holds a value that no column has")


def replaced(image: Image, columns: Mapping[int, Any]) -> Image:
    return image_of(image.table, tuple(columns.get(place, value) for place, value in enumerate(image.row)))


def pack(values: list[Any]) -> bytes:
    """Plain values, dates and timestamps as bytes."""
    try:
        packed: bytes = msgpack.packb(values, default=_extension, unicode_errors="surrogatepass")
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise WireError(f"a value cannot be written to the wire: {error}; give plain values") from None
    return packed


def unpack(content: bytes, longest: int) -> Any:
    """The values of untrusted bytes; no list may be longer than `longest`, and there are no maps."""
    try:
        return msgpack.unpackb(
            content,
            unicode_errors="surrogatepass",
            ext_hook=_extended,
            max_array_len=longest,
            max_map_len=0,
            max_ext_len=_TIMESTAMP.size,
        )
    except (ValueError, OverflowError, struct.error, msgpack.UnpackException) as error:
        raise WireError(f"the bytes are no packet: {error or type(error).__name__}") from None


def _extension(value: Any) -> msgpack.ExtType:
    if isinstance(value, datetime):
        return msgpack.ExtType(2, _TIMESTAMP.pack(key_of("timestamp", value)))
    if isinstance(value, date):
        return msgpack.ExtType(1, _DATE.pack(value.toordinal()))
    raise TypeError(f"{type(value).__name__} has no form there")


def _extended(code: int, content: bytes) -> date:
    if code == 1:
        return date.fromordinal(_DATE.unpack(content)[0])
    if code == 2:
        return EPOCH + timedelta(microseconds=_TIMESTAMP.unpack(content)[0])
    raise ValueError(f"it has a value of the unknown type {code}")


_DATE, _TIMESTAMP = struct.Struct(">i"), struct.Struct(">q")


_VALUES = (str, int, float, date, type(None))
_MOST_VALUES = 2_048
_MOST_TEXTS = 1_000  # with their names, they are fewer than the values of a payload may be


def _values(payload: Payload) -> list[Any]:
    if payload.content is None:
        raise WireError(
            f"the payload {payload.id.hex()} was left out; ask {payload.source or 'the server'} for it"
        )
    values = unpack(payload.content, _MOST_VALUES)
    if not isinstance(values, list) or not values:
        raise WireError("the payload is no list of values; fetch it again")
    return values
