"""Publications of feeds, and families of subscriptions to them, as arrays of integers. RSS cluster, Section 5.

A feed is a graph of 30 nodes. Node 0 is the item, node 1 its channel, and the edge between them is in every subscription to the feed:

    60 stable edges    from the item to each other node, then between random pairs: in every publication
    58 other edges     29 of them in a publication
    1 price            a number from 0 to 99, drawn for each publication

which makes 90 edges. The paper does not say how publications resemble each other, which merging lives on; feeds are our choice, as is that a
few feeds have most of the subscriptions and of the publications (Zipf's law, exponent 0.5).

A family is a root of 6 edges and subscriptions that it contains: each has one or two edges more than another one of the family, at
times a name instead of a variable and a narrower bound of the price. A subscription without family has 10 edges. `overlap` is the share
of subscriptions that have a container by construction; a few have one by chance besides.

A node is its number, a variable is negative: -1 is the price that is tested, -2 and -3 are stars.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.cluster.patterns import GREATER, LESS, NO_TEST, Patterns
from benchmarks.containment_workloads import COPIES, _family_sizes
from benchmarks.workloads import NO_VALUE, Edges, Longs

NODES, STABLE, OTHERS, DRAWN = 30, 60, 58, 29
PRICES = 100
_EDGES = STABLE + OTHERS
_ROOT, _ALONE = 6, 10  # edges of a root, and of a subscription without family
_LONGEST = 12
_NEAR = 2_000  # subscriptions
_ZIPF = 0.5
_MATCHED = 0.76  # of the subscriptions to a feed, by a publication of it
_TESTED, _CHANGING, _NAMED = 0.2, 0.2, 0.2

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The defaults are those of the paper. `matches` is how many subscriptions a publication satisfies, in the mean."""

    subscriptions: int = 100_000
    matches: float = 100
    overlap: float = 0.5
    starred: float = 0.9
    stars: int = 2
    nodes: int = 10_000
    labels: int = 100
    seed: int = 2007


@dataclass(frozen=True, slots=True)
class Feeds:
    """tail, head and label have a row for each feed; `name` has the numbers of its nodes."""

    tail: npt.NDArray[np.int8]
    head: npt.NDArray[np.int8]
    label: npt.NDArray[np.int16]
    name: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload:
    """`feed` has that of each subscription; `value` the number that a node stands for."""

    parameters: Parameters
    feeds: Feeds
    subscriptions: Patterns
    feed: Longs
    value: Longs

    def publications(self, count: int, seed: int = 0) -> Edges:
        """As many publications; those of other seeds are others."""
        rng = np.random.default_rng((self.parameters.seed, seed, 1))
        feeds = self.feeds
        feed = rng.choice(len(feeds.share), count, p=feeds.share)
        drawn = np.argsort(rng.random((count, OTHERS)), axis=1)[:, :DRAWN] + STABLE
        edges = np.concatenate([np.broadcast_to(np.arange(STABLE), (count, STABLE)), drawn], axis=1)
        row = feed[:, None]
        price = self.parameters.nodes + rng.integers(0, PRICES, (count, 1))
        return Edges(
            *(
                np.concatenate([column, last], axis=1).astype(np.int32)
                for column, last in (
                    (feeds.name[row, feeds.tail[row, edges]], feeds.name[feed, :1]),
                    (feeds.label[row, edges], np.full((count, 1), self.parameters.labels)),
                    (feeds.name[row, feeds.head[row, edges]], price),
                )
            )
        )


def make(parameters: Parameters) -> Workload:
    """The workload that `parameters` describe; it follows from the seed."""
    rng = np.random.default_rng(parameters.seed)
    feeds = _feeds(rng, parameters)
    sizes = np.array(
        _family_sizes(random.Random(parameters.seed), parameters.subscriptions, parameters.overlap)
    )
    family_feed = rng.choice(len(feeds.share), len(sizes), p=feeds.share)
    drawn = _Drawn(rng, parameters, feeds, np.repeat(family_feed, sizes), sizes)
    order = _mixed(rng, sizes)
    value = np.append(np.full(parameters.nodes, NO_VALUE), np.arange(PRICES))
    return Workload(parameters, feeds, drawn.patterns(order), drawn.feed[order], value)


def _mixed(rng: np.random.Generator, sizes: Longs) -> Longs:
    """A random order in which a family stays within some thousand: the first n subscriptions have the overlap of all."""
    near = np.repeat(rng.permutation(len(sizes)) * sizes.mean(), sizes) + rng.random(sizes.sum()) * _NEAR
    return np.argsort(near)


def _feeds(rng: np.random.Generator, parameters: Parameters) -> Feeds:
    count = _number_of_feeds(parameters)
    tail = rng.integers(0, NODES, (count, _EDGES), dtype=np.int8)
    head = (tail + rng.integers(1, NODES, tail.shape)).astype(np.int8) % NODES
    tail[:, : NODES - 1], head[:, : NODES - 1] = 0, np.arange(1, NODES)
    at_item = slice(STABLE, None, 2)
    tail[:, at_item], head[:, at_item] = 0, rng.integers(1, NODES, head[:, at_item].shape)
    label = rng.integers(0, parameters.labels, tail.shape, dtype=np.int16)
    name = rng.integers(0, parameters.nodes, (count, NODES), dtype=np.int32)
    share = np.arange(1, count + 1) ** -_ZIPF
    return Feeds(tail, head, label, name, share / share.sum())


