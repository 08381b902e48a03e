"""Feeds written: strict readers take them whatever is in them, and Tidings reads back what was said."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from datetime import UTC, datetime

import feedparser
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tidings.feeds.read import read_feed
from tidings.feeds.write import Channel, Entry, Property, atom, jsonfeed, rss1, rss2
from tidings.feeds.write.channel import moment, printable, rfc822
from tidings.model.event import Event

RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
UNI = "http://example.org/uni#"
WRITERS: dict[str, Callable[[Channel], bytes]] = {
    "rdf": rss1.write,
    "rss": rss2.write,
    "atom": atom.write,
    "json": jsonfeed.write,
}
XML = ["rdf", "rss", "atom"]
FEED = "https://tidings.example/feeds/f_secret.rss"

ENTRY = Entry(
    id="urn:tidings:notification:s1:n1",
    title="First & <foremost>",
    link="https://a.example/1?x=1&y=2",
    updated=1_700_000_000.25,
    published=1_054_651_161.0,
    summary_html="<b>Short</b> &amp; good",
    summary_text="Short & good",
    content_html="<p>Long</p>",
    author="Ann",
    categories=("news", "sport"),
    properties=(
        Property(UNI + "age", "24", datatype="http://www.w3.org/2001/XMLSchema#integer"),
        Property("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", UNI + "Person", resource=True),
        Property(UNI + "says", "bonjour", language="fr"),
    ),
)


def channel(*entries: Entry, **rest: str) -> Channel:
    return Channel(
        "urn:tidings:subscription:s1", FEED, "https://tidings.example/subscriptions/s1", "T", "D", 1_700_000_000.0, entries, **rest
    )  # fmt: skip


def facts(event: Event) -> dict[str, list[str]]:
    """What the event's item says, by predicate."""
    triples = [quad.triple for quad in ox.parse(event.data, format=ox.RdfFormat.N_TRIPLES)]
    (node,) = {
        t.subject for t in triples if isinstance(t.object, ox.NamedNode) and t.object.value == RSS + "item"
    }
    said: dict[str, list[str]] = {}
    for triple in triples:
        if triple.subject == node and not isinstance(triple.object, ox.Triple):
            said.setdefault(triple.predicate.value, []).append(triple.object.value)
    return said


def parsed(body: bytes) -> feedparser.FeedParserDict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return feedparser.parse(io.BytesIO(body), sanitize_html=False, resolve_relative_uris=False)


@pytest.mark.parametrize("format", list(WRITERS))
class TestEveryFormat:
    def test_tidings_reads_back_what_was_said(self, format: str) -> None:
        (event,) = read_feed(WRITERS[format](channel(ENTRY)), FEED)
        said = facts(event)
        assert said[RSS + "title"] == ["First & <foremost>"]
        assert said[RSS + "link"] == ["https://a.example/1?x=1&y=2"]
        assert said[DC + "creator"] == ["Ann"]
        assert said[DC + "subject"] == ["news", "sport"]
        assert said["http://purl.org/rss/1.0/modules/content/encoded"] == ["<p>Long</p>"]
        assert event.time == "2003-06-03T14:39:21Z"
        assert said[RSS + "description"] == [
            "Short & good" if format == "json" else "<b>Short</b> &amp; good"
        ]
        if format != "json":
            assert said[UNI + "age"] == ["24"]
            assert UNI + "Person" in said["http://www.w3.org/1999/02/22-rdf-syntax-ns#type"]

    def test_the_same_channel_gives_the_same_bytes(self, format: str) -> None:
        assert WRITERS[format](channel(ENTRY)) == WRITERS[format](channel(ENTRY))

    def test_an_empty_channel_is_a_feed(self, format: str) -> None:
        body = WRITERS[format](channel())
        assert read_feed(body, FEED) == []
        if format != "json":
            found = parsed(body)
            assert (found.bozo, found.feed.title) == (False, "T")

    def test_pages_beside_it_are_named(self, format: str) -> None:
        body = WRITERS[format](channel(ENTRY, next_url=FEED + "?before=7", previous_url=FEED + "?before=99"))
        if format == "json":
            assert json.loads(body)["next_url"] == FEED + "?before=7"
        elif format == "rdf":
            found = {
                (q.predicate.value.rpartition("#")[2], q.object.value)
                for q in ox.parse(body, format=ox.RdfFormat.RDF_XML)
                if not isinstance(q.object, ox.Triple)
            }
            assert {("next", FEED + "?before=7"), ("prev", FEED + "?before=99")} <= found
        else:
            links = {link.rel: link.href for link in parsed(body).feed.links}
            assert links["self"] == FEED
            assert links["next"] == FEED + "?before=7"
            assert links["previous"] == FEED + "?before=99"


@pytest.mark.parametrize("format", XML)
def test_feedparser_takes_it_strictly(format: str) -> None:
    found = parsed(WRITERS[format](channel(ENTRY)))
    (entry,) = found.entries
    assert found.bozo is False
    assert found.version == {"rdf": "rss10", "rss": "rss20", "atom": "atom10"}[format]
    assert (entry.id, entry.link, entry.author) == (ENTRY.id, ENTRY.link, "Ann")
    if format == "rdf":  # Dublin Core's date is an update for this reader, and the last one counts
        assert entry.updated_parsed[:6] == (2023, 11, 14, 22, 13, 20)
    else:
        assert entry.published_parsed[:6] == (2003, 6, 3, 14, 39, 21)
    assert [tag.term for tag in entry.tags] == ["news", "sport"]


