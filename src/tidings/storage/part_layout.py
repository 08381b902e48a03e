"""Which part each divided subscription is in, and which parts an entry of the front leads to. RSS cluster, 3.1.

With the place `contain`, subscriptions that match together lie *together*: they are ordered by the summary that matches their
container, then by the container, and the order is cut into parts. So an event visits few parts. The paper puts them *apart*, one after
the other into all parts, so that one event is matched by many machines at once; a batch of events keeps all of them busy anyway
(docs/decisions/mergers.md has both measured).

The cut goes by numbers, which are memory, and by the matches that were measured, which are time: a part has at most half as many
subscriptions more than the average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class PartLayout(NamedTuple):
    """The part of each subscription, -1 for the front. Of those that are in parts, `container` has the number in the front of what each is
    below; None where everything visits every part."""

    part: np.ndarray
    parts: int
    container: np.ndarray | None = None

    def routes(self, front: int) -> np.ndarray:
        """A row for each entry of the front, a bit for each part."""
        routes = np.zeros((front, (self.parts + 7) // 8), dtype=np.uint8)
        if self.container is not None:
            of = self.part[self.part >= 0]
            bits = (128 >> (of & 7)).astype(np.uint8)
            np.bitwise_or.at(routes, (self.container, of >> 3), bits)
        return routes

    def loads(self, matches: np.ndarray) -> tuple[float, ...]:
        """The share of each part in matches that were measured; nothing if there were none."""
        inside = self.part >= 0
        found = np.bincount(self.part[inside], matches[inside], minlength=self.parts)
        return tuple((found / found.sum()).round(4).tolist()) if found.any() else ()


def split_parts(divided: np.ndarray, parts: int) -> PartLayout:
    """Parts take turns, so that they have equally many."""
    part = np.full(len(divided), -1, dtype=np.int32)
    part[divided] = np.arange(int(divided.sum())) % parts
    return PartLayout(part, parts)


def contained_parts(
    divided: np.ndarray,
    above: np.ndarray,
    parts: int,
    measured: tuple[np.ndarray, np.ndarray],
    *,
    apart: bool = False,
) -> PartLayout:
    """`above` has a parent or -1 for each subscription, then for mergers; `measured` the summary and the matches of each
    subscription."""
    count = len(divided)
    members = np.flatnonzero(divided)
    above = np.where(np.append(divided, np.zeros(len(above) - count, dtype=np.bool_)), above, -1)
    container = top(above)[members]
    if np.any(divided[container[container < count]]):
        raise ValueError("parents go in a circle; give each of equal subscriptions but one a parent")
    summary, matches = measured
    # A merger is where the first of its members is.
    of_container = np.full(len(above), len(above))
    np.minimum.at(of_container, container, np.where(summary[members] < 0, len(above), summary[members]))
    order = members[np.lexsort((members, container, of_container[container]))]
    part = np.full(count, -1, dtype=np.int32)
    if apart:
        part[order] = np.arange(len(order)) % parts
    else:
        part[order] = _cut(matches[order], parts)
    number = np.append(np.cumsum(~divided) - 1, int((~divided).sum()) + np.arange(len(above) - count))
    return PartLayout(part, parts, number[container])


def top(above: np.ndarray) -> np.ndarray:
    """Of each the last one above it, or itself."""
    found = np.where(above >= 0, above, np.arange(len(above)))
    for _ in range(max(1, len(above)).bit_length()):
        found = found[found]
    return found


def _cut(matches: np.ndarray, parts: int) -> np.ndarray:
    """The part of each of a sequence, so that all have the same share of it and of the matches."""
    weight = 2 / max(1, len(matches)) + matches / max(1, matches.sum())
    before = np.cumsum(weight) - weight / 2
    found: np.ndarray = np.minimum(parts - 1, before / max(weight.sum(), 1e-9) * parts).astype(np.int32)
    return found