def _number_of_feeds(parameters: Parameters) -> int:
    """With how many feeds a publication satisfies as many as are asked for: the shares' squares sum up to that."""
    wanted = parameters.matches / (_MATCHED * parameters.subscriptions)
    ranks = np.arange(1, 1_000_000, dtype=np.float64)
    reached = np.cumsum(1 / ranks) / np.cumsum(ranks**-_ZIPF) ** 2
    return int(np.searchsorted(-reached, -wanted)) + 1


class _Drawn:
    """Subscriptions while they are drawn, family by family: which edges of their feed they have, and which nodes are stars."""

    def __init__(
        self, rng: np.random.Generator, parameters: Parameters, feeds: Feeds, feed: Longs, sizes: Longs
    ) -> None:
        self.rng, self.parameters, self.feeds, self.feed = rng, parameters, feeds, feed
        count = len(feed)
        self.has = np.zeros((count, _EDGES), np.bool_)
        self.reached = np.zeros((count, NODES), np.bool_)
        self.star = np.zeros((count, NODES), np.bool_)
        self.operator = np.full(count, NO_TEST, np.int8)
        self.bound = np.zeros(count, np.int64)
        self.may_change = np.repeat(rng.random(len(sizes)) < _CHANGING, sizes)
        first = np.cumsum(sizes) - sizes
        self._roots(first, np.where(sizes > 1, _ROOT, _ALONE))
        for position in range(1, int(sizes.max())):
            rows = first[sizes > position] + position
            self._narrower(rows, rows - 1 if position <= COPIES else rows - position)

    def _roots(self, rows: Longs, edges: Longs) -> None:
        rng, count = self.rng, len(rows)
        self.has[rows, 0] = True
        self.reached[rows, 0] = self.reached[rows, 1] = True
        self._grow(rows, edges)
        score = np.where(self.reached[rows, 2:], rng.random((count, NODES - 2)), 2)
        chosen = np.argsort(score, axis=1)[:, : self.parameters.stars]
        good = (np.take_along_axis(score, chosen, 1) < 1) & (rng.random((count, 1)) < self.parameters.starred)
        self.star[rows[np.nonzero(good)[0]], 2 + chosen[good]] = True
        tested = rows[rng.random(count) < _TESTED]
        self.operator[tested] = np.where(rng.random(len(tested)) < 0.5, GREATER, LESS)
        self.bound[tested] = rng.integers(20, 80, len(tested))

    def _narrower(self, rows: Longs, above: Longs) -> None:
        """Draws subscriptions that those in `above` contain."""
        rng, count = self.rng, len(rows)
        for array in (self.has, self.reached, self.star, self.operator, self.bound):
            array[rows] = array[above]
        self._grow(rows, np.minimum(_LONGEST, self.has[rows].sum(axis=1) + rng.integers(1, 3, count)))
        self.star[rows] &= rng.random((count, NODES)) >= _NAMED / self.parameters.stars
        step = rng.integers(1, 4, count)
        self.bound[rows] += np.where(self.operator[rows] == GREATER, step, -step)

    def _grow(self, rows: Longs, edges: Longs) -> None:
        """Adds random edges that touch a node which is reached, until there are as many."""
        below = np.where(self.may_change[rows], _EDGES, STABLE)
        missing = edges - self.has[rows].sum(axis=1)
        left = np.flatnonzero(missing > 0)
        while len(left):
            some, edge = rows[left], self.rng.integers(0, below[left])
            tail, head = self.feeds.tail[self.feed[some], edge], self.feeds.head[self.feed[some], edge]
            fits = ~self.has[some, edge] & (self.reached[some, tail] | self.reached[some, head])
            some = some[fits]
            self.has[some, edge[fits]] = True
            self.reached[some, tail[fits]] = self.reached[some, head[fits]] = True
            missing[left[fits]] -= 1
            left = left[missing[left] > 0]

    def patterns(self, order: Longs) -> Patterns:
        """In another order. Edges with the same variables come together, so that subscriptions have few structures."""
        row, edge = np.nonzero(self.has[order])
        feed = self.feed[order][row]
        variable = np.where(self.star, -1 - np.cumsum(self.star, axis=1), 0)[order]
        ends = []
        for column in (self.feeds.tail, self.feeds.head):
            node = column[feed, edge]
            ends.append(np.where(variable[row, node] < 0, variable[row, node], self.feeds.name[feed, node]))
        tested = np.flatnonzero(self.operator[order] != NO_TEST)
        row = np.concatenate([row, tested])
        item = self.feeds.name[self.feed[order][tested], 0]
        subject = np.concatenate([ends[0], item])
        label = np.concatenate([self.feeds.label[feed, edge], np.full(len(tested), self.parameters.labels)])
        object_ = np.concatenate([ends[1], np.full(len(tested), -1)])
        by_kind = np.lexsort((np.minimum(object_, 0), np.minimum(subject, 0), row))
        columns = (column[by_kind].astype(np.int32) for column in (subject, label, object_))
        first = np.append(0, np.cumsum(np.bincount(row, minlength=len(order))))
        return Patterns(first, *columns, self.operator[order], self.bound[order])
