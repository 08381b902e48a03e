"""Reads a batch of graphs into arrays, which every index of patterns is matched against.

Terms are numbered once for the whole batch, however many indexes use it. Batches are cut into chunks of about a
megabyte of text, so that the table of terms stays in the processor's cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidings.arrays.hashing import hash_span, table_size
from tidings.arrays.vocabulary import freeze_texts
from tidings.errors import EventError
from tidings.formats.kernels.ntriples import read_ntriples
from tidings.formats.namespaces import RDF, RDFS
from tidings.model.terms import Triple, from_ntriples

CHUNK_BYTES = 1 << 20
_MEMBERSHIP = re.compile(re.escape(RDF) + r"_[0-9]+")


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """Graphs `first_row`, `first_row + 1`, … of a batch; see `formats/kernels/ntriples.py` for the layout."""

    first_row: int
    blob: np.ndarray
    term_low: np.ndarray
    term_high: np.ndarray
    term_hash: np.ndarray
    subjects: np.ndarray
    properties: np.ndarray
    objects: np.ndarray
    first: np.ndarray

    def __len__(self) -> int:
        return len(self.first) - 1

    def text(self, term: int) -> str:
        """The N-Triples text of a term."""
        return self.blob[self.term_low[term] : self.term_high[term]].tobytes().decode()

    def triples(self, graph: int) -> list[Triple]:
        """One graph as terms."""
        part = slice(self.first[graph], self.first[graph + 1])
        columns = (self.subjects[part], self.properties[part], self.objects[part])
        return [
            (from_ntriples(self.text(s)), from_ntriples(self.text(p)), from_ntriples(self.text(o)))
            for s, p, o in zip(*columns, strict=True)
        ]


def read(
    documents: list[bytes], canonical: Callable[[bytes], bytes], errors: dict[int, str]
) -> Iterator[GraphBatch]:
    """Chunks of N-Triples `documents`. One that is not canonical is replaced by what `canonical` makes of it; if that fails,
    the reason goes to `errors` under its row, and the graph is empty."""
    row = 0
    while row < len(documents):
        stop, size = row, 0
        while stop < len(documents) and (size == 0 or size + len(documents[stop]) <= CHUNK_BYTES):
            size += len(documents[stop])
            stop += 1
        chunk = documents[row:stop]
        batch, odd = _read(row, chunk)
        if len(odd):
            for i in odd:
                try:
                    chunk[i] = canonical(chunk[i])
                except EventError as error:
                    errors[row + int(i)] = str(error)
                    chunk[i] = b""
            documents[row:stop] = chunk
            batch, odd = _read(row, chunk)
            assert not len(odd), "the parser's own N-Triples must be canonical"
        yield batch
        row = stop


def _read(first_row: int, documents: list[bytes]) -> tuple[GraphBatch, np.ndarray]:
    bounds = np.zeros(len(documents) + 1, dtype=np.int64)
    np.cumsum([len(document) for document in documents], out=bounds[1:])
    text = b"".join(documents)
    blob = np.frombuffer(text, dtype=np.uint8)
    lines = text.count(b"\n") + len(documents)
    columns = tuple(np.empty(lines, dtype=np.int32) for _ in range(3))
    first = np.zeros(len(documents) + 1, dtype=np.int64)
    low, high = np.empty(3 * lines, dtype=np.int64), np.empty(3 * lines, dtype=np.int64)
    hashes = np.empty(3 * lines, dtype=np.uint64)
    slots = np.full(table_size(3 * lines), -1, dtype=np.int32)
    odd = np.zeros(len(documents), dtype=np.bool_)
    scratch = np.empty((3, 2), dtype=np.int64)
    count = read_ntriples(blob, bounds, columns, first, low, high, hashes, slots, odd, scratch)
    subjects, properties, objects = (column[: first[-1]] for column in columns)
    batch = GraphBatch(
        first_row, blob, low[:count], high[:count], hashes[:count], subjects, properties, objects, first
    )
    return batch, np.flatnonzero(odd)


def expand(batch: GraphBatch, above: Mapping[str, Sequence[str]]) -> GraphBatch:
    """The batch with what its graphs imply, by the rules of `naive.expand`; `above` are properties' superiors.

    Few graphs imply anything: the distinct properties of a batch show that, and most batches are returned unchanged.
    """
    texts = {int(p): batch.text(p)[1:-1] for p in np.unique(batch.properties)}
    members = {p for p, text in texts.items() if _MEMBERSHIP.fullmatch(text)}
    if not members and not any(text in above for text in texts.values()):
        return batch
    numbers = {text: p for p, text in texts.items()}
    new: list[str] = []

    def number(text: str) -> int:
        if text not in numbers:
            numbers[text] = len(batch.term_low) + len(new)
            new.append(text)
        return numbers[text]

    upwards = {p: [number(q) for q in above[text]] for p, text in texts.items() if text in above}
    member = number(RDFS + "member") if members else -1
    upwards.setdefault(member, []).extend(number(q) for q in above.get(RDFS + "member", ()))
    rows: list[tuple[int, int, int]] = []
    first = [0]
    for d in range(len(batch)):
        part = slice(batch.first[d], batch.first[d + 1])
        graph = dict.fromkeys(
            zip(
                batch.subjects[part].tolist(),
                batch.properties[part].tolist(),
                batch.objects[part].tolist(),
                strict=True,
            )
        )
        held: dict[int, list[int]] = {}
        for s, p, o in list(graph):
            if p in members:
                held.setdefault(s, []).append(o)
                graph[s, member, o] = None
        for s, p, o in list(graph):
            if p not in members and p != member:
                graph.update(((s, p, m), None) for m in held.get(o, ()))
        for s, p, o in list(graph):
            graph.update(((s, q, o), None) for q in upwards.get(p, ()))
        rows += graph
        first.append(len(rows))
    return _with_terms(
        batch, new, np.array(rows, dtype=np.int32).reshape(-1, 3), np.array(first, dtype=np.int64)
    )


def _with_terms(batch: GraphBatch, iris: list[str], rows: np.ndarray, first: np.ndarray) -> GraphBatch:
    """The batch with other triples, and `iris` as terms behind its own."""
    frozen = freeze_texts(f"<{iri}>" for iri in iris)
    start = frozen["start"] + len(batch.blob)
    blob = np.concatenate([batch.blob, frozen["blob"]])
    blob.flags.writeable = False  # like bytes that were read, or the loops would be compiled once more
    hashes = np.array([hash_span(blob, a, b) for a, b in pairwise(start)], dtype=np.uint64)
    return GraphBatch(
        batch.first_row,
        blob,
        np.concatenate([batch.term_low, start[:-1]]),
        np.concatenate([batch.term_high, start[1:]]),
        np.concatenate([batch.term_hash, hashes]),
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1]),
        np.ascontiguousarray(rows[:, 2]),
        first,
    )
