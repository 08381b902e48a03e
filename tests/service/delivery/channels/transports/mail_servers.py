"""Mail servers on loopback: a real one (aiosmtpd), and one that answers by a script."""

from __future__ import annotations

import asyncio
import email
import email.policy
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tidings.service.mail_addresses import Sender
from tidings.service.mail_settings import Encryption, MailSettings

PASSWORD = "correct horse"
SENDER = Sender("Tidings", "alerts@example.org")


@dataclass
class Inbox:
    """The mails that a server took. `answers` are those to recipients, by address."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    connections: int = 0
    open_connections: set[Any] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: Any
    ) -> str:
        if (answer := self.answers.get(address)) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        self.mails.append(
            cast(
                EmailMessage,
                email.message_from_bytes(cast(bytes, envelope.content), policy=email.policy.default),
            )
        )
        self.recipients += envelope.rcpt_tos
        self.news.set()
        return "250 taken"


@asynccontextmanager
async def inbox(**options: Any) -> AsyncIterator[Inbox]:
    """A real mail server."""
    found = Inbox()
    over_tls: ssl.SSLContext | None = options.pop("over_tls", None)

    class Counted(SMTP):
        def connection_made(self, transport: Any) -> None:
            if transport not in found.open_connections:
                found.connections += 1
            found.open_connections.add(transport)
            super().connection_made(transport)

        def connection_lost(self, error: Any) -> None:
            found.open_connections.discard(self.transport)
            super().connection_lost(error)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Counted(found, hostname="localhost", loop=loop, **options), "127.0.0.1", 0, ssl=over_tls
    )
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for transport in list(found.open_connections):
            transport.abort()
        await asyncio.sleep(0.01)


def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and data == LoginPassword(b"ann", PASSWORD.encode())
    return AuthResult(success=is_right, handled=is_right)


@dataclass
class Script:
    """Answers of a server by command ("" is the greeting, "." the end of a mail); None: it says nothing and waits, b"": it closes."""

    answers: Mapping[str, bytes | None]
    port: int = 0
    commands: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        usual = {"": b"220 hello\r\n", "EHLO": b"250-x\r\n250 SIZE\r\n", "DATA": b"354 go on\r\n"}
        command = ""
        try:
            while True:
                answer = self.answers.get(command, usual.get(command, b"250 fine\r\n"))
                if answer is None:
                    await reader.read()  # until the other side gives up
                    return
                if not answer:
                    return
                writer.write(answer)
                await writer.drain()
                if command == "DATA" and answer.startswith(b"354"):
                    await reader.readuntil(b"\r\n.\r\n")
                    command = "."
                else:
                    command = (await reader.readuntil(b"\r\n")).decode().split()[0].upper()
                self.commands.append(command)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted(answers: Mapping[str, bytes | None]) -> AsyncIterator[Script]:
    script = Script(answers)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.port = server.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        server.close()
        await asyncio.sleep(0.01)


def settings(
    port: int, encryption: Encryption = Encryption.NONE, host: str = "127.0.0.1", **login: str
) -> MailSettings:
    return MailSettings(host, port, encryption, SENDER, **login)
