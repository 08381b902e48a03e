"""Mergers: the edges that subscriptions share, with a test that all their tests imply. RSS cluster, 4.3.

Edges are the same if their labels are and their vertices are the same nodes, or stars. The stars of a merger are independent of
each other, and its bound is the widest, so it matches whatever one of its members matches.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.cluster.patterns import FREE, GREATER, LESS, NO_TEST, Edge, Patterns


class Condition(NamedTuple):
    """Of one end of one edge."""

    edge: Edge
    end: int
    operator: int
    bound: int

    def wider(self, other: Condition | None) -> Condition | None:
        """What both imply, if it is a test."""
        if other is None or (self.edge, self.end, self.operator) != (other.edge, other.end, other.operator):
            return None
        if self.operator == GREATER:
            return self._replace(bound=min(self.bound, other.bound))
        if self.operator == LESS:
            return self._replace(bound=max(self.bound, other.bound))
        return self if self.bound == other.bound else None


class Merger(NamedTuple):
    edges: frozenset[Edge]
    test: Condition | None

    @classmethod
    def of(cls, patterns: Patterns, s: int) -> Merger:
        """The merger of one subscription with itself."""
        edges, test = [], None
        operator, bound = int(patterns.columns.operator[s]), int(patterns.columns.bound[s])
        for subject, label, object_ in patterns.edges(s):
            edge = (subject if subject >= 0 else FREE, label, object_ if object_ >= 0 else FREE)
            edges.append(edge)
            if operator != NO_TEST and -1 in (subject, object_):
                test = Condition(edge, (subject, object_).index(-1), operator, bound)
        return cls(frozenset(edges), test)

    def with_other(self, other: Merger) -> Merger:
        return Merger(self.edges & other.edges, self.test.wider(other.test) if self.test else None)

    def pattern(self) -> tuple[list[Edge], int, int]:
        """Edges, operator and bound."""
        edges = sorted(self.edges)
        if self.test is None:
            return edges, NO_TEST, 0
        subject, label, object_ = self.test.edge
        tested = (-1, label, object_) if self.test.end == 0 else (subject, label, -1)
        edges[edges.index(self.test.edge)] = tested
        return edges, self.test.operator, self.test.bound
