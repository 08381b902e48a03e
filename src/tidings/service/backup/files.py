"""Keeps the files of a service as they are at one moment, by hard links in a folder aside.

Spark's files, bases of the index and full segments of the log are written once and then only removed, so a link keeps
them. The checkpoint is cut to the micro-batches that the mailbox of the backup has: after a restoration the next batch
begins where the mailbox ends, or repeats the one that was under way with the same range and the same version. A
checkpoint of another batch than the mailbox would lose events: a batch that is in the mailbox is not recorded again.

The index is rebuilt from the registry, but its folder is part of the backup: joins' state counts by the numbers that
subscriptions have in it, and a batch that is repeated is matched with the version that was pinned for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from tidings.errors import TidingsError
from tidings.service.model import IN_PROCESS
from tidings.storage.event_log import EventLog

# Of a batch that is so far behind, Spark may have removed what belongs to it; it keeps 100.
_BEHIND: Final = 50
_PREFIX: Final = ".backup-"
_STATE: Final = re.compile(r"(\d+)\.(changelog|zip|delta|snapshot)")
# Derived from the rest, or of the running process.
_DERIVED: Final = frozenset({"arrivals.db", "output", "LOCK", "backtests"})
# Unfinished bases; and what says that the index agrees with the registry, which holds only where both go on together.
_NOT_OF_INDEX: Final = frozenset({"publishing", "compacting", "FINGERPRINT", "COMPACTING"})
_ELSEWHERE: Final = frozenset({"registry.db", "mailbox.db", "log", "checkpoint", "index"})


class Overtaken(TidingsError):
    """The stream went on so far that the files of the mailbox's last micro-batch may be gone."""


class LinkedFiles:
    """The files of the data folder. `sizes` has their names and how much of each counts: some go on growing."""

    def __init__(self, data: Path, aside: Path) -> None:
        self._data, self._aside = data, aside
        self.sizes: dict[str, int] = {}

    def path(self, name: str) -> Path:
        return self._aside / name

    def keep_log(self) -> None:
        """Keeps the event log up to its present end. Called again, it adds what has come since."""
        log = EventLog(self._data / "log")
        first, end = log.start().segment, log.end()
        for segment in range(first, end.segment + 1):
            name = f"log/{segment:012d}.log"
            if self._link(name) and segment == end.segment:
                self.sizes[name] = end.byte

    def keep_checkpoint(self, batches: Mapping[str, int]) -> None:
        """Keeps the checkpoints of both queries, each up to the batch that the mailbox has of it."""
        for folder in ("checkpoint", "checkpoint/joins"):
            try:
                query = json.loads((self._data / folder / "spark" / "metadata").read_text())["id"]
            except (OSError, ValueError, KeyError):
                continue  # it has not begun
            if query == IN_PROCESS:
                self._link(f"{folder}/spark/metadata")
            else:
                self._keep_query(folder, batches.get(query, -1))

    def _keep_query(self, folder: str, last: int) -> None:
        spark = f"{folder}/spark"
        offsets = self._numbered(f"{spark}/offsets")
        if offsets and max(offsets) > last + _BEHIND:
            raise Overtaken(f"the stream is at batch {max(offsets)}, the mailbox of the backup at {last}")
        commits = self._numbered(f"{spark}/commits")  # after the offsets: of the batch before it there is one
        upto = last + 1 if last < 0 or last in commits else last
        if last >= 0 and last not in offsets:
            raise Overtaken(f"batch {last} is no longer in {folder}")
        self._link(f"{spark}/metadata")
        for name in ("TABLES", "SEQUENCES"):
            self._link(f"{folder}/{name}")
        for number in offsets:
            if number <= upto:
                self._link(f"{spark}/offsets/{number}")
        for number in commits:
            if number <= last:
                self._link(f"{spark}/commits/{number}")
        for number in self._numbered(f"{folder}/pins"):
            if number <= upto:
                self._link(f"{folder}/pins/{number}")
        self._link_tree(f"{spark}/state", lambda name: _state_version(name) <= last + 1)

    def keep_index(self) -> None:
        """Keeps all versions of the index that there are, while changes are appended and bases are replaced."""
        root = self._data / "index"
        for _ in range(100):
            before = self._bases()
            self._link_tree("index", lambda name: name not in _NOT_OF_INDEX and not name.endswith(".tail"))
            for tail in root.glob("v*.tail"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(tail, self.path(f"index/{tail.name}"))
                    self.sizes[f"index/{tail.name}"] = self.path(f"index/{tail.name}").stat().st_size
            if self._bases() == before:
                return
            shutil.rmtree(self.path("index"), ignore_errors=True)
            self.sizes = {name: size for name, size in self.sizes.items() if not name.startswith("index/")}
        raise TidingsError("the index changes all the time; try again")

    def _bases(self) -> tuple[str, list[str]]:
        root = self._data / "index"
        try:
            return (root / "CURRENT").read_text(), sorted(path.name for path in root.glob("v*"))
        except FileNotFoundError:
            return "", []

    def keep_others(self) -> None:
        """Keeps whatever else is in the folder: the key, the states of feeds."""
        for path in sorted(self._data.iterdir()):
            name = path.name
            if name in _DERIVED | _ELSEWHERE or name.startswith(".") or name.endswith(("-wal", "-shm")):
                continue
            if path.is_dir():
                self._link_tree(name, lambda name: True)
            elif name.endswith(".db"):
                self._copy_database(name)
            else:
                self._link(name)

    def _copy_database(self, name: str) -> None:
        copy = self.path(name)
        with (
            closing(sqlite3.connect(self._data / name, timeout=30)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        copy.chmod(0o600)
        self.sizes[name] = copy.stat().st_size

    def _link(self, name: str) -> bool:
        """Links a file, unless it is gone or linked."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._data / name, path)
        except FileNotFoundError:
            return False
        except FileExistsError:
            pass
        except OSError:  # a file system without links, or somebody else's files
            shutil.copy2(self._data / name, path)
        self.sizes[name] = path.stat().st_size
        return True

    def _link_tree(self, folder: str, wanted: Callable[[str], bool]) -> None:
        for root, folders, names in os.walk(self._data / folder):
            folders[:] = [name for name in folders if wanted(name) and not name.startswith(".")]
            for name in names:
                # Names with a dot are unfinished, or checksums of Spark's, which it can do without.
                if wanted(name) and not name.startswith(".") and name != "LOCK":
                    self._link(str((Path(root) / name).relative_to(self._data)))

    def _numbered(self, folder: str) -> set[int]:
        with suppress(FileNotFoundError):
            return {int(name) for name in os.listdir(self._data / folder) if name.isdecimal()}
        return set()


def _state_version(name: str) -> int:
    """The version that a file of Spark's state belongs to; 0 if it belongs to all."""
    found = _STATE.fullmatch(name)
    return int(found[1]) if found else 0


@contextmanager
def linked_files(data: Path) -> Iterator[LinkedFiles]:
    """A folder for links inside the data folder, since links do not cross file systems. What killed backups left is
    removed."""
    for left in data.glob(f"{_PREFIX}*"):
        with suppress(OSError), (left / "LOCK").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left)
    aside = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=data))
    try:
        with (aside / "LOCK").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (aside / "files").mkdir()
            yield LinkedFiles(data, aside / "files")
    finally:
        shutil.rmtree(aside, ignore_errors=True)
