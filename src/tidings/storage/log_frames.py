"""The frames of which the segments of an event log consist: how one is written, checked and found.

    segment   16 bytes of magic, then frames
    frame     | magic u32 | payload bytes u32 | rows u32 | crc32 u32 | arrival f64 | Arrow message, padded to 8 |

The arrival is in seconds since 1970. Frames of earlier versions have another magic and no arrival.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tidings.errors import TidingsError
from tidings.model.event import EVENT_SCHEMA

SEGMENT_MAGIC = b"tidings log 1\n\0\0"
START = len(SEGMENT_MAGIC)
_FRAME = struct.Struct("<IIIId")
_FRAME_MAGIC = 0x7F1D1266
_OLD_FRAME = struct.Struct("<IIII")
_OLD_MAGIC = 0x7F1D1265
_MAGIC = struct.Struct("<I")


class LogError(TidingsError):
    """The event log cannot be used: a second writer, a damaged segment, events already dropped."""


class Offset(NamedTuple):
    """A position between two frames. Compares by segment, then byte."""

    segment: int
    byte: int

    def __str__(self) -> str:
        return f"{self.segment}:{self.byte}"

    @classmethod
    def parse(cls, text: str) -> Offset:
        """An offset as it is written."""
        segment, _, byte = text.partition(":")
        return cls(int(segment), int(byte))


class Frame(NamedTuple):
    """One frame without its content: where it starts and ends, how many events it holds, and when they arrived; None if
    that is not known."""

    start: Offset
    end: Offset
    rows: int
    at: float | None = None


def to_frame(batch: pa.RecordBatch, at: float) -> bytes:
    payload = batch.serialize()
    head = _FRAME.pack(_FRAME_MAGIC, payload.size, batch.num_rows, 0, at)
    crc = zlib.crc32(payload, zlib.crc32(head))
    return _FRAME.pack(_FRAME_MAGIC, payload.size, batch.num_rows, crc, at) + payload.to_pybytes()


def payload_of(buffer: pa.Buffer, frame: Frame) -> pa.RecordBatch:
    start, end = frame.start.byte, frame.end.byte
    if frame.at is None:
        magic, size, rows, crc = _OLD_FRAME.unpack_from(buffer, start)
        head = _OLD_FRAME.pack(magic, size, rows, 0)
    else:
        magic, size, rows, crc, at = _FRAME.unpack_from(buffer, start)
        head = _FRAME.pack(magic, size, rows, 0, at)
    payload = buffer.slice(start + len(head), end - start - len(head))
    if zlib.crc32(payload, zlib.crc32(head)) != crc:
        raise _damaged(frame.start)
    return pa.ipc.read_record_batch(payload, EVENT_SCHEMA)


def frames_in(buffer: pa.Buffer, segment: int, low: int, high: int) -> Iterator[Frame]:
    """The frames of one segment that start in [low, high); both must be frame boundaries."""
    while low < high:
        if low + _OLD_FRAME.size > buffer.size:
            raise _damaged(Offset(segment, low))
        magic, size, rows, _ = _OLD_FRAME.unpack_from(buffer, low)
        head, at = _OLD_FRAME.size, None
        if magic == _FRAME_MAGIC and low + _FRAME.size <= buffer.size:
            head, at = _FRAME.size, _FRAME.unpack_from(buffer, low)[-1]
        next_low = low + head + size
        if (at is None and magic != _OLD_MAGIC) or next_low > high:
            raise _damaged(Offset(segment, low))
        yield Frame(Offset(segment, low), Offset(segment, next_low), rows, at)
        low = next_low


def whole_frames(path: Path, end: Offset) -> Iterator[Frame]:
    """The frames from `end` on whose checksum holds, up to the first that is torn."""
    with pa.memory_map(str(path)) as source:
        buffer = source.read_buffer()
    try:
        for frame in frames_in(buffer, end.segment, end.byte, buffer.size):
            payload_of(buffer, frame)
            yield frame
    except LogError:
        return


def torn_at(path: Path, end: Offset) -> Offset | None:
    """Where a segment stops being whole, if that is before `end`, up to which it was durable, and nothing whole comes
    after it: a disk has lost its end. None if it is whole, or damaged in the middle, which a reader reports."""
    last = Offset(end.segment, START)
    for frame in whole_frames(path, last):
        last = frame.end
    if last >= end:
        return None
    with pa.memory_map(str(path)) as source:
        data = memoryview(source.read_buffer())[last.byte :]
    rest = bytes(data)
    for magic in map(_MAGIC.pack, (_FRAME_MAGIC, _OLD_MAGIC)):
        at = rest.find(magic, 1)
        while at >= 0:
            if next(whole_frames(path, Offset(end.segment, last.byte + at)), None) is not None:
                return None
            at = rest.find(magic, at + 1)
    return last


def _damaged(offset: Offset) -> LogError:
    return LogError(
        f"segment {offset.segment} is damaged at byte {offset.byte}; restore it, or read on from the next one"
    )
