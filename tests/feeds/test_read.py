"""Feeds into events: the formats say the same in the same terms, and bad feeds get a sentence."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import EventError
from tidings.feeds.read import read_feed
from tidings.formats.rdf import canonical
from tidings.model.event import Event

FIXTURES = Path(__file__).parent.parent / "fixtures" / "feeds"
SAME = ["same.rss1.xml", "same.rss2.xml", "same.atom.xml", "same.json"]
PREFIXES = {
    "rss": "http://purl.org/rss/1.0/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "enc": "http://purl.oclc.org/net/rss_2.0/enc#",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "uni": "http://example.org/uni#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def ask(event: Event, where: str) -> list[str]:
    """The values of ?x, sorted."""
    store = ox.Store()
    store.extend(ox.Quad(*q.triple) for q in ox.parse(event.data, format=ox.RdfFormat.N_TRIPLES))
    found = store.query(f"SELECT DISTINCT ?x WHERE {{ {where} }}", prefixes=PREFIXES)
    assert isinstance(found, ox.QuerySolutions)
    return sorted(row["x"].value for row in found)


def rss(*items: str, channel: str = "") -> bytes:
    body = "".join(f"<item>{item}</item>" for item in items)
    return f"<rss version='2.0'><channel><title>C</title>{channel}{body}</channel></rss>".encode()


def titles(events: list[Event]) -> list[str]:
    return [title for event in events for title in ask(event, "[] a rss:item ; rss:title ?x")]


@pytest.mark.parametrize("name", SAME)
class TestTheFormatsAgree:
    def first(self, name: str) -> Event:
        first, _ = read_feed((FIXTURES / name).read_bytes(), "http://example.org/feed")
        return first

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("?x a rss:item", ["http://example.org/1"]),
            ("[] a rss:item ; rss:title ?x", ["First & foremost"]),
            ("[] a rss:item ; rss:link ?x", ["http://example.org/1"]),
            ("[] a rss:item ; rss:description ?x", ["It began."]),
            ("[] a rss:item ; dc:creator ?x", ["Ada Kern", "Bo Lind"]),
            ("[] a rss:item ; dc:subject ?x", ["Cycling", "Sport"]),
            ("[] dc:date ?x FILTER(datatype(?x) = xsd:dateTime)", ["2024-03-05T08:15:00Z"]),
            ("[] dcterms:modified ?x FILTER(datatype(?x) = xsd:dateTime)", ["2024-03-06T08:00:00Z"]),
            ("[] a rss:item ; dc:identifier ?x", ["tag:example.org,2024:1"]),
            ("[] a rss:item ; dc:language ?x", ["en"]),
            ("[] a rss:item ; content:encoded ?x", None),
            ("[] enc:enclosure ?x", ["http://example.org/1.mp3"]),
            ("[] enc:enclosure [ enc:type ?x ]", ["audio/mpeg"]),
            ("[] enc:enclosure [ enc:length ?x ]", ["1234"]),
            ("?x a rss:channel", ["http://example.org/feed"]),
            ("?x rss:items <http://example.org/1>", ["http://example.org/feed"]),
            ("<http://example.org/feed> rss:items ?x", ["http://example.org/1"]),
            ("[] a rss:channel ; rss:title ?x", ["Example"]),
            ("[] a rss:channel ; rss:link ?x", ["http://example.org/"]),
            ("[] a rss:channel ; rss:description ?x", ["Things that happen"]),
        ],
    )
    def test_facts(self, name: str, where: str, expected: list[str] | None) -> None:
        found = ask(self.first(name), where)
        if expected is None:
            (html,) = found
            assert "<b" in html
            assert "began</b>.</p>" in html
        else:
            assert found == expected

    def test_envelope(self, name: str) -> None:
        event = self.first(name)
        assert (event.source, event.type, event.time) == (
            "http://example.org/feed",
            "feed.item",
            "2024-03-05T08:15:00Z",
        )
        assert event.datacontenttype == "application/n-triples"

    def test_the_graph_is_canonical(self, name: str) -> None:
        data = self.first(name).data
        assert canonical(data, "nt") == data

    def test_reading_again_gives_the_same(self, name: str) -> None:
        data = (FIXTURES / name).read_bytes()
        assert read_feed(data, "http://example.org/feed") == read_feed(data, "http://example.org/feed")

    def test_relative_links(self, name: str) -> None:
        _, second = read_feed((FIXTURES / name).read_bytes(), "http://example.org/feed")
        assert ask(second, "?x a rss:item") == ["http://example.org/2"]
        assert second.time is None

    def test_without_a_source_the_channel_is_it(self, name: str) -> None:
        assert read_feed((FIXTURES / name).read_bytes())[0].source == "http://example.org/feed"


@pytest.mark.parametrize("name", [name for name in SAME if name != "same.json"])
def test_extensions_are_kept(name: str) -> None:
    first, _ = read_feed((FIXTURES / name).read_bytes(), "http://example.org/feed")
    assert ask(first, "<http://example.org/1> uni:rating ?x") == ["4"]


class TestRss1:
    def test_containers_are_followed_and_shortened(self) -> None:
        first, second = read_feed((FIXTURES / "same.rss1.xml").read_bytes())
        topic = ["http://example.org/topic/sport"]
        assert ask(first, "[] taxo:topics ?x FILTER(isIRI(?x))") == topic
        assert ask(first, "[] taxo:topics [ <http://www.w3.org/1999/02/22-rdf-syntax-ns#_1> ?x ]") == topic
        assert ask(second, "[] taxo:topics ?x") == []

    def test_an_id_does_not_depend_on_the_other_items(self) -> None:
        document = (FIXTURES / "same.rss1.xml").read_bytes()
        more = b'<item rdf:about="http://example.org/0"><title>New</title><dc:subject><x:y xmlns:x="http://x/"/></dc:subject></item>'
        head, _, rest = document.partition(b"</channel>")
        ids = {event.id for event in read_feed(document, "s")}
        grown = [event.id for event in read_feed(head + b"</channel>" + more + rest, "s")]
        assert len(grown) == 3
        assert ids < set(grown)

    def test_structured_subject(self) -> None:
        document = (FIXTURES / "same.rss1.xml").read_bytes()
        subject = b"<dc:subject><rdf:Description><rdf:value>Rowing</rdf:value></rdf:Description></dc:subject>"
        first, _ = read_feed(document.replace(b"<dc:subject>Sport</dc:subject>", subject))
        assert ask(first, "[] dc:subject ?x FILTER(isLiteral(?x))") == ["Cycling", "Rowing"]

    def test_bad_rdf_is_read_as_elements(self) -> None:
        document = (FIXTURES / "same.rss1.xml").read_bytes()
        events = read_feed(document.replace(b'rdf:about="http://example.org/2"', b'rdf:about="http://[bad"'))
        assert titles(events) == ["First & foremost", "Second"]

    def test_rss_0_90(self) -> None:
        document = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
            xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel><title>C</title></channel>
            <item><title>Old</title><link>http://o.example/1</link></item></rdf:RDF>"""
        (event,) = read_feed(document, "http://o.example/feed")
        assert ask(event, "?x a rss:item ; rss:title 'Old'") == ["http://o.example/1"]
        assert ask(event, "[] a rss:channel ; rss:title ?x") == ["C"]


