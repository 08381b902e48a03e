"""The bars of deliveries: idle listeners, webhooks of which some hang, and memory over minutes, through the whole service.

TIDINGS_MINUTES sets how long memory is watched under each load (20). Receivers and listeners are on the same two cores.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.bars import Bar, show
from benchmarks.measure import context, write_json
from benchmarks.service_bars import _Connection, _free_port, _served
from benchmarks.stream_bars import Load

LISTENERS, RATE, SECONDS = 10_000, 50, 30
RECEIVERS, HANGING, NOTIFIED = 100, 10, 300  # events, each for every receiver
MINUTES = float(os.environ.get("TIDINGS_MINUTES", "20"))
LOADS = ((500, 1), (5, 1_000))  # events a second, and matches of each


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars: list[Bar] = []
    for measure in (
        partial(_listeners, count=max(100, round(LISTENERS * scale))),
        partial(_webhooks, events=max(20, round(NOTIFIED * scale))),
        *(partial(_memory, rate=rate, matches=of, seconds=60 * MINUTES * scale) for rate, of in LOADS),
    ):
        with tempfile.TemporaryDirectory(prefix="tidings-delivery-") as data:
            found = asyncio.run(measure(Path(data)))
        for bar in found:
            click.echo(f"{bar.what}: {bar.measured}")
        bars += found
    show(bars)
    write_json(
        folder / "delivery-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def _bar(what: str, most: float, measured: float, unit: str) -> Bar:
    return Bar(what, f"under {most:,g} {unit}", f"{measured:,.2f} {unit}", measured < most)


async def _listeners(data: Path, count: int) -> list[Bar]:
    """Streams of a subscription that nothing matches, beside events that others match."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    port = _free_port()
    with _served(data, port) as served:
        load = await Load.open(port, 100)
        status, made = await load.publishers[0].post(
            "/api/subscriptions", "application/json", {"text": "WHERE never = 1"}
        )
        assert status == 201, made
        await load.at_rate(RATE, 10)
        before = _memory_of(served.pid)
        idle = []
        for _ in range(count):
            idle.append(await _Connection.open(port))
            await idle[-1].listen(f"/api/subscriptions/{made['id']}/stream")
        each = (_memory_of(served.pid) - before) / count
        later = await Load.open(port, 100)  # the connections of the first have rested too long
        later.number = load.number
        load.listener.writer.close()
        times = await later.at_rate(RATE, SECONDS)
        for connection in idle:
            connection.writer.close()
    late = statistics.quantiles(times, n=20)[-1]
    return [
        _bar(f"memory of each of {count:,} idle listeners", 30, each / 1_024, "KB"),
        _bar(f"POST to SSE beside them at {RATE} events/s, 95th percentile", 1, late, "s"),
    ]


async def _webhooks(data: Path, events: int) -> list[Bar]:
    """Every event is delivered to all receivers; those that hang are not waited for."""
    port, healthy = _free_port(), RECEIVERS - HANGING
    processes = multiprocessing.get_context("spawn")
    counts = processes.Array("q", 2)  # deliveries, and those that came out of order
    ports = processes.Queue()
    receivers = processes.Process(target=_receive, args=(counts, ports), daemon=True)
    receivers.start()
    try:
        with _served(data, port, "--allow-network", "127.0.0.0/8"):
            load = await Load.open(port, 100)
            for receiver in ports.get():
                wanted = {"text": "WHERE price >= 0", "webhook": f"http://127.0.0.1:{receiver}/"}
                status, made = await load.publishers[0].post("/api/subscriptions", "application/json", wanted)
                assert status == 201, made
            await load._post([load.event() for _ in range(5)])  # those that hang are known then
            await _until(lambda: counts[0] >= 5 * healthy)
            before = counts[0]
            await load._post([load.event() for _ in range(events)])
            await _until(lambda: counts[0] > before)  # matching is not measured here
            began = time.perf_counter()
            await _until(lambda: counts[0] - before >= events * healthy)
            rate = (counts[0] - before) / (time.perf_counter() - began)
    finally:
        receivers.terminate()
        receivers.join()
    what = f"signed deliveries to {RECEIVERS} receivers of which {HANGING} hang"
    return [
        Bar(what, "at least 1,000/s", f"{rate:,.0f}/s", rate >= 1_000),
        Bar("deliveries out of order", "0", str(counts[1]), counts[1] == 0),
    ]


async def _until(enough: Any, seconds: float = 180) -> None:
    async with asyncio.timeout(seconds):
        while not enough():
            await asyncio.sleep(0.02)


def _receive(counts: Any, ports: Any) -> None:
    """Receivers on a port each, of which the first ones never answer."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(
                lambda number=number: _Receiver(number < HANGING, counts), "127.0.0.1", 0
            )
            for number in range(RECEIVERS)
        ]
        ports.put([server.sockets[0].getsockname()[1] for server in servers])
        await asyncio.Event().wait()

    asyncio.run(serve())


class _Receiver(asyncio.Protocol):
    def __init__(self, hangs: bool, counts: Any) -> None:
        self._hangs, self._counts = hangs, counts
        self._came, self._last = b"", 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, _, body = self._came.partition(b"\r\n\r\n")
        size = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0] or 0)
        if self._hangs or len(body) < size or not size:
            return
        assert b"webhook-signature: v1," in head
        number = int(body.partition(b'"number":')[2].partition(b",")[0])
        self._counts[0] += 1
        self._counts[1] += number <= self._last
        self._last, self._came = number, body[size:]
        self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def _memory(data: Path, rate: int, matches: int, seconds: float) -> list[Bar]:
    """The driver's memory after a quarter of the time, which is flat if it is not more at the end."""
    port, groups = _free_port(), max(1, 10_000 // matches)
    fill = [sys.executable, "-m", "benchmarks.registry_rows", str(data), str(groups), str(matches)]
    subprocess.run(fill, check=True)
    samples = []
    with _served(data, port) as served:
        load = await Load.open(port, groups)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            await load.at_rate(rate, min(15.0, seconds / 8))
            samples.append(_memory_of(_driver(served.pid)) / (1 << 20))
            click.echo(f"  the driver has {samples[-1]:,.0f} MB")
    quarter = max(samples[: max(1, len(samples) // 4)])
    end = statistics.median(samples[-max(1, len(samples) // 4) :])
    what = f"memory of the driver, {rate} events/s with {matches:,} matches each"
    return [
        Bar(what, "under 1,024 MB", f"{max(samples):,.0f} MB", max(samples) < 1_024),
        Bar(f"{what}: growth after a quarter of {seconds / 60:g} minutes", "under 10%",
            f"{end / quarter - 1:.0%}", end < 1.1 * quarter),
    ]  # fmt: skip


def _driver(service: int) -> int:
    """The process of the service's driver."""
    tasks = Path(f"/proc/{service}/task").glob("*/children")
    for pid in (pid for task in tasks for pid in task.read_text().split()):
        if b"tidings.service.matching.driver" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    raise RuntimeError("the service has no driver")


def _memory_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
