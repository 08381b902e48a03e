"""Computes distances on a globe: from a point to the nearest point of a line of vertices.

The Earth is a sphere of its mean radius, so that a distance is within 0.6 % of the one on the WGS 84 ellipsoid. Two
vertices in a row are joined by an arc of a great circle. All arcs are processed in one pass over arrays: the nearest
point of an arc is the foot of the perpendicular, where that lies between the ends, and one of the ends elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

RADIUS = 6_371_008.8  # metres: the mean of the ellipsoid's three half axes


class ArcOutline:
    """Arcs between vertices. Each vertex begins one, towards the next of its part; a part's last has no length."""

    def __init__(self, longitudes_latitudes: NDArray[Any], parts: NDArray[Any]) -> None:
        """Vertices in degrees, one a row, and the number of the part (ring, line or point) each belongs to."""
        starts = unit(longitudes_latitudes)
        ends = np.roll(starts, -1, axis=0)
        last = np.append(parts[1:] != parts[:-1], True)
        ends[last] = starts[last]
        # start x end, by way of their difference: exact however short the arc is.
        normals = np.cross(starts, ends - starts)
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        normals /= np.where(lengths > 0, lengths, 1)
        self.vertices = starts
        self.normals = normals
        # A point is beside an arc, not beyond one of its ends, if it is on the inner side of both.
        self.after_start = np.cross(normals, starts)
        self.before_end = np.cross(ends, normals)

    def metres(self, latitude: float, longitude: float) -> float:
        """The distance from the point to the nearest point of any arc."""
        point = unit(np.array([[longitude, latitude]]))[0]
        chord = math.sqrt(((self.vertices - point) ** 2).sum(axis=1).min())
        angle = 2 * math.asin(min(1.0, chord / 2))
        beside = (self.after_start @ point > 0) & (self.before_end @ point > 0)
        if beside.any():
            angle = min(angle, math.asin(min(1.0, np.abs(self.normals[beside] @ point).min())))
        return RADIUS * angle


def unit(longitudes_latitudes: NDArray[Any]) -> NDArray[Any]:
    """Rows of longitude and latitude in degrees as vectors of length 1."""
    longitudes, latitudes = np.radians(longitudes_latitudes.T)
    across = np.cos(latitudes)
    return np.stack((across * np.cos(longitudes), across * np.sin(longitudes), np.sin(latitudes)), axis=1)
