"""Feeds of a real server on loopback become events; trouble is the trouble of the one who has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest

from tidings.feeds.fetch import FeedResult
from tidings.model.event import Event
from tidings.service.ingest import feed_poller as module
from tidings.service.ingest.deduplication import Deduplication
from tidings.service.ingest.feed_poller import FeedPoller, SourceHealth
from tidings.service.ingest.log_writer import LogWriter, Unavailable
from tidings.service.model import Source
from tidings.service.settings import Settings
from tidings.storage.event_log import EventLog


def feed(*names: str) -> bytes:
    items = "".join(f"<item><guid>{name}</guid><title>{name}</title></item>" for name in names)
    return f"<rss version='2.0'><channel><title>C</title>{items}</channel></rss>".encode()


class Site:
    def __init__(self) -> None:
        self.replies: dict[str, tuple[int, dict[str, str], bytes]] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, headers, body = site.replies.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
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


class Desk:
    """Sources, the way in, and what was looked at, for a thread to wait for."""

    def __init__(self, folder: Path, allowed: tuple[str, ...] = ("127.0.0.0/8",)) -> None:
        self.list: list[Source] = []
        self.now = time.time()
        self.looks: Queue[list[FeedResult]] = Queue()
        self.log = EventLog(folder / "log")
        self.deduplication = Deduplication(folder / "arrivals.db", self.log)
        self.log_writer = LogWriter(self.log, self.deduplication)
        settings = Settings(folder, allowed=allowed, feed_interval=900.0)
        self.feed_poller = FeedPoller(
            self, self.log_writer, settings, on_look=self.looks.put, clock=lambda: self.now, host_interval=0.0
        )
        self.feed_poller.start()

    def sources(self) -> list[Source]:
        return list(self.list)

    def follow(self, *urls: str) -> list[FeedResult]:
        """Follows exactly these, and says what came of the next look."""
        self.list = [Source(url, "", "", 0.0) for url in urls]
        self.feed_poller.wake()
        return sorted(self.looks.get(timeout=20), key=lambda result: result.url)

    def look(self) -> list[FeedResult]:
        """A quarter of an hour later."""
        self.now += 901.0
        self.feed_poller.wake()
        return self.looks.get(timeout=20)

    def health(self) -> dict[str, SourceHealth]:
        return {health.source.url: health for health in self.feed_poller.health(self.sources())}

    def close(self) -> None:
        self.feed_poller.stop()
        self.log_writer.close()
        self.deduplication.close()
        self.log.close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


def rows(log: EventLog) -> int:
    return sum(batch.num_rows for batch in log.read())


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_new_items_are_events(site: Site, desk: Desk) -> None:
    url = site.url("/a")
    site.replies["/a"] = 200, {}, feed("1", "2")
    assert desk.follow(url) == [FeedResult(url, "ok", 2)]
    assert rows(desk.log) == 2
    assert {event.source for event in desk.log_writer.recent.events()} == {url}
    site.replies["/a"] = 200, {}, feed("3", "1", "2")
    assert desk.look() == [FeedResult(url, "ok", 1)]
    assert rows(desk.log) == 3
    assert desk.health()[url].counts == ("C", 3, 1), "its title, how many were taken, and how many just now"
    site.replies["/a"] = 200, {}, feed("4", "3", "1", "2")
    desk.feed_poller.fetch_now(url)  # a quarter of an hour too early
    assert desk.looks.get(timeout=20) == [FeedResult(url, "ok", 1)]
    assert desk.health()[url].counts == ("C", 4, 1)
    health = desk.health()[url]
    assert (health.error, health.failures, health.gone) == (None, 0, False)
    assert health.fetched == desk.now
    assert health.due == desk.now + 900


def test_a_source_has_an_interval_of_its_own(site: Site, desk: Desk) -> None:
    url = site.url("/a")
    site.replies["/a"] = 200, {}, feed("1")
    desk.follow(url)
    assert desk.health()[url].due == desk.now + 900
    desk.list = [Source(url, "", "", 0.0, 60.0)]
    assert desk.health()[url].due == desk.now + 60
    desk.now += 61
    desk.feed_poller.wake()
    assert desk.looks.get(timeout=20) == [FeedResult(url, "ok", 0)]
    desk.list = [Source(url, "", "", 0.0, 86_400.0)]
    desk.now += 61
    desk.feed_poller.wake()
    assert desk.looks.get(timeout=20) == [FeedResult(url, "ok", 0)], "the fetch that was due already"
    assert desk.health()[url].due == desk.now + 86_400


def test_a_source_that_was_added_is_looked_at_soon(site: Site, desk: Desk) -> None:
    site.replies["/a"] = site.replies["/b"] = 200, {}, feed("1")
    a, b = site.url("/a"), site.url("/b")
    assert [result.url for result in desk.follow(a)] == [a]
    desk.list.append(Source(b, "B", "", 0.0))
    assert desk.health()[b][1:6] == (None, None, None, 0, False)
    assert [result.url for result in desk.follow(a, b)] == [b]
    desk.list = [Source(b, "B", "", 0.0)]
    assert set(desk.health()) == {b}
    assert [result.url for result in desk.look()] == [b]


def test_a_feeds_trouble_is_its_own(site: Site, desk: Desk) -> None:
    site.replies["/ok"] = 200, {}, feed("1")
    site.replies["/gone"] = 410, {}, b""
    site.replies["/html"] = 200, {}, b"<html><body>no feed</body></html>"
    names = ("/gone", "/html", "/missing", "/ok")
    statuses = {r.url: r.status for r in desk.follow(*map(site.url, names))}
    assert [statuses[site.url(name)] for name in names] == ["gone", "error", "error", "ok"]
    health = desk.health()
    assert health[site.url("/gone")].gone
    assert health[site.url("/gone")].due is None
    assert "not a feed" in (health[site.url("/html")].error or "")
    assert "404" in (health[site.url("/missing")].error or "")
    assert health[site.url("/missing")].failures == 1
    assert health[site.url("/ok")].error is None


def test_an_address_inside_is_that_sources_error(site: Site, tmp_path: Path) -> None:
    desk = Desk(tmp_path, allowed=())
    site.replies["/a"] = 200, {}, feed("1")
    try:
        named = f"http://localhost:{site.server.server_port}/a"
        results = desk.follow(site.url("/a"), named, f"http://2130706433:{site.server.server_port}/a")
        assert [result.status for result in results] == ["error"] * 3
        assert "this machine" in (desk.health()[named].error or "")
        assert rows(desk.log) == 0
    finally:
        desk.close()


def test_a_redirect_inside_is_that_sources_error(site: Site, desk: Desk) -> None:
    site.replies["/a"] = 302, {"Location": "http://169.254.169.254/latest/meta-data/"}, b""
    site.replies["/b"] = 200, {}, feed("1")
    a, b = desk.follow(site.url("/a"), site.url("/b"))
    assert (a.status, b.status) == ("error", "ok")
    assert "169.254.169.254 leads to the local link" in (a.error or "")


def test_sources_that_are_no_addresses_stop_no_other(site: Site, desk: Desk) -> None:
    site.replies["/a"] = 200, {}, feed("1")
    assert [result.status for result in desk.follow("nonsense", site.url("/a"))] == ["ok"]
    assert "not an address" in (desk.health()["nonsense"].error or "")


def test_trouble_of_the_way_in_is_no_feeds(site: Site, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items come when there is room again."""
    monkeypatch.setattr(module, "_AFTER_TROUBLE", 0.01)
    site.replies["/a"] = 200, {}, feed("1")
    tried = threading.Event()

    def full(_: list[Event]) -> None:
        tried.set()
        raise Unavailable("the disk is full")

    accept = desk.log_writer.accept
    desk.log_writer.accept = full  # type: ignore[assignment,method-assign]
    desk.list = [Source(site.url("/a"), "", "", 0.0)]
    desk.feed_poller.wake()
    assert tried.wait(10)
    assert desk.health()[site.url("/a")].error is None
    desk.log_writer.accept = accept  # type: ignore[method-assign]
    assert desk.looks.get(timeout=20) == [FeedResult(site.url("/a"), "ok", 1)]
    assert rows(desk.log) == 1


