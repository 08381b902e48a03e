"""Bytes from outside: what is refused, what is mended, and that nothing else ever happens."""

from __future__ import annotations

import subprocess
import sys
import time

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import EventError
from tidings.formats.doctype import MAX_ENTITY, MAX_TAGS
from tidings.formats.documents import MAX_DEPTH, safe_text, safe_xml

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def rdf(body: str, doctype: str = "", declaration: str = "") -> str:
    """An RDF/XML document with one property, whose value is `body`."""
    head = f'{declaration}{doctype}<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e/">'
    return f'{head}<rdf:Description rdf:about="http://a"><e:p>{body}</e:p></rdf:Description></rdf:RDF>'


def value(document: bytes) -> str:
    """The value of the one property, as pyoxigraph reads the document made safe."""
    (quad,) = ox.parse(safe_xml(document), format=ox.RdfFormat.RDF_XML)
    return quad.object.value


def bomb(levels: int, width: int = 10) -> str:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * width}">' for i in range(1, levels + 1))
    return rdf(f"&a{levels};", f'<!DOCTYPE r [<!ENTITY a0 "lol">{entities}]>')


class TestEntities:
    def test_harmless_document_is_untouched(self) -> None:
        document = rdf("x &amp; y").encode()
        assert safe_xml(document) == document

    @pytest.mark.parametrize(
        ("doctype", "body", "expected"),
        [
            ("<!DOCTYPE r>", "x", "x"),
            ('<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd">', "x", "x"),
            ('<!DOCTYPE r PUBLIC "-//X//Y" "http://127.0.0.1:1/x.dtd" [ ]>', "x", "x"),
            ('<!DOCTYPE r [<!ENTITY xsd "http://x#"><!ENTITY i "&xsd;int">]>', "&i;", "http://x#int"),
            ("<!DOCTYPE r [<!ENTITY i '&xsd;int'><!ENTITY xsd 'http://x#'>]>", "&i;", "http://x#int"),
            ('<!DOCTYPE r [<!ENTITY q "one"><!ENTITY q "two">]>', "&q;", "one"),
            ('<!DOCTYPE r [<!ENTITY c "&#233;&#xe9;&#38;#60;">]>', "&c;", "éé<"),
            ("<!DOCTYPE r [<!ENTITY q \"say 'hi'\">]>", "&q;", "say 'hi'"),
            (
                '<!DOCTYPE r [<!-- <!ENTITY c "&c;"> ]> --><?x ]> ?><!ELEMENT r ANY><!ENTITY c "d">]>',
                "&c;",
                "d",
            ),
            ("<!DOCTYPE r [<!ATTLIST r a CDATA '>]' #IMPLIED>\n<!NOTATION n SYSTEM \"n\">] >", "x", "x"),
            ('<!DOCTYPE r [<!ENTITY amp "&#38;#38;"><!ENTITY lt "&#38;#60;">]>', "&amp;&lt;", "&<"),
            ('<!DOCTYPE r [<!ENTITY e "no">]>', "<![CDATA[&e;]]>", "&e;"),
            ('<!doctype r [<!ENTITY e "yes">]>', "&e;", "yes"),
        ],
    )
    def test_harmless_doctype_parses(self, doctype: str, body: str, expected: str) -> None:
        assert value(rdf(body, doctype).encode()) == expected

    def test_entities_in_attributes(self) -> None:
        document = f"""<!DOCTYPE r [<!ENTITY ns "http://e/"><!ENTITY q 'a"b'>]>
            <rdf:RDF xmlns:rdf="{RDF}" xmlns:e="&ns;">
            <rdf:Description rdf:about="&ns;x" e:p="&q;"/></rdf:RDF>"""
        (quad,) = ox.parse(safe_xml(document.encode()), format=ox.RdfFormat.RDF_XML)
        assert (quad.subject.value, quad.object.value) == ("http://e/x", 'a"b')

    @pytest.mark.parametrize(
        ("document", "said"),
        [
            (bomb(9), "would grow to"),
            (bomb(20, 1), "within each other"),
            (rdf("&a;", '<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]>'), "refers to itself"),
            (rdf("&a;", '<!DOCTYPE r [<!ENTITY a "&#38;a;">]>'), "refers to itself"),
            (rdf("&x;", '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]>'), "external"),
            (rdf("&x;", '<!DOCTYPE r [<!ENTITY x PUBLIC "p" "http://127.0.0.1:1/">]>'), "external"),
            (rdf("x", '<!DOCTYPE r [<!ENTITY % x "y">]>'), "parameter"),
            (rdf("x", "<!DOCTYPE r [ %x; ]>"), "parameter"),
            (rdf("x", '<!DOCTYPE r [<!ENTITY x "y"'), "cannot be read|external or parameter"),
            (rdf("x", "<!DOCTYPE r [<!ELEMENT r ANY>"), "cannot be read"),
            (rdf('<!DOCTYPE r [<!ENTITY x "y">]>'), "inside the document"),
            (rdf("&x;", '<!DOCTYPE r [<!ENTITY x "&#60;!DOCTYPE r []>">]>'), "inside the document"),
            (rdf("<&x;", '<!DOCTYPE r [<!ENTITY x "!DOCTYPE r []>">]>'), "inside the document"),
            (rdf("&x;" * 400, f'<!DOCTYPE r [<!ENTITY x "{"y" * MAX_ENTITY}">]>'), "expand to more than"),
            (
                rdf("&x;", f'<!DOCTYPE r [<!ENTITY x "{"<e:a/>" * (MAX_TAGS + 1)}">]>'),
                r"would grow to 1,001 tags",
            ),
            (
                rdf("&x;" * 3, f'<!DOCTYPE r [<!ENTITY x "{"<e:a/>" * 400}">]>'),
                "expand to more than 1,000 tags",
            ),
            (
                rdf("&x;" * 20, f'<!DOCTYPE r [<!ENTITY a "{"y" * 600}"><!ENTITY x "{"&a;" * 100}">]>'),
                "expand to more than",
            ),
        ],
    )
    def test_harmful_doctype_is_refused(self, document: str, said: str) -> None:
        with pytest.raises(EventError, match=said):
            safe_xml(document.encode())

    def test_long_chain_of_entities_is_refused(self) -> None:
        for order in (range(1, 5000), range(4999, 0, -1)):
            chain = "".join(f'<!ENTITY a{i} "&a{i - 1};">' for i in order)
            with pytest.raises(EventError, match="within each other"):
                safe_xml(rdf("&a4999;", f'<!DOCTYPE r [<!ENTITY a0 "x">{chain}]>').encode())

    def test_the_parser_alone_would_die(self) -> None:
        """The reason for all this; if it stops being true, the limits can be relaxed."""
        script = (
            "import sys, resource, pyoxigraph as ox; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        )
        script += "list(ox.parse(sys.stdin.buffer.read(), format=ox.RdfFormat.RDF_XML))"
        document = bomb(11).encode()
        assert len(document) < 1024
        ended = subprocess.run(
            [sys.executable, "-c", script], input=document, capture_output=True, timeout=60
        )
        assert ended.returncode != 0
        with pytest.raises(EventError):
            safe_xml(document)


class TestEncodings:
    @pytest.mark.parametrize(
        ("declared", "encoding"),
        [
            ("windows-1252", "cp1252"),
            ("ISO-8859-1", "cp1252"),  # what people mean by it
            ("us-ascii", "cp1252"),
            ("ISO-8859-15", "iso8859-15"),
            ("UTF-16", "utf-16"),
            ("UTF-16", "utf-16-le"),
            ("UTF-16", "utf-16-be"),
            ("UTF-32", "utf-32"),
            ("UTF-16", "utf-8"),  # a string built in memory, then saved
            ("UTF-8", "utf-8-sig"),
            ("utf8", "utf-8"),
            ("'", "utf-8"),
        ],
    )
    def test_transcoded(self, declared: str, encoding: str) -> None:
        declaration = "" if declared == "'" else f'<?xml version="1.0" encoding="{declared}"?>\n'
        document = rdf("prix: 5 € à naïve", declaration=declaration).encode(encoding)
        assert value(document) == "prix: 5 € à naïve"

    def test_japanese(self) -> None:
        document = rdf("日本語", declaration="<?xml version='1.0' encoding='Shift_JIS'?>").encode("shift_jis")
        assert value(document) == "日本語"

    def test_space_before_the_declaration(self) -> None:
        declaration = '\n <?xml version="1.0" encoding="UTF-8"?>'
        assert value(rdf("x", declaration=declaration).encode()) == "x"

    def test_charset_of_the_transport_counts_where_the_document_is_wrong(self) -> None:
        document = rdf("naïve").encode("cp1252")
        assert b"na\xc3\xafve" in safe_xml(document, charset="windows-1252")
        assert b"na\xc3\xafve" in safe_xml(rdf("naïve").encode(), charset="windows-1252")

    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            ("klingon", "unknown encoding 'klingon'"),
            ("zlib", "not an encoding of text"),
            ("rot13", "not an encoding of text"),
            ("UTF-8", "byte 0xef at offset"),
            ("euc-jp", "is not euc_jp"),
        ],
    )
    def test_wrong_declaration_gets_a_sentence(self, declared: str, said: str) -> None:
        document = rdf("naïve", declaration=f'<?xml version="1.0" encoding="{declared}"?>').encode("cp1252")
        with pytest.raises(EventError, match=said):
            safe_xml(document)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
    def test_text(self, encoding: str) -> None:
        turtle = '<http://a> <http://b> "naïve" .'
        assert safe_text(turtle.encode(encoding)) == turtle.encode()

    def test_text_in_another_encoding_is_refused(self) -> None:
        with pytest.raises(EventError, match="byte 0xef at offset 2"):
            safe_text(b"na\xefve")


