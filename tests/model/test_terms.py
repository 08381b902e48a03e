"""A term has one text, and it is the one pyoxigraph writes."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.kernels.strategies import blanks, document, graphs, iris, literals, texts
from tidings.errors import EventError
from tidings.formats.namespaces import XSD
from tidings.model.terms import (
    Blank,
    Iri,
    Literal,
    Term,
    Triple,
    escape,
    from_ntriples,
    ntriples,
    plain,
    read_graph,
    unescape,
)


def by_pyoxigraph(term: Term) -> str:
    if isinstance(term, Iri):
        return str(ox.NamedNode(term.value))
    if isinstance(term, Blank):
        return str(ox.BlankNode(term.label))
    datatype = ox.NamedNode(term.datatype) if term.datatype else None
    triple = ox.Triple(
        ox.NamedNode("urn:a"),
        ox.NamedNode("urn:p"),
        ox.Literal(term.text, datatype=datatype, language=term.language),
    )
    line = ox.serialize([triple], format=ox.RdfFormat.N_TRIPLES)
    assert line is not None
    return line.decode().removeprefix("<urn:a> <urn:p> ").removesuffix(" .\n")


@given(st.one_of(iris, blanks, literals))
def test_texts_are_those_of_pyoxigraph_and_come_back(term: Term) -> None:
    assert ntriples(term) == by_pyoxigraph(term)
    assert from_ntriples(ntriples(term)) == term


@given(st.characters(codec="utf-8"))
def test_every_character_is_escaped_alike(char: str) -> None:
    assert ntriples(Literal(char)) == by_pyoxigraph(Literal(char))


@given(texts)
def test_unescape_undoes_escape(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "\n" not in escape(text)
    assert '"' not in escape(text).replace('\\"', "")


@given(graphs)
def test_graphs_come_back(graph: list[Triple]) -> None:
    assert read_graph(document(graph)) == graph


def test_a_string_is_written_without_its_datatype() -> None:
    assert ntriples(Literal("a", XSD + "string")) == '"a"'


@pytest.mark.parametrize("text", ["", "a", "<a", '"a', '"a"@', '"a"^^x', "_:", '"a" ', "<a> <b>", '"a\\'])
def test_what_is_no_term_is_refused(text: str) -> None:
    with pytest.raises(EventError, match="not a term"):
        from_ntriples(text)


def test_what_is_no_statement_is_refused() -> None:
    with pytest.raises(EventError, match="not an N-Triples statement"):
        read_graph(b"<urn:a> <urn:p> .\n")


def test_plain() -> None:
    assert [
        plain(t) for t in (Iri("urn:a"), Blank("b"), Literal("1", XSD + "integer"), Literal("x", None, "en"))
    ] == [
        "urn:a",
        "_:b",
        "1",
        "x",
    ]
