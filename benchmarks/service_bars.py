"""The bars that must hold of the service: one command with its embedded default, asked over HTTP from another process.

A hundred thousand subscriptions lie in the registry: half are rules of six conditions over the events of a shop, half
patterns of ten edges. A cold start has neither an index nor a running Spark. Clients write HTTP themselves, over
connections that stay open: a client library would take more of the two cores than the service.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import conjunctions, filter_texts, texts
from benchmarks.bars import Bar, show
from benchmarks.contenders import CLUSTER, scaled
from benchmarks.measure import context, write_json
from benchmarks.workloads import make
from tidings.service.model import Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.subscriptions.tickets import digest, new_id, new_secret

SUBSCRIPTIONS = 100_000
CREATED = 200
RATE, SECONDS = 200, 30  # events a second while latency is measured, and for how long
BATCH, LOAD_SECONDS = 100, 10


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    with tempfile.TemporaryDirectory(prefix="tidings-service-") as place:
        data, port = Path(place), _free_port()
        shop = conjunctions.make_rules(max(100, round(SUBSCRIPTIONS * scale) // 2), events=2_000)
        stored = _fill(data, scale, shop)
        events = filter_texts.event_dicts(shop)
        bars: list[Bar] = []

        def note(bar: Bar) -> None:
            click.echo(f"{bar.what}: {bar.measured}")
            bars.append(bar)

        async def note_all() -> None:
            async for bar in _measure(port, data, events):
                note(bar)

        for what in ("without an index", "with the index of the last run"):
            with _served(data, port) as served:
                ready = f"ready from a cold start, {stored:,} subscriptions, {what}"
                note(_bar(ready, 30, served.seconds, "s"))
                if not bars[1:]:
                    asyncio.run(note_all())
    show(bars)
    write_json(
        folder / "service-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


async def _measure(port: int, data: Path, events: list[dict[str, Any]]) -> AsyncIterator[Bar]:
    numbers = count()

    def cloud_event() -> dict[str, Any]:
        number = next(numbers)
        content = {**events[number % len(events)], "bench": number}
        return {"specversion": "1.0", "id": f"e{number}", "source": "bench", "type": "sale", "data": content}

    creates = await _creates(port)
    yield _bar("create a subscription, median", 20, creates * 1e3, "ms")
    middle, late = await _latency(port, cloud_event)
    yield Bar(
        f"publish to SSE at {RATE} events/s, 95th percentile",
        "under 2 s",
        f"{late:.2f} s (median {middle:.2f} s)",
        late < 2,
    )
    batches = await _accepted(
        port, 8, lambda: [cloud_event() for _ in range(BATCH)], "application/cloudevents-batch+json"
    )
    yield _rate(f"accepted in batches of {BATCH}", 20_000, batches * BATCH)
    singles, syncs = await _accepted(port, 32, cloud_event, "application/cloudevents+json"), _syncs(data)
    # Those that wait share a sync, so the disk is the limit when each client waits for every second one.
    bar = _rate("accepted one by one", 2_000, singles)
    measured = f"{bar.measured} (the disk syncs {syncs:,.0f} times a second)"
    yield replace(bar, measured=measured, holds=bar.holds or singles >= 16 * syncs)


def _bar(what: str, most: float, measured: float, unit: str) -> Bar:
    return Bar(what, f"under {most:g} {unit}", f"{measured:.1f} {unit}", measured < most)


def _rate(what: str, least: int, measured: float) -> Bar:
    return Bar(f"events {what}, durable", f"at least {least:,}/s", f"{measured:,.0f}/s", measured >= least)


def _fill(data: Path, scale: float, shop: conjunctions.Conjunctions) -> int:
    """The registry, with nothing else beside it."""
    registry, mailbox = open_stores(Settings(data))
    half = round(SUBSCRIPTIONS * scale) // 2
    patterns = texts.subscription_texts(make(scaled(CLUSTER, scale / 2)))[:half]
    now = time.time()
    secret = digest(new_secret("tkt"))
    subscriptions = [
        Subscription(new_id("s"), text, f"number {row}", "", secret, new_secret("f"), now, None)
        for row, (_, text) in enumerate([*filter_texts.subscription_texts(shop), *patterns])
    ]
    registry.add_many(subscriptions)
    registry.close()
    mailbox.close()
    return len(subscriptions)


def _syncs(folder: Path, seconds: float = 2.0) -> float:
    """How often a second the disk makes a few kilobytes durable, one after the other."""
    done, stop = 0, time.perf_counter() + seconds
    with tempfile.TemporaryFile(dir=folder) as file:
        while time.perf_counter() < stop:
            os.pwrite(file.fileno(), bytes(4_096), 4_096 * done)
            os.fdatasync(file.fileno())
            done += 1
    return done / seconds


class Served(NamedTuple):
    """A running service: how long it took until it was ready, and its process."""

    seconds: float
    pid: int


@contextmanager
def _served(data: Path, port: int, *options: str) -> Iterator[Served]:
    """A service on the folder."""
    program = Path(sys.executable).with_name("tidings")
    command = [program, "serve", "--data", str(data), "--port", str(port), *options]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ})
    try:
        while not _answers(f"http://127.0.0.1:{port}/ready"):
            if process.poll() is not None:
                raise RuntimeError(f"the service ended with status {process.returncode}")
            time.sleep(0.05)
        yield Served(time.perf_counter() - began, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class _Connection:
    """One connection that stays open, one request at a time."""

    @classmethod
    async def open(cls, port: int) -> _Connection:
        self = cls()
        self.host = f"127.0.0.1:{port}"
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def post(self, path: str, content_type: str, body: object, method: str = "POST") -> tuple[int, Any]:
        data = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: {content_type}\r\n"
        self.writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        size = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return int(answer.split(b" ", 2)[1]), json.loads(await self.reader.readexactly(size))

    async def listen(self, path: str) -> None:
        self.writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nAccept: text/event-stream\r\n\r\n".encode()
        )
        await self.reader.readuntil(b"\r\n\r\n")


async def _creates(port: int) -> float:
    """Seconds of one, with others being made before and after it."""
    connection = await _Connection.open(port)
    times = []
    for number in range(CREATED):
        began = time.perf_counter()
        text = f"WHERE price < {number} AND quantity > 5"
        status, _ = await connection.post("/api/subscriptions", "application/json", {"text": text})
        assert status == 201, status
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def _latency(port: int, cloud_event: Callable[[], dict[str, Any]]) -> tuple[float, float]:
    """Median and 95th percentile, from just before a post to its line in a listener's hands."""
    connections = [await _Connection.open(port) for _ in range(16)]
    status, made = await connections[0].post(
        "/api/subscriptions", "application/json", {"text": "WHERE bench >= 0 AND EXISTS price"}
    )
    assert status == 201, made
    listener = await _Connection.open(port)
    await listener.listen(f"/api/subscriptions/{made['id']}/stream")
    sent: dict[str, float] = {}
    took: dict[str, float] = {}

    async def hear() -> None:
        while line := await listener.reader.readline():
            if line.startswith(b"data:") and (event := json.loads(line[5:]).get("event")):
                took.setdefault(event["id"], time.perf_counter() - sent[event["id"]])

    async def publish(connection: _Connection, event: dict[str, Any]) -> None:
        sent[event["id"]] = time.perf_counter()
        status, _ = await connection.post("/api/events", "application/cloudevents+json", event)
        assert status == 202, status

    hearing = asyncio.create_task(hear())
    for warming in (True, False):
        sent.clear(), took.clear()
        await _at_rate(
            connections, lambda connection: publish(connection, cloud_event()), 5 if warming else SECONDS
        )
        deadline = time.perf_counter() + 60
        while len(took) < len(sent) and time.perf_counter() < deadline:
            await asyncio.sleep(0.05)
        assert len(took) == len(sent), f"{len(sent) - len(took)} events were not heard of"
    hearing.cancel()
    quantiles = statistics.quantiles(took.values(), n=20)
    return statistics.median(took.values()), quantiles[-1]


async def _at_rate(
    connections: list[_Connection], send: Callable[[_Connection], Awaitable[None]], seconds: float
) -> None:
    """Begins a request every 1 / RATE seconds, on whichever connection is free."""
    free: asyncio.Queue[_Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)

    async def one(connection: _Connection) -> None:
        await send(connection)
        free.put_nowait(connection)

    began = time.perf_counter()
    tasks = []
    for number in range(int(RATE * seconds)):
        await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        tasks.append(asyncio.create_task(one(await free.get())))
    await asyncio.gather(*tasks)


async def _accepted(port: int, clients: int, body: Callable[[], object], content_type: str) -> float:
    """Requests a second, each answered 202."""
    connections = [await _Connection.open(port) for _ in range(clients)]
    stop = time.perf_counter() + LOAD_SECONDS

    async def client(connection: _Connection) -> int:
        done = 0
        while time.perf_counter() < stop:
            status, answer = await connection.post("/api/events", content_type, body())
            assert status == 202, answer
            done += 1
        return done

    began = time.perf_counter()
    answered = sum(await asyncio.gather(*map(client, connections)))
    return answered / (time.perf_counter() - began)
