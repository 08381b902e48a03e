"""Arrays of records in folders: written as bytes, because a file does not keep how the fields of a record are aligned."""

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
    """The arrays, mapped, and nobody writes into them; and the facts."""
    arrays, facts = folders.load(folder)
    found = {name: np.asarray(array).view(RECORDS.get(name, array.dtype)) for name, array in arrays.items()}
    return unchanging(found), facts


def unchanging(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whether built or mapped, arrays are of one type for the loops: nobody writes into them."""
    for array in arrays.values():
        array.setflags(write=False)
    return arrays
