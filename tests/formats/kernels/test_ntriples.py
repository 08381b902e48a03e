"""Reading N-Triples without a parser gives what a parser gives, or leaves the document to one."""

from __future__ import annotations

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.formats.kernels.strategies import document, graphs, loose_documents
from tidings.arrays.spans import plain_texts
from tidings.errors import EventError
from tidings.formats import rdf
from tidings.formats.documents import safe_text
from tidings.kinds.patterns.graphs import GraphBatch, read
from tidings.model.terms import Triple, ntriples, plain, read_graph

ONE = b'<urn:a> <urn:p> "1" .\n'


def batches(documents: list[bytes]) -> tuple[list[GraphBatch], dict[int, str], list[bytes]]:
    """The chunks, the errors, and the documents that a parser was asked for."""
    parsed: list[bytes] = []

    def canonical(data: bytes) -> bytes:
        parsed.append(data)
        return rdf.canonical(data, rdf.NTRIPLES)

    errors: dict[int, str] = {}
    return list(read(documents, canonical, errors)), errors, parsed


def by_parser(data: bytes) -> set[str]:
    """The lines that pyoxigraph writes for a document: what everything is measured against."""
    written = ox.serialize(ox.parse(data, format=ox.RdfFormat.N_TRIPLES), format=ox.RdfFormat.N_TRIPLES)
    assert written is not None
    return set(written.decode().split("\n")) - {""}


def lines(graph: list[Triple]) -> set[str]:
    return {f"{ntriples(s)} {ntriples(p)} {ntriples(o)} ." for s, p, o in graph}


@given(st.lists(graphs, max_size=4))
def test_canonical_graphs_need_no_parser(many: list[list[Triple]]) -> None:
    documents = [document(graph) for graph in many]
    found, errors, parsed = batches(documents)
    assert not errors
    assert not parsed
    assert [batch.triples(i) for batch in found for i in range(len(batch))] == many
    for data, graph in zip(documents, many, strict=True):
        assert by_parser(data) == lines(graph)  # our canonical text is the parser's
        assert read_graph(data) == graph


@given(graphs)
def test_a_missing_final_newline_changes_nothing(graph: list[Triple]) -> None:
    (batch,), errors, _ = batches([document(graph)[:-1]])
    assert batch.triples(0) == graph
    assert not errors


@given(loose_documents())
def test_other_forms_go_through_the_parser(loose: tuple[list[Triple], bytes]) -> None:
    graph, data = loose
    (batch,), errors, _ = batches([data])
    assert not errors
    assert lines(batch.triples(0)) == lines(graph) == by_parser(data)


@given(st.lists(graphs, min_size=1, max_size=3), st.binary(min_size=1, max_size=40), st.data())
def test_bad_bytes_are_an_error_and_nothing_else_is_lost(
    many: list[list[Triple]], junk: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(many)))
    documents = [document(graph) for graph in many]
    documents.insert(at, b"<urn:a> <urn:p> <urn:b> .\n\xff" + junk)
    found, errors, _ = batches(documents)
    assert set(errors) == {at}
    assert errors[at]
    triples = [batch.triples(i) for batch in found for i in range(len(batch))]
    assert triples.pop(at) == []
    assert triples == many


@given(graphs, st.binary(max_size=8), st.integers(0, 200), st.integers(0, 8))
@example([], b"\xef\xbb\xbf", 0, 0)
@example([], b"\xff\xfe", 0, 0)
def test_damaged_documents_are_read_as_the_parser_reads_them(
    graph: list[Triple], junk: bytes, at: int, lost: int
) -> None:
    """A few bytes cut out and others put in: an error for both, or the same triples. The parser knows UTF-8 alone: a
    document whose first bytes show another encoding, or that it is UTF-8, is compared with what it is in plain UTF-8."""
    whole = document(graph)
    damaged = whole[:at] + junk + whole[at + lost :]
    expected = None
    for read_as in (bytes, safe_text):
        try:
            expected = by_parser(read_as(damaged))
            break
        except (EventError, SyntaxError, ValueError):
            continue
    (batch,), errors, parsed = batches([damaged])
    if expected is not None:
        assert not errors
        assert lines(batch.triples(0)) == expected
    elif parsed:
        assert set(errors) == {0}


