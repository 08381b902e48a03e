"""RDF as Hypothesis invents it: what is rare in people's documents is common here."""

from __future__ import annotations

from hypothesis import strategies as st

from tidings.terms import RDF, XSD, Blank, Iri, Literal, Triple, ntriples

# Characters with an escape of their own, without one, at the edges of UTF-8's lengths, and the odd ones out.
_EDGES = '\0\x01\b\t\n\x0b\f\r\x1f "\\\x7f\x80\x85\xa0é߿ࠀ\u2028\ud7ff\ue000\ufeff\ufffd\ufffe\uffff\U00010000😀\U0010ffff'
texts = st.text(
    st.one_of(st.sampled_from(_EDGES), st.sampled_from("abu09.-<>'"), st.characters(codec="utf-8")),
    max_size=12,
)
iris = st.builds(
    lambda scheme, rest: Iri(scheme + rest),
    st.sampled_from(["urn:x:", "http://example.org/", "http://example.org/a#"]),
    st.text(st.sampled_from("abcZ09-._~!$&'()*+,;=:@/?é中😀"), max_size=8),
)
_DATATYPES = [
    XSD + "integer",
    XSD + "string",
    XSD + "boolean",
    "urn:colour",
    "http://www.w3.org/2001/XMLSchema#strong",  # as long as xsd:string
    "http://www.w3.org/2001/XMLSchemb#string",
]
literals = st.one_of(
    st.builds(Literal, texts),
    st.builds(Literal, texts, st.sampled_from([d for d in _DATATYPES if d != XSD + "string"])),
    st.builds(Literal, texts, st.none(), st.sampled_from(["en", "de-at", "zh-hant-tw", "x-klingon"])),
)
blanks = st.builds(Blank, st.sampled_from(["b0", "a-b", "a.b", "0", "_x", "Zürich", "x·y", "b" * 40]))
triples: st.SearchStrategy[Triple] = st.tuples(
    st.one_of(iris, blanks), st.one_of(iris, st.just(Iri(RDF + "type"))), st.one_of(iris, blanks, literals)
)
graphs = st.lists(triples, max_size=8)


def document(graph: list[Triple]) -> bytes:
    """The canonical N-Triples of a graph."""
    return "".join(f"{ntriples(s)} {ntriples(p)} {ntriples(o)} .\n" for s, p, o in graph).encode()


@st.composite
def loose_documents(draw: st.DrawFn) -> tuple[list[Triple], bytes]:
    """A graph and N-Triples for it as people write them: valid, but not canonical."""
    graph = draw(graphs)
    out = []
    for s, p, o in graph:
        gap = st.sampled_from([" ", "  ", "\t", " \t "])
        words = [ntriples(s), ntriples(p), _loose(draw, o)]
        line = draw(st.sampled_from(["", " ", "\t"])) + "".join(word + draw(gap) for word in words) + "."
        out.append(line + draw(st.sampled_from(["", " ", " # a comment", '\t# é " <'])))
        if draw(st.booleans()):
            out.append(draw(st.sampled_from(["", "# only a comment", "   "])))
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    return graph, (end.join(out) + draw(st.sampled_from(["", end]))).encode()


def _loose(draw: st.DrawFn, term: object) -> str:
    written = ntriples(term)  # type: ignore[arg-type]
    if not isinstance(term, Literal):
        return written
    if term.language:
        return written[: -len(term.language)] + draw(st.sampled_from([term.language, term.language.upper()]))
    if term.datatype is None and draw(st.booleans()):
        written += f"^^<{XSD}string>"
    if draw(st.booleans()):
        body = "".join(
            f"\\U{ord(c):08X}" if draw(st.booleans()) else f"\\u{ord(c):04X}" if ord(c) < 65536 else c
            for c in term.text
        )
        written = f'"{body}"' + (f"^^<{term.datatype}>" if term.datatype else "")
    return written
