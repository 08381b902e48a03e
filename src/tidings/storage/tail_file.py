"""The tail of a base as a file: changes, a line each, that are appended all or none and read as far as a version says.

A reader needs no lock. Lines that are there stay there; a line without its end is still being written, or was left by a crash.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidings.errors import IndexFileError
from tidings.storage.event_log import write_all
from tidings.storage.tail_changes import Change, NetworkChange, from_line


def read_changes(tail: Path, start: int, end: int, version: object) -> list[Change | NetworkChange]:
    """The changes between two offsets; `version` is what an error names."""
    try:
        data = read_bytes(tail, start, end)
        if start + len(data) < end or (data and not data.endswith(b"\n")):
            raise ValueError("there is no end of a change")
        return [from_line(line) for line in data.splitlines()]
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise IndexFileError(
            f"{tail} cannot be read as far as {version} ({error}); build the index anew"
        ) from None


def read_bytes(tail: Path, start: int, end: int) -> bytes:
    with tail.open("rb") as file:
        file.seek(start)
        return file.read(end - start)


def extend(tail: Path, offset: int, data: bytes) -> None:
    """Writes behind the first `offset` bytes, all or none, and cuts off what a crash has left there. Room is taken first,
    so that a full disk is noticed before readers, who look for the last end of a line, see any of it."""
    descriptor = os.open(tail, os.O_RDWR)
    try:
        os.ftruncate(descriptor, offset)
        if data:
            os.posix_fallocate(descriptor, offset, len(data))
            write_all(descriptor, data, offset)
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, offset)
        raise
    finally:
        os.close(descriptor)


def complete_length(tail: Path) -> int:
    """The length of a tail without a line that is still being written."""
    if not tail.exists():
        raise IndexFileError(f"{tail} is missing; build the index anew")
    with tail.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65536)
            file.seek(start)
            at = file.read(end - start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            end = start
    return 0
