"""Checksums of a base of an index: a file that was changed, cut or lost since the base was written is noticed.

    ROOT/v3/checksums.json    size and CRC-32 of each file of the base, written last
    ROOT/checked/v3-HOST      what the check on a host has found: nothing, or the damage in one sentence

Opening a base maps its files and reads little of them. The check reads all of them, so it runs in a thread after the
opening, once for each host and base; every host's report is seen by all. A base of before there were checksums has none.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidings.errors import IndexFileError

FILE = "checksums.json"
Wanted = Callable[[str], bool]
"""Which files of a base, by their names in its folder."""
_REPORTS = "checked"
_PIECE = 1 << 20


def write(folder: Path) -> None:
    """Writes the checksums of all files in the folder of a base."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != FILE)
    sums = {path.relative_to(folder).as_posix(): _checksum(path) for path in files}
    (folder / FILE).write_text(json.dumps(sums, indent=1))


def names(folder: Path) -> list[str]:
    """The files that a base has; FileNotFoundError if it has no checksums."""
    return list(_read(folder))


def _read(folder: Path) -> dict[str, tuple[int, int]]:
    try:
        return {
            str(name): (size, crc) for name, (size, crc) in json.loads((folder / FILE).read_text()).items()
        }
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, AttributeError):
        raise _damaged(folder / FILE, "cannot be read") from None


def verify(folder: Path, is_wanted: Wanted = lambda name: True) -> bool:
    """Reads all files of a base, or the wanted ones; IndexFileError if one is not as it was written. Returns False if the
    base has no checksums."""
    try:
        wanted = {name: expected for name, expected in _read(folder).items() if is_wanted(name)}
    except FileNotFoundError:
        return False
    for name, expected in wanted.items():
        try:
            found = _checksum(folder / name)
        except OSError as error:
            raise _damaged(folder / name, f"cannot be read ({error.strerror})") from None
        if found != expected:
            raise _damaged(folder / name, "is not as it was written")
    return True


def start_check(root: Path, base: int) -> None:
    """Verifies a base in a thread, unless this host has done so."""
    if not _report(root, base).exists():
        threading.Thread(target=check, args=(root, base), name="checksums", daemon=True).start()


def check(root: Path, base: int) -> None:
    """Verifies a base and writes this host's report."""
    try:
        verify(root / f"v{base}")
        found = ""
    except IndexFileError as error:
        found = str(error)
    with suppress(OSError):  # a folder that is read only, a full disk, a base that was dropped meanwhile
        if (root / f"v{base}").is_dir():
            _write_report(root, base, found)


def report_whole(root: Path, base: int) -> None:
    """Has no check of a base run: every file is verified when it is fetched (remote_index.py)."""
    _write_report(root, base, "")


def _write_report(root: Path, base: int, found: str) -> None:
    report = _report(root, base)
    report.parent.mkdir(exist_ok=True)
    aside = report.with_name(f".{report.name}.{os.getpid()}")
    aside.write_text(found)
    aside.replace(report)


def refuse_damaged(root: Path, base: int) -> None:
    """IndexFileError if this host has found damage in a base."""
    with suppress(FileNotFoundError):
        if found := _report(root, base).read_text(errors="replace"):
            raise IndexFileError(found)


def damage(root: Path, base: int) -> str:
    """The damage that any host has found in a base; empty if none has."""
    for report in (root / _REPORTS).glob(f"v{base}-*"):
        with suppress(FileNotFoundError):
            if found := report.read_text(errors="replace"):
                return found
    return ""


def forget(root: Path, base: int) -> None:
    """Removes the reports about a base."""
    for report in (root / _REPORTS).glob(f"v{base}-*"):
        report.unlink(missing_ok=True)


def _report(root: Path, base: int) -> Path:
    return root / _REPORTS / f"v{base}-{socket.gethostname()}"


def _checksum(path: Path) -> tuple[int, int]:
    """Size and CRC-32."""
    size = crc = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
    return size, crc


def _damaged(path: Path, how: str) -> IndexFileError:
    return IndexFileError(f"{path} {how}; build the index anew")
