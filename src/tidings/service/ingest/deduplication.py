"""Deduplicates events by (source, id), with a file of hashes beside the log.

The file is derived from the log. Its mark, an offset of the log, is written in the same transaction as the
hashes; opening the file reads what the log has beyond the mark, so a crash between the two writes needs no
special recovery. So hashes are written some thousands at a time, and the file is not synced with each group: after a
crash or a power cut hashes and mark are older, but consistent. If the mark is beyond the end of the log or of its segment, or the file is damaged, it is rebuilt from the
log.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from tidings.errors import TidingsError
from tidings.storage.event_log import START, EventLog, LogError, Offset

_FORMAT = 1
_HELD = 5_000  # keys that wait to be written
_ASKED = 500  # keys in one query; SQLite bounds its parameters
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS arrivals (key BLOB PRIMARY KEY, segment INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mark (one INTEGER PRIMARY KEY, segment INTEGER NOT NULL, byte INTEGER NOT NULL);
PRAGMA user_version = {_FORMAT};
"""
_SETTINGS = (
    # A commit is not synced, a checkpoint is: after a power cut the file is whole, and as it was some time before.
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA cache_size = -32768",
)


def deduplication_key(source: str, id: str) -> bytes:
    """A hash of the source and the id of an event."""
    return blake2b(f"{source}\0{id}".encode(), digest_size=16).digest()


class Deduplication:
    """The set of known keys. Any thread may read; only the writer of the log adds."""

    def __init__(self, path: str | Path, log: EventLog) -> None:
        self._path, self._log = Path(path), log
        self._lock = threading.RLock()
        self._dropped = 0  # segments below have been forgotten
        self._held: dict[bytes, int] = {}  # keys that are not in the file yet, with their segments
        self._held_upto: Offset | None = None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Runs the writer's recovery before anything is read: it may find events that were written just before a crash.
        log.append([])
        try:
            self._db = self._open()
            self.catch_up()
        except sqlite3.OperationalError as error:
            raise TidingsError(
                f"{self._path} cannot be used: {error}; free some space, or correct its permissions"
            ) from None
        except (sqlite3.DatabaseError, LogError):
            self._build_anew()

    def known(self, keys: Collection[bytes]) -> set[bytes]:
        """Those of `keys` that are in the log."""
        with self._lock:
            held = self._held.keys() & keys
            try:
                return held | self._known(keys)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._build_anew()
                return self._known(keys)

    def add(self, keys: Iterable[bytes], upto: Offset) -> None:
        """Adds keys of events that are in the log, which now ends at `upto`."""
        with self._lock:
            self._held.update(dict.fromkeys(keys, upto.segment))
            self._held_upto = upto
            if len(self._held) >= _HELD:
                self._write_held()

    def mark(self) -> Offset | None:
        """The offset up to which the log was read; None before the first read."""
        with self._lock:
            if self._held_upto is not None:
                return self._held_upto
            row = self._db.execute("SELECT segment, byte FROM mark").fetchone()
        return None if row is None else Offset(*row)

    def catch_up(self) -> int:
        """Reads the part of the log beyond the mark; returns the number of its events."""
        with self._lock:
            self._write_held()
            first, end, mark = self._log.start(), self._log.end(), self.mark()
            if mark is not None and (mark > end or self._log.has_lost(mark)):
                raise LogError(f"{self._path} knows more than the log has")
            if mark is None or mark.segment < first.segment:
                mark = first
            count = 0
            for segment in range(mark.segment, end.segment + 1):
                start = mark if segment == mark.segment else Offset(segment, START)
                stop = min(end, Offset(segment + 1, START))
                keys: list[bytes] = []
                for batch in self._log.read(start, stop):
                    names = batch.column("source").to_pylist(), batch.column("id").to_pylist()
                    keys += [deduplication_key(source or "", id) for source, id in zip(*names, strict=True)]
                self._add(dict.fromkeys(keys, segment), stop)
                count += len(keys)
            return count

    def drop_before(self, segment: int) -> None:
        """Deletes the keys of segments that the log has dropped."""
        if segment <= self._dropped:
            return
        with self._lock:
            self._write_held()
        # In 256 parts, so that a publisher waits for no more than one of them.
        for first in range(256):
            with self._lock, self._db:
                self._db.execute(
                    "DELETE FROM arrivals WHERE key >= ? AND key < ? AND segment < ?",
                    (bytes([first]), bytes([first + 1]) if first < 255 else b"\xff" * 17, segment),
                )
        self._dropped = segment

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):  # the log has them
            self._write_held()
        with self._lock:
            self._db.close()

    def __len__(self) -> int:
        with self._lock:
            self._write_held()
            return int(self._db.execute("SELECT count(*) FROM arrivals").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=30, check_same_thread=False)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] not in (0, _FORMAT):
                raise sqlite3.DatabaseError("of another format")
            for setting in _SETTINGS:
                db.execute(setting)
            db.executescript(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _build_anew(self) -> None:
        with self._lock:
            with suppress(AttributeError, sqlite3.Error):
                self._db.close()
            for ending in ("", "-wal", "-shm", "-journal"):
                Path(f"{self._path}{ending}").unlink(missing_ok=True)
            self._held, self._held_upto = {}, None  # they are read from the log
            self._db = self._open()
            self.catch_up()

    def _known(self, keys: Collection[bytes]) -> set[bytes]:
        wanted = sorted(keys)  # neighbours share pages
        found: set[bytes] = set()
        for first in range(0, len(wanted), _ASKED):
            chunk = wanted[first : first + _ASKED]
            marks = ",".join("?" * len(chunk))
            rows = self._db.execute(f"SELECT key FROM arrivals WHERE key IN ({marks})", chunk)
            found.update(row[0] for row in rows)
        return found

    def _write_held(self) -> None:
        if self._held_upto is not None:
            self._add(self._held, self._held_upto)
            self._held, self._held_upto = {}, None

    def _add(self, segments: Mapping[bytes, int], upto: Offset) -> None:
        with self._db:
            # The later segment counts: an event that an older log holds twice is known until both are dropped.
            self._db.executemany("INSERT OR REPLACE INTO arrivals VALUES (?, ?)", sorted(segments.items()))
            self._db.execute("INSERT OR REPLACE INTO mark VALUES (1, ?, ?)", upto)
