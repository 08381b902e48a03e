"""Decides what a command does while the loops are not compiled: little work is done in Python, for more they are compiled."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tidings.cli import terminal

_LITTLE = 32 << 10  # bytes of all files together: a few seconds


def choose(files: Iterable[str | Path | None]) -> None:
    """Has little work done in Python as long as the loops are not compiled: that takes a second or two, where compiling takes
    half a minute. Called before anything is imported that has loops."""
    from tidings.arrays import compiled, loop_cache

    if loop_cache.is_complete():
        return
    if _size(files) <= _LITTLE:
        compiled.interpret()
    else:
        loop_cache.before_compiling(
            lambda: terminal.note("Compiling the matching loops, once; this may take a minute.")
        )


def _size(files: Iterable[str | Path | None]) -> float:
    """The bytes of files and of what folders have, as far as it matters; without end for standard input and addresses."""
    total = 0.0
    for file in map(str, filter(None, files)):
        if file == "-" or "://" in file.partition(" ")[0]:
            return float("inf")
        name = file if os.path.exists(file) else file.rpartition("=")[2]  # a network has a name before it
        for found in Path(name).rglob("*") if os.path.isdir(name) else [name]:
            total += os.path.getsize(found) if os.path.isfile(found) else 0
            if total > _LITTLE:
                return total
    return total
