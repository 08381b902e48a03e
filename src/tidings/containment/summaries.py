"""Summaries of publications: the triples that similar graphs have in common, and how many subscriptions these graphs matched. RSS
cluster, 4.3.

A graph joins the summary that it is most similar to, by the share of triples that both have (Jaccard). The intersection takes the
place of both, and may be similar to a further one. A summary stands for subscriptions that match together: they are placed by it. It
is a statistic: answers do not depend on it.

A term that one graph alone has, as every item of a feed has its own address, is written as `OWN`: otherwise no two items would
have a triple in common.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.arrays import folders
from tidings.arrays.bounds import ascends, refuse_unless
from tidings.arrays.hashing import hash_span
from tidings.arrays.vocabulary import StoredTexts, Vocabulary, join_texts
from tidings.engine.engine import Engine
from tidings.engine.pipeline import find
from tidings.kinds.patterns.graphs import GraphBatch
from tidings.kinds.patterns.kind import PatternFinder, graphs_of
from tidings.model.batch import Batch

SAMPLE = 2_000  # events
_SIMILAR = 0.4
OWN = "<urn:tidings:own>"

_Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Summaries:
    """Columns: summary i has triples[first[i]:first[i + 1]], of numbers of terms, and `matches[i]`. The ones that matched most
    come first."""

    terms: StoredTexts
    triples: np.ndarray
    first: np.ndarray
    matches: np.ndarray

    def __len__(self) -> int:
        return len(self.matches)

    @classmethod
    def collect(cls, engine: Engine, events: pa.Table) -> Summaries:
        """Of the first events of a sample, matched against all subscriptions of an engine."""
        index = engine.index_snapshot()
        graphs, matches, terms = list[frozenset[_Triple]](), list[int](), Vocabulary()
        for first in range(0, min(SAMPLE, len(events)), index.events_at_once):
            batch = Batch(events.slice(first, min(index.events_at_once, SAMPLE - first)))
            pairs = find(batch, index)
            matches += np.bincount(pairs.event, minlength=len(batch)).tolist()
            graphs += _graphs(batch, engine, terms)
        return cls._of(_summed(_with_own(graphs, terms), matches), terms)

    @classmethod
    def _of(cls, found: list[tuple[frozenset[_Triple], int]], terms: Vocabulary) -> Summaries:
        found.sort(key=lambda summary: -summary[1])
        first = np.concatenate([[0], np.cumsum([len(triples) for triples, _ in found])]).astype(np.int64)
        listed = [triple for triples, _ in found for triple in sorted(triples)]
        used, numbers = np.unique(np.array(listed, np.int64).reshape(-1, 3), return_inverse=True)
        texts = list(terms.numbers)
        return cls(
            StoredTexts(*join_texts(texts[number] for number in used.tolist())),
            numbers.reshape(-1, 3).astype(np.int32),
            first,
            np.array([count for _, count in found], dtype=np.int64),
        )

    def matched_rows(self, finder: PatternFinder) -> tuple[np.ndarray, np.ndarray]:
        """Which summaries match which rows of an index of patterns."""
        found = finder.index.match(self._graph_batch())
        return found.event, found.row

    def _graph_batch(self) -> GraphBatch:
        blob, start = np.asarray(self.terms.blob), np.asarray(self.terms.start, dtype=np.int64)
        low, high = start[:-1], start[1:]
        hashes = np.array([hash_span(blob, a, b) for a, b in zip(low, high, strict=True)], dtype=np.uint64)
        subjects, properties, objects = (np.ascontiguousarray(column) for column in self.triples.T)
        blob.flags.writeable = False  # as bytes that were read are: the loops are compiled for these
        return GraphBatch(
            0, blob, low.copy(), high.copy(), hashes, subjects, properties, objects, np.asarray(self.first)
        )

    def save(self, folder: Path) -> None:
        columns = {"triples": self.triples, "first": self.first, "matches": self.matches}
        folders.save(folder, {"blob": self.terms.blob, "start": self.terms.start, **columns}, {})

    @classmethod
    def load(cls, folder: Path) -> Summaries:
        arrays, _ = folders.load(folder)
        start, first, triples = arrays["start"], arrays["first"], arrays["triples"]
        checks = [
            ("start", ascends(start, len(arrays["blob"]))),
            ("first", len(first) == len(arrays["matches"]) + 1 and ascends(first, len(triples))),
            ("triples", triples.ndim == 2 and triples.shape[1] == 3),
            ("triples", bool(np.all((triples >= 0) & (triples < len(start) - 1)))),
        ]
        refuse_unless(folder, checks)
        return cls(StoredTexts(arrays["blob"], start), triples, first, arrays["matches"])


def _graphs(batch: Batch, engine: Engine, terms: Vocabulary) -> list[frozenset[_Triple]]:
    """The triples of each event, by the numbers of their terms; none for one that cannot be read."""
    found = []
    for chunk in graphs_of(batch, engine.taxonomy.super_properties()):
        numbers = terms.number_all([chunk.text(term) for term in range(len(chunk.term_low))])
        columns = [numbers[column].tolist() for column in (chunk.subjects, chunk.properties, chunk.objects)]
        triples = list(zip(*columns, strict=True))
        found += [frozenset(triples[a:b]) for a, b in zip(chunk.first[:-1], chunk.first[1:], strict=True)]
    return found


def _with_own(graphs: list[frozenset[_Triple]], terms: Vocabulary) -> list[frozenset[_Triple]]:
    uses = Counter(term for graph in graphs for term in {term for triple in graph for term in triple})
    own = terms.number(OWN)
    names = {term: own if uses[term] == 1 else term for term in uses}
    return [frozenset((names[s], names[p], names[o]) for s, p, o in graph) for graph in graphs]


def _summed(graphs: list[frozenset[_Triple]], matches: list[int]) -> list[tuple[frozenset[_Triple], int]]:
    """The paper's statCollection, with the correction that two that are merged are gone."""
    summaries: dict[int, tuple[frozenset[_Triple], int]] = {}
    having: dict[_Triple, set[int]] = {}
    for number, (graph, count) in enumerate(zip(graphs, matches, strict=True)):
        while (similar := _most_similar(graph, summaries, having)) is not None:
            other, counted = summaries.pop(similar)
            for triple in other:
                having[triple].discard(similar)
            graph, count = graph & other, count + counted
        if graph:
            summaries[number] = graph, count
            for triple in graph:
                having.setdefault(triple, set()).add(number)
    return list(summaries.values())


def _most_similar(
    graph: frozenset[_Triple],
    summaries: dict[int, tuple[frozenset[_Triple], int]],
    having: dict[_Triple, set[int]],
) -> int | None:
    shared = Counter(number for triple in graph for number in having.get(triple, ()))
    best, most = None, _SIMILAR
    for number, common in shared.items():
        similarity = common / (len(graph) + len(summaries[number][0]) - common)
        if similarity > most:
            best, most = number, similarity
    return best
