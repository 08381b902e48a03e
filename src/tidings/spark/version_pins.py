"""Pins the index version of a micro-batch: chosen once, on disk before the batch runs, and kept for its replay.

A pin is a file named by the batch id. It appears whole (written to a temporary file, synced, then linked), and
the first one stays: of two concurrent writers, on one host or several, both return the winner's version.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

from tidings.storage.event_log import sync

# Spark keeps the offsets of the last 100 batches and can replay no older one.
_KEPT = 100


def pin(folder: Path, batch: int, propose: Callable[[], str]) -> str:
    """The version pinned for a batch; `propose` gives one if there is none yet."""
    path = folder / f"{batch}"
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{batch}.{uuid.uuid4().hex}"
    version = propose()
    with open(aside, "w") as file:
        file.write(version)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
    sync(folder)
    (folder / f"{batch - _KEPT}").unlink(missing_ok=True)
    return path.read_text()


def pinned(folder: Path) -> set[str]:
    """The versions that a replay may still need: a clean-up of the index must keep them."""
    return {path.read_text() for path in folder.glob("[0-9]*")}
