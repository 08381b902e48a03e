"""The hub and the topic that a document names: headers before the document, and never what an item says."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.feeds.hubs import MOST, NamedHubs, named_hubs
from tidings.feeds.states import FeedStates
from tidings.feeds.write import Channel, atom, jsonfeed, rss1, rss2

BASE = "https://site.example/blog/feed?x=1"
ATOM = 'xmlns="http://www.w3.org/2005/Atom"'
INSIDE = f'<feed {ATOM}><link rel="hub" href="/inside"/><link rel="self" href="/self"/></feed>'.encode()


def test_link_headers_come_first() -> None:
    headers = ['<https://hub.example/>; rel="hub"', '<https://site.example/feed>; rel="self"']
    found = named_hubs(headers, INSIDE, BASE)
    assert found == NamedHubs("https://site.example/feed", ("https://hub.example/",))
    assert named_hubs([], INSIDE, BASE) == NamedHubs(
        "https://site.example/self", ("https://site.example/inside",)
    )
    assert named_hubs(headers[:1], INSIDE, BASE) == named_hubs([], INSIDE, BASE), "one without the other"


@pytest.mark.parametrize(
    ("header", "topic", "hubs"),
    [
        ("<h>; rel=hub, <s>; rel=self", "https://site.example/blog/s", ("https://site.example/blog/h",)),
        ('<//h.example/a,b;c>; rel="x HUB y"; title="a, b; \\"c\\"",<s>;rel="self"', "https://site.example/blog/s", ("https://h.example/a,b;c",)),
        ("<h>;rel=hub;rel=self , <s#part>; rel=self", "https://site.example/blog/s", ("https://site.example/blog/h",)),
        ("<h1>; rel=hub, <s>; rel=self, <h2>; rel=hub, <h1>; rel=hub", "https://site.example/blog/s", ("https://site.example/blog/h1", "https://site.example/blog/h2")),
        ('<h>; rel=hub, <o>; rel=self; anchor="/other", <s>; rel=self', "https://site.example/blog/s", ("https://site.example/blog/h",)),
    ],
)  # fmt: skip
def test_link_headers_of_every_form(header: str, topic: str, hubs: tuple[str, ...]) -> None:
    assert named_hubs([header], b"", BASE) == NamedHubs(topic, hubs)


@pytest.mark.parametrize(
    "headers",
    [
        ["<h>; rel=hub"],
        ["<s>; rel=self"],
        ["<ftp://h.example/>; rel=hub, <s>; rel=self"],
        ["<javascript:alert(1)>; rel=hub, <s>; rel=self"],
        ["<http://[>; rel=hub, <s>; rel=self"],
        ["<" + "h" * 3_000 + ">; rel=hub, <s>; rel=self"],
        ['<h>; rel="hub, <s>; rel=self'],
        ["<h; rel=hub"],
        [""],
    ],
)
def test_what_names_no_hub(headers: list[str]) -> None:
    assert named_hubs(headers, b"<rss version='2.0'><channel/></rss>", BASE) is None


def test_at_most_so_many_hubs() -> None:
    header = ", ".join(f"<h{i}>; rel=hub" for i in range(50)) + ", <s>; rel=self"
    found = named_hubs([header], b"", BASE)
    assert found is not None
    assert len(found.hubs) == MOST


@pytest.mark.parametrize("write", [atom.write, rss2.write, rss1.write, jsonfeed.write], ids=["atom", "rss", "rdf", "json"])  # fmt: skip
def test_what_our_feeds_name_is_found_in_them(write) -> None:
    channel = Channel(
        "urn:a", "https://a.example/f", "https://a.example/", "T", "D", 0.0, hub="https://a.example/websub"
    )
    assert named_hubs([], write(channel), BASE) == NamedHubs(
        "https://a.example/f", ("https://a.example/websub",)
    )


@pytest.mark.parametrize(
    "body",
    [
        f'<rss version="2.0"><channel><item><link {ATOM} rel="hub" href="/h"/><link {ATOM} rel="self" href="/s"/></item></channel></rss>',
        f'<feed {ATOM}><entry><link rel="hub" href="/h"/><link rel="self" href="/s"/></entry></feed>',
        '<rss version="2.0"><channel><link rel="hub" href="/h"/><link rel="self" href="/s"/></channel></rss>',
        '{"version": "https://jsonfeed.org/version/1.1", "feed_url": "/s", "hubs": [{"type": "rssCloud", "url": "/h"}, 7]}',
        '{"hubs": "no list", "feed_url": 3}',
        "[]",
        "",
        "no document",
        "<!DOCTYPE html><html><head></head><body><link rel=hub href=/h><link rel=self href=/s></body></html>",
    ],
)
def test_links_elsewhere_in_a_document_do_not_count(body: str) -> None:
    assert named_hubs([], body.encode(), BASE) is None


def test_links_in_the_head_of_a_page_count() -> None:
    page = b"\n<!doctype HTML><html><head><title>T</title><link rel='hub' href='/h'><link rel='self x' href='s'></head><body>"
    assert named_hubs([], page, BASE) == NamedHubs("https://site.example/blog/s", ("https://site.example/h",))


@examples(40)
@given(
    st.lists(st.text(alphabet='<>;,="\\ \tabrelhubslf/:#', max_size=60), max_size=4), st.binary(max_size=60)
)
def test_no_document_is_too_odd(headers: list[str], body: bytes) -> None:
    found = named_hubs(headers, body, BASE)
    assert found is None or (found.topic.startswith("http") and found.hubs)


def test_a_file_of_an_earlier_version_opens(tmp_path: Path) -> None:
    path = tmp_path / "feeds.db"
    with sqlite3.connect(path) as old:
        old.executescript(
            "CREATE TABLE feeds (url TEXT PRIMARY KEY, address TEXT NOT NULL, etag TEXT, modified TEXT, due REAL NOT NULL,"
            " failures INTEGER NOT NULL, error TEXT, gone INTEGER NOT NULL, fetched REAL, followed INTEGER NOT NULL);"
            "INSERT INTO feeds VALUES ('http://a/', 'http://a/', NULL, NULL, 1, 0, NULL, 0, NULL, 1);"
        )
    old.close()
    states = FeedStates(path)
    assert [feed.url for feed in states.followed()] == ["http://a/"]
    assert states.named_hubs() == {}
    states.name_hubs("http://a/", NamedHubs("t", ("h", "i")))
    assert states.named_hubs("http://a/") == {"http://a/": NamedHubs("t", ("h", "i"))}
    states.name_hubs("http://a/", None)
    assert states.named_hubs() == {}
    states.close()
