"""Keeps the machine code of compiled loops in the user's cache folder, by the content of what it was made of.

A loop's folder is named by a hash of its module and of all modules that this one imports, as far as they are of the same
programs. So a loop is compiled again only if it, or something that it calls, has changed; and once for all clones and
environments of a user. What nobody has used for a month is removed.

    ~/.cache/tidings/loops/tidings.arrays.hashing-5f0c…/    index and machine code, as Numba writes them

Machine code is run as it is read, so the folder is the user's alone. Where it cannot be made, Numba chooses a place.

Whoever compiles a loop holds a lock until it is kept, and others who need it wait: so several processes that start
together compile each loop once, and Numba's list of a loop's files, which it reads, extends and writes back, has one writer.

That list names the types of arguments, tuples of arrays among them, by their classes. If a class is gone, the list is
stale. The names of a tuple's fields are part of the key, because Numba would take another order of fields for the same.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import CodeType
from typing import Any

import llvmlite.binding
import numba
from numba import types
from numba.core import caching, event

_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.MULTILINE)
_UNUSED_SECONDS = 30 * 86_400.0
_LONGEST_COMPILING = 120.0  # seconds; the longest takes a few
_POLL_SECONDS = 0.02
_TIDINGS = Path(__file__).parents[2]
_DECORATOR = "tidings.arrays.compiled"

OURS: set[CodeType] = set()
"""The loops that are kept this way."""


def _announce() -> None:
    """Without a line, a program that imports Tidings would seem to hang."""
    if sys.stderr.isatty():
        print("tidings: compiling the matching loops, once; this may take a minute", file=sys.stderr)


_before_compiling: list[Callable[[], None]] = [_announce]


def before_compiling(tell: Callable[[], None]) -> None:
    """Has a function called once, before the first loop is compiled that is not kept; by default a line is printed in a
    terminal."""
    _before_compiling[:] = [tell]


class _ByContent(caching._CacheLocator):
    """Where one loop is kept."""

    def __init__(self, function: Any, file: Path, root: Path) -> None:
        self._py_file = str(file)  # which Numba names in warnings
        self._line = function.__code__.co_firstlineno
        self._stamp = _digest(file, function.__module__)
        self._folder = root / f"{function.__module__}-{self._stamp}"

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _ByContent | None:
        if function.__code__ not in OURS or not os.path.exists(file):
            return None
        try:
            root = _root()
            found = cls(function, Path(file), root)
            _open(found._folder)
        except OSError:
            return None
        return found


@cache
def _root() -> Path:
    """The folder of all loops; OSError if there can be none of the user's own."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        root = Path(chosen) / "tidings-loops"
    else:
        try:
            root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings" / "loops"
        except RuntimeError as error:  # an account without a home
            raise FileNotFoundError(str(error)) from error
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = root.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(root)
    if found.st_mode & 0o022:
        root.chmod(0o700)
    return root


@cache
def _open(folder: Path) -> None:
    """Makes a folder, or notes that it is used; a new one takes the place of those that nobody uses."""
    if folder.exists():
        os.utime(folder)
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    for other in folder.parent.glob("*-*"):
        with suppress(OSError):
            if other.is_dir() and other.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


@cache
def _digest(file: Path, module: str) -> str:
    """A hash of the sources of a module and of all that it imports, directly or not."""
    root = file.parents[module.count(".")]
    found = {module: file}
    waiting = [module]
    while waiting:
        module = waiting.pop()
        # Of the decorator its flags matter, and not how it keeps loops.
        for name in () if module == _DECORATOR else _imported(found[module]):
            if name not in found and (imported := _file_of(name, root)) is not None:
                found[name] = imported
                waiting.append(name)
    whole = blake2b(numba.__version__.encode(), digest_size=12)
    for name in sorted(found):
        source = _source(found[name])
        whole.update(f"{name} {len(source)} ".encode() + source)
    return whole.hexdigest()


@cache
def _imported(file: Path) -> tuple[str, ...]:
    """The names in a module's imports that may be modules."""
    names = set()
    for package, chosen, plain in _IMPORT.findall(_source(file).decode(errors="replace")):
        names.add(plain or package)
        names.update(f"{package}.{name}" for name in re.findall(r"\w+", chosen))
    return tuple(sorted(names))


