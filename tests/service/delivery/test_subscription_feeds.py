"""A subscription's feed: the same item has one id wherever it stands, and a second poll gets nothing."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import feedparser
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.service.conftest import Running
from tests.service.delivery.test_presentation import names, values
from tidings.errors import TidingsError
from tidings.feeds.read import read_feed
from tidings.feeds.write.channel import rfc822
from tidings.model.event import Event
from tidings.service.delivery.presentation import describe
from tidings.service.delivery.subscription_feeds import (
    FORMATS,
    is_unchanged,
    notification_id_of_entry,
    render,
)
from tidings.service.model import NotificationKind, StoredNotification, Subscription
from tidings.service.settings import Settings

SETTINGS = Settings(Path("data"), url="https://tidings.example")
SUBSCRIPTION = Subscription("s_1", "WHERE a < 1 && b = '<x>'", "", "", "h", "f_secret", 1_000.0, None)
FEED = "https://tidings.example/feeds/f_secret"
ROWS = ({"table": "stocks", "change": "+", "row": {"symbol": "X"}},)
GRAPH = Event.from_rdf(
    """@prefix rss: <http://purl.org/rss/1.0/> . @prefix uni: <http://example.org/uni#> .
    <https://a.example/1> a rss:item ; rss:title "On Ann" ; rss:link "https://a.example/1" ;
      rss:description "<b>bold</b><script>no()</script>" ; uni:age 24 ; uni:knows <https://a.example/bob> .""",
    "turtle",
    source="https://a.example/feed",
)
PAGE = [
    StoredNotification(
        5, "n5", "s_1", NotificationKind.EXPIRES_SOON, 1_700_000_400.5, message="It ends at noon; renew it."
    ),
    StoredNotification(
        4, "n4", "s_1", NotificationKind.MATCH, 1_700_000_300.0, Event(id="e4"), changes=ROWS, sequence=1
    ),
    StoredNotification(
        3,
        "n3",
        "s_1",
        NotificationKind.UNDECIDED,
        1_700_000_200.0,
        Event(attributes={"topic": "sport"}, id="e3"),
    ),
    StoredNotification(2, "n 2/ü", "s_1", NotificationKind.MATCH, 1_700_000_100.0, GRAPH),
]
ADDRESSES = [f"urn:tidings:notification:s_1:{id}" for id in ("n5", "n4", "n3", "n%202%2F%C3%BC")]


def ids(format: str, body: bytes) -> list[str]:
    if format == "json":
        return [item["id"] for item in json.loads(body)["items"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = feedparser.parse(io.BytesIO(body))
    assert found.bozo is False
    return [entry.id for entry in found.entries]


@pytest.mark.parametrize("format", list(FORMATS))
class TestEveryFormat:
    def test_an_item_has_one_id(self, format: str) -> None:
        whole = render(SUBSCRIPTION, PAGE, format, SETTINGS, f"{FEED}.{format}")
        second = render(SUBSCRIPTION, PAGE[2:], format, SETTINGS, f"{FEED}.{format}?before=4")
        assert ids(format, whole.body) == ADDRESSES
        assert ids(format, second.body) == ADDRESSES[2:]

    def test_a_second_poll_gets_nothing(self, format: str) -> None:
        first = render(SUBSCRIPTION, PAGE, format, SETTINGS, FEED)
        again = render(SUBSCRIPTION, PAGE, format, SETTINGS, FEED)
        asked = {"If-None-Match": first.headers["ETag"]}
        assert is_unchanged(again.etag, 0, asked, 0.0)
        news = render(
            SUBSCRIPTION, [replace(PAGE[0], id="n6", at=1_700_000_500.0), *PAGE], format, SETTINGS, FEED
        )
        assert not is_unchanged(news.etag, 0, asked, 0.0)

    def test_nothing_in_it_runs(self, format: str) -> None:
        body = render(SUBSCRIPTION, PAGE, format, SETTINGS, FEED).body
        assert b"no()" not in body
        assert b"bold" in body

    def test_another_tidings_can_follow_it(self, format: str) -> None:
        body = render(SUBSCRIPTION, PAGE, format, SETTINGS, FEED, next_url=FEED + "?before=2").body
        events = read_feed(body, FEED)
        assert len({event.id for event in events}) == 4
        items = [describe(event) for event in events]
        assert [item.title for item in items] == [
            "It ends at noon; renew it.",
            "+ stocks: X",
            "Undecided: topic: sport",
            "On Ann",
        ]
        assert items[3].link == "https://a.example/1"
        assert items[0].link == "https://tidings.example/subscriptions/s_1#n5"
        assert [event.id for event in read_feed(body, FEED)] == [event.id for event in events]
        if format != "json":
            assert ("http://example.org/uni#age", "24") in {
                (p.predicate, p.value) for p in items[3].properties
            }

    def test_without_news_it_is_a_feed_all_the_same(self, format: str) -> None:
        feed = render(SUBSCRIPTION, [], format, SETTINGS, FEED)
        assert ids(format, feed.body) == []


def test_the_graph_of_an_item_is_in_rss_1_as_it_was() -> None:
    body = render(SUBSCRIPTION, PAGE, "rdf", SETTINGS, FEED).body
    store = ox.Store()
    store.extend(ox.parse(body, format=ox.RdfFormat.RDF_XML))
    found = store.query(
        "SELECT ?i WHERE { ?i a <http://purl.org/rss/1.0/item> ; <http://example.org/uni#age> 24 ;"
        " <http://example.org/uni#knows> <https://a.example/bob> }"
    )
    assert isinstance(found, ox.QuerySolutions)
    assert [row["i"].value for row in found] == ADDRESSES[3:]


def test_headers() -> None:
    feed = render(SUBSCRIPTION, PAGE, "atom", SETTINGS, FEED, next_url=FEED + "?before=2")
    assert feed.media_type == "application/atom+xml"
    assert feed.headers == {
        "ETag": feed.etag,
        "Link": f'<{FEED}>; rel="self", <{FEED}?before=2>; rel="next"',
    }


def test_a_format_that_is_none() -> None:
    with pytest.raises(TidingsError, match="no feed format 'xml'; ask for one of rdf, rss, atom, json"):
        render(SUBSCRIPTION, [], "xml", SETTINGS, FEED)


@pytest.mark.parametrize(
    ("headers", "unchanged"),
    [
        ({}, False),
        ({"if-none-match": '"a"'}, True),
        ({"If-None-Match": '"b"'}, False),
        ({"If-None-Match": '"b", W/"a" , "c"'}, True),
        ({"If-None-Match": "*"}, True),
        ({"If-None-Match": "a"}, False),
        ({"If-None-Match": ""}, False),
        ({"If-None-Match": '"b"', "If-Modified-Since": "Sun, 06 Nov 2094 08:49:37 GMT"}, False),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:01:40 GMT"}, True),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:01:45 GMT"}, True),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:01:39 GMT"}, False),
        ({"If-Modified-Since": "Sun, 06 Nov 2094 08:49:37 GMT"}, False),
        ({"If-Modified-Since": "yesterday"}, False),
        ({"If-Modified-Since": ""}, False),
        ({"If-Modified-Since": "Thu, 99 Jan 99999 00:01:39 GMT"}, False),
    ],
)
def test_conditional_requests(headers: dict[str, str], unchanged: bool) -> None:
    assert is_unchanged('"a"', 100, headers, 105.5) is unchanged


