"""`tidings relay --demo`: a centre and three relays on this machine, with subscribers, and what crosses their links.

    centre ──┬── relay north ──── relay harbour
             └── relay south

The centre matches without Spark here, so that everything starts in seconds. Events are published until the demo is ended, and
the table counts what crossed each link beside what the subscribers below it would have been sent by the centre.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from rich.live import Live
from rich.table import Table
from rich.tree import Tree

from tidings.cli import terminal
from tidings.cli.demo.command import ended_by_signals
from tidings.errors import TidingsError

TOPICS = ("sport", "science", "markets", "weather", "travel")
SUBSCRIBERS = 200  # of each relay
RATE = 10.0  # events a second
_PATIENCE = 120.0
_REPORTS = [  # bulky, and used again and again: such a text crosses a link once
    f"Report {number} of the correspondents. " + "It is long, and many events have it. " * 90
    for number in range(1, 6)
]
_SERVE = (
    "import json, sys; from pathlib import Path; from tidings.service.settings import Settings;"
    " from tidings.service.web.server import serve; given = json.loads(sys.argv[1]);"
    " serve(Settings(**{**given, 'data': Path(given['data']), 'upstream': tuple(given['upstream'])}))"
)


@dataclass
class Site:
    """A service of the demo."""

    name: str
    upstream: str | None
    port: int
    http: httpx.Client


def play(seconds: float | None = None) -> None:
    """Plays until Ctrl-C, or for so many seconds."""
    with ended_by_signals(), ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidings-relays-")))
        with terminal.err.status("Starting a centre and three relays …"):
            sites = _start(folder, stack)
            for name, site in sites.items():
                if site.upstream is not None:
                    texts = [{"text": text} for text in _texts(name)]
                    site.http.post("/api/subscriptions/bulk", json=texts).raise_for_status()
        terminal.out.print(_tree(sites), highlight=False)
        terminal.note("Open an address to see the links there, and what subscribers get. Ctrl-C ends it.")
        with suppress(KeyboardInterrupt), Live(console=terminal.out, refresh_per_second=4) as live:
            _publish(sites, live, seconds)
        if saving := _saving(sites):
            terminal.out.print(saving, highlight=False)
        with terminal.err.status("Ending …"), suppress(KeyboardInterrupt):
            stack.close()


def _start(folder: Path, stack: ExitStack) -> dict[str, Site]:
    tree = {"centre": None, "north": "centre", "south": "centre", "harbour": "north"}
    sites: dict[str, Site] = {}
    for name, parent in tree.items():
        port = _free_port()
        upstream = [] if parent is None else [f"http://127.0.0.1:{sites[parent].port}"]
        given = {"data": str(folder / name), "name": name, "port": port}
        given |= {"matching": "process", "upstream": upstream}
        log = (folder / f"{name}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE, json.dumps(given)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        stack.enter_context(_ending(process))
        http = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30))
        sites[name] = Site(name, parent, port, http)
    for site in sites.values():
        _await_ready(site, folder / f"{site.name}.log")
    return sites


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


def _await_ready(site: Site, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            if site.http.get("/ready").status_code == 200:
                return
        time.sleep(0.1)
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise TidingsError(
        f"{site.name} did not start within {_PATIENCE:.0f} s: {last[0] if last else 'it says nothing'}"
    )


def _tree(sites: dict[str, Site]) -> Tree:
    """The services with the addresses of their pages."""
    nodes: dict[str, Tree] = {}
    for name, site in sites.items():
        page = f"http://127.0.0.1:{site.port}/status"
        if site.upstream is None:
            nodes[name] = Tree(f"{name}, where {RATE:.0f} events a second are published  {page}")
        else:
            nodes[name] = nodes[site.upstream].add(f"relay {name}, {SUBSCRIBERS} subscribers  {page}")
    return nodes["centre"]


def _saving(sites: dict[str, Site]) -> str:
    """What the centre was spared, in one sentence; empty if nothing has crossed yet."""
    found = [_counts(site) for site in sites.values() if site.upstream == "centre"]
    crossed, copied = (sum(counts[what] for counts in found) for what in ("bytes", "copied"))
    if not crossed or copied <= crossed:
        return ""
    return (
        f"The centre has sent {_in_bytes(crossed)} in place of {_in_bytes(copied)}, {copied / crossed:,.0f} times less."
        " A relay of your own: tidings relay --upstream http://central:8750"
    )


def _texts(name: str) -> list[str]:
    chosen = random.Random(name)
    return [
        f"WHERE topic = '{chosen.choice(TOPICS)}' AND score >= {chosen.randrange(10)}"
        for _ in range(SUBSCRIBERS)
    ]


def _publish(sites: dict[str, Site], live: Live, seconds: float | None) -> None:
    chosen, began, number = random.Random(1), time.monotonic(), 0
    while seconds is None or time.monotonic() - began < seconds:
        number += 1
        topic = chosen.choice(TOPICS)
        event: dict[str, Any] = {"source": "demo", "id": str(number), "topic": topic}
        event |= {"score": chosen.randrange(12), "title": f"{topic.capitalize()}, news {number}"}
        if chosen.random() < 0.3:
            event["report"] = chosen.choice(_REPORTS)
        try:
            sites["centre"].http.post("/api/events", json=event)
        except httpx.HTTPError as error:
            raise TidingsError(
                f"the centre does not answer any more: {error}; start the demo again"
            ) from None
        if number % 5 == 0:
            live.update(_table(sites, number))
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))


def _table(sites: dict[str, Site], published: int) -> Table:
    found = {name: _counts(site) for name, site in sites.items()}
    table = Table(
        title=f"{published:,} events published",
        caption="without relays: each notification below a link, sent by itself",
        expand=False,
    )
    for column in ("link", "events", "payloads left out", "crossed", "without relays", "times less"):
        table.add_column(column, justify="left" if column == "link" else "right", no_wrap=column == "link")
    for name, site in sites.items():
        if site.upstream is None:
            continue
        crossed, copied = found[name]["bytes"], found[name]["copied"]
        table.add_row(
            f"{site.upstream} → {name}",
            f"{found[name]['messages']:,.0f}",
            f"{found[name]['stripped']:,.0f}",
            _in_bytes(crossed),
            _in_bytes(copied) if copied else "…",
            f"{copied / crossed:,.0f}" if copied else "…",
        )
    return table


def _in_bytes(size: float) -> str:
    return f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def _counts(site: Site) -> dict[str, float]:
    """What came over the link of a relay, and what would have come without relays."""
    counts = dict.fromkeys(("messages", "bytes", "stripped", "copied"), 0.0)
    with suppress(httpx.HTTPError, ValueError):
        for line in site.http.get("/metrics").text.splitlines():
            name, _, value = line.rpartition(" ")
            if 'direction="up"' in name and not name.startswith("#"):
                for known, metric in (
                    ("messages", "link_messages_total"),
                    ("bytes", "link_bytes_total"),
                    ("stripped", "link_payloads_stripped_total"),
                    ("copied", "link_copied_bytes_total"),
                ):
                    counts[known] += float(value) if name.startswith(f"tidings_{metric}") else 0.0
    return counts


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
