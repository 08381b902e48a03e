"""The decorators of all compiled loops, so that the compiler flags are set in one place.

`error_model="numpy"` drops the zero-division checks; `nogil` lets other threads run during a loop; `cache` keeps machine
code on disk, which the Makefile warms before several processes start. A loop's cache depends on its own file only: when
a loop that it calls has changed, all have to be recompiled (CONTRIBUTING.md).

Numba reads a cache's list of files, adds to it and writes it back: of two processes that do so at once, one may take the
other's machine code for its own. A lock in the folder prevents that.

That list names the types of arguments, tuples of arrays among them. A list that names a class which is gone was written by
an earlier version of the code: it is stale, and the loop is compiled again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
from numba.core import caching

Function = TypeVar("Function", bound=Callable[..., Any])

# The loops allocate nothing, so they need not count references: with counting, every use of an array of a tuple is
# an atomic addition and subtraction, which took most of the time.
_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}


class _LockedCache(caching.IndexDataCacheFile):
    """Numba's cache of a function, with a lock between processes; what names a class or module that is gone is not in it."""

    def save(self, key: Any, data: Any) -> None:
        with self._locked(fcntl.LOCK_EX):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        with self._locked(fcntl.LOCK_SH):
            return super().load(key)

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except (AttributeError, ImportError) as error:
            raise FileNotFoundError(name) from error  # which `load` takes for a loop that is not kept

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        try:
            file = os.open(os.path.join(self._cache_path, "loops.lock"), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # a read-only folder has no writers
            yield
            return
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)


caching.IndexDataCacheFile = _LockedCache  # type: ignore[misc]


def compiled(function: Function) -> Function:
    return numba.njit(**_FLAGS)(function)


def inlined(function: Function) -> Function:
    """For the steps of a loop: a call would copy every array's header, which costs more than the step."""
    return numba.njit(**_FLAGS, forceinline=True)(function)
