"""The folder of an index, as versions.py draws it: the current base, tails, locks, and bases that are added and removed."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tidings.errors import IndexFileError, TidingsError
from tidings.storage import checksums, remote_index
from tidings.storage.event_log import sync
from tidings.storage.part_loads import forget_visits
from tidings.storage.tail_changes import Change, NetworkChange
from tidings.storage.tail_file import complete_length, read_changes


class Version(NamedTuple):
    """Base `base` and the first `offset` bytes of its tail; written "v3+1234"."""

    base: int
    offset: int

    def __str__(self) -> str:
        return f"v{self.base}+{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Version:
        found = re.fullmatch(r"v(\d+)\+(\d+)", text.strip())
        if found is None:
            raise IndexFileError(f"{text!r} names no version; versions are written like v3+1234")
        return cls(int(found[1]), int(found[2]))


def current(root: str | Path) -> Version:
    """The newest version."""
    root = remote_index.local_root(root)
    base = current_base(root)
    return Version(base, complete_length(root / f"v{base}.tail"))


def current_base(root: Path) -> int:
    try:
        return int((root / "CURRENT").read_text())
    except (OSError, ValueError):
        raise IndexFileError(f"{root} holds no index; make one with 'tidings index build'") from None


def last_base(root: str | Path) -> int:
    """The highest number of a base in the folder, whether it is whole or not; 0 without any."""
    return max([0, *_bases(Path(root))])


def drop(root: str | Path, pinned: Iterable[Version] = ()) -> list[int]:
    """Removes the bases that are neither current nor pinned; returns their numbers."""
    root = remote_index.own_folder(root)
    with lock(root):
        kept = {current(root).base, *(version.base for version in pinned)}
        gone = [n for n in _bases(root) if n not in kept]
        for number in gone:
            _remove(root, number)
        return gone


def discard(root: str | Path, damaged: int) -> None:
    """Removes a base that is damaged and not current any more, so that a reader that pinned it gets no wrong answers."""
    root = remote_index.own_folder(root)
    with lock(root):
        if current(root).base != damaged:
            _remove(root, damaged)


def set_current(root: Path, aside: Path, tail: bytes, at_least: int) -> Version:
    """Gives a base the next number, a tail to begin with, and makes it the current one."""
    number = max(at_least, last_base(root) + 1)
    aside.rename(root / f"v{number}")
    begun = root / f"v{number}.tail"
    begun.write_bytes(tail)
    sync(begun)
    pointer = root / "CURRENT.writing"
    pointer.write_text(str(number))
    sync(pointer)
    pointer.replace(root / "CURRENT")
    sync(root)
    return Version(number, len(tail))


def _bases(root: Path) -> list[int]:
    return [int(p.name[1:]) for p in root.glob("v*") if p.name[1:].isdecimal() and p.is_dir()]


def _remove(root: Path, base: int) -> None:
    shutil.rmtree(root / f"v{base}", ignore_errors=True)
    (root / f"v{base}.tail").unlink(missing_ok=True)
    checksums.forget(root, base)
    forget_visits(root, base)


def folder_of(root: Path, version: Version) -> Path:
    folder = root / f"v{version.base}"
    if not folder.is_dir():
        raise IndexFileError(
            f"{root} holds no version {version}: its base was dropped; ask for the current one"
        )
    return folder


def tail_of(root: Path, version: Version) -> Path:
    return root / f"v{version.base}.tail"


def changes_of(root: Path, start: int, version: Version) -> list[Change | NetworkChange]:
    return read_changes(tail_of(root, version), start, version.offset, version)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Makes one error of all that files with wrong bytes raise."""
    try:
        yield
    except TidingsError:
        raise
    except Exception as error:
        raise IndexFileError(f"{folder} holds no whole index ({error!r:.200}); build it anew") from None


@contextmanager
def lock(root: Path, name: str = "LOCK") -> Iterator[Any]:
    """One writer at a time; readers need no lock."""
    if not root.is_dir():
        raise IndexFileError(f"{root} holds no index; make one with 'tidings index build'")
    with (root / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
