"""The event log: accepted events in append-only segments, read by offset.

A segment is a file of frames; a frame is one Arrow record batch of `EVENT_SCHEMA`. An offset is (segment, byte),
and offsets are totally ordered. `HEAD` names the first segment kept and the end of what is durable: it is written
only after the frames before it are on disk, so a reader that stops at it needs no lock and never sees a torn frame.

    segment   frames (log_frames.py), each with the time when its events arrived
    HEAD      | first segment u64 | end segment u64 | end byte u64 | crc32 u32 |
    LOST      lines of two offsets, between which a disk has lost what was durable, until `forget_lost`
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

from tidings.model.envelope import conform
from tidings.model.event import Event
from tidings.storage.log_frames import (
    SEGMENT_MAGIC,
    START,
    Frame,
    LogError,
    Offset,
    frames_in,
    payload_of,
    to_frame,
    torn_at,
    whole_frames,
)

__all__ = ["START", "EventLog", "Frame", "LogError", "Offset", "Position", "sync", "write_all"]

_HEAD = struct.Struct("<QQQ")
_CRC = struct.Struct("<I")

# Frames are the grain of parallel reading: a large table is cut so that several tasks can share it.
_FRAME_ROWS = 1_000
_FRAME_BYTES = 1 << 20
# What `read` hands out at once; single-event frames are put together up to this.
_BATCH_ROWS = 10_000

logger = logging.getLogger(__name__)


class Position(NamedTuple):
    """A position between two events: so many `row`s into the frame at (segment, byte)."""

    segment: int
    byte: int
    row: int = 0


@dataclass(slots=True)
class _Pending:
    """Frames that wait for the next write; the thread that writes them fills in `end` or `error`."""

    frames: list[bytes]
    end: Offset | None = None
    error: OSError | None = None


class EventLog:
    """A folder of segments. Any number of readers; one writer, which holds the folder's lock until `close`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        segment_bytes: int = 64 << 20,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(folder)
        self.segment_bytes = segment_bytes
        self._clock = clock
        self._writer: _Writer | None = None
        self._queue: list[_Pending] = []
        self._queue_lock = threading.Lock()
        self._write_lock = threading.Lock()

    def append(self, events: pa.Table | pa.RecordBatch | Iterable[Event]) -> Offset:
        """Put events at the end; when it returns they are on disk. Returns the offset just after them.

        Threads that append at the same time share one write and one fsync.
        """
        at = self._clock()
        mine = _Pending([to_frame(batch, at) for batch in _slices(conform(events))])
        with self._queue_lock:
            self._queue.append(mine)
        with self._write_lock:
            if mine.end is None and mine.error is None:
                with self._queue_lock:
                    group, self._queue = self._queue, []
                self._write(group)
        if mine.end is None:
            raise LogError(
                f"the events could not be written to {self.folder}: {mine.error}; try again"
            ) from mine.error
        return mine.end

    def start(self) -> Offset:
        """The offset of the first event kept."""
        first, _ = _read_head(self.folder)
        return Offset(first, START)

    def end(self) -> Offset:
        """The offset after the last durable event. One small read, however many segments there are."""
        _, end = _read_head(self.folder)
        return end

    def read(self, start: Offset | None = None, end: Offset | None = None) -> Iterator[pa.RecordBatch]:
        """The events between two offsets as batches of up to 10,000 rows; by default all of them."""
        for batch, _ in self.read_frames(start, end):
            yield batch

    def read_frames(
        self, start: Offset | None = None, end: Offset | None = None
    ) -> Iterator[tuple[pa.RecordBatch, list[Frame]]]:
        """The same, each batch with the frames that it consists of."""
        held: list[pa.RecordBatch] = []
        frames: list[Frame] = []
        rows = 0
        for segment, low, high in self._segment_ranges(start, end):
            buffer = self._map(segment)
            for frame in frames_in(buffer, segment, low, high):
                if held and rows + frame.rows > _BATCH_ROWS:
                    yield pa.concat_batches(held), frames
                    held, frames, rows = [], [], 0
                held.append(payload_of(buffer, frame))
                frames.append(frame)
                rows += frame.rows
        if held:
            yield pa.concat_batches(held), frames

    def pieces(
        self, start: Position, end: Offset, rows: Callable[[], int]
    ) -> Iterator[tuple[pa.RecordBatch, Position]]:
        """The events from `start` to `end` in batches of up to `rows()` events, each with the position after it."""
        held: list[pa.RecordBatch] = []
        wanted = rows()
        for segment, low, high in self._segment_ranges(Offset(start.segment, start.byte), end):
            buffer = self._map(segment)
            for frame in frames_in(buffer, segment, low, high):
                row = start.row if frame.start == start[:2] else 0
                while row < frame.rows:
                    taken = payload_of(buffer, frame).slice(row, wanted)
                    held.append(taken)
                    row, wanted = row + len(taken), wanted - len(taken)
                    if wanted == 0:
                        yield pa.concat_batches(held), _after(frame, row)
                        held, wanted = [], rows()
        if held:
            yield pa.concat_batches(held), Position(*end)

    def frames(self, start: Offset | None = None, end: Offset | None = None) -> Iterator[Frame]:
        """The frames between two offsets, from their headers alone: for splitting and limiting a read."""
        for segment, low, high in self._segment_ranges(start, end):
            yield from frames_in(self._map(segment), segment, low, high)

    def segment_path(self, segment: int) -> Path:
        """The file of a segment."""
        return _segment_path(self.folder, segment)

    def has_lost(self, offset: Offset) -> bool:
        """Whether events before this offset, once durable, were cut off with the torn end of their segment."""
        first, end = _read_head(self.folder)
        if not first <= offset.segment < end.segment:
            return False
        return _segment_path(self.folder, offset.segment).stat().st_size < offset.byte

    def lost(self) -> list[tuple[Offset, Offset]]:
        """The ranges that recoveries have cut off since the last `forget_lost`."""
        try:
            lines = (self.folder / "LOST").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [(Offset.parse(low), Offset.parse(high)) for low, high in map(str.split, lines)]

    def forget_lost(self) -> None:
        """Called when the subscribers that miss lost events have got their notices."""
        (self.folder / "LOST").unlink(missing_ok=True)

    def drop_before(self, offset: Offset) -> None:
        """Remove the segments that end at or before `offset`. Only the writer may."""
        with self._write_lock:
            writer = self._open_writer()
            last = min(offset.segment, writer.end.segment)
            if last > writer.first:
                writer.drop_before(last)

    def close(self) -> None:
        """Give up the writer's lock; reading still works, and a later append takes the lock again."""
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_writer(self) -> _Writer:
        if self._writer is None:
            self._writer = _Writer(self.folder, self.segment_bytes)
        return self._writer

    def _write(self, group: list[_Pending]) -> None:
        try:
            writer = self._open_writer()
            ends = writer.write([pending.frames for pending in group])
        except OSError as error:
            # The writer's own view of the file is no longer certain: the next append recovers from HEAD.
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            for pending in group:
                pending.error = error
            return
        except BaseException:
            # A second writer, an interrupt: the others of the group must not wait for an answer in vain.
            for pending in group:
                pending.error = OSError("the write was given up")
            raise
        for pending, end in zip(group, ends, strict=True):
            pending.end = end

    def _segment_ranges(self, start: Offset | None, end: Offset | None) -> Iterator[tuple[int, int, int]]:
        """The range as (segment, first byte, last byte), the last byte of a full segment being its size."""
        first, durable = _read_head(self.folder)
        start = Offset(first, START) if start is None else start
        end = durable if end is None else min(end, durable)
        if start.segment < first and start < end:
            raise LogError(
                f"the events from {start} to {Offset(first, START)} were dropped from {self.folder}; "
                f"start at {Offset(first, START)} or later"
            )
        for segment in range(start.segment, end.segment + 1):
            low = start.byte if segment == start.segment else START
            high = durable.byte
            if segment < durable.segment:
                high = _segment_path(self.folder, segment).stat().st_size
            if segment == end.segment:
                high = min(high, end.byte)  # which may name what a torn end has lost
            if low < high:
                yield segment, low, high

    def _map(self, segment: int) -> pa.Buffer:
        path = _segment_path(self.folder, segment)
        with pa.memory_map(str(path)) as source:
            buffer = source.read_buffer()
        if buffer.size < START or buffer.slice(0, START).to_pybytes() != SEGMENT_MAGIC:
            raise LogError(
                f"{path} is not a segment of an event log; restore it, or start after segment {segment}"
            )
        return buffer


