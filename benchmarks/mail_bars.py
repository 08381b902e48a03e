"""The bars of mail: messages of one item each to a mail server on loopback, by the transport that the service has.

aiosmtpd is a complete server and costs more of a core than the sender. So there is a second server, which only speaks the protocol
and counts: what the sender itself can do. Sender and servers share the machine's cores.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import uvloop

from benchmarks.bars import Bar, show
from benchmarks.measure import context, write_json
from tidings.service.delivery.channels.message import Item, Message, MessageKind
from tidings.service.delivery.channels.transports.smtp import Smtp
from tidings.service.delivery.webhook_attempts import DELIVERED
from tidings.service.mail_addresses import Sender
from tidings.service.mail_settings import Encryption, MailSettings

MESSAGES, AT_ONCE = 3_000, 50  # as many are being sent as the service has workers
LEAST = 300  # messages a second


class Run(NamedTuple):
    rate: float  # messages a second
    sender: float  # seconds of CPU for a message
    servers: float  # of all servers together


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    count = max(100, round(MESSAGES * scale))
    bars = []
    for what, server, servers in (
        ("aiosmtpd", _aiosmtpd, 1),
        ("two of aiosmtpd", _aiosmtpd, 2),
        ("a server that only counts", _sink, 1),
    ):
        found = measure(server, servers, count)
        click.echo(
            f"{what}: {found.rate:,.0f} messages/s; CPU of a message: sender {found.sender * 1e3:.2f} ms,"
            f" servers {found.servers * 1e3:.2f} ms"
        )
        bars.append(
            Bar(
                f"{count:,} mails to {what}",
                f"at least {LEAST}/s",
                f"{found.rate:,.0f}/s",
                found.rate >= LEAST,
            )
        )
        bars.append(
            Bar(
                f"CPU time of the sender for a mail to {what}",
                "under 1 ms",
                f"{found.sender * 1e3:.2f} ms",
                found.sender < 0.001,
            )
        )
    show(bars)
    write_json(
        folder / "mail-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def measure(serve: Any, servers: int, count: int) -> Run:
    processes = multiprocessing.get_context("spawn")
    ports: Any = processes.Queue()
    taken = [processes.Value("q", 0) for _ in range(servers)]
    running = [processes.Process(target=serve, args=(counter, ports), daemon=True) for counter in taken]
    for process in running:
        process.start()
    try:
        listening = [ports.get(timeout=60) for _ in running]
        before = [_cpu(process.pid) for process in running]
        began = resource.getrusage(resource.RUSAGE_SELF)
        seconds = uvloop.run(_send(listening, count))
        ended = resource.getrusage(resource.RUSAGE_SELF)
        used = sum(_cpu(process.pid) - earlier for process, earlier in zip(running, before, strict=True))
        assert sum(counter.value for counter in taken) == count
    finally:
        for process in running:
            process.terminate()
            process.join()
    own = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return Run(count / seconds, own / count, used / count)


async def _send(ports: list[int], count: int) -> float:
    """Seconds for all messages."""
    sender = Sender("Tidings", "alerts@example.org")
    transports = [Smtp(MailSettings("127.0.0.1", port, Encryption.NONE, sender)) for port in ports]
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            outcome = await transports[number % len(transports)].send(_message(number), time.time())
            assert outcome.result == DELIVERED, outcome

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - began
    for transport in transports:
        await transport.close()
    return seconds


def _message(number: int) -> Message:
    item = Item(
        f"n{number}", f"s{number}", "Storms at the coast", time.time(), f"Storm warning {number} for the coast",
        f"https://news.example/{number}", "Gusts of 120 km/h are expected from the evening on. " * 4,
        f"https://tidings.example/notifications/{number}", f"e{number}",
    )  # fmt: skip
    return Message(
        id=f"m{number}",
        kind=MessageKind.NOTIFICATIONS,
        channel=f"c{number}",
        address=f"reader{number}@example.org",
        secret="",
        title="My storms",
        items=(item,),
        zone="Europe/Vienna",
        manage=f"https://tidings.example/channels/c{number}",
        unsubscribe=f"https://tidings.example/channels/unsubscribe/c{number}.0123456789abcdef",
    )


def _cpu(pid: int | None) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _aiosmtpd(counter: Any, ports: Any) -> None:
    """A real mail server, which drops what it takes."""
    from aiosmtpd.smtp import SMTP

    class Handler:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            counter.value += 1
            return "250 taken"

    uvloop.run(_listen(lambda: SMTP(Handler(), hostname="localhost"), ports))


def _sink(counter: Any, ports: Any) -> None:
    uvloop.run(_listen(lambda: _Sink(counter), ports))


async def _listen(protocol: Any, ports: Any) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    ports.put(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


class _Sink(asyncio.Protocol):
    """Takes every mail, and looks at nothing of it."""

    def __init__(self, counter: Any) -> None:
        self._counter, self._came, self._is_mail = counter, b"", False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(b"220 here\r\n")

    def data_received(self, data: bytes) -> None:
        self._came += data
        end = b"\r\n.\r\n" if self._is_mail else b"\r\n"
        if not self._came.endswith(end):
            return
        if self._is_mail:
            self._counter.value += 1
            self._is_mail, answer = False, b"250 taken\r\n"
        else:
            command = self._came[:4].upper()
            self._is_mail = command == b"DATA"
            answer = {b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(command, b"250 fine\r\n")
        self._came = b""
        self._transport.write(answer)
