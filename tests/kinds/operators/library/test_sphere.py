"""Distances on the globe, beside published ones and beside a search along every arc."""

import math
from itertools import pairwise

import numpy as np
import pytest

from tidings.kinds.operators.library.sphere import RADIUS, ArcOutline, unit


def point(latitude, longitude):
    return ArcOutline(np.array([[longitude, latitude]]), np.array([0]))


def line(*vertices):
    return ArcOutline(np.array([(lon, lat) for lat, lon in vertices]), np.zeros(len(vertices), int))


def dms(degrees, minutes, seconds):
    return math.copysign(abs(degrees) + minutes / 60 + seconds / 3600, degrees)


def test_a_surveyed_line_is_as_long_as_surveyed():
    # Flinders Peak to Buninyong, the textbook case of geodesy: 54,972.271 m on the ellipsoid.
    flinders = dms(-37, 57, 3.72030), dms(144, 25, 29.52440)
    buninyong = dms(-37, 39, 10.15610), dms(143, 55, 35.38390)
    assert point(*buninyong).metres(*flinders) == pytest.approx(54_972.271, rel=0.006)


@pytest.mark.parametrize(
    ("place", "from_", "degrees"),
    [
        (point(90, 0), (0, 77), 90),
        (point(0, 179.5), (0, -179.5), 1),  # across the 180th meridian
        (point(10, 20), (-10, -160), 180),  # the other side of the Earth
        (point(10, 20), (10, 20), 0),
        (line((0, 0), (0, 10)), (5, 5), 5),  # beside
        (line((0, 0), (0, 10)), (0, 12), 2),  # beyond the end
        (line((0, 0), (0, 10)), (0, -3), 3),
        (line((0, 0), (0, 10)), (0, 185), 175),  # not the arc's other side
        (line((0, 170), (0, -170)), (1, 180), 1),
    ],
)
def test_angles(place, from_, degrees):
    assert place.metres(*from_) == pytest.approx(RADIUS * math.radians(degrees), rel=1e-7, abs=1e-2)


def test_parts_are_not_joined():
    two = ArcOutline(np.array([[0, 0], [0, 10], [40, 0], [40, 10]]), np.array([0, 0, 1, 1]))
    assert two.metres(5, 20) == pytest.approx(line((0, 0), (10, 0)).metres(5, 20))


def test_a_centimetre_is_seen():
    place = line((48, 11), (48.0000001, 11.0000001))
    assert place.metres(48.0000001, 11) == pytest.approx(0.0062, abs=2e-4)


def test_agrees_with_a_search_along_the_arcs():
    random = np.random.default_rng(3)
    for _ in range(60):
        size = 10 ** random.uniform(-3, 1.5)
        vertices = random.uniform(-60, 60, 2) + random.uniform(-size, size, (5, 2))
        latitude, longitude = vertices[0][::-1] + random.uniform(-2 * size, 2 * size, 2)
        latitude = max(-89.0, min(89.0, latitude))
        ends = unit(vertices)
        share = np.linspace(0, 1, 4001)[:, None]
        steps = np.concatenate([(1 - share) * a + share * b for a, b in pairwise(ends)])
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        chord = np.linalg.norm(steps - unit(np.array([[longitude, latitude]])), axis=1).min()
        wanted = RADIUS * 2 * math.asin(chord / 2)
        got = ArcOutline(vertices, np.zeros(5, int)).metres(latitude, longitude)
        assert got == pytest.approx(wanted, rel=1e-3, abs=size * 50)
        assert got <= wanted + 1e-3
