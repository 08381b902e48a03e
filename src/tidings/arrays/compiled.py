"""The decorators of all compiled loops, so that the compiler flags are set in one place.

`error_model="numpy"` drops the zero-division checks; `nogil` lets other threads run during a loop; `cache` keeps machine
code on disk (loop_cache.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from tidings.arrays import loop_cache
from tidings.arrays.interpreted import interpreted

Function = TypeVar("Function", bound=Callable[..., Any])

# The loops allocate nothing, so they need not count references: with counting, every use of an array of a tuple is
# an atomic addition and subtraction, which took most of the time.
_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

loop_cache.install()


_is_interpreting = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def interpret() -> None:
    """Has all loops run in Python (interpreted.py). To be called before any is defined; afterwards it does nothing."""
    global _is_interpreting
    _is_interpreting = _is_interpreting or not loop_cache.OURS


def compiled(function: Function) -> Function:
    return _compiled(function)


def inlined(function: Function) -> Function:
    """For the steps of a loop: a call would copy every array's header, which costs more than the step."""
    return _compiled(function, forceinline=True)


def _compiled(function: Function, **flags: Any) -> Any:
    if _is_interpreting:
        return interpreted(function)
    loop_cache.OURS.add(function.__code__)
    return numba.njit(**_FLAGS, **flags)(function)
