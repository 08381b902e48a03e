"""The fetcher against a real server on loopback, with a clock of its own."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tidings.errors import TidingsError
from tidings.feeds.fetch import INTERVAL, LONGEST, Fetcher
from tidings.model.event import Event

Reply = tuple[int, dict[str, str], bytes]


def feed(*names: str) -> bytes:
    items = "".join(f"<item><guid>{name}</guid><title>{name}</title></item>" for name in names)
    return f"<rss version='2.0'><channel><title>C</title>{items}</channel></rss>".encode()


class Site:
    """Answers each path with what a test put there, and notes what it was asked."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply | Callable[[dict[str, str]], Reply]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = dict(self.headers)
                site.asked.append((self.path, headers))
                reply = site.replies.get(self.path, (404, {}, b""))
                status, extra, body = reply(headers) if callable(reply) else reply
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | extra).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


class Desk:
    """A fetcher, the events it appended, and the time it believes in."""

    def __init__(self, state: Path, **options: object) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []
        self.events: list[Event] = []
        self.fetcher = Fetcher(
            self.events.extend, state, clock=lambda: self.now, sleep=self._sleep, seed=1, **options
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def look(self) -> list[tuple[str, int]]:
        return sorted((result.status, result.events) for result in self.fetcher.fetch_due())


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "data" / "feeds.sqlite"


@pytest.fixture
def desk(state: Path) -> Iterator[Desk]:
    desk = Desk(state)
    yield desk
    desk.fetcher.close()


def test_only_new_items_are_appended(site: Site, desk: Desk) -> None:
    site.replies["/a"] = 200, {}, feed("1", "2")
    desk.fetcher.follow([site.url("/a")])
    assert desk.fetcher.due_in() == 0
    assert desk.look() == [("ok", 2)]
    assert desk.look() == []
    assert desk.fetcher.due_in() == INTERVAL
    site.replies["/a"] = 200, {}, feed("3", "1", "2")
    desk.now += INTERVAL
    assert desk.look() == [("ok", 1)]
    assert len({event.id for event in desk.events}) == len(desk.events) == 3
    assert {event.source for event in desk.events} == {site.url("/a")}


def test_conditional_get(site: Site, desk: Desk) -> None:
    modified = "Tue, 05 Mar 2024 10:15:00 GMT"

    def reply(headers: dict[str, str]) -> Reply:
        if headers.get("If-None-Match") == '"v1"' and headers.get("If-Modified-Since") == modified:
            return 304, {}, b""
        return 200, {"ETag": '"v1"', "Last-Modified": modified}, feed("1")

    site.replies["/a"] = reply
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("ok", 1)]
    desk.now += INTERVAL
    assert desk.look() == [("unchanged", 0)]
    desk.now += INTERVAL
    assert desk.look() == [("unchanged", 0)]


def test_a_restart_remembers(site: Site, state: Path) -> None:
    site.replies["/a"] = 200, {"ETag": '"v1"'}, feed("1")
    first = Desk(state)
    first.fetcher.follow([site.url("/a")])
    first.look()
    first.fetcher.close()
    second = Desk(state)
    second.fetcher.follow([site.url("/a")])
    assert second.look() == []
    second.now += INTERVAL
    assert second.look() == [("ok", 0)]
    assert site.asked[-1][1]["If-None-Match"] == '"v1"'
    second.fetcher.close()


def test_an_append_that_fails_loses_nothing(site: Site, state: Path) -> None:
    site.replies["/a"] = 200, {}, feed("1")

    def full(_: list[Event]) -> None:
        raise OSError("no space left")

    fetcher = Fetcher(full, state)
    fetcher.follow([site.url("/a")])
    with pytest.raises(OSError, match="no space left"):
        fetcher.fetch_due()
    fetcher.close()
    again = Desk(state)
    again.now = 4e9
    assert again.look() == [("ok", 1)]
    again.fetcher.close()


