"""Lists of feeds: read from whatever feed readers export, written so that they read it."""

from __future__ import annotations

import time

import pytest
from lxml import etree

from tidings.errors import TidingsError
from tidings.feeds import opml
from tidings.feeds.opml import Outline, read_opml, write_opml


def document(body: str) -> bytes:
    return f'<?xml version="1.0"?><opml version="2.0"><head><title>T</title></head><body>{body}</body></opml>'.encode()


def test_outlines_nest_and_name_feeds_in_two_ways() -> None:
    found = read_opml(
        document(
            """<outline text="News"><outline text="World"><outline type="rss" text="A &amp; B" xmlUrl=" http://a.example/feed "/>
            </outline></outline><outline title="Title" text="Text" XMLURL="https://b.example/"/>
            <outline text="Old" type="link" url="http://c.example/rss"/>"""
        )
    )
    assert found == [
        Outline("http://a.example/feed", "A & B"),
        Outline("https://b.example/", "Title"),
        Outline("http://c.example/rss", "Old"),
    ]
    assert found.rejected == []


def test_a_feed_is_there_once() -> None:
    assert len(read_opml(document('<outline xmlUrl="http://a.example/"/>' * 3))) == 1


def test_outlines_without_a_proper_address_are_told_of() -> None:
    found = read_opml(
        document(
            """<outline text="X" type="rss"/><outline xmlUrl="file:///etc/passwd"/><outline xmlUrl="javascript:alert(1)"/>
            <outline xmlUrl="http://"/><outline xmlUrl="http://a b/"/><outline xmlUrl="feed://ok.example/f"/>
            <outline xmlUrl="feed:https://ok.example/g"/>"""
        )
    )
    assert found == [Outline("http://ok.example/f"), Outline("https://ok.example/g")]
    assert [given for given, _ in found.rejected] == [
        "X",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http://a b/",
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no xml",
        b"<html/>",
        b"{}",
        b"\xff\xfe",
        b"<opml>" * 1_000,
        b"x" * (opml.MAX_BYTES + 1),
        b'<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><body><outline text="&x;"/></body></opml>',
        b'<!DOCTYPE o [<!ENTITY a "%s"><!ENTITY b "%s">]><opml>&b;</opml>' % (b"ha" * 1_000, b"&a;" * 1_000),
    ],
)
def test_what_is_no_opml(data: bytes) -> None:
    with pytest.raises(TidingsError):
        read_opml(data)


def test_a_document_that_is_cut_off_gives_what_it_has() -> None:
    assert len(read_opml(document('<outline xmlUrl="http://a.example/"/>')[:-15])) == 1


def test_too_many_are_refused() -> None:
    began = time.perf_counter()
    with pytest.raises(TidingsError, match="split it"):
        read_opml(document("".join(f'<outline xmlUrl="http://a.example/{n}"/>' for n in range(20_000))))
    assert time.perf_counter() - began < 20


def test_what_is_written_is_read_again() -> None:
    feeds = [
        Outline("http://a.example/?a=1&b=2", 'Quotes " and <tags>'),
        Outline("https://b.example/ü", "Übersicht 😀"),
        Outline("http://c.example/"),
    ]
    written = write_opml(feeds, "My <feeds>\0", 0.0)
    assert read_opml(written) == [*feeds[:2], Outline("http://c.example/", "http://c.example/")]
    root = etree.fromstring(written)
    assert (root.tag, root.get("version")) == ("opml", "2.0")
    assert [child.tag for child in root] == ["head", "body"]
    assert root.findtext("head/dateCreated") == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert root.findtext("head/title") == "My <feeds>\ufffd"
    assert all(outline.get("type") == "rss" and outline.get("text") for outline in root.iter("outline"))
    assert read_opml(write_opml([])) == []