def test_a_date_never_hides_what_came_in_the_same_second(running: Callable[..., Running]) -> None:
    """Whatever date a reader holds: that of the feed, or that of the answer."""
    with running() as served:
        now = [1_700_000_000.2]
        served.service.clock = lambda: now[0]  # type: ignore[method-assign]
        one = served.subscribe("WHERE topic = 'second'")
        url, dates = one["feeds"]["atom"], []
        for number in range(1, 6):
            served.publish({"source": "second", "id": str(number), "topic": "second"})
            served.notifications(one["id"], number)
            for date in dates:
                answer = served.http.get(url, headers={"If-Modified-Since": date})
                assert (number, date, answer.status_code) == (number, date, 200)
            answer = served.http.get(url)
            dates += [rfc822(now[0])]
            if (date := answer.headers.get("last-modified")) is not None:
                dates.append(date)
            now[0] += 0.3
        now[0] += 1
        date = served.http.get(url).headers["last-modified"]
        assert served.http.get(url, headers={"If-Modified-Since": date}).status_code == 304


@given(st.text(), st.text())
def test_ids_lead_back(subscription: str, id: str) -> None:
    notification = StoredNotification(
        1,
        id.encode(errors="replace").decode(),
        subscription.encode(errors="replace").decode(),
        NotificationKind.MATCH,
        0.0,
    )
    (address,) = ids("json", render(SUBSCRIPTION, [notification], "json", SETTINGS, FEED).body)
    assert notification_id_of_entry(address, notification.subscription) == notification.id
    assert notification_id_of_entry(address, "another") is None


@pytest.mark.parametrize("format", list(FORMATS))
@settings(max_examples=40)
@given(st.dictionaries(names, values, max_size=4), st.text(), st.text())
def test_anything_can_be_told(format: str, attributes: dict[str, object], title: str, text: str) -> None:
    subscription = replace(SUBSCRIPTION, title=title, text=text)
    page = [
        StoredNotification(
            2, "b", "s_1", NotificationKind.MATCH, 1.0, Event(attributes=attributes, id="x"), message=text
        ),
        StoredNotification(1, "a", "s_1", NotificationKind.MISSED, 0.0, message=text),
    ]
    body = render(subscription, page, format, SETTINGS, FEED).body
    assert len(ids(format, body)) == 2
    assert len(read_feed(body, FEED)) == 2
    if format != "json":
        etree.fromstring(body)


def test_a_service_follows_feeds_of_a_service(running: Callable[..., Running]) -> None:
    with running(allowed=("127.0.0.0/8",)) as served:
        first = served.subscribe("WHERE topic = 'sport'", title="Sport")
        second = served.subscribe("SELECT * WHERE (?item, rss:title, ?title)")
        served.publish({"id": "1", "source": "a", "type": "t", "topic": "sport", "title": "Won by a <nose>"})
        served.notifications(first["id"])
        feeds = {first["feeds"]["atom"].removesuffix("atom") + format for format in FORMATS}
        for url in feeds:
            answer = served.http.post("/api/sources", json={"url": url})
            assert answer.status_code < 300, answer.text
        notifications = served.notifications(second["id"], 4)
        assert {one["event"]["source"] for one in notifications} == feeds
        assert {one["event"]["title"] for one in notifications} == {"Won by a <nose>"}
