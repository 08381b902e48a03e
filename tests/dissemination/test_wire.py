"""The wire form: what is written is read again, and bytes that are no packet are refused in bounded time and memory."""

from __future__ import annotations

import struct
import time
import tracemalloc

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissemination.packets import TABLES, events, messages, packets
from tests.examples import examples
from tidings.dissemination import wire
from tidings.dissemination.packet import BULKY, HeldPayloads, Packet, image_of
from tidings.dissemination.schemes import Message, SelectionForm
from tidings.dissemination.wire import Frames, WireError, decode, encode, event_of, message_of
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event


def same(one: Message, other: Message) -> bool:
    """Equality of messages, whose arrays are compared by content."""

    def fields(message: Message) -> list[object]:
        points = getattr(message.description, "points", None)
        described = message.description if points is None else points.tolist()
        targets = None if message.targets is None else message.targets.tolist()
        return [message.form, message.rows, message.sign, message.size, targets, described]

    return fields(one) == fields(other)


@examples(100)
@given(events)
def test_an_event_crosses_a_link(event: Event) -> None:
    read = decode(encode(wire.event_packet(event, 7, "http://a")))
    assert event_of(read) == event
    assert (read.sequence, read.scheme) == (7, "")
    assert [payload.source for payload in read.payloads] == ["http://a"] * len(read.payloads)
    assert len(read.content.data) <= BULKY


@examples(100)
@given(messages())
def test_a_message_crosses_a_link(message: Message) -> None:
    read = decode(encode(wire.row_packet(message, "Ref-J+", TABLES, 3)))
    assert same(message_of(read), message)
    assert (read.sequence, read.scheme) == (3, "Ref-J+")
    bulky = [
        image
        for image in message.rows
        if any(v is not None for v in image.row[2 if image.table == "r" else 3 :])
    ]
    assert [payload.names for payload in read.payloads] == [TABLES[image.table].payload for image in bulky]


@examples(100)
@given(packets())
def test_a_payload_that_was_left_out_is_put_in_again(packet: Packet) -> None:
    light = decode(encode(wire.without_payload(packet)))
    assert len(light.missing) == len(packet.payloads)
    whole = event_of if isinstance(packet.content, Event) else message_of
    if packet.payloads:
        with pytest.raises(WireError, match="was left out; ask"):
            whole(light)
    contents = [payload.content for payload in packet.payloads if payload.content is not None]
    completed = wire.with_payload(light, *contents)
    assert encode(completed) == encode(packet)
    with pytest.raises(WireError, match="another hash"):
        wire.with_payload(light, b"something else")


def test_what_a_payload_is() -> None:
    short = wire.event_packet(Event(attributes={"text": "x" * BULKY}))
    assert short.payloads == ()
    (payload,) = wire.event_packet(Event(attributes={"text": "x" * 513, "n": 1}, data=b"y")).payloads
    assert payload.names == ("data", "text")
    again = wire.event_packet(Event(attributes={"text": "x" * 513, "n": 2}, data=b"y")).payloads[0]
    assert again.id == payload.id


def test_a_packet_is_compact() -> None:
    stocks = Table("stocks", {"symbol": "text", "per": "integer"})
    message = Message(SelectionForm("stocks"), (image_of("stocks", ("GOOG", 51)),), "+", 8)
    assert len(encode(wire.row_packet(message, "Rel-Sel", {"stocks": stocks}, 1))) < 45


def refused_or_read(data: bytes) -> None:
    """Only WireError comes out of bytes from outside, of the packet and of what is in it."""
    try:
        packet = decode(data)
        (event_of if isinstance(packet.content, Event) else message_of)(packet)
    except WireError as error:
        assert "\n" not in str(error)


@examples(300)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    refused_or_read(data)
    refused_or_read(bytes([wire.VERSION]) + struct.pack(">II", len(data), 0) + data)


@examples(150)
@given(packets(), st.data())
def test_damaged_packets_are_refused_or_read(packet: Packet, data: st.DataObject) -> None:
    whole = encode(packet)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(WireError):
        decode(whole[:cut])
    damaged = bytearray(whole)
    for place in data.draw(st.lists(st.integers(0, min(len(whole), 400) - 1), min_size=1, max_size=4)):
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    refused_or_read(bytes(damaged))


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=16)
)
_nested = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=6), max_leaves=20)


@examples(200)
@given(st.lists(_nested, min_size=5, max_size=5), st.sampled_from([0, 1]))
def test_heads_of_other_types_are_refused(fields: list[object], kind: int) -> None:
    for head in (fields, [kind, 1, "", [], *fields[:1]], [kind, 1, "", [], fields + fields[:1]]):
        packed = msgpack.packb(head)
        refused_or_read(struct.pack(">BII", wire.VERSION, len(packed), 0) + packed)


