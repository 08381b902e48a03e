"""Finds, awaits and kills the processes of a Unix session, such as the JVM and Python workers of a driver.

The children put themselves into process groups of their own, but stay in the driver's session. All have ended
when the session is empty.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_POLL_SECONDS = 0.02


def living(session: int) -> list[int]:
    """The ids of a session's processes, without zombies."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, sid, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if int(sid) == session and state not in "ZX":
            found.append(int(folder.name))
    return found


def await_end(session: int, seconds: float) -> bool:
    """Waits until the session is empty; False if it is not after so many seconds."""
    deadline = time.monotonic() + seconds
    while living(session):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def kill(session: int, *, but: int | None = None) -> None:
    """Kills all processes of a session except one, repeatedly, to catch those that were just being started."""
    if not Path("/proc/self/stat").exists():  # elsewhere at least the group of the first
        if but is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(session, signal.SIGKILL)
        return
    for _ in range(100):
        left = [pid for pid in living(session) if pid != but]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