@pytest.mark.parametrize(
    "line",
    [
        b'<urn:a> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .\n',
        b'<urn:a> <urn:p> "x"@EN .\n',
        b'<urn:a> <urn:p> "\\u0041" .\n',
        b'<urn:a> <urn:p> "\\U0001F600" .\n',
        b'<urn:a> <urn:p> "\\u000a" .\n',
        b'<urn:a> <urn:p> "\\u007f" .\n',
        b'<urn:a> <urn:p> "\x7f" .\n',
        b'<urn:a> <urn:p> "\t" .\n',
        b"<urn:a> <urn:p> <urn:b>.\n",
        b"<urn:a>\t<urn:p> <urn:b> .\n",
        b"<urn:a> <urn:p> <urn:b> . # said\n",
        b"# said\n",
        b"<urn:a> <urn:p> <urn:\\u00E9> .\n",
        b"<urn:a> <urn:p> <urn:b> .\r\n",
    ],
)
def test_valid_but_not_canonical(line: bytes) -> None:
    """Each of these, among others, is a reason of its own to ask the parser."""
    (batch,), errors, parsed = batches([ONE, ONE + line, ONE])
    assert not errors
    assert parsed == [ONE + line]
    assert lines(batch.triples(1)) == by_parser(ONE + line)
    assert batch.triples(0) == batch.triples(2) == read_graph(ONE)


@pytest.mark.parametrize(
    "line",
    [
        b'"a" <urn:p> "x" .\n',
        b'<urn:a> _:p "x" .\n',
        b'<urn:a> "p" "x" .\n',
        b'<urn:a> <urn:p> "x\n',
        b'<urn:a> <urn:p> "\\ud800" .\n',
        b'<urn:a> <urn:p> "\\x" .\n',
        b'<urn:a> <urn:p> "x"@ .\n',
        b'<urn:a> <urn:p> "x"^^ .\n',
        b"<urn:a> <urn:p> .\n",
        b"<urn:a> <urn:p> <urn:b>\n",
        b"<urn:a> <urn:p> <urn:b> <urn:g> .\n",
        b"<urn:a> <urn:p> <b> .\n",
        b"<urn:a b> <urn:p> <urn:b> .\n",
        b"<urn:a> <urn:p> _: .\n",
        b"\xef\xbb",
        b"\0",
    ],
)
def test_invalid(line: bytes) -> None:
    (batch,), errors, _ = batches([ONE, ONE + line, ONE])
    assert set(errors) == {1}
    assert batch.triples(0) == batch.triples(2) == read_graph(ONE)
    assert batch.triples(1) == []


def test_terms_are_numbered_once_for_a_batch() -> None:
    (batch,), _, _ = batches([ONE * 3, ONE, b"", ONE])
    assert len(batch.term_low) == 3
    assert [len(batch.triples(i)) for i in range(4)] == [3, 1, 0, 1]


def test_batches_are_cut_between_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.kinds.patterns.graphs.CHUNK_BYTES", 50)
    documents = [ONE * n for n in (1, 0, 2, 9, 1, 1, 0)]
    found, _, _ = batches(documents)
    assert len(found) > 3
    assert [batch.first_row for batch in found] == np.cumsum([0, *(len(b) for b in found)])[:-1].tolist()
    assert [len(b.triples(i)) for b in found for i in range(len(b))] == [1, 0, 2, 9, 1, 1, 0]


@given(graphs)
def test_plain_texts(graph: list[Triple]) -> None:
    """What a subscriber reads is what `terms.plain` says of a term."""
    (batch,), _, _ = batches([document(graph)])
    terms = np.concatenate([batch.subjects, batch.properties, batch.objects])
    found = plain_texts(batch.blob, batch.term_low, batch.term_high, terms)
    assert found.to_pylist() == [plain(t[i]) for i in range(3) for t in graph]
    found.validate(full=True)