def headed(head: bytes) -> bytes:
    return struct.pack(">BII", wire.VERSION, len(head), 0) + head


HOSTILE = {
    "deeply nested": headed(b"\x91" * 900_000),
    "wide and nested": headed((b"\xdc\xff\xff" + b"\xdd\x00\x00\x08\x00") * 4_000),
    "a list of 4 billion": headed(b"\xdd\xff\xff\xff\xff"),
    "a text of 4 GB": headed(b"\x95\x00\x01\xdb\xff\xff\xff\xff"),
    "bytes of 4 GB": headed(b"\x95\x00\x01\xc6\xff\xff\xff\xff"),
    "many empty lists": headed(b"\xdc\x08\x00" + b"\x90" * 2_048),
    "lists of lists": headed((b"\xdc\x04\x00" + b"\x90" * 1_024) * 900),
    "a head of 4 GB": struct.pack(">BII", wire.VERSION, 2**32 - 1, 0),
    "attributes of 4 GB": struct.pack(">BII", wire.VERSION, 0, 2**32 - 1),
    "nested attributes": (lambda head: struct.pack(">BII", 1, len(head), 200_000) + head + b"[" * 200_000)(
        msgpack.packb([0, 1, "", [], ["", "1", "", None, "", b""]])
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_packets_take_little_time_and_memory(name: str) -> None:
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(WireError):
        decode(HOSTILE[name])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.perf_counter() - start < 2
    assert peak < 100 << 20


def test_a_packet_that_is_too_large_is_not_written() -> None:
    with pytest.raises(WireError, match="publish less at once"):
        encode(wire.event_packet(Event(data=b"x" * wire.MAX_PACKET)))
    with pytest.raises(TidingsError, match="at most 67,108,864 are accepted"):
        decode(bytes(wire.MAX_PACKET + 1))


def test_another_version_is_named() -> None:
    with pytest.raises(WireError, match="version 9; this node reads 1: use the same release"):
        decode(b"\x09" + bytes(20))


@examples(50)
@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 20))
def test_frames_of_a_stream(contents: list[bytes], step: int) -> None:
    stream, reader, found = b"".join(map(wire.frame, contents)), Frames(), []
    for start in range(0, len(stream), step):
        found += reader.feed(stream[start : start + step])
    assert found == contents


def test_a_frame_that_is_too_long_is_refused_at_once() -> None:
    with pytest.raises(WireError, match="a frame of 4,294,967,295 bytes comes"):
        Frames().feed(b"\xff\xff\xff\xff")


def test_points_have_the_width_they_need() -> None:
    for value, width in ((127, 1), (-128, 1), (128, 2), (2**31 - 1, 4), (2**31, 8), (-(2**63), 8)):
        assert wire._packed(np.array([value, 0]), 1)[1] == width
        assert wire._integers(wire._packed(np.array([value, 0]), 1))[:, 0].tolist() == [value, 0]


def test_a_lost_row_is_named_by_its_payload() -> None:
    photos = {"p": Table("p", {"id": "integer", "photo": "text"}, payload=["photo"])}

    def packet(id: int, photo: str, sign: str) -> Packet:
        message = Message(SelectionForm("p"), (image_of("p", (id, photo)),), sign, 8)
        return decode(encode(wire.row_packet(message, "Rel-Sel", photos, names_lost=True)))

    held = HeldPayloads()
    for id, photo in ((1, "x" * 900), (1, "y" * 900), (1, "x" * 900)):
        assert held.message_of(packet(id, photo, "+")).rows[0].row == (id, photo)
    lost = packet(1, "x" * 900, "-")
    assert lost.missing == ()
    assert len(encode(lost)) < 100
    for _ in range(2):
        assert held.message_of(lost).rows[0].row == (1, "x" * 900)
    with pytest.raises(WireError, match="never received; start anew"):
        held.message_of(lost)
    assert held.message_of(packet(1, "y" * 900, "-")).rows[0].row == (1, "y" * 900)


def test_long_texts_of_rows_and_documents_of_events_are_outside_the_head() -> None:
    long = "x" * (wire.MAX_HEAD + 1)
    notes = Table("notes", {"id": "integer", "text": "text"}, key=["id"])
    message = Message(SelectionForm("notes"), (image_of("notes", (1, long)),), "+", 8)
    packet = decode(encode(wire.row_packet(message, "Rel-Sel", {"notes": notes})))
    assert wire.message_of(packet).rows[0].row == (1, long)
    event = Event("s", {}, "1", data=long.encode())
    assert wire.event_of(decode(encode(wire.Packet(event)))) == event


def test_an_event_with_many_long_texts_crosses() -> None:
    event = Event("s", {f"name{number}": "x" * 600 for number in range(1_100)}, "1")
    assert wire.event_of(decode(encode(wire.event_packet(event)))) == event