def test_a_bad_feed_costs_no_other(site: Site, desk: Desk) -> None:
    site.replies |= {"/a": (200, {}, feed("1")), "/b": (200, {}, b"<html/>"), "/c": (500, {}, b"oops")}
    desk.fetcher.follow(map(site.url, ["/a", "/b", "/c", "/d"]))
    assert desk.look() == [("error", 0), ("error", 0), ("error", 0), ("ok", 1)]
    errors = {feed.url: feed.error for feed in desk.fetcher.feeds()}
    assert errors[site.url("/a")] is None
    assert (
        errors[site.url("/b")]
        == f"{site.url('/b')}: the document is <html>, not a feed; RSS, Atom and JSON Feed are read"
    )
    assert "500" in (errors[site.url("/c")] or "")
    assert "404" in (errors[site.url("/d")] or "")


def test_no_server(desk: Desk) -> None:
    desk.fetcher.follow(["http://127.0.0.1:1/feed"])
    (result,) = desk.fetcher.fetch_due()
    assert result.status == "error"
    assert (result.error or "").startswith("http://127.0.0.1:1/feed: ")


def test_back_off_doubles_up_to_a_day_and_ends_with_success(site: Site, desk: Desk) -> None:
    desk.fetcher.follow([site.url("/a")])
    waits = []
    for _ in range(12):
        assert desk.look() == [("error", 0)]
        waits.append(desk.fetcher.due_in() or 0)
        desk.now += waits[-1]
    for failures, wait in enumerate(waits, 1):
        full = min(INTERVAL * 2**failures, LONGEST)
        assert 0.75 * full <= wait <= full
    assert desk.fetcher.feeds()[0].failures == 12
    site.replies["/a"] = 200, {}, feed("1")
    assert desk.look() == [("ok", 1)]
    assert (desk.fetcher.feeds()[0].failures, desk.fetcher.feeds()[0].error) == (0, None)


@pytest.mark.parametrize(("said", "wait"), [("120", 120.0), ("99999999999", LONGEST), ("0", 1.0)])
def test_retry_after(site: Site, desk: Desk, said: str, wait: float) -> None:
    site.replies["/a"] = 429, {"Retry-After": said}, b""
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("error", 0)]
    assert desk.fetcher.due_in() == wait


def test_a_feed_has_an_interval_of_its_own(site: Site, desk: Desk) -> None:
    site.replies["/a"] = site.replies["/b"] = 200, {}, feed("1")
    a, b = site.url("/a"), site.url("/b")
    for interval, waits in ((60.0, 60.0), (7 * LONGEST, INTERVAL), (None, INTERVAL)):
        desk.fetcher.follow([a, b], {} if interval is None else {a: interval})
        desk.look()
        due = {feed.url: feed.due - (feed.fetched or 0.0) for feed in desk.fetcher.feeds()}
        assert due == {a: interval or INTERVAL, b: INTERVAL}
        assert desk.fetcher.due_in() == pytest.approx(waits, abs=5)
        desk.now += 8 * LONGEST
    # A shorter interval counts from the last fetch.
    desk.fetcher.follow([a], {a: 7 * LONGEST})
    desk.look()
    desk.now += 100
    assert desk.look() == []
    desk.fetcher.follow([a], {a: 60.0})
    assert desk.fetcher.due_in() == 0
    assert desk.look() == [("ok", 0)]


def test_politeness_comes_before_the_interval_of_a_feed(site: Site, desk: Desk) -> None:
    a = site.url("/a")
    site.replies["/a"] = 200, {}, feed("1")
    desk.fetcher.follow([a], {a: 60.0})
    desk.look()
    desk.now += 61
    site.replies["/a"] = 503, {"Retry-After": "4000"}, b""
    assert desk.look() == [("error", 0)]
    assert desk.fetcher.due_in() == 4000
    desk.now += 4001
    site.replies["/a"] = 500, {}, b""
    desk.look()
    assert 4 * 60 * 0.75 <= (desk.fetcher.due_in() or 0.0) <= 4 * 60
    desk.fetcher.follow([a], {a: 7 * LONGEST})
    desk.now += 4 * 60
    desk.look()
    assert 7 * LONGEST * 0.75 <= (desk.fetcher.due_in() or 0.0) <= 7 * LONGEST, "not more often than it was"


def test_gone_stops_until_followed_anew(site: Site, desk: Desk) -> None:
    site.replies["/a"] = 410, {}, b""
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("gone", 0)]
    assert desk.fetcher.feeds()[0].gone
    assert desk.fetcher.due_in() is None
    desk.now += 10 * LONGEST
    assert desk.look() == []
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == []
    desk.fetcher.follow([])
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("gone", 0)]


