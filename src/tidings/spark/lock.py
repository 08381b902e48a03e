"""Allows one running stream per checkpoint, also after kills.

A killed driver leaves its JVM behind for a second or two, with tasks that still write. The lock file names that
JVM; the next owner of the lock waits until it is gone.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from tidings.errors import TidingsError


class StreamBusy(TidingsError):
    """Another stream uses the checkpoint, or processes of a killed one do not end."""


class StreamLock:
    """A lock, held from construction to `release`. `pid` is the JVM that runs the stream."""

    def __init__(self, folder: Path, pid: int, *, patience: float = 60.0) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take()
            self._outlive(pid, time.monotonic() + patience)
        except BaseException:
            os.close(self._file)
            raise
        self._write(f"{pid} {_born(pid)}")

    def release(self) -> None:
        """Releases the lock; call it when nothing of this stream runs any more."""
        if self._file >= 0:
            self._write("")
            os.close(self._file)
            self._file = -1

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StreamBusy(
                f"another stream is running on {self._folder}; stop it, or give this one a checkpoint of its own"
            ) from None

    def _outlive(self, mine: int, deadline: float) -> None:
        words = os.pread(self._file, 64, 0).decode().split()
        if len(words) != 2 or int(words[0]) == mine:
            return
        pid, born = int(words[0]), words[1]
        while _born(pid) == born:
            if time.monotonic() > deadline:
                raise StreamBusy(
                    f"process {pid} of a killed stream on {self._folder} is still there; end it first"
                )
            time.sleep(0.05)

    def _write(self, text: str) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)


def _born(pid: int) -> str:
    """When a process started, "" if there is none: a process id alone may have been reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _alive(pid: int) -> str:
    """Whether a process runs, on systems without /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "?"
