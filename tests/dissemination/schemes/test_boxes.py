"""Several join and selection attributes: filters accept exactly whoever is affected."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tidings.dissemination.schemes.boxes import BoxServer, BoxSide, accepts, anchors, envelope
from tidings.dissemination.schemes.server import Change
from tidings.errors import EventError
from tidings.kinds.joins.schema.table import Row, Table

R = Table("r", {"b1": "integer", "b2": "integer", "x": "integer", "y": "integer"})
S = Table("s", {"b1": "integer", "b2": "integer", "u": "integer", "v": "integer", "w": "integer"})
SIDES = (BoxSide(R, (0, 1), (2, 3)), BoxSide(S, (0, 1), (2, 3, 4)))


def random_boxes(rng: np.random.Generator, count: int, side: BoxSide) -> tuple[np.ndarray, np.ndarray]:
    """Boxes that hold about half of all points; a few are empty."""
    low = rng.integers(-1, 3, (count, len(side.selections)))
    return low, low + rng.integers(-1, 7, low.shape)


def random_row(rng: np.random.Generator, side: BoxSide) -> Row:
    joined = [int(rng.integers(2)), int(rng.integers(2)) if rng.random() < 0.95 else None]
    return (*joined, *(None if rng.random() < 0.03 else int(rng.integers(6)) for _ in side.selections))


def semijoin(side: int, low: list[list[int]], high: list[list[int]], rows: list[list[Row]]) -> Counter[Row]:
    def selected(at: int) -> list[Row]:
        return [
            row
            for row in rows[at]
            if all(
                row[column] is not None and below <= row[column] <= above
                for column, below, above in zip(SIDES[at].selections, low[at], high[at], strict=True)
            )
        ]

    values = {row[:2] for row in selected(1 - side) if None not in row[:2]}
    return Counter(row for row in selected(side) if row[:2] in values)


@pytest.mark.parametrize("seed", range(4))
def test_filters_accept_exactly_what_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    server = BoxServer(*SIDES)
    (low_r, high_r), (low_s, high_s) = (random_boxes(rng, 30, side) for side in SIDES)
    numbers = server.subscribe((low_r, low_s), (high_r, high_s))
    rows: list[list[Row]] = [[], []]
    heard = 0
    held = {(number, at): Counter[Row]() for number in numbers for at in (0, 1)}
    for _ in range(80):
        side = int(rng.integers(2))
        what = rng.random()
        new = random_row(rng, SIDES[side]) if what < 0.7 or not rows[side] else None
        old = rows[side][int(rng.integers(len(rows[side])))] if rows[side] and what > 0.45 else None
        messages = server.messages(Change(SIDES[side].table.name, new, old))
        if new is not None:
            rows[side].append(new)
        if old is not None:
            rows[side].remove(old)
        for number in numbers:
            box = server.box(number)
            low, high = ([ends.tolist() for ends in both] for both in box)
            for at in (0, 1):
                told = Counter[Row]()
                for message in messages:
                    if message.side == at and accepts(message, box):
                        told[message.image.row] += 1 if message.sign == "+" else -1
                had, has = held[number, at], semijoin(at, low, high, rows)
                assert {row: n for row, n in told.items() if n} == {
                    row: has[row] - had[row] for row in had.keys() | has.keys() if has[row] != had[row]
                }
                held[number, at] = has
                heard += len(told)
    assert heard > 100


def test_the_envelope_is_of_distinct_points() -> None:
    points = np.array([[5, 5], [5, 5], [6, 6], [2, 9], [9, 2], [1, 1]])
    assert envelope(points, np.array([4, 4])).tolist() == [[1, 1], [2, 9], [5, 5], [9, 2]]
    assert envelope(points, np.array([5, 5])).tolist() == [
        [5, 5]
    ]  # it is there itself: nothing else is next to it
    assert envelope(np.empty((0, 2), dtype=np.int64), np.array([4, 4])).tolist() == []


def test_in_one_dimension_the_envelope_is_both_neighbours() -> None:
    points = np.array([[1], [3], [7], [8]])
    assert envelope(points, np.array([4])).tolist() == [[3], [7]]
    assert envelope(points, np.array([7])).tolist() == [[7]]


def test_every_box_holds_an_anchor() -> None:
    rng = np.random.default_rng(3)
    low = rng.integers(0, 20, (200, 3))
    high = low + rng.integers(0, 8, low.shape)
    found = anchors(low, high)
    assert len(found) < 200
    assert ((low[:, None] <= found) & (found <= high[:, None])).all(axis=2).any(axis=1).all()


def test_nobody_hears_of_what_is_not_there() -> None:
    server = BoxServer(*SIDES)
    with pytest.raises(EventError, match="has no row"):
        server.messages(Change("r", old=(1, 1, 1, 1)))
    assert server.messages(Change("r", new=(1, 1, 1, 1))) == []


def test_sizes_count_a_number_for_each_coordinate() -> None:
    server = BoxServer(*SIDES)
    server.subscribe((np.zeros((1, 2)), np.zeros((1, 3))), (np.full((1, 2), 5), np.full((1, 3), 5)))
    server.messages(Change("s", new=(1, 1, 2, 2, 2)))
    own, exposed = server.messages(Change("r", new=(1, 1, 0, 0)))
    assert own.size == 4 * 4 + 3 * 4
    assert exposed.size == 5 * 4 + 2 * 4
