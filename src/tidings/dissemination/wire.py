"""The wire form of packets: bytes that any peer may send, so every length is checked before anything is allocated.

    version 1 byte | length of head 4 | length of attributes 4 | head | attributes | data | contents of payloads

The head is MessagePack, lists only, fields by position; attributes are the JSON object of an event, data its document. The contents
of payloads stay bytes, which a node passes on without reading them, and must have the hash that the head names. Nothing is executed.
On a stream each packet is a frame: its length in 4 bytes, then the packet.
"""

from __future__ import annotations

import json
import struct
from itertools import accumulate
from typing import Any

import numpy as np

from tidings.dissemination.packet import (
    ID_BYTES,
    Packet,
    Payload,
    WireError,
    check_values,
    event_of,
    event_packet,
    image_of,
    message_of,
    pack,
    payload_id,
    routed_by,
    row_packet,
    unpack,
    with_payload,
    without_payload,
)
from tidings.dissemination.schemes.message import (
    GAINED,
    LOST,
    Bounds,
    Image,
    Longs,
    Message,
    Remainders,
    SelectionForm,
    Skyline,
)
from tidings.dissemination.schemes.signature import Edge, LongSemijoin, Semijoin, Side, Signature
from tidings.errors import EventError
from tidings.model.event import Event

__all__ = [
    "MAX_PACKET",
    "Frames",
    "OtherVersion",
    "Packet",
    "Payload",
    "WireError",
    "decode",
    "encode",
    "event_of",
    "event_packet",
    "frame",
    "message_of",
    "payload_id",
    "row_packet",
    "with_payload",
    "without_payload",
]

VERSION = 1
MAX_PACKET = 64 << 20
MAX_HEAD = 1 << 20  # an empty list is one byte there, and sixty in memory
MAX_LIST = 2_048  # tables, columns, payloads
_PREFIX = struct.Struct(">BII")
_LENGTH = struct.Struct(">I")
_EVENT, _ROWS = 0, 1
_LEFT_OUT, _KNOWN = -1, -2  # in the place of a payload's length
_WIDTHS = {1: "<i1", 2: "<i2", 4: "<i4", 8: "<i8"}


class OtherVersion(WireError):
    """A packet in the form of another release."""


def encode(packet: Packet) -> bytes:
    """WireError if it is larger than a packet may be."""
    content = packet.content
    payloads = [
        [payload.id, list(payload.names), _length(payload), payload.source, payload.row]
        for payload in packet.payloads
    ]
    attributes = data = b""
    if isinstance(content, Event):
        attributes = (content.row()["attributes"] or "").encode(errors="surrogatepass")
        data = content.data
        fields = [content.source, content.id, content.type, content.time, content.datacontenttype, len(data)]
        head = pack([_EVENT, packet.sequence, packet.scheme, payloads, fields])
    else:
        head = pack([_ROWS, packet.sequence, packet.scheme, payloads, _message_fields(content)])
    parts = [payload.content for payload in packet.payloads if payload.content is not None]
    size = _PREFIX.size + len(head) + len(attributes) + len(data) + sum(map(len, parts))
    if len(head) > MAX_HEAD or size > MAX_PACKET:
        raise WireError(
            f"the packet has {size:,} bytes, {len(head):,} of them outside its payload; "
            f"at most {MAX_PACKET:,} and {MAX_HEAD:,} are sent, so publish less at once"
        )
    prefix = _PREFIX.pack(VERSION, len(head), len(attributes))
    return b"".join([prefix, head, attributes, data, *parts])


