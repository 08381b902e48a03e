"""The form of a backup: a tar stream that is written and read once, from front to end.

MANIFEST.json                                what wrote it, and the revisions of both stores
registry/TABLE/N.arrow, mailbox/TABLE/N.arrow    rows of the stores, as `rows` has them
files/…                                      files of the data folder
COMPLETE                                     the end; without it the backup is a part of one
"""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from tidings.errors import TidingsError

FORMAT: Final = 1
STORES: Final = ("registry", "mailbox")
_MANIFEST, _COMPLETE = "MANIFEST.json", "COMPLETE"

Report = Callable[[str, int, int], None]
"""Is called with what is being done, how much of it is done, and how much there is; 0 if that is not known."""


class BackupError(TidingsError):
    """A backup cannot be made, read, or restored there."""


class ArchiveWriter:
    def __init__(self, stream: IO[bytes], manifest: Mapping[str, Any]) -> None:
        self._tar = tarfile.TarFile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT)
        self._made = time.time()
        self.add(_MANIFEST, json.dumps({"format": FORMAT, "made": self._made, **manifest}).encode())

    def add(self, name: str, content: bytes) -> None:
        self._tar.addfile(self._entry(name, len(content), self._made), io.BytesIO(content))

    def add_file(self, name: str, path: Path, size: int) -> None:
        """The first `size` bytes of a file, with the time at which it was written."""
        with path.open("rb") as file:
            self._tar.addfile(self._entry(name, size, path.stat().st_mtime), file)

    def close(self) -> None:
        """Marks the archive as complete."""
        self.add(_COMPLETE, b"")
        self._tar.close()

    def _entry(self, name: str, size: int, at: float) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = size, at, 0o600
        return entry


class ArchiveReader:
    """`manifest`, then `members`, which raises TarError at the end of an archive that is not complete."""

    def __init__(self, stream: IO[bytes]) -> None:
        try:
            self._tar = tarfile.TarFile.open(fileobj=stream, mode="r|")
            first = self._tar.next()
            content = self._tar.extractfile(first) if first is not None and first.name == _MANIFEST else None
            self.manifest: Mapping[str, Any] = json.loads(content.read()) if content is not None else {}
        except (tarfile.TarError, ValueError, EOFError):
            self.manifest = {}
        made_by = self.manifest.get("format")
        if not isinstance(made_by, int):
            raise BackupError("this is no backup of tidings; name a file that 'tidings backup' has written")
        if made_by > FORMAT:
            raise BackupError(
                f"the backup has format {made_by}, this program knows {FORMAT}; install a newer tidings"
            )

    def members(self) -> Iterator[tuple[tuple[str, ...], float, IO[bytes]]]:
        """The parts of each name, when it was written, and its content, to be read before the next one."""
        for entry in self._tar:
            if entry.name == _COMPLETE:
                return
            parts = tuple(entry.name.split("/"))
            content = self._tar.extractfile(entry) if entry.isreg() else None
            if content is None or {"", ".", ".."} & set(parts):
                raise BackupError(f"the backup holds {entry.name!r}, which is no file of a service")
            yield parts, entry.mtime, content
        raise tarfile.ReadError("it ends too early")
