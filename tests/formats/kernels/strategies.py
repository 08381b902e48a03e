"""RDF as Hypothesis invents it: what is rare in people's documents is common here."""

from __future__ import annotations

from hypothesis import strategies as st

from tidings.formats.namespaces import RDF, XSD
from tidings.model.terms import Blank, Iri, Literal, Triple, ntriples

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


# JSON objects as anyone may write them: odd white space, names twice, escapes that need not be, and flaws.
_JSON_NAMES = [
    "a",
    "b",
    "a.b",
    "b.a",
    "a.b.a",
    "",
    ".",
    "é",
    "name",
    "eight888",
    "eight8888",
    "a name of more bytes",
]
_json_name = st.sampled_from(_JSON_NAMES)
json_paths = st.lists(
    _json_name | st.lists(_json_name, min_size=1, max_size=3).map(".".join),
    unique=True,
    min_size=1,
    max_size=8,
)
_ESCAPES = (
    r"\" \\ \/ \b \f \n \r \t \u0000 \u001F \u0061 \u00e9 \u2028 \uffff \ud83d\ude00 \ud83d \ude00".split()
)
_json_string = st.lists(
    st.sampled_from(
        ["a", "1", " ", "/", "'", "\x7f", "\x80", "é", "߿", "中", "\uffff", "😀", "ten plain.", *_ESCAPES]
    )
    | st.characters(codec="utf-8", min_codepoint=32, exclude_characters='"\\'),
    max_size=5,
).map(lambda pieces: f'"{"".join(pieces)}"')
_json_scalar = st.one_of(
    _json_string,
    st.sampled_from(
        ["true", "false", "null", "0", "-0", "1", "-12.5", "1e5", "1E+05", "2.50e-3", "1e-400", "7" * 23]
    ),
    st.sampled_from(["NaN", "-Infinity", "1e400", "-1e400", "7" * 210]),
    st.floats().map(repr),
)
_gap = st.sampled_from(["", "", "", " ", "\t \r\n"])


def _json_lists(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(_gap, st.lists(value, max_size=4), _gap).map(
        lambda d: f"[{d[0]}{f'{d[2]},'.join(d[1])}{d[2]}]"
    )


def _json_dicts(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    name = st.one_of(_json_name.map('"{}"'.format), _json_name.map('"{}"'.format), _json_string)
    members = st.lists(st.tuples(name, _gap, st.just(":"), _gap, value).map("".join), max_size=5)
    return st.tuples(_gap, members, _gap).map(lambda d: f"{{{d[0]}{f'{d[2]},'.join(d[1])}{d[2]}}}")


_json_value = st.recursive(_json_scalar, lambda v: st.one_of(_json_lists(v), _json_dicts(v)), max_leaves=8)
json_objects = st.tuples(_gap, _json_dicts(_json_value), _gap).map(lambda parts: "".join(parts).encode())

_FLAWED = '01 1. .5 +1 - 1e 1e+ 0x1 1_0 --1 1.e5 00 -01 True nul tru falsey nan \'a\' \ufeff1 "\x1f" "\\x" "\\u12G4"'.split()
flawed_json = st.one_of(
    st.sampled_from(_FLAWED).flatmap(lambda flaw: _json_dicts(_json_scalar | st.just(flaw))).map(str.encode),
    _json_value.map(str.encode),
    st.binary(max_size=12),
    st.sampled_from(
        [
            b"",
            b" \n",
            b"null",
            b" null\r",
            b"nulls",
            b"\xef\xbb\xbf{}",
            b"{",
            b"}",
            b"{}}",
            b"{} {}",
            b"{}\0",
            b"[]",
        ]
    ),
)


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[bytes]) -> bytes:
    """A document of which a few bytes were lost, changed or added."""
    data = bytearray(draw(documents))
    for _ in range(draw(st.integers(0, 2))):
        at, lost = draw(st.integers(0, len(data))), draw(st.integers(0, 1))
        data[at : at + lost] = draw(
            st.sampled_from([b"", *b'{ } [ ] , : " \\ 0 1 e . - \x1f \x80 \xc3 \xed \xa0 \xf4'.split()])
        )
    return bytes(data)
