"""Pins the index version of a micro-batch: chosen once, on disk before the batch runs, and kept for its replay.

A pin is a file named by the batch id. It appears whole (written to a temporary file, synced, then linked), and
the first one stays: of two concurrent writers, on one host or several, both return the winner's version.

If the index is lost, what is built anew has other versions. Before a stream starts, pins of versions that are gone are
replaced by the current one: no answer of an unfinished batch was recorded with the version that is gone.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from tidings.errors import IndexFileError
from tidings.storage import versions
from tidings.storage.event_log import sync

# Spark keeps the offsets of the last 100 batches and can replay no older one.
_KEPT = 100

logger = logging.getLogger(__name__)


def pin(folder: Path, batch: int, propose: Callable[[], str]) -> str:
    """The version pinned for a batch; `propose` gives one if there is none yet."""
    path = folder / f"{batch}"
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    folder.mkdir(parents=True, exist_ok=True)
    version = propose()
    aside = folder / f".{batch}.{uuid.uuid4().hex}"
    try:
        _write(aside, version)
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink(missing_ok=True)
    sync(folder)
    (folder / f"{batch - _KEPT}").unlink(missing_ok=True)
    return path.read_text()


def replace_lost(folder: Path, index: str | Path) -> list[int]:
    """Replaces the pins of versions that the index no longer has by its current version; returns their batches. The
    stream must not be running."""
    lost = [int(path.name) for path in folder.glob("[0-9]*") if not _can_be_opened(path, index)]
    if not lost:
        return []
    now = str(versions.current(index))
    last = (folder / f"{max(lost)}").read_text(errors="replace")
    logger.warning(
        "the index has no version %s any more; if micro-batch %d was not finished, it is matched with %s",
        last,
        max(lost),
        now,
    )
    for batch in lost:
        aside = folder / f".{batch}.{uuid.uuid4().hex}"
        _write(aside, now)
        aside.replace(folder / f"{batch}")
    sync(folder)
    return sorted(lost)


def _can_be_opened(pin: Path, index: str | Path) -> bool:
    version = _read(pin)
    return version is not None and versions.is_there(index, version)


def _read(pin: Path) -> versions.Version | None:
    """The version in a pin; None if the pin is damaged, or was dropped meanwhile."""
    try:
        return versions.Version.parse(pin.read_text())
    except (FileNotFoundError, UnicodeDecodeError, IndexFileError):
        return None


def _write(path: Path, version: str) -> None:
    with path.open("w") as file:
        file.write(version)
        file.flush()
        os.fsync(file.fileno())


def pinned(folder: Path) -> set[versions.Version]:
    """The versions that a replay may still need: a clean-up of the index must keep them."""
    return {version for path in folder.glob("[0-9]*") if (version := _read(path)) is not None}


def last_base(checkpoint: Path) -> int:
    """The highest base that a stream has pinned; 0 without any. An index that is built anew must go on above it."""
    return max([0, *(version.base for version in of_stream(checkpoint))])


def of_stream(checkpoint: Path) -> set[versions.Version]:
    """The versions that the queries of a stream have pinned, the one that matches and the one that keeps joins."""
    return pinned(checkpoint / "pins") | pinned(checkpoint / "joins" / "pins")
