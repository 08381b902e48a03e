"""Plain Turtle written as N-Triples: byte for byte what the parser writes, or left to the parser."""

from __future__ import annotations

import re
from random import Random

import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks import texts
from benchmarks.workloads import Parameters, make
from tests.examples import examples
from tests.formats.kernels import strategies as rdf_strategies
from tidings.cli.warm import _EVENT
from tidings.errors import EventError
from tidings.formats import rdf
from tidings.formats.documents import MAX_BYTES
from tidings.formats.kernels.turtle import plain_turtle
from tidings.formats.namespaces import RDF, XSD
from tidings.model.terms import Blank, Iri, Literal, ntriples


def parsed(document: bytes) -> bytes:
    written = ox.serialize(ox.parse(document, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    assert written is not None
    return written


def agrees(document: bytes) -> bool:
    """Checks that the parser writes the same, if anything is written; returns whether there is."""
    plain = plain_turtle(document)
    if plain is not None:
        assert plain == parsed(document), document
    return plain is not None


# -- documents by hand

HEAD = "@prefix : <http://example.org/> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"

PLAIN = [
    "",
    " \t\r\n",
    "# only a comment",
    "# é \t ' \" <\r\n#\n",
    "@prefix p: <urn:x:>.",
    ":s :p :o .",
    ":s :p :o.",
    ":s :p :o.\n:s :p :o2.# end",
    ":s a :C .",
    ":s a :C, :D; :p :o, :o2 , :o3;;; :q :r;.",
    ":s :p :o ; # why\n  # and\n :q # what\n :r . # end",
    ": : : .",
    ":0 :_x- :a-b_C9 .",
    "<urn:a> <urn:p> <http://example.org:8080/a%20b?q=1&r='x'#frag/?> .",
    '<urn:a><urn:p><urn:b>,<urn:c>;<urn:q>"x". ',
    "<http://example.org> <mailto:a@b.c> <x:> .",
    "_:a :p _:b1 . _:0 :p _:x-, _:_, _:123 .",
    ':s :p "", "x", "é 中 😀 \u00a0\u0080\ufffd", "\'", "<a> . ; # @en" .',
    r':s :p "\t\b\n\r\f\"\\", "\\\\", "\"" .',
    ':s :p "x"@en , "x"@de-at;:q "x"@zh-hant, "x"@zh-hant-tw, "x"@gsw .',
    ':s :p "1"^^xsd:integer, "1"^^<urn:t>, "1"^^ :t, "1"^^# why\n<urn:t>.',
    f':s :p "1"^^<{XSD}strings>, "1"^^<{XSD}strin>, "1"^^<{RDF}langstring>.',
    ":s :p 5, 05, +5, -5, -0, 1.0, 1.50, -0.0, 1e3, 1E-3, +1.5e+30, 123456789012345678901234567890 .",
    ":s :p 5. :s :p 1.5. :s :p 1e5. :s :p 5.",
    ":s :p true, false; :q true. :s :p false.",
    "@prefix true: <urn:t:> . @prefix a: <urn:a:> . a:a a true:true, true .",
    "PREFIX p: <urn:p:>\nprefix\tq:<urn:q:>PrEfIx r-1_x: <urn:r:> p:a q:b r-1_x:c .",
    "@prefix prefix: <urn:p:> . prefix:a :b prefix:PREFIX .",
    "@prefix p: <urn:1:> . p:a :b p:c . @prefix p: <urn:2:> . p:a :b p:c . PREFIX p: <urn:3:> p:a :b p:c .",
    "@prefix # why\n p: # and\n <urn:1:> # what\n . p:a :b p:c .",
    "@prefix p: <http://h/>. @prefix q: <http://h#>. @prefix r: <http://h?>. @prefix s: <s:>. p:a q:b r:c, s:1.",
]


@pytest.mark.parametrize("body", PLAIN)
def test_plain_turtle_needs_no_parser(body: str) -> None:
    assert agrees((HEAD + body).encode())
    assert rdf.canonical(HEAD + body, "text/turtle; charset=utf-8") == parsed((HEAD + body).encode())


LEFT_TO_THE_PARSER = [
    # Turtle, but not plain, or not written in the same way
    "\ufeff",
    ":s :p [] .",
    "[] :p :o .",
    ":s :p [ :q :r ] .",
    ":s :p (1 2) .",
    ':s :p """x""" .',
    ':s :p """""" .',
    ":s :p 'x' .",
    ":s :p '''x''' .",
    ':s :p "a\tb" .',
    ':s :p "a\x7fb" .',
    ':s :p "\ufffe" .',
    ':s :p "\uffff" .',
    r':s :p "\u0041" .',
    ':s :p "\\\'" .',
    r':s :p "\U00000041" .',
    ':s :p "x"@EN .',
    ':s :p "x"@en-US .',
    ':s :p "x"@en--ltr .',
    ':s :p "x" @en .',
    ':s :p "x" ^^xsd:string .',
    ':s :p "x"^^xsd:string .',
    f':s :p "x"^^<{XSD}string> .',
    ":s :p .5 .",
    ":s :p 1.e3 .",
    ":s :p :a.b .",
    ":s :p :a:b .",
    ":s :p :a%20b .",
    r":s :p :a\,b .",
    ":s :p :é .",
    ":s :p _:a.b .",
    ":s :p _:é .",
    ":s :p <urn:é> .",
    r":s :p <urn:\u0041> .",
    "@base <http://example.org/> .",
    "BASE <http://example.org/>",
    "@base <http://example.org/> . <a> <b> <c> .",
    "@prefix p.q: <urn:> .",
    "@prefix p: <http://example.org> . p:a p:b p:c .",
    "@prefix é: <urn:> .",
    ":s :p <http://[::1]/> .",
    ":s :p <http://user@host/> .",
    ":s :p <<( :a :b :c )>> .",
    "<< :a :b :c >> :p :o .",
    ":s :p :o {| :q :r |} .",
    ":s :p :o ~ :r .",
    "# a zero \0",
    "# a control \x01",
    'VERSION "1.2"',
    # no Turtle
    "\0",
    ":s",
    ":s :p",
    ":s :p :o",
    ":s :p :o ;",
    ":s :p :o ,",
    ":s :p :o , .",
    ":s :p :o ; , :q .",
    ":s ; :p :o .",
    ":s . ",
    ".",
    ":s :p :o . .",
    ":s :p :o . }",
    ":s :p a .",
    "a :p :o .",
    ':s "x" :o .',
    '"x" :p :o .',
    ":s _:b :o .",
    ":s 1 :o .",
    "true :p :o .",
    ":s :p True .",
    ":s :p truex .",
    ":s :p -x .",
    ":s :p :-x .",
    ":s :p _:-x .",
    ":s :p _: .",
    ":s :p + .",
    ":s :p 1e .",
    ":s :p 1e+ .",
    ":s :p 1x .",
    ":s :p 1.5.5 .",
    ":s :p unknown:o .",
    ":s :p <relative> .",
    ":s :p <> .",
    ":s :p <1:x> .",
    ":s :p <:x> .",
    ":s :p <urn:a b> .",
    ":s :p <urn:a\nb> .",
    ":s :p <urn:%4> .",
    ":s :p <urn:%zz> .",
    ":s :p <urn:a#b#c> .",
    ":s :p <urn:[> .",
    ":s :p <urn:^> .",
    ":s :p <http://h:8x/> .",
    ":s :p <urn:a",
    ':s :p "x .',
    ':s :p "x\ny" .',
    ':s :p "x\\',
    r':s :p "\x" .',
    ':s :p "x"@ .',
    ':s :p "x"@e .',
    ':s :p "x"@en- .',
    ':s :p "x"@abcdefghi .',
    ':s :p "x"@en-us-us .',
    ':s :p "x"@de-at-latn .',
    ':s :p "x"^ :t .',
    ':s :p "x"^^a .',
    ':s :p "x"^^ .',
    ':s :p "x"^^"y" .',
    ':s :p "x"^^_:b .',
    f':s :p "x"^^<{RDF}langString> .',
    f':s :p "x"^^<{RDF}dirLangString> .',
    "@prefix p <urn:> .",
    "@prefix p : <urn:> .",
    "@prefix p: urn: .",
    "@prefix p: <urn:>",
    "@prefix p: <rel> .",
    "@prefix _: <urn:> .",
    "@prefix 1: <urn:> .",
    "@prefix: <urn:> .",
    "@prefixp: <urn:> .",
    "@PREFIX p: <urn:> .",
    "@pREFIX p: <urn:> .",
    "PREFIX p: <urn:> .",
    "PREFIXp: <urn:>",
    "@prefix p: <http://h:80> . p:1a p:b p:c .",
    ":s :p :o .\f",
    ":s :p :o .\x0b:s :p :o .",
]


@pytest.mark.parametrize("body", LEFT_TO_THE_PARSER)
def test_everything_else_is_left_to_the_parser(body: str) -> None:
    document = body if body.startswith("\ufeff") else HEAD + body
    assert plain_turtle(document.encode()) is None


@pytest.mark.parametrize(
    "cut", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbf", b"\xf4\x90\x80\x80"]
)
def test_bytes_that_are_not_utf8_are_left_to_the_parser(cut: bytes) -> None:
    assert plain_turtle(HEAD.encode() + b':s :p "' + cut + b'" .') is None
    assert plain_turtle(HEAD.encode() + b"# " + cut) is None


@pytest.mark.parametrize("body", [body for body in PLAIN if "😀" not in body])
def test_a_document_that_ends_early(body: str) -> None:
    document = (HEAD + body).encode()
    for size in range(len(document)):
        if plain_turtle(document[:size]) is not None:
            agrees(document[:size])


# -- size


def test_many_prefixes() -> None:
    def document(count: int) -> bytes:
        declared = "".join(f"@prefix p{i}: <urn:{i}:> .\n" for i in range(count))
        return (declared + "".join(f"p{i}:s p0:p p{count - 1 - i}:o .\n" for i in range(count))).encode()

    assert agrees(document(64))
    assert not agrees(document(65))


@pytest.mark.parametrize("long", [20, 300, 5_000, 30_000])
@pytest.mark.parametrize("lines", [1, 7, 50])
def test_a_long_prefix_grows_without_harm(long: int, lines: int) -> None:
    head = f"@prefix : <urn:{'x' * long}> .\n"
    assert agrees((head + ":a :b :c .\n" * lines).encode())
    assert agrees((head + ":a :b " + ", ".join([":c"] * lines) + ".\n").encode())
    assert agrees((head + ":a " + "; ".join([":b 1"] * lines) + ".\n").encode())
    assert agrees((head + ":a :b " + ", ".join(['"c"^^:d'] * lines) + ".\n").encode())


def test_every_size_around_the_room_there_is() -> None:
    for long in range(8 * 40, 8 * 40 + 300):  # the first room is a multiple of the document's size
        document = f"@prefix : <urn:{'x' * long}> .\n" + ":a :b :c .\n" * 30 + '_:a :b true, 1.5, "x"@en .'
        assert agrees(document.encode())


def test_what_grows_beyond_the_limit_is_left_to_the_parser() -> None:
    assert plain_turtle(f"@prefix : <urn:{'x' * 300_000}> .\n{':a :b :c .' * 20}".encode()) is None
    assert plain_turtle(b"<urn:a> <urn:b> 5 .\n" * (MAX_BYTES // 20)) is None


# -- documents by chance

_PREFIXES = {
    "": "http://example.org/",
    "p": "urn:x:",
    "a": "http://example.org/a#",
    "true": "http://example.org",
    "prefix": "http://example.org/a%20b/",
    "p.q": "urn:y:",
    "é": "urn:é:",
    "xsd": XSD,
    "rdf": RDF,
}
_GAPS = [" ", " ", " ", "\n", "\t", "  # a comment\n", "\r\n", " # é <\r", "", "#\n"]
_locals = st.one_of(
    st.text(st.sampled_from("abZ019_-"), max_size=5), st.text(st.sampled_from("ab1_-.:%é\\"), max_size=4)
)
_ODD_TERMS = re.split(
    r"  |\n",
    r'''[]  [ :p :o ]  ( 1 )  ()  'x'  ''  "\u00e9"  "a	b"  <rel>  <>  .5  1.e5  "x"@en-US  "x" @en  "x"^^ <urn:t>
<<( :a :b :c )>>  a  1.  -  _:a.b  "x"@en--ltr  True  u:x  "x"^^xsd:string  "x"^^rdf:langString  <http://h:1/>
<urn:%20#a#>  prefix  """x"y"""''',
)
_numbers = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?", fullmatch=True),
    st.sampled_from(["true", "false"]),
)


@st.composite
def turtle_documents(draw: st.DrawFn) -> bytes:
    """Graphs in any style of Turtle; now and then a term that is not plain, or not Turtle."""
    odd = draw(st.booleans())  # half of the documents have a chance to be plain as a whole
    names = st.sampled_from(
        ["", "p", "a", *(["true", "prefix", "p.q", "é", "unknown"] if odd else ["prefix"])]
    )

    def gap() -> str:
        return draw(st.sampled_from(_GAPS if odd else _GAPS[:8]))

    def name() -> str:
        local = draw(_locals if odd else st.from_regex(r"([a-z0-9_][a-z0-9_-]{0,4})?", fullmatch=True))
        return f"{draw(names)}:{local}"

    def term(position: int) -> str:
        if odd and draw(st.integers(0, 9)) == 0:
            return draw(st.sampled_from(_ODD_TERMS))
        if position == 1 and draw(st.booleans()):
            return "a"
        if draw(st.booleans()):
            return name()
        if position == 2 and draw(st.booleans()):
            return draw(_numbers)
        triple = draw(rdf_strategies.triples)
        value = triple[position]
        if not odd:
            if isinstance(value, Blank):
                return "_:b0"
            if isinstance(value, Literal):
                safe = "".join(c for c in value.text if c >= " " and c not in "\x7f\ufffe\uffff")
                value = Literal(safe, value.datatype, "en" if value.language else None)
            if isinstance(value, Iri):
                value = Iri(value.value.encode("ascii", "ignore").decode())
        written = ntriples(value)
        if isinstance(value, Literal) and value.datatype and draw(st.booleans()):
            written = written[: written.rindex("^^")] + "^^" + name()
        return written

    out = []
    for prefix in draw(st.permutations(list(_PREFIXES) if odd else ["", "p", "a", "prefix"])):
        if draw(st.booleans()):
            out += ["@prefix", " ", prefix, ":", gap(), f"<{_PREFIXES[prefix]}>", gap(), ".", gap()]
        else:
            word = draw(st.sampled_from(["PREFIX", "prefix", "Prefix"]))
            out += [word, " ", prefix, ":", gap(), f"<{_PREFIXES[prefix]}>", gap()]
    for _ in range(draw(st.integers(0, 3))):
        out += [term(0), gap()]
        for j in range(draw(st.integers(1, 3))):
            out += [";" * draw(st.integers(1, 2)), gap()] if j else []
            out += [term(1), gap()]
            for k in range(draw(st.integers(1, 2))):
                out += [",", gap()] if k else []
                out += [term(2), gap()]
        out += [draw(st.sampled_from([".", ".", ".", ";."])), gap()]
    return "".join(out).encode()


@examples(120)
@given(turtle_documents())
@example(b"")
def test_documents_by_chance(document: bytes) -> None:
    agrees(document)


_PIECES = [bytes([byte]) for byte in range(256)] + 8 * [
    *(bytes([byte]) for byte in b" \n\t#.,;:<>\"'@^_-+/\\%[](){}|~aep05Z\0\x7f"),
    *(
        b"@en",
        b"^^",
        b"\\u0041",
        b"\xc3\xa9",
        b"\xef\xbf\xbe",
        b"//",
        b" a ",
        b"1e",
        b"_:",
        b"true",
        b"PREFIX ",
        b"",
    ),
]


def changed(random: Random, document: bytes) -> bytes:
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(document))
        document = document[:at] + random.choice(_PIECES) + document[at + random.randint(0, 2) :]
    return document


@examples(40)
@given(turtle_documents(), st.randoms(use_true_random=True))
def test_documents_by_chance_with_bytes_changed(document: bytes, random: Random) -> None:
    for _ in range(20):
        agrees(changed(random, document))


def test_documents_by_hand_with_bytes_changed() -> None:
    random = Random(7)
    documents = [(HEAD + body).encode() for body in 8 * PLAIN + LEFT_TO_THE_PARSER]
    plain = sum(agrees(changed(random, random.choice(documents))) for _ in range(60_000))
    assert plain > 2_000


def test_terms_by_chance() -> None:
    """Letters that matter to a kind of term, in any order, where it can stand."""
    random = Random(11)
    kinds = {
        b"<urn:a> a <%s>.": b"ab1:/?#%@.+-[]~!0f",
        b"@prefix p: <%s>. p:a p: p:1-.": b"ab1:/?#%@.+-0f",
        b"@prefix p: <urn:>. p:%s a 1": b"ab01_-.:; %",
        b'<urn:a> a "x"@%s.': b"abcdex1-E",
        b'<urn:a> a "%s".': b'tbnrfux"\\0041 ',
        b"<urn:a> a %s.": b"0159.+-eE",
        b"<urn:a> a _:%s.": b"0159abcdef-_Z.",
    }
    for form, letters in kinds.items():
        for _ in range(4_000):
            agrees(form % bytes(random.choices(letters, k=random.randint(1, 10))))


def test_half_of_the_documents_by_chance_are_plain() -> None:
    found = []

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(turtle_documents())
    def count(document: bytes) -> None:
        found.append(plain_turtle(document) is not None)

    count()
    assert sum(found) > len(found) / 4


# -- the ways that have to be fast


def test_the_benchmarks_documents_are_plain() -> None:
    workload = make(Parameters(subscriptions=2000, shapes=250))
    assert all(agrees(document) for document in texts.documents(workload, "turtle"))


def test_warming_compiles_the_plain_way() -> None:
    assert plain_turtle(_EVENT.encode()) is not None


def test_a_wrong_base_is_told_by_the_parser() -> None:
    with pytest.raises(EventError):
        rdf.canonical("<urn:a> <urn:p> 1 .", "turtle", base="not a base")
