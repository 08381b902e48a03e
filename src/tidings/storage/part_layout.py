"""Which part each divided subscription is in, and which parts an entry of the front leads to. RSS cluster, 3.1.

With the place `contain`, subscriptions that match the same events are in the same part (*together*): they are ordered by the summary that matches their
container, then by the container, and this sequence is cut into parts. So an event visits few parts. The paper puts them *apart*, in turn
into all parts, so that many machines match one event at once; batches of events keep all machines busy too (docs/decisions/mergers.md has
measurements of both).

The sequence is cut by the number of subscriptions, which is memory, and by matches, which are time: those that were counted in the parts
of the last base, or else those of the sample. A part has at most 1.5 times the average number of subscriptions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class PartLayout(NamedTuple):
    """The part of each subscription, -1 for the front. `container` has, for each subscription in a part, the number of its container in the
    front; None if every event visits every part."""

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


class CountedMatches(NamedTuple):
    """Of each live subscription, in their order, the part that it was in, or -1; and the matches that were counted in each part."""

    part: np.ndarray
    matches: np.ndarray

    def by_subscription(self, sampled: np.ndarray) -> np.ndarray:
        """The matches of a part, divided among its subscriptions by those that they have in a sample. One that was in no part gets
        the average."""
        inside, weight = self.part >= 0, sampled + 1.0  # nothing in a sample is not never
        part, weight = self.part[inside], weight[inside]
        sums = np.bincount(part, weight, minlength=len(self.matches))
        found = np.zeros(len(self.part))
        found[inside] = weight * (self.matches / np.maximum(sums, 1))[part]
        found[~inside] = found[inside].mean() if inside.any() else 0
        return found


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
    # A container has the first summary of its members.
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
    """The root of each one's tree, which is itself if it has no parent."""
    found = np.where(above >= 0, above, np.arange(len(above)))
    for _ in range(max(1, len(above)).bit_length()):
        found = found[found]
    return found


def _cut(matches: np.ndarray, parts: int) -> np.ndarray:
    """The part of each subscription of a sequence: all parts have about the same number of them, and of matches."""
    weight = 2 / max(1, len(matches)) + matches / max(1, matches.sum())
    before = np.cumsum(weight) - weight / 2
    found: np.ndarray = np.minimum(parts - 1, before / max(weight.sum(), 1e-9) * parts).astype(np.int32)
    return found
