"""Runs loops in Python, with the arithmetic that they have as machine code: for work that is done before they were compiled.

A thousand times slower, but nothing is compiled. Machine code computes with 64 bits whatever an array's elements have, where
NumPy's scalars keep the element's width. So elements are read as Python's numbers here, and conversions wrap around. Only
elements of uint64, of which hashes are made, and of float64 stay NumPy's: they wrap around and divide by zero as there. What is
computed with elements of float32 is more exact here: estimates that decide in which order operators are called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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


class _Record:
    """An element that has fields."""

    __slots__ = ("_element",)

    def __init__(self, element: np.void) -> None:
        object.__setattr__(self, "_element", element)

    def __getattr__(self, name: str) -> Any:
        return _given(self._element[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._element[name] = value

    __getitem__, __setitem__ = __getattr__, __setattr__


class _Conversion:
    """A type of integers: converts to it, and wraps around."""

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name)

    def __call__(self, value: Any) -> Any:
        bits = 8 * self.dtype.itemsize
        value = int(value) & (1 << bits) - 1
        if self.dtype == np.uint64:
            return np.uint64(value)
        return value - (1 << bits) if self.dtype.kind == "i" and value >> bits - 1 else value


class _NumPy:
    """NumPy, as loops see it."""

    def __init__(self) -> None:
        for bits in (8, 16, 32, 64):
            for name in (f"int{bits}", f"uint{bits}"):
                setattr(self, name, _Conversion(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _scalar(value: np.generic) -> Any:
    if isinstance(value, np.void):
        return _Record(value)
    return value if isinstance(value, np.uint64 | np.float64) else value.item()


def _given(value: Any) -> Any:
    """An argument or a constant, as a loop shall see it."""
    if isinstance(value, np.ndarray):
        return value.view(_Wide)
    if isinstance(value, np.generic):
        return _scalar(value)
    if isinstance(value, tuple):
        items = map(_given, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return _NUMPY if value is np else value


_NUMPY = _NumPy()


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run in Python."""
    inner: FunctionType | None = None

    @wraps(function)
    def run(*arguments: Any) -> Any:
        nonlocal inner
        if inner is None:  # only now are all that it calls defined
            names = {name: _given(value) for name, value in function.__globals__.items()}
            inner = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        with np.errstate(all="ignore"):  # hashes wrap around, and a division by zero is infinite
            return inner(*map(_given, arguments))

    return run
