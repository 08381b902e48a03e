"""Skylines describe exactly the affected, in fewer points the better they are; the index answers like plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.dissemination.schemes import skylines
from tidings.dissemination.schemes.message import Bounds
from tidings.dissemination.schemes.pairs import RangePairs
from tidings.kinds.joins.schema.order_keys import HIGHEST, NULL

SKYLINES = [skylines.minimum_area, skylines.joining_tuples, skylines.clusters, skylines.improved_clusters]
numbers = st.one_of(st.integers(0, 14), st.sampled_from([NULL, NULL + 1, HIGHEST - 1, HIGHEST]))
ranges = st.tuples(numbers, numbers)
subscriptions = st.lists(st.tuples(ranges, ranges), max_size=25)
rising = st.lists(numbers, min_size=1, max_size=8, unique=True).map(lambda some: np.array(sorted(some)))


def pairs_of(some: list, later: list = (), gone: int = -1) -> tuple[RangePairs, dict[int, tuple]]:
    """An index over some, with others that came after it was built; one has left."""
    pairs = RangePairs()
    for first, part in ((0, some), (len(some), later)):
        ends = (
            np.array([[*base, *filtering] for base, filtering in part], dtype=np.int64)
            .reshape(-1, 4)
            .T.copy()
        )
        pairs.add(np.arange(first, first + len(part)), (ends[0], ends[1]), (ends[2], ends[3]))
        _ = pairs.anchors
    pairs.remove(gone)
    living = dict(enumerate([*some, *later]))
    living.pop(gone, None)
    return pairs, living


def holds(one: tuple[int, int], value: int) -> bool:
    return one[0] <= value <= one[1]


def covered(points: np.ndarray, one: tuple[int, int]) -> bool:
    return one[0] <= one[1] and any(one[0] <= x and y <= one[1] for x, y in points.tolist())


@pytest.mark.parametrize("skyline", SKYLINES, ids=lambda function: function.__name__)
@examples(40)
@given(some=subscriptions, later=subscriptions, gone=st.integers(-1, 30), at=numbers, values=rising)
def test_a_skyline_covers_exactly_the_affected(skyline, some, later, gone, at, values) -> None:
    pairs, living = pairs_of(some, later, gone)
    points = skyline(pairs, at, values)
    for base, filtering in living.values():
        if holds(base, at):
            affected = any(holds(filtering, value) for value in values.tolist())
            assert covered(points, filtering) == affected


@examples(40)
@given(some=subscriptions, at=numbers, values=rising)
def test_better_skylines_have_no_more_points(some, at, values) -> None:
    pairs, _ = pairs_of(some)
    tup, clu, better = (len(skyline(pairs, at, values)) for skyline in SKYLINES[1:])
    assert better <= clu <= min(tup, 2 * len(pairs.anchors))


@examples(40)
@given(some=subscriptions, at=numbers, values=rising)
def test_the_smallest_area_has_no_point_that_covers_another(some, at, values) -> None:
    pairs, living = pairs_of(some)
    points = skylines.minimum_area(pairs, at, values).tolist()
    assert len({tuple(point) for point in points}) == len(points)
    affected = {
        filtering
        for base, filtering in living.values()
        if holds(base, at) and any(holds(filtering, value) for value in values.tolist())
    }
    assert {tuple(point) for point in points} == {
        (low, high)
        for low, high in affected
        if not any(other != (low, high) and low <= other[0] and other[1] <= high for other in affected)
    }


@examples(40)
@given(some=subscriptions, later=subscriptions, gone=st.integers(-1, 30), at=numbers, values=rising)
def test_the_index_answers_like_plain_loops(some, later, gone, at, values) -> None:
    pairs, living = pairs_of(some, later, gone)
    full = {n: (b, f) for n, (b, f) in living.items() if b[0] <= b[1] and f[0] <= f[1]}
    affected = pairs.owners(pairs.affected(at, values)).tolist()
    assert sorted(affected) == [
        n
        for n, (base, filtering) in full.items()
        if holds(base, at) and any(holds(filtering, v) for v in values.tolist())
    ]
    for below in (None, int(values[0])):
        for above in (None, int(values[-1])):
            exposed = pairs.exposed(Bounds(at, below, above))
            assert sorted(pairs.owners(exposed).tolist()) == [
                n
                for n, (_, (low, high)) in full.items()
                if low <= at <= high and (below is None or below < low) and (above is None or high < above)
            ]
            assert pairs.held(exposed, values).tolist() == [
                any(holds(full[n][0], value) for n in pairs.owners(exposed).tolist())
                for value in values.tolist()
            ]


def test_a_run_of_values_is_one_point() -> None:
    """Figure 2 (d): the gap between 6 and 9 has a range inside, that between 2 and 4 has none."""
    filtering = [(1, 3), (3, 5), (7, 8), (4, 6), (9, 12)]
    pairs, _ = pairs_of([((0, 9), one) for one in filtering])
    values = np.array([2, 4, 6, 9])
    assert skylines.improved_clusters(pairs, 5, values).tolist() == [[6, 2], [9, 9]]
    pairs, _ = pairs_of([((0, 9), one) for one in filtering if one != (7, 8)])
    assert skylines.improved_clusters(pairs, 5, values).tolist() == [[9, 2]]
    assert skylines.improved_clusters(pairs, 12, values).tolist() == []  # nobody's base range holds 12


def test_the_index_takes_in_what_came_later() -> None:
    rng = np.random.default_rng(1)
    pairs = RangePairs()
    low, high = (rng.integers(0, 100, 2_000), rng.integers(0, 100, 2_000))
    for begin in range(0, 2_000, 100):
        part = slice(begin, begin + 100)
        pairs.add(np.arange(begin, begin + 100), (low[part], high[part]), (low[part], high[part] + 5))
        pairs.remove(begin)
        found = np.sort(pairs.owners(pairs.affected(50, np.array([40, 55]))))
        seen = slice(0, begin + 100)
        wanted = (low[seen] <= 50) & (high[seen] >= 50) & (low[seen] <= 55) & (high[seen] + 5 >= 40)
        wanted[::100] = False
        wanted &= ((low[seen] <= 40) & (high[seen] + 5 >= 40)) | ((low[seen] <= 55) & (high[seen] + 5 >= 55))
        assert found.tolist() == np.flatnonzero(wanted).tolist()
    assert len(pairs) == len(np.flatnonzero((low <= high) & (np.arange(2_000) % 100 > 0)))