class _Writer:
    """The open last segment, the lock, and HEAD. Opening it recovers: a torn end is cut off."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._lock = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "another process"
            os.close(self._lock)
            raise LogError(
                f"the event log {folder} already has a writer, process {holder}; "
                "send the events through it, or stop it first"
            ) from None
        self._head = self._file = -1
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, str(os.getpid()).encode(), 0)
            self._head = os.open(folder / "HEAD", os.O_RDWR | os.O_CREAT, 0o644)
            self._recover()
        except BaseException:
            self.close()  # otherwise the lock would stay taken when a full disk has room again
            raise

    def write(self, groups: list[list[bytes]]) -> list[Offset]:
        """Write the frames of each group, make all durable at once, and say where each group ends."""
        if self.end.byte >= max(self.segment_bytes, START + 1):
            self._roll(self.end.segment + 1)
        ends = []
        byte = self.end.byte
        for frames in groups:
            byte += sum(map(len, frames))
            ends.append(Offset(self.end.segment, byte))
        data = b"".join(frame for frames in groups for frame in frames)
        try:
            write_all(self._file, data, self.end.byte)
            os.fdatasync(self._file)
        except OSError:
            # Refused events must not come to light at the next recovery.
            os.ftruncate(self._file, self.end.byte)
            raise
        self._publish(self.first, ends[-1])
        return ends

    def drop_before(self, segment: int) -> None:
        """HEAD first, then the files in rising order: after a crash the leftovers lie just below `first`."""
        self._publish(segment, self.end)
        os.fsync(self._head)
        oldest = segment
        while _segment_path(self.folder, oldest - 1).exists():
            oldest -= 1
        for number in range(oldest, segment):
            _segment_path(self.folder, number).unlink()

    def close(self) -> None:
        for descriptor in (self._file, self._head, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._head = self._lock = -1

    def _recover(self) -> None:
        """Go on from HEAD over whole frames, through segments that were begun after it was written."""
        try:
            self.first, end = _read_head(self.folder)
        except LogError:
            self.first, end = 0, Offset(0, START)
        if end == (0, START) and (names := sorted(self.folder.glob("*.log"))):
            # HEAD is lost: the only time that the folder is listed.
            self.first = int(names[0].stem)
            end = Offset(int(names[-1].stem), START)
        while _segment_path(self.folder, end.segment + 1).exists():
            end = Offset(end.segment + 1, START)
        path = _segment_path(self.folder, end.segment)
        if not path.exists():
            self._roll(end.segment)
        else:
            self._file = os.open(path, os.O_RDWR)
        if os.fstat(self._file).st_size < START:
            write_all(self._file, SEGMENT_MAGIC, 0)
        torn = torn_at(path, end)
        if torn is not None:
            # Offsets up to `end` were given out: what comes now must not get any of them.
            logger.error("%s is torn: events from %s to %s are lost; send them again", path, torn, end)
            self._note_lost(torn, end)
            os.ftruncate(self._file, torn.byte)
            os.fsync(self._file)
            self._roll(end.segment + 1)
            return
        for frame in whole_frames(path, end):
            end = frame.end
        os.ftruncate(self._file, end.byte)
        os.fsync(self._file)
        self._publish(self.first, end)

    def _note_lost(self, low: Offset, high: Offset) -> None:
        """Notes what is about to be cut off; a crash in between notes it once more."""
        path = self.folder / "LOST"
        with path.open("a") as file:
            file.write(f"{low} {high}\n")
        sync(path)
        sync(self.folder)

    def _roll(self, segment: int) -> None:
        if self._file >= 0:
            os.close(self._file)
        path = _segment_path(self.folder, segment)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        write_all(self._file, SEGMENT_MAGIC, 0)
        os.fsync(self._file)
        sync(self.folder)
        self._publish(self.first, Offset(segment, START))

    def _publish(self, first: int, end: Offset) -> None:
        """Replaced in place and not synced: after a power cut an older HEAD is right too, and recovery goes on."""
        body = _HEAD.pack(first, end.segment, end.byte)
        os.pwrite(self._head, body + _CRC.pack(zlib.crc32(body)), 0)
        self.first, self.end = first, end


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, min(_FRAME_ROWS, batch.num_rows * _FRAME_BYTES // max(1, batch.nbytes)))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _after(frame: Frame, row: int) -> Position:
    """The position after so many rows of a frame; after all of them it is the frame's end."""
    return Position(*frame.end) if row == frame.rows else Position(*frame.start, row)


def _read_head(folder: Path) -> tuple[int, Offset]:
    """The first segment and the durable end. HEAD is replaced in place, so a torn read is read again."""
    try:
        descriptor = os.open(folder / "HEAD", os.O_RDONLY)
    except FileNotFoundError:
        return 0, Offset(0, START)
    try:
        for _ in range(100):
            record = os.pread(descriptor, _HEAD.size + _CRC.size, 0)
            if not record:
                return 0, Offset(0, START)
            body = record[: _HEAD.size]
            if record[_HEAD.size :] == _CRC.pack(zlib.crc32(body)):
                first, segment, byte = _HEAD.unpack(body)
                return first, Offset(segment, byte)
    finally:
        os.close(descriptor)
    raise LogError(f"{folder / 'HEAD'} is damaged; the next append to the log mends it")


def _segment_path(folder: Path, segment: int) -> Path:
    return folder / f"{segment:012d}.log"


def write_all(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def sync(path: Path) -> None:
    """Make a file's content, or a folder's list of names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
