"""Publication summaries: what similar publications have in common, with how often they are matched. RSS cluster, 4.3.

A summary is a set of edges. Similarity is Jaccard's, over edges. Two publications are replaced by what they share, so the algorithm ends.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.cluster.node import Graphs, Pairs
from benchmarks.workloads import NO_VALUE, Longs

Edge = tuple[int, int, int]
NUMBER = -1
"""Stands for any number: publications that differ in a price alone are the same here."""


@dataclass(frozen=True, slots=True)
class Summary:
    edges: frozenset[Edge]
    matches: int

    def graph(self, number: int) -> Graphs:
        """As a publication, with a node for NUMBER."""
        columns = np.array(sorted(self.edges), np.int32).reshape(-1, 3).T
        subject, label, object_ = (np.where(column == NUMBER, number, column)[None] for column in columns)
        return Graphs(*map(np.ascontiguousarray, (subject, label, object_)))


class Summaries:
    """The publication matrix. Two summaries that are more similar than the threshold never stay in it."""

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold
        self._by_number: dict[int, Summary] = {}
        self._with_edge: dict[Edge, set[int]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def collect(self, publications: Graphs, pairs: Pairs, value: Longs) -> None:
        """Algorithm `statCollection` for each publication, with the pairs that were matched."""
        matches = np.bincount(pairs[:, 0], minlength=len(publications.subject)).tolist()
        nodes = (np.where(value[column] != NO_VALUE, NUMBER, column) for column in publications[::2])
        subjects, objects = (column.tolist() for column in nodes)
        columns = (subjects, publications.label.tolist(), objects)
        for subject, label, object_, count in zip(*columns, matches, strict=True):
            self.add(Summary(frozenset(zip(subject, label, object_, strict=True)), count))

    def add(self, summary: Summary) -> None:
        """The most similar one and the new one are replaced by what they share, as long as there is one."""
        while (number := self._most_similar(summary)) is not None:
            other = self._by_number.pop(number)
            for edge in other.edges:
                self._with_edge[edge].discard(number)
            summary = Summary(summary.edges & other.edges, summary.matches + other.matches)
        self._by_number[self._next] = summary
        for edge in summary.edges:
            self._with_edge.setdefault(edge, set()).add(self._next)
        self._next += 1

    def _most_similar(self, summary: Summary) -> int | None:
        shared = Counter(number for edge in summary.edges for number in self._with_edge.get(edge, ()))
        best, most = None, self.threshold
        for number, common in shared.items():
            similarity = common / (len(summary.edges) + len(self._by_number[number].edges) - common)
            if similarity > most:
                best, most = number, similarity
        return best

    def by_frequency(self) -> list[Summary]:
        """Those that are matched most come first."""
        return sorted(self._by_number.values(), key=lambda summary: -summary.matches)
