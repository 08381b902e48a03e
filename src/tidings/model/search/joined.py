"""Several indexes of searches in one set of arrays, end to end: a mapped array holds a file open, and there may be many indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidings.model.search.kernels.layout import SearchArrays

BOUNDS = "search_bounds"  # row i: where the arrays of index i begin in each of the joined ones; its last row is where they end


def join_searches(parts: Sequence[SearchArrays]) -> dict[str, np.ndarray]:
    """The joined arrays by name."""
    lengths = np.array([[len(array) for array in part] for part in parts], dtype=np.int64)
    bounds = np.zeros((len(parts) + 1, len(SearchArrays._fields)), dtype=np.int64)
    np.cumsum(lengths.reshape(-1, bounds.shape[1]), axis=0, out=bounds[1:])
    joined = {
        f"search_{name}": np.concatenate([getattr(part, name) for part in parts])
        for name in (SearchArrays._fields if parts else ())
    }
    return {**joined, BOUNDS: bounds} if parts else {}


def part_of(arrays: Mapping[str, np.ndarray], number: int) -> SearchArrays:
    """The arrays of one index."""
    begin, end = arrays[BOUNDS][number : number + 2].tolist()
    return SearchArrays(
        *(
            arrays[f"search_{name}"][low:high]
            for name, low, high in zip(SearchArrays._fields, begin, end, strict=True)
        )
    )
