"""Named arrays in a folder of `.npy` files, mapped into memory when opened.

A manifest lists every array with its type and shape and is written last, so a folder without one is not a
version. Opening checks the files against it: a truncated or foreign file is refused before anything reads it.
No pickle: nothing in these files can run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidings.errors import IndexFileError

FORMAT = 1


def save(folder: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Writes `arrays` and the JSON-able `facts` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").unlink(missing_ok=True)
    for name, array in arrays.items():
        # Never overwrite a file: processes that have it mapped, this one too, keep using the old content.
        aside = folder / f"{name}.writing.npy"
        np.save(aside, np.ascontiguousarray(array), allow_pickle=False)
        aside.replace(folder / f"{name}.npy")
    shapes = {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()}
    manifest = {"format": FORMAT, "arrays": shapes, "facts": dict(facts)}
    (folder / "manifest.json").write_text(json.dumps(manifest))  # with an indent it takes seven times as long


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays, mapped read-only, and the facts; an `IndexFileError` says what is wrong with the folder."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        facts, written = manifest["facts"], manifest["format"]
        expected = {name: (dtype, list(shape)) for name, (dtype, shape) in manifest["arrays"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise IndexFileError(
            f"{folder} holds no index (no readable manifest.json); build one first"
        ) from None
    if written != FORMAT:
        raise IndexFileError(
            f"{folder} was written in format {written}, this version reads {FORMAT}; build it anew"
        )
    arrays: dict[str, np.ndarray] = {}
    for name, (dtype, shape) in expected.items():
        try:
            empty = 0 in shape
            array = np.load(folder / f"{name}.npy", mmap_mode=None if empty else "r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise IndexFileError(
                f"{folder / name}.npy cannot be read ({error}); build the index anew"
            ) from None
        if str(array.dtype) != dtype or list(array.shape) != shape:
            raise IndexFileError(
                f"{folder / name}.npy is not the array its manifest tells; build the index anew"
            )
        # A plain view: compiled loops are specialised for arrays, and a memmap would compile them twice.
        arrays[name] = array.view(np.ndarray)
    return arrays, facts


def size(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(array.nbytes for array in arrays.values())