def decode(data: bytes) -> Packet:
    """The packet; WireError for anything that is none."""
    if len(data) > MAX_PACKET:
        raise WireError(f"the packet has {len(data):,} bytes; at most {MAX_PACKET:,} are accepted")
    if len(data) < _PREFIX.size:
        raise WireError(f"the packet has {len(data)} bytes; it ends before its head")
    version, *lengths = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise OtherVersion(
            f"the packet has the version {version}; this node reads {VERSION}: use the same release"
        )
    if lengths[0] > MAX_HEAD or sum(lengths) + _PREFIX.size > len(data):
        raise WireError("the packet ends before its head and attributes do, or its head is too long")
    start, head_end, attributes_end = accumulate(lengths, initial=_PREFIX.size)
    try:
        kind, sequence, scheme, payloads, written = _list(unpack(data[start:head_end], MAX_LIST), exactly=5)
        content: Event | Message
        end = attributes_end
        if kind == _EVENT:
            *fields, length = _list(written, exactly=6)
            end += _integer(length)
            if not attributes_end <= end <= len(data):
                raise WireError("the packet ends before the data of its event does")
            content = _event(fields, data[head_end:attributes_end], data[attributes_end:end])
        elif kind == _ROWS:
            content = _message(_list(written, exactly=6))
        else:
            raise WireError("the packet holds neither an event nor rows")
        whole, end = _payloads(_list(payloads), data, end)
        if end != len(data):
            raise WireError("the packet goes on behind its payloads")
        return Packet(content, _integer(sequence), _text(scheme), whole)
    except (TypeError, ValueError, EventError) as error:
        raise WireError(f"the packet has a field of another type than its place needs: {error}") from None


def frame(packet: bytes) -> bytes:
    return _LENGTH.pack(len(packet)) + packet


