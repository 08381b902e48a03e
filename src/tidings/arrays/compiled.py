"""The one decorator of every compiled loop, so that compiler flags are decided in one place.

`error_model="numpy"` drops the zero-division checks; `nogil` lets other threads go on while a loop runs; `cache`
keeps machine code on disk, which the Makefile warms before several processes start. A loop's cache knows its own
file only: when a loop that it calls has changed, all have to be compiled anew (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# The loops allocate nothing, so they need not count references: with counting, every use of an array of a tuple is
# an atomic addition and subtraction, which took most of the time.
_FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function: Function) -> Function:
    return numba.njit(**_FLAGS)(function)


def inlined(function: Function) -> Function:
    """For the steps of a loop: a call would copy every array's header, which costs more than the step."""
    return numba.njit(**_FLAGS, forceinline=True)(function)
