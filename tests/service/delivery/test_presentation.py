"""What events and notifications look like to people: always something, never anything that runs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feeds.read import read_feed
from tidings.formats.rdf import NTRIPLES
from tidings.model.event import Event
from tidings.service.delivery.presentation import Item, content_of, describe, plain_text, safe_html
from tidings.service.model import NotificationKind, StoredNotification

RSS = b"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:uni="http://example.org/uni#"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>C</title>
 <link>http://example.org/</link><item><title>First &amp;  foremost</title><link>http://example.org/1</link>
 <description>&lt;b&gt;Short&lt;/b&gt;</description><content:encoded>&lt;p&gt;Long&lt;/p&gt;</content:encoded>
 <dc:creator>Ann</dc:creator><category>news</category><category>sport</category><uni:age>24</uni:age>
 <pubDate>Tue, 03 Jun 2003 14:39:21 GMT</pubDate></item></channel></rss>"""


class TestGraphs:
    def test_an_item_of_a_feed_has_all_that_was_said(self) -> None:
        (event,) = read_feed(RSS, "http://example.org/feed")
        item = describe(event)
        assert (item.title, item.link, item.author) == ("First & foremost", "http://example.org/1", "Ann")
        assert (item.summary_html, item.content_html) == ("<b>Short</b>", "<p>Long</p>")
        assert item.categories == ("news", "sport")
        assert item.published == 1054651161
        assert [(p.predicate, p.value) for p in item.properties] == [("http://example.org/uni#age", "24")]

    def test_labels_of_other_vocabularies_do(self) -> None:
        event = Event.from_rdf(
            "@prefix foaf: <http://xmlns.com/foaf/0.1/> . <https://a.example/ann> a foaf:Person ; foaf:name 'Ann' .",
            "turtle",
        )
        assert describe(event) == Item(
            "Ann", "https://a.example/ann", properties=describe(event).properties, published=None
        )
        assert describe(event).properties[0].resource

    def test_a_graph_without_a_title_is_told_in_a_line(self) -> None:
        event = Event.from_rdf('<urn:x> <http://e.org/v#topic> "sport" ; <http://e.org/v#age> 24 .', "turtle")
        assert describe(event).title == "topic: sport, age: 24"

    def test_a_graph_that_cannot_be_read_costs_nothing(self) -> None:
        event = Event(type="news", datacontenttype="text/turtle", data=b"<<< no turtle")
        assert describe(event).title == "news"

    def test_a_large_hostile_graph_takes_a_moment(self) -> None:
        line = b'<urn:a> <urn:b> "' + b"\\\\" * 50_000 + b'" .\n'
        for data in (line * 80, b"<urn:a" * 1_000_000, b'_:x <urn:b> "' + b"a" * 8_000_000):
            began = time.thread_time()
            assert describe(Event(datacontenttype=NTRIPLES, data=data)).title
            assert time.thread_time() - began < 1.0


class TestAttributes:
    @pytest.mark.parametrize(
        ("attributes", "title"),
        [
            ({"title": " Two\n lines "}, "Two lines"),
            ({"Headline": "Loud"}, "Loud"),
            ({"topic": "sport", "age": 24}, "topic: sport, age: 24"),
            ({"summary": "<p>One</p><p>two</p>"}, "One two"),
            ({"row": {"symbol": "X", "tags": ["a", "b"]}}, "row.symbol: X, row.tags: a, b"),
            ({"title": 7, "deep": {"er": {"and": {"down": {"there": 1}}}}}, "title: 7, deep.er.and.down: …"),
            ({"n": 10**5000}, "n: a large number"),
        ],
    )
    def test_title(self, attributes: dict[str, object], title: str) -> None:
        assert describe(Event(attributes=attributes, id="1")).title == title

    def test_an_event_that_says_nothing_has_its_type_or_id(self) -> None:
        assert describe(Event(type="ping", id="7")).title == "ping"
        assert describe(Event(id="7")).title == "Event 7"

    def test_a_text_is_its_own_summary(self) -> None:
        item = describe(Event(datacontenttype="text/plain", data=b"1 < 2 & so on"))
        assert item.title == "1 < 2 & so on"
        assert safe_html(item.summary_html) == "1 &lt; 2 &amp; so on"

    @pytest.mark.parametrize(
        ("link", "kept"),
        [
            ("https://a.example/x y", "https://a.example/x%20y"),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("http://", None),
            ("//a.example/", None),
            ("https://a.example/" + "x" * 3_000, None),
        ],
    )
    def test_only_addresses_of_the_web_are_links(self, link: str, kept: str | None) -> None:
        assert describe(Event(attributes={"url": link})).link == kept

    @pytest.mark.parametrize("value", ["2003-06-03T14:39:21Z", 1054651161, "Tue, 03 Jun 2003 14:39:21 GMT"])
    def test_when(self, value: object) -> None:
        assert describe(Event(attributes={"published": value})).published == 1054651161


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["title", "name", "url", "summary", "time", "tags", "author"]) | st.text()