class Frames:
    """Takes a stream's bytes as they come, and gives each packet's bytes when it is whole."""

    def __init__(self, longest: int = MAX_PACKET) -> None:
        self._buffer = bytearray()
        self._longest = longest

    def feed(self, chunk: bytes) -> list[bytes]:
        """WireError for a frame that is too long, as soon as its length is there; the stream is then of no use."""
        self._buffer += chunk
        found, start = [], 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > self._longest:
                raise WireError(f"a frame of {length:,} bytes comes; at most {self._longest:,} are accepted")
            end = start + _LENGTH.size + length
            if end > len(self._buffer):
                break
            found.append(bytes(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]
        return found

    @property
    def waiting(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._buffer)


def _message_fields(message: Message) -> list[Any]:
    if isinstance(message.form, LongSemijoin) or isinstance(message.description, Remainders):
        raise WireError("a longer semijoin cannot be written; only simulated networks carry its messages")
    if message.description is None:
        described = None
    elif isinstance(message.description, Skyline):
        points = message.description.points
        plain = bool((points[:, 0] == points[:, 1]).all())
        described = _packed(points[:, 0] if plain else points.ravel(), 1 if plain else 2)
    else:
        described = list(message.description)
    return [
        _form_fields(message.form),
        [list(image.row) for image in message.rows],
        message.sign == GAINED,
        message.size,
        None if message.targets is None else _packed(message.targets, 1),
        described,
    ]


def _form_fields(form: SelectionForm | Semijoin | Signature) -> list[Any]:
    if isinstance(form, SelectionForm):
        return [form.table]
    if isinstance(form, Semijoin):
        return [[side.table, list(side.join), side.selection] for side in form]
    return [list(form.tables), [list(edge) for edge in form.edges], list(form.selections)]


def _message(fields: list[Any]) -> Message:
    given, rows, gained, size, targets, described = fields
    form = _form(_list(given))
    tables = form.tables if isinstance(form, Signature) else (_first_table(form),)
    if not tables or len(_list(rows)) != len(tables) or not isinstance(gained, bool):
        raise WireError("the packet's message has another number of rows than of tables, or no sign")
    images = tuple(_image(table, _list(row)) for table, row in zip(tables, rows, strict=True))
    for image, used in zip(images, routed_by(form), strict=True):
        if any(column is not None and not 0 <= column < len(image.row) for column in used):
            raise WireError(f"the packet looks at a column of '{image.table}' that its row does not have")
    return Message(
        form,
        images,
        GAINED if gained else LOST,
        _integer(size),
        None if targets is None else _integers(_list(targets, exactly=3))[:, 0],
        None if described is None else _description(_list(described, exactly=3)),
    )


def _description(fields: list[Any]) -> Skyline | Bounds:
    if isinstance(fields[2], bytes):
        points = _integers(fields)
        return Skyline(np.column_stack([points[:, 0], points[:, -1]]))
    at, below, above = fields
    return Bounds(_integer(at), _optional(below), _optional(above))


def _form(fields: list[Any]) -> SelectionForm | Semijoin | Signature:
    if len(fields) == 1:
        return SelectionForm(_text(fields[0]))
    if len(fields) == 2:
        base, filtering = (_side(_list(side, exactly=3)) for side in fields)
        return Semijoin(base, filtering)
    names, edges, selections = map(_list, _list(fields, exactly=3))
    found = Signature(tuple(map(_text, names)), tuple(map(_edge, edges)), tuple(map(_optional, selections)))
    ends = (end for edge in found.edges for end in edge[:2])
    if len(names) != len(selections) or any(not 0 <= end < len(names) for end in ends):
        raise WireError("the packet's join has other tables than it names")
    return found


def _first_table(form: SelectionForm | Semijoin) -> str:
    return form.table if isinstance(form, SelectionForm) else form.base.table


def _side(fields: list[Any]) -> Side:
    return Side(_text(fields[0]), tuple(map(_integer, _list(fields[1]))), _optional(fields[2]))


def _edge(given: Any) -> Edge:
    left, right, left_columns, right_columns = _list(given, exactly=4)
    columns = (tuple(map(_integer, _list(side))) for side in (left_columns, right_columns))
    return Edge(_integer(left), _integer(right), *columns)


def _image(table: str, row: list[Any]) -> Image:
    check_values(row)
    return image_of(table, tuple(row))


def _event(fields: list[Any], attributes: bytes, data: bytes) -> Event:
    source, id, type, time, media_type = fields
    if not id:
        raise WireError("the packet's event has no id")
    try:
        found = json.loads(attributes) if attributes else {}
    except (ValueError, RecursionError):
        raise WireError("the attributes of the packet's event are no JSON") from None
    if not isinstance(found, dict):
        raise WireError("the attributes of the packet's event are no JSON object")
    return Event(source, found, id, type, time, media_type, data)


def _payloads(given: list[Any], data: bytes, start: int) -> tuple[tuple[Payload, ...], int]:
    found = []
    for written in given:
        id, names, length, source, row = _list(written, exactly=5)
        content = None
        if _integer(length) >= 0:
            if start + length > len(data):
                raise WireError("the packet ends before its payload does")
            content = data[start : start + length]
            start += length
        if not isinstance(id, bytes) or len(id) != ID_BYTES or _integer(row) < 0:
            raise WireError(f"the id of a payload has {ID_BYTES} bytes, and its row is counted from 0")
        if content is not None and payload_id(content) != id:
            raise WireError("the packet's payload has another hash than it says")
        found.append(
            Payload(id, tuple(map(_text, _list(names))), content, _text(source), row, length == _KNOWN)
        )
    return tuple(found), start


def _length(payload: Payload) -> int:
    if payload.content is not None:
        return len(payload.content)
    return _KNOWN if payload.is_known else _LEFT_OUT


def _packed(numbers: Longs, columns: int) -> list[Any]:
    least = max(abs(int(numbers.min())), abs(int(numbers.max()) + 1)) if len(numbers) else 0
    width = next(width for width in _WIDTHS if least <= 1 << (8 * width - 1) or width == 8)
    return [columns, width, numbers.astype(_WIDTHS[width]).tobytes()]


def _integers(fields: list[Any]) -> Longs:
    columns, width, content = fields
    if columns not in (1, 2) or width not in _WIDTHS or not isinstance(content, bytes):
        raise WireError("the packet has numbers of an unknown form")
    if len(content) % (columns * width):
        raise WireError("the packet's numbers end in the middle of one")
    return np.frombuffer(content, _WIDTHS[width]).astype(np.int64).reshape(-1, columns)


def _list(value: Any, exactly: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (exactly is not None and len(value) != exactly):
        raise WireError("the packet has another number of fields than its place needs")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise WireError("the packet has no 64-bit integer where one is needed")
    return value


def _optional(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError("the packet has no text where one is needed")
    return value