class TestLeniency:
    def test_nothing_to_identify(self) -> None:
        assert titles(read_feed(rss("", "<title>A</title>", "<pubDate>x</pubDate>"))) == ["A"]

    def test_unescaped_ampersands(self) -> None:
        (event,) = read_feed(
            rss("<title>B & C &amp; D<![CDATA[ & E]]></title><link>http://x.example/?a=1&b=2</link>")
        )
        assert titles([event]) == ["B & C & D & E"]
        assert ask(event, "?x a rss:item") == ["http://x.example/?a=1&b=2"]

    def test_html_names(self) -> None:
        assert titles(
            read_feed(rss("<title>caf&eacute;&nbsp;&lt;b&gt; &unknown; <![CDATA[&eacute;]]></title>"))
        ) == ["café\xa0<b> &unknown; &eacute;"]

    def test_undeclared_prefix(self) -> None:
        (event,) = read_feed(rss("<title>A</title><dc:creator>Ada</dc:creator>"))
        assert ask(event, "[] dc:creator ?x") == ["Ada"]

    def test_control_characters(self) -> None:
        assert titles(read_feed(rss("<title>A\x08B</title>"))) == ["AB"]

    def test_cut_off_in_an_item(self) -> None:
        whole = rss("<title>A</title>", "<title>B is longer</title>")
        assert titles(read_feed(whole[: whole.index(b" is longer")])) == ["A"]
        assert titles(read_feed(whole.removesuffix(b"</channel></rss>"))) == ["A", "B is longer"]

    def test_bad_addresses(self) -> None:
        (event,) = read_feed(rss("<title>A</title><link>http://x.example/a b|c</link><enclosure url='::'/>"))
        assert ask(event, "?x a rss:item") == ["http://x.example/a%20b%7Cc"]

    def test_item_with_the_address_of_its_channel(self) -> None:
        data = rss("<title>A</title><link>http://x.example/</link>", channel="<link>http://x.example/</link>")
        (event,) = read_feed(data)
        assert ask(event, "[] a rss:item ; rss:title ?x") == ["A"]

    def test_bad_date_stays_text(self) -> None:
        (event,) = read_feed(rss("<title>A</title><pubDate>yesterday</pubDate>"))
        assert ask(event, "[] dc:date ?x") == ["yesterday"]
        assert event.time is None

    def test_entities_of_a_doctype(self) -> None:
        document = b"<!DOCTYPE rss [<!ENTITY who 'Ada'>]>" + rss("<title>By &who;</title>")
        assert titles(read_feed(document)) == ["By Ada"]

    def test_charset_of_the_transport(self) -> None:
        document = rss("<title>caf\u00e9</title>").decode().encode("cp1252")
        assert titles(read_feed(document, content_type="text/xml; charset=windows-1252")) == ["café"]

    def test_json_items_of_the_wrong_kind(self) -> None:
        document = (
            b'{"items": [1, null, {}, {"id": true}, {"title": "A", "tags": "x", "authors": [3], "url": 7}]}'
        )
        assert titles(read_feed(document)) == ["A"]

    def test_json_half_a_character(self) -> None:
        assert titles(
            read_feed(b'{"items": [{"title": "A\\ud800", "url": "http://x.example/\\ud800"}]}')
        ) == ["A\ufffd"]

    def test_an_edited_item_is_another_event(self) -> None:
        one, other, again = (
            read_feed(
                rss(f"<guid>1</guid><title>{t}</title>", channel=f"<lastBuildDate>{d}</lastBuildDate>"), "s"
            )[0].id
            for t, d in (("A", 1), ("B", 1), ("A", 2))
        )
        assert one == again
        assert one != other
        assert read_feed(rss("<guid>1</guid><title>A</title>"), "t")[0].id != one


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"", "neither XML nor JSON|not readable as XML"),
        (b"hello", "neither XML nor JSON|not readable as XML"),
        (b"<html><body><p>Not found</p></body></html>", "the document is <html>, not a feed"),
        (b"<rss><channel><title>C</title><item><ti", "not readable as XML"),
        (b'{"items": ', "not readable as JSON"),
        (b'{"title": "no items"}', "not a JSON Feed"),
        (b"[" * 5000, "neither|not readable"),
        (b'{"a":' * 5000, "nest deeper"),
        (b"<rss>" * 5000, "nest deeper"),
        (b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss/>', "external"),
        (b'<?xml version="1.0" encoding="klingon"?><rss>\xef</rss>', "unknown encoding"),
    ],
)
def test_a_bad_feed_gets_a_sentence_with_its_name(document: bytes, said: str) -> None:
    with pytest.raises(EventError, match=said) as raised:
        read_feed(document, "http://x.example/feed")
    assert str(raised.value).startswith("http://x.example/feed: ")
    assert "\n" not in str(raised.value)