def test_atom_has_all_that_the_rfc_demands() -> None:
    root = etree.fromstring(atom.write(channel(ENTRY)))
    space = {"a": "http://www.w3.org/2005/Atom"}
    for path in (
        "a:id",
        "a:title",
        "a:updated",
        "a:author/a:name",
        "a:link[@rel='self']",
        "a:entry/a:id",
        "a:entry/a:title",
        "a:entry/a:updated",
    ):
        assert len(root.xpath(path, namespaces=space)) == 1, path
    assert root.xpath("string(a:entry/a:updated)", namespaces=space) == "2023-11-14T22:13:20.250Z"


def test_rss_2_has_all_that_it_demands() -> None:
    root = etree.fromstring(rss2.write(channel(ENTRY)))
    (guid,) = root.xpath("//guid")
    assert (guid.text, guid.get("isPermaLink")) == (ENTRY.id, "false")
    assert root.findtext("channel/item/pubDate") == "Tue, 03 Jun 2003 14:39:21 GMT"
    assert all(root.findtext(f"channel/{name}") for name in ("title", "link", "description"))


def test_rss_1_lists_its_items_in_order() -> None:
    other = Entry("urn:tidings:notification:s1:n2", "Second", "https://a.example/2", 1.0)
    body = rss1.write(channel(ENTRY, other))
    graph = {
        (q.predicate.value, q.object.value)
        for q in ox.parse(body, format=ox.RdfFormat.RDF_XML)
        if not isinstance(q.object, ox.Triple)
    }
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    assert {(rdf + "_1", ENTRY.id), (rdf + "_2", other.id)} <= graph
    assert (UNI + "age", "24") in graph


def test_json_feed_says_its_version() -> None:
    feed = json.loads(jsonfeed.write(channel(ENTRY)))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["feed_url"] == FEED
    assert "next_url" not in feed
    assert feed["items"][0]["authors"] == [{"name": "Ann"}]


texts = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    [
        "]]>",
        "<![CDATA[",
        "&lt;",
        "&#0;",
        "<!-- ",
        "</item>",
        "\x00",
        "\ud800",
        "\ufffe",
        "\r\n",
        "<?xml",
        "a\x0bb",
        "\x85",
    ]
)
addresses = st.sampled_from(["https://a.example/", "http://b.example/x?y=%20&z", "https://münchen.example/ü"])
moments = st.floats(-6e10, 2e11)
words = st.text("abcXYZ09_.-/#:é <>\"'&\x00", max_size=12)
properties = st.builds(
    Property,
    words
    | words.map("http://e.example/".__add__)
    | st.sampled_from([RSS + "title", DC + "title", "http://www.w3.org/2005/Atom" + "id", RSS + "items"]),
    texts | addresses,
    st.booleans(),
    st.none() | words | words.map("http://e.example/".__add__),
    st.none() | words | st.sampled_from(["en", "de-CH", "x", "-"]),
)
entries = st.builds(
    Entry,
    id=st.uuids().map(lambda id: f"urn:tidings:notification:s:{id.hex}"),
    title=texts.map(lambda text: text or "-"),
    link=addresses,
    updated=moments,
    published=st.none() | moments,
    summary_html=texts,
    summary_text=texts,
    content_html=texts,
    author=st.none() | texts,
    categories=st.lists(texts, max_size=3).map(tuple),
    properties=st.lists(properties, max_size=4).map(tuple),
)


@pytest.mark.parametrize("format", list(WRITERS))
@given(st.lists(entries, max_size=3, unique_by=lambda entry: entry.id), texts, texts)
@example([ENTRY], "\x00", "]]>")
def test_any_text_in_any_field(format: str, them: list[Entry], title: str, description: str) -> None:
    given_channel = Channel("urn:x:1", FEED, "https://t.example/", title, description, 0.0, tuple(them))
    body = WRITERS[format](given_channel)
    events = read_feed(body, FEED)
    assert len(events) == len(them)
    for event, entry in zip(events, them, strict=True):
        said = facts(event)
        expected = printable(entry.title).replace("\r\n", "\n").replace("\r", "\n").strip()
        shown = said.get(RSS + "title", [""])[0].replace("\r\n", "\n").replace("\r", "\n").strip()
        assert shown == expected
        if format == "rdf":
            assert f"<{entry.id}> ".encode() in event.data
        else:
            assert said[DC + "identifier"] == [entry.id]
    if format == "json":
        assert [item["id"] for item in json.loads(body)["items"]] == [entry.id for entry in them]
        return
    etree.fromstring(body)
    if format == "rdf":
        list(ox.parse(body, format=ox.RdfFormat.RDF_XML))
    found = parsed(body)
    assert found.bozo is False
    assert [entry.id for entry in found.entries] == [entry.id for entry in them]
    assert [entry.link for entry in found.entries] == [entry.link for entry in them]


@given(st.floats(-6e10, 2.5e11))
def test_dates(at: float) -> None:
    assert (
        datetime.strptime(rfc822(at), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC).timestamp() == at // 1
    )
    assert abs(datetime.fromisoformat(moment(at)).timestamp() - at) < 0.002