@given(
    st.dictionaries(names, values, max_size=5),
    st.binary(),
    st.sampled_from(["", "text/turtle", NTRIPLES, "text/html"]),
)
def test_anything_has_a_title_and_bounds(attributes: dict[str, object], data: bytes, kind: str) -> None:
    item = describe(Event(attributes=attributes, data=data, datacontenttype=kind, id="x"))
    assert 0 < len(item.title) <= 200
    assert item.title == " ".join(item.title.split())
    safe_html(item.summary_html).encode()


def notification(kind: NotificationKind = NotificationKind.MATCH, **rest: object) -> StoredNotification:
    return StoredNotification(1, "n1", "s1", kind, 100.0, **rest)  # type: ignore[arg-type]


class TestNotifications:
    def test_rows_are_told_in_words_and_in_a_table(self) -> None:
        rows = (
            {"table": "stocks", "change": "+", "row": {"symbol": "<X>", "price": 3}},
            {"table": "reviews", "change": "-", "row": {"id": 1}},
            {"table": "reviews", "change": "-", "row": {"id": 2}},
        )
        item = content_of(notification(changes=rows))
        assert item.title == "+ stocks: <X>, 3; - reviews: 1; - reviews: 2"
        assert "<td>symbol: &lt;X&gt;, price: 3</td>" in item.summary_html
        assert safe_html(item.summary_html).count("<tr>") == 4

        many = content_of(notification(changes=rows * 2))
        assert many.title == "+ stocks: <X>, 3; - reviews: 1; - reviews: 2; and 3 more"
        snapshot = content_of(notification(NotificationKind.SNAPSHOT, changes=rows[1:] * 8))
        assert snapshot.title == "Snapshot: reviews 16 rows"

    def test_the_title_and_the_link_are_not_repeated_in_the_summary(self) -> None:
        attributes = {"title": "Lead up", "link": "https://example.org/1", "by": "Ann", "price": 20}
        assert describe(Event(attributes=attributes)).summary_html == "price: 20"

    def test_a_notice_says_its_message(self) -> None:
        item = content_of(notification(NotificationKind.EXPIRED, message="It <expired> at noon"))
        assert (item.title, item.summary_html) == ("It <expired> at noon", "It &lt;expired&gt; at noon")
        assert content_of(notification(NotificationKind.MISSED)).title == "Something was missed"

    def test_what_is_undecided_says_so(self) -> None:
        item = content_of(
            notification(
                NotificationKind.UNDECIDED, event=Event(attributes={"title": "T"}), message="too hard"
            )
        )
        assert item.title == "Undecided: T"
        assert item.summary_html.startswith("<p>too hard</p>")


class TestMarkup:
    @pytest.mark.parametrize(
        ("given_html", "shown"),
        [
            ("<script>alert(1)</script>x", "x"),
            ("<b onclick=x>y</b>", "<b>y</b>"),
            ("<a href='javascript:x'>y</a>", '<a rel="nofollow noopener noreferrer">y</a>'),
            ("<a href='/x'>y</a>", '<a rel="nofollow noopener noreferrer">y</a>'),
            ("<img src='http://x/y.png'>", "<img>"),
            ("<img src='https://x/y.png' onerror=z>", '<img src="https://x/y.png">'),
            ("<svg><script>x</script></svg><p style='x'>y", "<p>y</p>"),
            ("a\x00b\ud800c\x1b", "a\ufffdb\ufffdc\ufffd"),
        ],
    )
    def test_safe_html(self, given_html: str, shown: str) -> None:
        assert safe_html(given_html) == shown

    def test_plain_text_keeps_words_apart(self) -> None:
        assert plain_text("<p>a</p><p>b<br>c</p> &amp;&nbsp;d<script>e</script>") == "a b c & d"

    @given(st.text())
    def test_safe_html_is_stable(self, text: str) -> None:
        assert safe_html(safe_html(text)) == safe_html(text)

    def test_hostile_html_takes_a_moment(self) -> None:
        for text in (
            "<div>" * 1_000_000,
            "<" * 1_000_000,
            "&" * 1_000_000,
            "<table><a>" * 200_000,
            "<b><p>" * 200_000,
        ):
            began = time.thread_time()
            safe_html(text)
            plain_text(text)
            assert time.thread_time() - began < 2.0, text[:10]
