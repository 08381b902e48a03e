"""The bars of the way from a post to a listener: latency, a sustained rate, a backlog, through the whole service.

A hundred thousand subscriptions, ten of which match each event, and one that a listener listens to. The load and the
listener are in this process, on the same two cores. With TIDINGS_BEFORE=FOLDER, a checkout of other code, its service is
measured beside this one's, in turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import click

from benchmarks.bars import Bar, show
from benchmarks.measure import ROOT, context, write_json
from benchmarks.registry_rows import MATCHES
from benchmarks.service_bars import _Connection, _free_port, _served

SUBSCRIPTIONS = 100_000
WARM_SECONDS, SECONDS = 60, 30
SUSTAINED_SECONDS = 40
BACKLOG = 100_000
HELD_SECONDS = 3.0  # a lag that does not grow over this


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    before = os.environ.get("TIDINGS_BEFORE")
    checkouts = {"now": ROOT, **({"before": Path(before)} if before else {})}
    found: dict[str, dict[str, float]] = {}
    for name, checkout in checkouts.items():
        found[name] = dict(asyncio.run(_measured(checkout, scale)))
        click.echo(f"{name}: {found[name]}")
    now = found["now"]
    bars = [
        _most("POST to SSE at 200 events/s, median", now["200/s median"], 250, "ms"),
        _most("POST to SSE at 200 events/s, 95th percentile", now["200/s p95"], 400, "ms"),
        _most("POST to SSE at 1 event/s, median", now["1/s median"], 200, "ms"),
        _most(f"longest gap in the deliveries of a backlog of {BACKLOG:,} events", now["gap"], 5_000, "ms"),
        Bar(
            "a backlog is worked off at the sustained rate or faster",
            f"{now['sustained']:,.0f}/s",
            f"{now['backlog']:,.0f}/s",
            now["backlog"] >= now["sustained"],
        ),
    ]
    if "before" in found:
        ratio = now["sustained"] / found["before"]["sustained"]
        bars.append(Bar("sustained events/s, against the code before", "2x", f"{ratio:.1f}x", ratio >= 2))
    show(bars)
    kept = {"scale": scale, "bars": [asdict(bar) for bar in bars], "measured": found, **context()}
    write_json(folder / "stream-bars.json", kept)
    return all(bar.holds for bar in bars)


def _most(what: str, measured: float, most: float, unit: str) -> Bar:
    return Bar(what, f"at most {most:,.0f} {unit}", f"{measured:,.0f} {unit}", measured <= most)


async def _measured(checkout: Path, scale: float) -> list[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="tidings-stream-") as place, _sources(checkout):
        data, port = Path(place), _free_port()
        groups = max(1, round(SUBSCRIPTIONS * scale) // MATCHES)
        subprocess.run([sys.executable, "-m", "benchmarks.registry_rows", place, str(groups)], check=True)
        with _served(data, port):
            load = await Load.open(port, groups)
            return [item async for item in _figures(load, scale)]


async def _figures(load: Load, scale: float) -> AsyncIterator[tuple[str, float]]:
    seconds = max(5.0, SECONDS * scale)
    await load.at_rate(200, max(5.0, WARM_SECONDS * scale))
    for rate in (200, 20, 1):
        times = await load.at_rate(rate, seconds if rate > 1 else max(seconds, 20))
        yield f"{rate}/s median", 1e3 * statistics.median(times)
        yield f"{rate}/s p95", 1e3 * statistics.quantiles(times, n=20)[-1]
    yield "sustained", await load.sustained(max(5.0, SUSTAINED_SECONDS * scale))
    rate, gap = await load.backlog(max(1_000, round(BACKLOG * scale)))
    yield "backlog", rate
    yield "gap", 1e3 * gap


@contextmanager
def _sources(checkout: Path) -> Iterator[None]:
    """Processes that are started inside run the code of a checkout."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{checkout / 'src'}:{ROOT}"
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@dataclass
class Load:
    """Publishes events and listens to a subscription that all of them match."""

    groups: int
    publishers: list[_Connection]
    listener: _Connection
    sent: dict[str, float] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)
    number: int = 0

    @classmethod
    async def open(cls, port: int, groups: int) -> Load:
        publishers = [await _Connection.open(port) for _ in range(16)]
        status, made = await publishers[0].post(
            "/api/subscriptions", "application/json", {"text": "WHERE price >= 0 AND EXISTS bench"}
        )
        assert status == 201, made
        listener = await _Connection.open(port)
        await listener.listen(f"/api/subscriptions/{made['id']}/stream")
        load = cls(groups, publishers, listener)
        load.hearing = asyncio.create_task(load._hear())  # type: ignore[attr-defined]
        return load

    async def _hear(self) -> None:
        while line := await self.listener.reader.readline():
            if line.startswith(b"data:") and (event := json.loads(line[5:]).get("event")):
                self.heard.setdefault(event["id"], time.perf_counter())

    def event(self) -> dict[str, object]:
        self.number += 1
        data = {"topic": f"t{self.number * 7_919 % self.groups}", "price": 50, "bench": self.number}
        return {
            "specversion": "1.0",
            "id": f"e{self.number}",
            "source": "bench",
            "type": "sale",
            "data": data,
        }

    async def at_rate(self, rate: float, seconds: float) -> list[float]:
        """The times from just before a post to its line in the listener's hands."""
        self.sent.clear(), self.heard.clear()
        free: asyncio.Queue[_Connection] = asyncio.Queue()
        for connection in self.publishers:
            free.put_nowait(connection)

        async def publish(connection: _Connection) -> None:
            event = self.event()
            self.sent[str(event["id"])] = time.perf_counter()
            status, _ = await connection.post("/api/events", "application/cloudevents+json", event)
            assert status == 202, status
            free.put_nowait(connection)

        began, tasks = time.perf_counter(), []
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(publish(await free.get())))
        await asyncio.gather(*tasks)
        await self._all_heard()
        return [self.heard[id] - at for id, at in self.sent.items()]

    async def sustained(self, seconds: float) -> float:
        """The highest rate, in steps of a fifth, at which the lag at the end is that of the middle. The first that is
        tried is lowered until it holds; AssertionError if none does."""
        rate = 400.0
        while not await self._holds(rate, seconds):
            rate /= 2
            assert rate > 1, "no rate holds"
        while await self._holds(rate * 1.25, seconds):
            rate *= 1.25
        return rate

    async def _holds(self, rate: float, seconds: float) -> bool:
        self.sent.clear(), self.heard.clear()
        began, size = time.perf_counter(), 20
        for number in range(int(rate * seconds / size)):
            await asyncio.sleep(max(0.0, began + number * size / rate - time.perf_counter()))
            await self._post([self.event() for _ in range(size)])
        late = len(self.sent) / (time.perf_counter() - began) < 0.95 * rate
        await self._all_heard()
        lags = [self.heard[id] - at for id, at in self.sent.items()]
        middle, end = lags[len(lags) // 3 : len(lags) // 2], lags[-len(lags) // 6 :]
        click.echo(
            f"  {rate:,.0f}/s: lag {statistics.median(middle):.2f} s, then {statistics.median(end):.2f} s"
        )
        return not late and statistics.median(end) < max(1.1 * statistics.median(middle), HELD_SECONDS)

    async def backlog(self, count: int) -> tuple[float, float]:
        """Events a second, from the first to the last delivery, and the longest gap between two deliveries."""
        self.sent.clear(), self.heard.clear()
        began = time.perf_counter()
        for _ in range(count // 1_000):
            await self._post([self.event() for _ in range(1_000)])
        await self._all_heard(600)
        times = sorted([began, *self.heard.values()])
        gap = max(late - early for early, late in pairwise(times))
        return len(self.heard) / (times[-1] - began), gap

    async def _post(self, events: list[dict[str, object]]) -> None:
        now = time.perf_counter()
        self.sent.update((str(event["id"]), now) for event in events)
        status, answer = await self.publishers[0].post(
            "/api/events", "application/cloudevents-batch+json", events
        )
        assert status == 202, answer

    async def _all_heard(self, seconds: float = 120) -> None:
        deadline = time.perf_counter() + seconds
        while len(self.heard) < len(self.sent):
            assert time.perf_counter() < deadline, (
                f"{len(self.sent) - len(self.heard)} events were not heard of"
            )
            await asyncio.sleep(0.02)
