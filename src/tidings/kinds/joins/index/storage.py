"""Saves and loads arrays of records; they are written as bytes, because a .npy file loses the alignment of fields."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays import folders
from tidings.kinds.joins.kernels.clusters import CLUSTER, NODE, RANGE
from tidings.kinds.joins.kernels.layout import BOUND, SIDE, SLOT, STEP, SUBSCRIPTION

RECORDS = {
    "a": RANGE,
    "bounds": BOUND,
    "clusters": CLUSTER,
    "nodes": NODE,
    "records": SUBSCRIPTION,
    "sides": SIDE,
    "slots": SLOT,
    "steps": STEP,
}


def save(folder: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    bare = {
        name: np.ascontiguousarray(array).view(np.uint8) if name in RECORDS else array
        for name, array in arrays.items()
    }
    folders.save(folder, bare, facts)


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays, mapped read-only, and the facts."""
    arrays, facts = folders.load(folder)
    found = {name: np.asarray(array).view(RECORDS.get(name, array.dtype)) for name, array in arrays.items()}
    return read_only(found), facts


def read_only(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Marks arrays as read-only, so that built and mapped ones have the same type for the compiled loops."""
    for array in arrays.values():
        array.setflags(write=False)
    return arrays
