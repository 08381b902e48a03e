"""Clusters of ranges are the fewest, and their trees find exactly the rectangles that hold a point."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.arrays.compiled import compiled
from tidings.kinds.joins.index.stabbing import build_trees, cluster, fewest
from tidings.kinds.joins.kernels.clusters import HIGHEST, LOWEST, RANGE, collect


@compiled
def _collected(trees, k, low_value, high_value, has_high, a, out):
    return collect(trees, k, low_value, high_value, has_high, a, 0, out)


def _ranges(rng: np.random.Generator, count: int, domain: int) -> np.ndarray:
    found = np.empty(count, dtype=RANGE)
    found["low"] = rng.integers(0, domain, count)
    found["high"] = found["low"] + rng.integers(0, domain // 4 + 1, count)
    found["low"][rng.random(count) < 0.1] = LOWEST
    found["high"][rng.random(count) < 0.1] = HIGHEST
    return found


def _holders(trees, values: list[int], a: int) -> list[int]:
    """What the trees say of all clusters."""
    out, found = np.empty(len(trees.a), dtype=np.int32), []
    for k, anchor in enumerate(trees.clusters["anchor"].tolist()):
        before = [value for value in values if value <= anchor]
        after = [value for value in values if value >= anchor]
        low, high = max(before, default=LOWEST - 1), min(after, default=0)
        found += out[: _collected(trees, k, low, high, bool(after), a, out)].tolist()
    return sorted(found)


@pytest.mark.parametrize("domain", [5, 50, 10**6])
@pytest.mark.parametrize("seed", range(20))
def test_members_that_hold_a_point(seed: int, domain: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 400))
    c, a_ranges = _ranges(rng, count, domain), _ranges(rng, count, domain)
    trees, order = build_trees(c["low"].copy(), c["high"].copy(), a_ranges)
    assert (c["low"][order] == trees.c_low).all()
    assert (a_ranges[order] == trees.a).all()
    for _ in range(10):
        values = rng.integers(-2, domain + 3, rng.integers(0, 6)).tolist()
        a = int(rng.integers(-1, domain + domain // 4 + 2))
        expected = [
            i
            for i, (c_low, c_high, (a_low, a_high)) in enumerate(
                zip(trees.c_low.tolist(), trees.c_high.tolist(), trees.a.tolist(), strict=True)
            )
            if a_low <= a <= a_high and any(c_low <= value <= c_high for value in values)
        ]
        assert _holders(trees, values, a) == expected


@pytest.mark.parametrize("seed", range(50))
def test_clusters_are_the_fewest(seed: int) -> None:
    """As many as there are ranges of which no two touch: the most of those, found by trying all sets."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 12, 8)
    high = low + rng.integers(0, 5, 8)
    of, anchors, witnesses = cluster(low, high)
    assert (low <= anchors[of]).all()
    assert (anchors[of] <= high).all()
    apart = max(
        bin(some).count("1")
        for some in range(1, 256)
        if all(
            high[i] < low[j] or high[j] < low[i]
            for i in range(8)
            for j in range(i)
            if some >> i & 1 and some >> j & 1
        )
    )
    assert len(anchors) == len(witnesses) == apart


def test_witnesses_prove_how_few_are_needed() -> None:
    low, high = np.array([0, 1, 10, 20]), np.array([2, 3, 12, 22])
    trees, order = build_trees(low, high, np.zeros(4, dtype=RANGE))
    assert len(trees.clusters) == 3
    gone = np.isin(order, [2])  # the only range of its cluster
    assert fewest(trees, ~gone) == 2
