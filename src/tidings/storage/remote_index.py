"""An index at an address (s3://bucket/index, or any that fsspec knows), of which each host fetches a base once to its own disk.

    CACHE/1f0c…/            one base: named by the address, the base's number and its checksums
    CACHE/1f0c…/ADDRESS     where it is from
    CACHE/1f0c…/CURRENT, v3/, v3.tail    as in the folder of any index (versions.py)
    CACHE/1f0c…/v3.lock     held by the process that fetches; others wait for it. Each part has its own

What is fetched is written aside, compared with its checksums and renamed: a folder that is in place is whole. The parts of a divided
base are fetched by who opens them. Of a tail, which only grows, the bytes are read that are not here yet. A base that takes the
place of another under the same number has other checksums, and therefore another folder. What nobody has used for a day
is removed when something else is fetched.

`ADDRESS#1a2b…` names a base by its checksums: tasks that are given it read the same base as the driver, or none.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from tidings.errors import IndexFileError, TidingsError
from tidings.storage import checksums
from tidings.storage.event_log import sync

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PART = re.compile(r"(part-\d+)/")
_BASE = re.compile(r"v(\d+)")
_UNUSED_SECONDS = 86_400.0

_identities: dict[tuple[str, int], str] = {}  # of bases that this process has asked for


def is_address(root: str | os.PathLike[str]) -> bool:
    """Whether an index is at an address, and not in a folder."""
    return isinstance(root, str) and _ADDRESS.match(root) is not None


def absolute(root: str | os.PathLike[str]) -> str:
    """An address as it is, or the absolute path of a folder: what other processes can use."""
    return str(root) if is_address(root) else str(Path(root).absolute())


def local_root(root: str | os.PathLike[str], base: int | None = None, offset: int = 0) -> Path:
    """The folder on this host in which an index can be opened. For an address that is one with a base of it, without `base` the
    current one, and with its tail, at least the first `offset` bytes; what is missing is fetched."""
    return _Source(str(root)).fetch(base, offset) if is_address(root) else Path(root)


def exact(root: str | os.PathLike[str], base: int) -> str:
    """What names one base for good: of an address, `ADDRESS#CHECKSUMS`; of a folder its absolute path."""
    if not is_address(root):
        return absolute(root)
    source = _Source(str(root))
    return f"{source.address}#{source.identity(base)}"


def has_index(root: str | os.PathLike[str]) -> bool:
    """Whether there is an index in a folder or at an address."""
    if not is_address(root):
        return (Path(root) / "CURRENT").exists()
    source = _Source(str(root))
    with source.reaching():
        return bool(source.files.exists(source.at("CURRENT")))


def own_folder(root: str | os.PathLike[str]) -> Path:
    """The folder of an index that is to be changed; an address is refused."""
    if is_address(root):
        raise IndexFileError(
            f"the index at {root} cannot be changed there, because nothing can be locked at an address; build it anew by"
            f" 'tidings index build {root}', or change one in a folder and copy that to the address"
        )
    return Path(root)


def need_part(folder: Path) -> Path:
    """The folder of a part of a divided base, which is fetched if the base was."""
    address = folder.parents[1] / "ADDRESS"
    if not folder.is_dir() and address.exists():
        _Source(address.read_text()).fetch_part(folder)
    return folder


@contextmanager
def working_copy(address: str) -> Iterator[Path]:
    """A folder, for a while, in which a base can be published after the current one of an address: with that one, if there is
    any, and without its parts."""
    with TemporaryDirectory(prefix="publishing-", dir=cache_folder()) as made:
        here = Path(made)
        if has_index(address):
            before = local_root(address)
            base = int((before / "CURRENT").read_text())
            (here / f"v{base}").symlink_to(before / f"v{base}")
            for name in ("CURRENT", f"v{base}.tail"):
                shutil.copyfile(before / name, here / name)
        yield here


def last_base(address: str) -> int:
    """The highest number of a base at an address, whether it is whole or not; 0 without any."""
    source = _Source(address)
    with source.reaching():
        source.files.invalidate_cache()
        try:
            found = source.files.ls(source.path, detail=False)
        except FileNotFoundError:
            return 0
    numbers = (_BASE.fullmatch(PurePosixPath(name).name) for name in found)
    return max([0, *(int(number[1]) for number in numbers if number is not None)])


def upload(root: Path, base: int, address: str) -> None:
    """Copies a base of a folder, and its tail, to an address and makes it the current one there: the pointer comes last. One
    process at a time may do so."""
    source, folder = _Source(address), root / f"v{base}"
    names = [path.relative_to(root).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    names.append(f"v{base}.tail")
    with source.reaching("written"):
        source.files.put([str(root / name) for name in names], [source.at(name) for name in names])
        source.files.pipe_file(source.at("CURRENT"), str(base).encode())
        source.files.invalidate_cache()


class _Source:
    """An address, and how it is read."""

    def __init__(self, address: str) -> None:
        self.address, _, self._identity = address.partition("#")
        self.address = self.address.rstrip("/")
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise TidingsError(
                f"an index at an address such as {self.address} needs fsspec; install Tidings with the extra 'remote'"
            ) from None
        with self.reaching():
            self.files: Any
            # Others make the folders of a file themselves, or have none.
            options = {"auto_mkdir": True} if self.address.startswith("file:") else {}
            self.files, self.path = url_to_fs(self.address, **options)

    def at(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"

    @contextmanager
    def reaching(self, done: str = "read") -> Iterator[None]:
        """Makes one sentence of what any file system may raise."""
        try:
            yield
        except TidingsError:
            raise
        except FileNotFoundError as error:
            raise IndexFileError(
                f"{self.address} holds no such index ({error!s:.200}); make one with 'tidings index build {self.address}'"
            ) from None
        except ImportError as error:
            raise TidingsError(
                f"{self.address} cannot be {done} ({error!s:.200}); install what it names"
            ) from None
        except Exception as error:
            raise TidingsError(
                f"{self.address} cannot be {done} ({error!r:.200}); see whether it can be reached from this host"
            ) from None

    def identity(self, base: int) -> str:
        """A hash of the checksums of a base."""
        if self._identity:
            return self._identity
        known = self.address, base
        if known not in _identities:
            _identities[known] = _hash(self._checksums(base))
        return _identities[known]

    def _checksums(self, base: int) -> bytes:
        with self.reaching():
            found: bytes = self.files.cat_file(self.at(f"v{base}/{checksums.FILE}"))
        return found

    def fetch(self, base: int | None, offset: int) -> Path:
        """The folder with a base and its tail; without `base` the current ones."""
        is_current = base is None
        if base is None:
            with self.reaching():
                pointer = self.files.cat_file(self.at("CURRENT"))
            try:
                base = int(pointer)
            except ValueError:
                raise IndexFileError(f"{self.address}/CURRENT names no base; build the index anew") from None
            _identities.pop((self.address, base), None)
        name = _hash(f"{self.address}\n{base}\n{self.identity(base)}".encode())
        root = cache_folder() / name
        if not (root / f"v{base}").is_dir():
            self._fetch_base(root, base)
        os.utime(root)
        self._fetch_tail(root / f"v{base}.tail", None if is_current else offset)
        return root

    def _fetch_base(self, root: Path, base: int) -> None:
        """Fetches what every process of a base needs: all of it but for parts."""
        _remove_unused(root.parent)
        root.mkdir(mode=0o700, exist_ok=True)
        with _turn(root / f"v{base}.lock"):
            if (root / f"v{base}").is_dir():
                return
            sums = self._checksums(base)
            if _hash(sums) != self.identity(base):
                raise IndexFileError(
                    f"base v{base} at {self.address} was replaced by another one; start again with that"
                )
            aside = root / "fetching"
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            (aside / checksums.FILE).write_bytes(sums)
            is_wanted = _front_files(aside)
            self._fetch_files(base, aside, is_wanted)
            (root / "ADDRESS").write_text(f"{self.address}#{self.identity(base)}")
            (root / "CURRENT").write_text(str(base))
            checksums.report_whole(root, base)
            aside.rename(root / f"v{base}")
            sync(root)

    def fetch_part(self, folder: Path) -> None:
        """Fetches one part of a base that is here."""
        home, part = folder.parent, folder.name
        with _turn(home.parent / f"{part}.lock"):
            if folder.is_dir():
                return
            aside = home.parent / f"fetching-{part}"
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            shutil.copyfile(home / checksums.FILE, aside / checksums.FILE)
            self._fetch_files(int(home.name[1:]), aside, lambda name: name.startswith(f"{part}/"))
            (aside / part).rename(folder)
            shutil.rmtree(aside)

    def _fetch_files(self, base: int, folder: Path, is_wanted: checksums.Wanted) -> None:
        """Fetches files of a base into a folder that has its checksums."""
        names = [name for name in checksums.names(folder) if is_wanted(name)]
        for name in names:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise IndexFileError(f"{self.address} names a file {name!r} of v{base}; build the index anew")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.reaching():
                self.files.get(
                    [self.at(f"v{base}/{name}") for name in names], [str(folder / name) for name in names]
                )
            checksums.verify(folder, is_wanted)
            for name in names:
                sync(folder / name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # a full disk needs the room
            raise

    def _fetch_tail(self, tail: Path, offset: int | None) -> None:
        """Appends what is not here yet of a tail: all whole lines, unless the first `offset` bytes are here."""
        if offset is not None and tail.exists() and tail.stat().st_size >= offset:
            return
        with _turn(tail.with_name(f"{tail.name}.lock")), self.reaching(), tail.open("ab") as file:
            self.files.invalidate_cache()
            here, there = file.tell(), int(self.files.info(self.at(tail.name))["size"])
            if there > here:
                # A server that knows no ranges gives all.
                found = self.files.cat_file(self.at(tail.name), start=here, end=there)
                found = found[here:there] if len(found) > there - here else found
                file.write(found[: found.rfind(b"\n") + 1])
                file.flush()
                os.fsync(file.fileno())


def _front_files(folder: Path) -> checksums.Wanted:
    """Which files of a base are fetched first: all, or those that are in no part."""
    is_divided = "division.json" in checksums.names(folder)
    return lambda name: not (is_divided and _PART.match(name))


def fetch_all_parts(root: Path, base: int) -> None:
    """Fetches all that is not here yet of a base."""
    folder = root / f"v{base}"
    if (root / "ADDRESS").exists():
        for part in sorted({found[1] for name in checksums.names(folder) if (found := _PART.match(name))}):
            need_part(folder / part)


def cache_folder() -> Path:
    """Where bases are kept, a folder of the user's own: below the user's cache, or what Spark gives to a worker."""
    found = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    given = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    for parent in filter(None, (found, given)):
        folder = Path(parent) / "tidings" / "indexes"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK):
                folder.chmod(0o700)
                return folder
    raise TidingsError(
        f"nothing can be kept in {found}, where an index is fetched to; set XDG_CACHE_HOME to a folder that can be written"
    )


def _remove_unused(cache: Path) -> None:
    for folder in cache.iterdir():
        with suppress(OSError):
            if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _turn(lock: Path) -> Iterator[None]:
    """One process of this host at a time."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()