@cache
def _file_of(module: str, root: Path) -> Path | None:
    """The source of a module of Tidings, or of the program in `root`; None for other packages."""
    if module.partition(".")[0] == "tidings":
        root = _TIDINGS
    elif root.name in ("site-packages", "dist-packages"):
        return None
    path = root.joinpath(*module.split("."))
    return next((found for found in (path.with_suffix(".py"), path / "__init__.py") if found.is_file()), None)


@cache
def _source(file: Path) -> bytes:
    return file.read_bytes()


class _SharedFiles(caching.IndexDataCacheFile):
    """Numba's files of a loop. What cannot be read is not there."""

    _held: int | None = None  # the lock, while this process compiles the loop

    @property
    def _is_ours(self) -> bool:
        """Other packages' loops are kept as Numba keeps them."""
        with suppress(OSError):
            return self._cache_path.startswith(f"{_root()}{os.sep}")
        return False

    def load(self, key: Any) -> Any:
        if not self._is_ours:
            return super().load(key)
        key = _with_fields(key)
        found = super().load(key)
        if found is None and self._held is None:
            self._held = self._lock()
            found = super().load(key)  # another process may have compiled it meanwhile
            if found is not None:
                self._release()
        while found is None and _before_compiling:
            _before_compiling.pop()()
        return found

    def save(self, key: Any, data: Any) -> None:
        if not self._is_ours:
            super().save(key, data)
            return
        try:
            super().save(_with_fields(key), data)
        finally:
            self._release()

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # cut off by a loss of power, or of a class that is gone
            if not self._is_ours:
                raise
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except Exception as error:
            if not self._is_ours:
                raise
            raise FileNotFoundError(name) from error  # which `load` takes for a loop that is not kept

    def _lock(self) -> int | None:
        """The lock of the loop; None where there can be none, or after a long wait for a process that hangs."""
        try:
            file = os.open(f"{self._index_path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # a folder that is read only has no writers
            return None
        deadline = time.monotonic() + _LONGEST_COMPILING
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                time.sleep(_POLL_SECONDS)
            except OSError:  # a file system without locks
                break
        os.close(file)
        return None

    def _release(self) -> None:
        if self._held is not None:
            with suppress(OSError):
                fcntl.flock(
                    self._held, fcntl.LOCK_UN
                )  # a process that was forked meanwhile has the file open too
            os.close(self._held)
            self._held = None


def _with_fields(key: Any) -> tuple[Any, ...]:
    return (*key, tuple(_fields(key[0])))


def _fields(given: Any) -> Iterator[tuple[str, ...]]:
    """The names of the fields of all tuples in a signature."""
    for one in given:
        if isinstance(one, types.BaseNamedTuple):
            yield one.fields  # type: ignore[attr-defined]
        if isinstance(one, types.BaseTuple):
            yield from _fields(one)


def complete_mark() -> Path:
    """A file that is there once every loop was compiled, as the loops are now; OSError where nothing is kept."""
    whole = blake2b(
        f"{sys.version} {numba.__version__} {llvmlite.binding.get_host_cpu_name()}".encode(), digest_size=12
    )
    package = _TIDINGS / "tidings"
    for file in sorted((*package.glob("arrays/*.py"), *package.rglob("kernels/*.py"))):
        whole.update(_source(file))
    return _root() / f"complete-{whole.hexdigest()}"


def is_kept() -> bool:
    """Whether machine code can be kept."""
    try:
        return _root().is_dir()
    except OSError:
        return False


def is_complete() -> bool:
    """Whether every loop was compiled."""
    with suppress(OSError):
        return complete_mark().exists()
    return False


class _Failures(event.Listener):
    """Gives the lock back when a loop cannot be compiled, because then it is not saved."""

    def on_start(self, event: event.Event) -> None:
        pass

    def on_end(self, event: event.Event) -> None:
        cache = event.data["dispatcher"]._cache
        if event.is_failed and isinstance(cache, caching.FunctionCache):
            cache._cache_file._release()  # type: ignore[attr-defined]


def install() -> None:
    """Has Numba use all of this for the loops in `OURS`."""
    event.register("numba:compile", _Failures())
    caching.IndexDataCacheFile = _SharedFiles  # type: ignore[misc]
    caching.CacheImpl._locator_classes.insert(0, _ByContent)  # type: ignore[arg-type]