def test_size_limit() -> None:
    with pytest.raises(EventError, match="more than 10 bytes, which is the limit; send a smaller document"):
        read_feed(rss("<title>A</title>"), max_bytes=10)


PIECES = st.sampled_from(
    "<rss>~<channel>~<item>~</item>~<title>~</title>~<link>~x</link>~<feed xmlns='http://www.w3.org/2005/Atom'>~<entry>"
    "~</entry>~<link href=':'/>~<content type='xhtml'>~<category/>~&~<a:b>~{~[~\"items\":~<![CDATA[~]]>~"
    "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>".split(
        "~"
    )
)


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        events = read_feed(text.encode(errors="ignore"), "s")
    except EventError:
        return
    for event in events:
        assert canonical(event.data, "nt") == event.data


def test_the_sample_feeds() -> None:
    """They are what the demo runs on: every format, one of them broken on purpose."""
    counts = {}
    for path in sorted((Path(__file__).parents[2] / "examples" / "feeds").iterdir()):
        try:
            counts[path.name] = len(read_feed(path.read_bytes(), path.name))
        except EventError as error:
            assert path.name == "broken.rss", error
    assert sum(counts.values()) == 140
    assert {Path(name).suffix for name in counts} == {".rss", ".rdf", ".atom", ".json"}
    french = read_feed((Path(__file__).parents[2] / "examples/feeds/actualites-1252.rss").read_bytes())
    assert "Un café à 2 € : l’expérience d’un bistrot solidaire" in titles(french)
