"""What a command does about loops that are not compiled yet: a little work is interpreted, more says that it compiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

_LITTLE = 8 << 10  # bytes of all files together


def choose(files: Iterable[str | Path | None]) -> None:
    """Has little work interpreted: that takes a second or two, where compiling takes half a minute, and loading machine
    code a second. Called before anything is imported that has loops."""
    if "numba" not in sys.modules and _size(files) <= _LITTLE:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        return
    from tidings.arrays.loop_cache import before_compiling

    before_compiling(
        lambda: click.echo("compiling the matching loops, once; this takes about half a minute", err=True)
    )


def _size(files: Iterable[str | Path | None]) -> float:
    """The bytes of files; without end for folders, standard input, and what is not there."""
    total = 0.0
    for file in filter(None, files):
        path = Path(file)
        total += path.stat().st_size if path.is_file() else float("inf")
    return total
