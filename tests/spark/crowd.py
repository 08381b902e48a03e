"""Those around a service that is killed again and again: they publish, subscribe, listen and receive, and never give up.

Each remembers what it was promised and what it got. What one of them finds wrong is in `faults`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tidings import Client, Event
from tidings.client import Notification, ServiceError
from tidings.service.ingest.request_bodies import BATCH, STRUCTURED, read_events

TITLE = "<http://example.org/{0}> <http://purl.org/rss/1.0/title> {1} ."
About = tuple[str, str]  # the source and the id of an event


@dataclass
class Known:
    """What all of them know."""

    address: str
    ending: threading.Event = field(default_factory=threading.Event)
    faults: list[str] = field(default_factory=list)
    sent: dict[About, float] = field(default_factory=dict)  # when it was tried for the first time

    def ask(self, http: httpx.Client, method: str, path: str, **request: Any) -> httpx.Response | None:
        """The answer to a request, however often it has to be made. None if the crowd is to go."""
        while not self.ending.is_set():
            with suppress(httpx.TransportError):
                response = http.request(method, self.address + path, **request)
                if response.status_code != 503:
                    return response
            self.ending.wait(0.1)
        return None


class Member(threading.Thread):
    def __init__(self, known: Known) -> None:
        super().__init__(daemon=True)
        self.known = known

    def run(self) -> None:
        try:
            self.live()
        except Exception as error:
            self.known.faults.append(f"{type(self).__name__}: {error!r}")

    def live(self) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Letter:
    """One request to publish, and the events in it."""

    body: bytes
    headers: dict[str, str]
    events: Sequence[Event]


class Publisher(Member):
    """Posts `size` events at a time, the same ones until they are accepted; now and then some of before once more."""

    def __init__(self, known: Known, name: str, size: int, pause: float, seed: object) -> None:
        super().__init__(known)
        self.name, self.size, self.pause = name, size, pause
        self.accepted: list[Event] = []
        self.again = 0
        self.stop = threading.Event()
        self._chance = random.Random(f"{seed} {name}")
        self._number = 0

    def live(self) -> None:
        letters: list[Letter] = []
        with httpx.Client(timeout=60) as http:
            while not self.stop.wait(self.pause):
                letter = self._letter()
                self._post(http, letter, None)
                letters.append(letter)
                if self._chance.random() < 0.05:
                    self._post(http, self._chance.choice(letters), 0)

    def _post(self, http: httpx.Client, letter: Letter, accepted: int | None) -> None:
        now = time.monotonic()
        for event in letter.events:
            self.known.sent.setdefault((event.source, event.id), now)
        answer = self.known.ask(http, "POST", "/api/events", content=letter.body, headers=letter.headers)
        if answer is None:
            return
        receipt = answer.json() if answer.status_code == 202 else {}
        whole = receipt.get("accepted", 0) + receipt.get("duplicates", 0) == len(letter.events)
        if not whole or (accepted is not None and receipt["accepted"] != accepted):
            self.known.faults.append(f"{self.name}: {answer.status_code} {answer.text[:300]}")
        elif accepted is None:
            self.accepted += letter.events
            self.again += receipt[
                "duplicates"
            ]  # accepted before, by a service that could not say so any more

    def _letter(self) -> Letter:
        if self.size == 1 and self._chance.random() < 0.3:
            body, source, id = self._graph(), self.name, f"{self._next()}"
            headers = {"content-type": "application/n-triples", "ce-id": id, "ce-source": source}
            headers |= {"ce-specversion": "1.0", "ce-type": "test"}
        elif self.size == 1:
            body, headers = json.dumps(self._event()).encode(), {"content-type": STRUCTURED}
        else:
            body = json.dumps([self._event() for _ in range(self.size)]).encode()
            headers = {"content-type": BATCH}
        return Letter(body, headers, read_events(body, headers["content-type"], headers, "").events)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _event(self) -> dict[str, Any]:
        topic = self._chance.choice(("oil", "gas", "tea", "corn"))
        about = {"id": f"{self._next()}", "source": f"{self.name}/{self._chance.randrange(4)}"}
        return {**about, "type": "test", "topic": topic, "price": self._chance.randrange(1_000)}

    def _graph(self) -> bytes:
        title = json.dumps(self._chance.choice(("Storm at sea", "Calm at sea", "Storm on land")))
        return TITLE.format(self._number, title).encode()


class RowPublisher(Publisher):
    """Posts changes of the tables `stocks` and `reviews`, always of rows that are there, or not yet."""

    def __init__(self, known: Known, name: str, size: int, pause: float, seed: object) -> None:
        super().__init__(known, name, size, pause, seed)
        self._there: dict[str, set[object]] = {"stocks": set(), "reviews": set()}

    def _event(self) -> dict[str, Any]:
        table = self._chance.choice(("stocks", "reviews"))
        symbol = f"s{self._chance.randrange(12)}"
        row: dict[str, Any] = {"symbol": symbol, "per": self._chance.randrange(160) / 2}
        if table == "reviews":
            row = {"id": self._chance.randrange(40), "symbol": symbol, "rating": self._chance.randrange(9)}
        key = row["id"] if table == "reviews" else symbol
        what = self._chance.choice(("update", "update", "delete")) if key in self._there[table] else "insert"
        if what == "delete":
            self._there[table].discard(key)
        else:
            self._there[table].add(key)
        about = {"id": f"{self._next()}", "source": self.name, "type": f"tidings.{what}"}
        return {**about, "table": table, "row": row}


@dataclass
class Asked:
    """A subscription, and from when on it must be told of all that is sent."""

    id: str
    text: str
    since: float


def subscribe(known: Known, http: httpx.Client, text: str, webhook: str | None = None) -> Asked | None:
    wanted = {"text": text, "valid_for": "never", **({} if webhook is None else {"webhook": webhook})}
    answer = known.ask(http, "POST", "/api/subscriptions", json=wanted)
    if answer is None:
        return None
    assert answer.status_code == 201, answer.text
    return Asked(answer.json()["id"], text, time.monotonic())


class Subscriber(Member):
    """Subscribes every now and then. A subscription whose answer got lost is begun again."""

    def __init__(self, known: Known, pause: float, seed: object) -> None:
        super().__init__(known)
        self.asked: list[Asked] = []
        self.stop = threading.Event()
        self._pause, self._chance = pause, random.Random(f"{seed} subscriber")

    def live(self) -> None:
        with httpx.Client(timeout=60) as http:
            while not self.stop.wait(self._pause * self._chance.uniform(0.5, 1.5)):
                low = self._chance.randrange(900)
                text = f"WHERE topic = 'tea' AND price BETWEEN {low} AND {low + 100}"
                if (asked := subscribe(self.known, http, text)) is not None:
                    self.asked.append(asked)


class Listener(Member):
    """Hears a stream of server-sent events, from its first one on, over as many connections as it takes."""

    def __init__(self, known: Known, ids: list[str] | None) -> None:
        super().__init__(known)
        self.heard: list[Notification] = []
        self.first_heard: dict[About, float] = {}  # when it was heard of an event
        self._ids, self._last = ids, 0
        self._client = Client(known.address)

    def live(self) -> None:
        while not self.known.ending.is_set():
            try:
                for told in self._client.listen(self._ids, after=self._last):
                    self._take(told)
            except ServiceError as error:
                if error.status not in (None, 503):
                    raise
                self.known.ending.wait(0.1)
            except RuntimeError:
                if not self.known.ending.is_set():
                    raise

    def close(self) -> None:
        """When the crowd is to go: it would go on waiting for the service."""
        self._client.close()
        self.join(30)

    def _take(self, told: Notification) -> None:
        if told.event is None:
            self.known.faults.append(f"a notice that nobody expects: {told}")
            return
        self.first_heard.setdefault((told.event["source"], told.event["id"]), time.monotonic())
        self.heard.append(told)
        self._last = max(self._last, told.number)


class Receiver:
    """Takes what webhooks bring. `came` has, for each path, number and webhook-id in the order in which they came."""

    def __init__(self) -> None:
        self.came: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
        came = self.came

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))["data"]
                came[self.path].append((body["number"], self.headers["webhook-id"], body["id"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *words: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *about: object) -> None:
                pass  # who is killed says no good-bye

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def until(
    holds: Callable[[], object], what: str, seconds: float = 300.0, faults: Sequence[str] = ()
) -> float:
    """Waits for something, and says how long that took."""
    began = time.monotonic()
    while not holds():
        assert not faults, faults[:5]
        assert time.monotonic() < began + seconds, (
            f"within {seconds:.0f} s it did not come to pass that {what}"
        )
        time.sleep(0.01)
    return time.monotonic() - began


def all_told(known: Known, http: httpx.Client, id: str) -> Iterator[dict[str, Any]]:
    """What a subscription was told, page by page, oldest first."""
    params: dict[str, Any] = {"after": 0, "limit": 200}
    while True:
        page = known.ask(http, "GET", f"/api/subscriptions/{id}/notifications", params=params)
        assert page is not None
        assert page.status_code == 200, page.text
        yield from page.json()["items"]
        if (cursor := page.json()["next"]) is None:
            return
        params = {"cursor": cursor, "limit": 200}
