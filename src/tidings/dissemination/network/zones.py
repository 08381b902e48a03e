"""Zones of a content-addressable network: they divide a space, and each node owns one or more. Select-joins, Appendix A.

A node that joins takes half of the zone with the highest load, points and visits together; it is divided at the median of its
points, in the dimension in which a sample of regions would meet the fewest halves; without a sample, in the widest one. The half
that holds the corner at which anchors lie stays with its owner, so the first node, the server, is where most trees begin. A node that leaves gives each of its zones to
the neighbour with the fewest points. Zones that are neighbours touch in one dimension and overlap in all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.dissemination.kernels import zones as kernels
from tidings.dissemination.network.regions import Region
from tidings.dissemination.schemes.message import Longs
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST

Ints = npt.NDArray[np.int32]


class ZoneArrays(NamedTuple):
    """What the loops take; points lie from `least` to `most`."""

    low: Longs
    high: Longs
    first: Ints
    beside: Ints
    least: Longs
    most: Longs


class Tree(NamedTuple):
    """The zones that a message visits, parents first; `parent` is a position in the list, -1 for the root."""

    zones: Ints
    parents: Ints
    path: Ints
    """The zones that it crosses before, from where it was injected to the root, which is the last one."""


class Zones:
    def __init__(self, points: Longs, owner: int, sample: Sequence[Region] = ()) -> None:
        """One zone for one node, with all points, one line each. `sample` are regions as messages will have."""
        dimensions = points.shape[1]
        self.points = points
        self.low = np.full((1, dimensions), LOWEST, np.int64)
        self.high = np.full((1, dimensions), HIGHEST, np.int64)
        self.owner = np.array([owner], np.int32)
        self.visits = np.zeros(1, np.int64)
        self.zone_of = np.zeros(len(points), np.int32)
        self._beside: list[Ints] = [np.empty(0, np.int32)]
        self._sample = list(sample)
        self._meeting: list[list[int]] = [list(range(len(self._sample)))]
        known = points if len(points) else np.zeros((1, dimensions), np.int64)
        # Far enough from the ends of 64 bits that differences fit.
        self._extent = np.clip(np.array([known.min(axis=0), known.max(axis=0)]), LOWEST // 4, HIGHEST // 4)
        self._arrays: ZoneArrays | None = None

    def __len__(self) -> int:
        return len(self.low)

    @property
    def arrays(self) -> ZoneArrays:
        if self._arrays is None:
            counts = np.array([len(beside) for beside in self._beside], np.int64)
            first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            beside = np.concatenate(self._beside).astype(np.int32)
            self._arrays = ZoneArrays(self.low, self.high, first, beside, *self._extent)
        return self._arrays

    def at(self, point: Longs) -> int:
        """The zone that holds a point."""
        return int(np.flatnonzero(((self.low <= point) & (point <= self.high)).all(axis=1))[0])

    def at_corner(self, node: int) -> int:
        """The first zone of a node, which for the first node is the one with the corner at which anchors lie."""
        return int(np.argmax(self.owner == node))

    def beside(self, zone: int) -> list[int]:
        return self._beside[zone].tolist()

    def join(self, node: int) -> int:
        """Divides the zone with the highest load; the new half belongs to the node. The number of the new zone."""
        counts = np.bincount(self.zone_of, minlength=len(self)).astype(np.float64)
        load = counts / max(1.0, counts.mean()) + self.visits / max(1.0, self.visits.mean())
        for zone in np.argsort(-load, kind="stable").tolist():
            cut = self._cut(zone)
            if cut is not None:
                return self._divide(zone, node, *cut)
        raise TidingsError(f"the space has {len(self)} zones and none can be divided; use fewer nodes")

    def leave(self, node: int) -> None:
        """Gives the zones of a node to neighbours that belong to others."""
        counts = np.bincount(self.zone_of, minlength=len(self))
        of_owner = np.bincount(self.owner[self.zone_of], minlength=int(self.owner.max()) + 1)
        for zone in np.flatnonzero(self.owner == node).tolist():
            others = {int(self.owner[other]) for other in self._beside[zone]} - {node}
            if not others:
                others = set(self.owner.tolist()) - {node}
            if not others:
                raise TidingsError("the last node of a network cannot leave it; let another one join before")
            heir = min(others, key=lambda other: (of_owner[other], other))
            self.owner[zone] = heir
            of_owner[heir] += counts[zone]

    def tree(self, region: Region, start: int) -> Tree:
        """How a message reaches all zones of a region from the zone where it is injected."""
        path, reached, parents = np.empty(len(self) + 1, np.int32), *np.empty((2, len(self)), np.int32)
        length = kernels.route(self.arrays, region.anchor, start, path)
        count = kernels.spread(self.arrays, region, path[length - 1], reached, parents)
        return Tree(reached[:count], parents[:count], path[:length])

    def _cut(self, zone: int) -> tuple[int, int] | None:
        """The dimension and the first coordinate of the upper half; None if it cannot be divided."""
        inside = self.points[self.zone_of == zone]
        best: tuple[tuple[float, float], int, int] | None = None
        for d in range(self.low.shape[1]):
            low, high = int(self.low[zone, d]), int(self.high[zone, d])
            if low == high:
                continue
            if len(inside):
                values = np.sort(inside[:, d])
                cut = int(values[len(values) // 2])
                if cut == values[0]:  # so that both halves have some
                    above = values[values > cut]
                    cut = int(above[0]) if len(above) else cut
                share = float((values < cut).mean())
            else:
                cut, share = low + (high - low) // 2 + 1, 0.5
            if not low < cut <= high:
                continue
            # Halves without points are of use only where nothing else is left.
            uneven = abs(share - 0.5)
            width = float(np.ptp(inside[:, d])) if len(inside) else 0.0
            met = sum(map(len, self._halves(zone, d, cut)))
            price = (met + (1e9 if uneven > 0.4 else 0.0), -width)
            if best is None or price < best[0]:
                best = (price, d, cut)
        return None if best is None else best[1:]

    def _halves(self, zone: int, d: int, cut: int) -> tuple[list[int], list[int]]:
        """The sampled regions that meet the lower and the upper half."""
        halves: tuple[list[int], list[int]] = ([], [])
        for number in self._meeting[zone]:
            region = self._sample[number]
            nearest = np.minimum(np.maximum(region.anchor, self.low[zone]), self.high[zone])
            for upper in (False, True):
                at = nearest[d]
                nearest[d] = max(at, cut) if upper else min(at, cut - 1)
                if ((region.low <= nearest) & (nearest <= region.high)).all(axis=1).any():
                    halves[upper].append(number)
                nearest[d] = at
        return halves

    def _divide(self, zone: int, node: int, d: int, cut: int) -> int:
        lower, upper = self._halves(zone, d, cut)
        new = len(self)
        self.low = np.vstack([self.low, self.low[zone]])
        self.high = np.vstack([self.high, self.high[zone]])
        # Anchors have the lowest low ends and the highest high ends: the half on that side stays where it was.
        if d % 2:
            self.high[new, d], self.low[zone, d] = cut - 1, cut
        else:
            self.low[new, d], self.high[zone, d] = cut, cut - 1
        self.owner = np.append(self.owner, np.int32(node))
        self.visits[zone] //= 2
        self.visits = np.append(self.visits, self.visits[zone])
        mine = np.flatnonzero(self.zone_of == zone)
        self.zone_of[mine[(self.points[mine, d] >= cut) != bool(d % 2)]] = new
        kept, given = (upper, lower) if d % 2 else (lower, upper)
        self._meeting[zone] = kept
        self._meeting.append(given)
        touched = self._beside[zone]
        self._beside.append(np.empty(0, np.int32))
        for other in (zone, new):
            self._beside[other] = self._touching(other, np.append(touched, [zone, new]))
        for other in touched.tolist():
            known = self._beside[other]
            known = np.append(known[known != zone], [zone, new]).astype(np.int32)
            self._beside[other] = self._touching(other, known)
        self._arrays = None
        return new

    def _touching(self, zone: int, among: npt.NDArray[np.integer]) -> Ints:
        """Those that share a border with a zone: apart by one step in one dimension, overlapping in all others."""
        low, high = self.low[among], self.high[among]
        overlap = (low <= self.high[zone]) & (self.low[zone] <= high)
        apart = (low == self.high[zone] + 1) | (high == self.low[zone] - 1)
        touching = (apart.sum(axis=1) >= 1) & ((overlap | apart).all(axis=1)) & ((~overlap).sum(axis=1) == 1)
        return np.asarray(among[touching], np.int32)