def test_a_restart_asks_no_more_often(site: Site, tmp_path: Path) -> None:
    site.replies["/a"] = 200, {}, feed("1")
    desk = Desk(tmp_path)
    desk.follow(site.url("/a"))
    desk.close()
    again = Desk(tmp_path)
    again.list = [Source(site.url("/a"), "", "", 0.0)]
    again.feed_poller.wake()
    until(lambda: again.health()[site.url("/a")].fetched is not None)
    site.replies["/a"] = 200, {}, feed("1", "2")
    assert again.look() == [FeedResult(site.url("/a"), "ok", 1)]
    again.close()
    assert not again.feed_poller._thread.is_alive()


def test_a_host_with_many_feeds_delays_no_other(site: Site, desk: Desk) -> None:
    site.replies.update({f"/{n}": (200, {}, feed(str(n))) for n in range(12)})
    assert len(desk.follow(*(site.url(f"/{n}") for n in range(12)))) == 5
    assert len(desk.looks.get(timeout=20)) == 5
    assert len(desk.looks.get(timeout=20)) == 2
    assert rows(desk.log) == 12


def test_many_threads_look_at_the_health(site: Site, desk: Desk) -> None:
    site.replies.update({f"/{n}": (200, {}, feed(str(n))) for n in range(20)})
    desk.list = [Source(site.url(f"/{n}"), "", "", 0.0) for n in range(20)]
    desk.feed_poller.wake()
    failures: list[Exception] = []

    def ask() -> None:
        try:
            for _ in range(20):
                assert len(desk.health()) == 20
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(len(desk.looks.get(timeout=20)) for _ in range(4)) == 20
