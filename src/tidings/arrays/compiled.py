"""The decorators of all compiled loops, so that the compiler flags are set in one place.

`error_model="numpy"` drops the zero-division checks; `nogil` lets other threads run during a loop; `cache` keeps machine
code on disk (loop_cache.py). With NUMBA_DISABLE_JIT=1 Python runs the loops as they stand, a thousand times slower: the
quicker way for a handful of events, because nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from tidings.arrays import loop_cache

Function = TypeVar("Function", bound=Callable[..., Any])

# The loops allocate nothing, so they need not count references: with counting, every use of an array of a tuple is
# an atomic addition and subtraction, which took most of the time.
_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

loop_cache.install()
if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    np.seterr(over="ignore")  # hashes wrap around, as in machine code


def compiled(function: Function) -> Function:
    loop_cache.OURS.add(function.__code__)
    return numba.njit(**_FLAGS)(function)


def inlined(function: Function) -> Function:
    """For the steps of a loop: a call would copy every array's header, which costs more than the step."""
    loop_cache.OURS.add(function.__code__)
    return numba.njit(**_FLAGS, forceinline=True)(function)