class TestBounds:
    def test_size(self) -> None:
        assert safe_xml(b"<a/>", max_bytes=4) == b"<a/>"
        for safe in (safe_xml, safe_text):
            with pytest.raises(EventError, match="more than 4 bytes"):
                safe(b"<ab/>", max_bytes=4)

    @pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
    def test_deep_elements(self, levels: int) -> None:
        with pytest.raises(EventError, match="nest deeper"):
            safe_xml(b"<a>" * levels + b"</a>" * levels)
        with pytest.raises(EventError, match="nest deeper"):
            safe_xml(b"<a x='/' y='>'>/><![CDATA[</a>]]><!--</a>--><?p </a>?>" * levels)

    def test_wide_is_not_deep(self) -> None:
        wide = b"<r>" + b"<a x='>'><b/><c d=\"<\" /></a>" * 10_000 + b"</r>"
        assert safe_xml(wide) == wide

    def test_deep_by_entities(self) -> None:
        document = f'<!DOCTYPE r [<!ENTITY x "{"<a>" * 100}">]><r>&x;&x;&x;</r>'
        with pytest.raises(EventError, match="nest deeper"):
            safe_xml(document.encode())

    def test_deep_json(self) -> None:
        for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
            with pytest.raises(EventError, match="nest deeper"):
                safe_text(b" " + opening * 10_000 + b"1" + closing * 10_000)
        wide = b"[" + b'{"a": "[[\\"[[\\\\"},' * 1000 + b"1]"
        assert safe_text(wide) == wide

    def test_deep_triple_terms(self) -> None:
        with pytest.raises(EventError, match="nest deeper"):
            safe_text(b"<a:a> <a:b> " + b'<<( <a:#a> <a:b> # "\n' * 100_000 + b'"<<"')
        flat = b'<a:a> <a:b> "cout << \'x\' << \\"y\\"" , \'\'\'<<\'<<\'\'\' , """<<"<<""" . # <<\n' * 1000
        assert safe_text(flat) == flat

    @pytest.mark.parametrize(
        "piece",
        [
            b"<!--",
            b"<![CDATA[",
            b"<?",
            b"<",
            b'<a "',
            b"<\"<'",
            b"<a b='",
            b"&a;",
            b"<!DOCTYPE r [<!--",
            b"</",
            b'<"<"',
        ],
    )
    def test_broken_documents_take_linear_time(self, piece: bytes) -> None:
        started = time.perf_counter()
        for document in (piece * 200_000, b"<!DOCTYPE r [<!ENTITY a 'b'>]><r>" + piece * 200_000):
            try:
                safe_xml(document)
            except EventError:
                pass
        assert time.perf_counter() - started < 5

    @pytest.mark.parametrize("piece", [b'"', b'"\\"', b"'", b"'''", b'"""', b"<<", b"<a", b"\\", b'["\\\\'])
    def test_broken_texts_take_linear_time(self, piece: bytes) -> None:
        started = time.perf_counter()
        for start in (b"<<" * 200 + b">>" * 200, b"[", b""):
            try:
                safe_text(start * 2 + piece * 200_000)
            except EventError:
                pass
        assert time.perf_counter() - started < 5


PIECES = st.sampled_from(
    """<!DOCTYPE r [ ~ ]> ~<!ENTITY a "~">~&a;~%a;~<![CDATA[~]]>~<!--~-->~<?xml ~?>~<r>~</r>~<r a='~'/>~\ufeff~\0~é~{[
    ~<< ~ encoding='utf-16'~&#0;~&#xD800;~SYSTEM 'x'""".split("~")
)


@given(st.lists(PIECES | st.text(max_size=3)).map("".join), st.sampled_from(["utf-8", "utf-16", "cp1252"]))
def test_anything_is_made_safe_or_refused(text: str, encoding: str) -> None:
    data = text.encode(encoding, "ignore")
    for safe in (safe_xml, safe_text):
        try:
            result = safe(data)
        except EventError as error:
            assert str(error)
        else:
            result.decode()


@given(st.binary())
def test_any_bytes_are_made_safe_or_refused(data: bytes) -> None:
    for safe in (safe_xml, safe_text):
        try:
            safe(data).decode()
        except EventError:
            pass
