"""Runs loops in Python, with the arithmetic that they have as machine code: for work that is done before they were compiled.

A thousand times slower, but nothing is compiled. Machine code computes with 64 bits whatever an array's elements have, where
NumPy's scalars keep the element's width. So elements are read as Python's numbers here, and conversions wrap around. Only
elements of uint64, of which hashes are made, stay NumPy's, because they have to wrap around at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType
from typing import Any

import numpy as np


class _Wide(np.ndarray):
    """An array whose elements are read as Python's numbers."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _scalar(found) if isinstance(found, np.generic) else found

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))


class _Conversions:
    """NumPy, as loops use it: its types of integers wrap around."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def uint64(value: Any) -> np.uint64:
        return np.uint64(int(value) & (1 << 64) - 1)


def _wrap(bits: int, is_signed: bool, value: Any) -> int:
    value = int(value) & (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


for _bits in (8, 16, 32, 64):
    setattr(_Conversions, f"int{_bits}", staticmethod(partial(_wrap, _bits, True)))
    if _bits < 64:
        setattr(_Conversions, f"uint{_bits}", staticmethod(partial(_wrap, _bits, False)))


def _scalar(value: np.generic) -> Any:
    return value if isinstance(value, np.uint64) else value.item()


def _given(value: Any) -> Any:
    """An argument or a constant, as a loop shall see it."""
    if isinstance(value, np.ndarray):
        return value.view(_Wide)
    if isinstance(value, np.generic):
        return _scalar(value)
    if isinstance(value, tuple):
        items = map(_given, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return _CONVERSIONS if value is np else value


_CONVERSIONS = _Conversions()


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run in Python."""
    inner: FunctionType | None = None

    @wraps(function)
    def run(*arguments: Any) -> Any:
        nonlocal inner
        if inner is None:  # only now are all that it calls defined
            names = {name: _given(value) for name, value in function.__globals__.items()}
            inner = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        with np.errstate(over="ignore"):  # hashes wrap around
            return inner(*map(_given, arguments))

    return run