def test_permanent_redirects_are_remembered(site: Site, desk: Desk) -> None:
    site.replies |= {
        "/old": (301, {"Location": "/older"}, b""),
        "/older": (308, {"Location": "/now"}, b""),
        "/now": (302, {"Location": "/today"}, b""),
        "/today": (200, {}, feed("1")),
    }
    desk.fetcher.follow([site.url("/old")])
    assert desk.look() == [("ok", 1)]
    assert desk.fetcher.feeds()[0].address == site.url("/now")
    desk.now += INTERVAL
    assert desk.look() == [("ok", 0)]
    assert site.paths() == ["/old", "/older", "/now", "/today", "/now", "/today"]
    assert desk.events[0].source == site.url("/old")


@pytest.mark.parametrize("location", ["/a", "file:///etc/passwd", "http://[bad/"])
def test_bad_redirects(site: Site, desk: Desk, location: str) -> None:
    site.replies["/a"] = 301, {"Location": location}, b""
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("error", 0)]
    assert desk.fetcher.feeds()[0].address == site.url("/a")


def test_compressed(site: Site, desk: Desk) -> None:
    site.replies["/a"] = 200, {"Content-Encoding": "gzip"}, gzip.compress(feed("1"))
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("ok", 1)]


def test_size_limit_counts_what_comes_out(site: Site, state: Path) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    site.replies |= {
        "/bomb": (200, {"Content-Encoding": "gzip"}, bomb),
        "/large": (200, {}, b" " * 200_000),
        "/cut": (200, {"Content-Encoding": "gzip"}, gzip.compress(feed("1"))[:-9]),
        "/odd": (200, {"Content-Encoding": "br"}, b"x"),
        "/bad": (200, {"Content-Encoding": "gzip"}, b"not gzip"),
    }
    desk = Desk(state, max_bytes=100_000)
    desk.fetcher.follow(map(site.url, site.replies))
    assert {result.status for result in desk.fetcher.fetch_due()} == {"error"}
    said = {feed.url.rpartition("/")[2]: feed.error or "" for feed in desk.fetcher.feeds()}
    assert "more than 100,000 bytes" in said["bomb"]
    assert "more than 100,000 bytes" in said["large"]
    assert "cut off" in said["cut"]
    assert "'br'" in said["odd"]
    assert "not proper gzip" in said["bad"]
    desk.fetcher.close()


def test_a_host_is_asked_one_at_a_time_with_a_pause(site: Site, desk: Desk) -> None:
    busy = threading.Lock()

    def reply(_: dict[str, str]) -> Reply:
        alone = busy.acquire(blocking=False)
        time.sleep(0.02)
        if alone:
            busy.release()
        return (200 if alone else 500), {}, feed("1")

    site.replies |= dict.fromkeys(["/a", "/b", "/c"], reply)
    desk.fetcher.follow(map(site.url, site.replies))
    assert desk.look() == [("ok", 1)] * 3
    assert desk.slept == [2.0, 2.0]


def test_items_are_remembered_as_long_as_the_feed_shows_them(site: Site, desk: Desk) -> None:
    many = [str(number) for number in range(2500)]
    site.replies["/a"] = 200, {}, feed(*many)
    desk.fetcher.follow([site.url("/a")])
    assert desk.look() == [("ok", 2500)]
    desk.now += INTERVAL
    assert desk.look() == [("ok", 0)]
    site.replies["/a"] = 200, {}, feed("new")
    desk.now += INTERVAL
    assert desk.look() == [("ok", 1)]
    site.replies["/a"] = 200, {}, feed(*many)
    desk.now += INTERVAL
    assert desk.look() == [("ok", 501)]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "example.org/feed", "http://", ""])
def test_an_address_that_is_none(desk: Desk, url: str) -> None:
    with pytest.raises(TidingsError, match="is not the address of a feed"):
        desk.fetcher.follow([url])


def test_a_state_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look at " * 10)
    with pytest.raises(TidingsError, match="does not hold the states of feeds"):
        Fetcher(print, path)
