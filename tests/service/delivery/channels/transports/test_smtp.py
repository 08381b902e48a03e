"""Mails to a real server, and to servers that hang, close, refuse and talk nonsense: an outcome each time."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.service.delivery.channels.transports.hostile_messages import message
from tests.service.delivery.channels.transports.mail_servers import (
    PASSWORD,
    authenticate,
    inbox,
    scripted,
    settings,
)
from tidings.service.delivery.channels.message import REFUSED
from tidings.service.delivery.channels.transports.smtp import Smtp
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, Outcome
from tidings.service.mail_settings import Encryption

NOW = 1.79e9


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """In the event loop that the service has."""
    uvloop.run(asyncio.wait_for(coroutine, 20))


def test_mails_arrive_over_few_connections() -> None:
    async def check() -> None:
        async with inbox() as server:
            transport = Smtp(settings(server.port), connections=3)
            sent = await asyncio.gather(
                *(transport.send(message(id=f"m{number}"), NOW) for number in range(30))
            )
            assert {outcome.result for outcome in sent} == {DELIVERED}
            assert {str(mail["Message-ID"]) for mail in server.mails} == {
                f"<m{number}@example.org>" for number in range(30)
            }
            assert server.connections == 3
            assert str(server.mails[0]["Subject"]) == "Goals: A late goal"
            assert set(server.recipients) == {"ann@example.org"}
            await transport.close()
            await asyncio.sleep(0.05)
            assert not server.open_connections

    run(check())


def test_connections_without_mails_are_ended() -> None:
    async def check() -> None:
        async with inbox() as server:
            transport = Smtp(settings(server.port), kept_seconds=0.1)
            assert (await transport.send(message(), NOW)).result == DELIVERED
            assert len(server.open_connections) == 1
            await asyncio.sleep(0.3)
            assert not server.open_connections
            assert (await transport.send(message(), NOW)).result == DELIVERED
            assert server.connections == 2
            await transport.close()

    run(check())


def test_a_connection_that_the_server_ended_is_replaced() -> None:
    async def check() -> None:
        async with inbox() as server:
            transport = Smtp(settings(server.port))
            assert (await transport.send(message(), NOW)).result == DELIVERED
            for connection in list(server.open_connections):
                connection.abort()
            assert (
                await transport.send(message(), NOW)
            ).result == DELIVERED  # it is not known yet to be closed
            await asyncio.sleep(0.05)
            assert (await transport.send(message(), NOW)).result == DELIVERED
            assert (server.connections, len(server.mails)) == (2, 3)
            await transport.close()

    run(check())


def test_a_server_that_takes_few_mails_by_a_connection_is_connected_to_again() -> None:
    async def check() -> None:
        answers: dict[str, bytes | None] = {}
        async with scripted(answers) as script:
            transport = Smtp(settings(script.port))
            assert (await transport.send(message(), NOW)).result == DELIVERED
            answers["MAIL"] = b"421 enough\r\n"
            outcome = await transport.send(message(), NOW)
            assert outcome.result == FAILED  # on the new connection too
            assert "421 enough" in str(outcome.error)
            assert script.commands.count("EHLO") == 2
            del answers["MAIL"]
            assert (await transport.send(message(), NOW)).result == DELIVERED
            await transport.close()

    run(check())


@pytest.mark.parametrize(
    ("answer", "result", "words"),
    [
        ("550 5.1.1 no such user", REFUSED, "550 5.1.1 no such user"),
        ("550 unknown", REFUSED, "refused the address bob@example.org"),
        ("552 5.2.2 mailbox full", REFUSED, "full"),
        ("450 4.2.1 try later", FAILED, "now: 450 4.2.1 try later"),
        ("554 5.7.1 relay access denied", FAILED, "settings of the service or of its mail server"),
        ("530 log in first", FAILED, "settings"),
    ],
)
def test_what_is_said_of_a_recipient(answer: str, result: str, words: str) -> None:
    async def check() -> None:
        async with inbox() as server:
            server.answers["bob@example.org"] = answer
            transport = Smtp(settings(server.port))
            outcome = await transport.send(message("bob@example.org"), NOW)
            assert outcome.result == result
            assert words in str(outcome.error)
            assert outcome.status == int(answer[:3])
            assert (await transport.send(message("ann@example.org"), NOW)).result == DELIVERED
            assert server.connections == 1  # which was made ready for the next mail
            await transport.close()

    run(check())


STAGES = ("", "EHLO", "MAIL", "RCPT", "DATA", ".")
BEHAVIOURS: dict[str, bytes | None] = {
    "hangs": None,
    "closes": b"",
    "talks nonsense": b"SSH-2.0-OpenSSH_9.6\r\n",
    "talks binary": bytes(range(128, 256)) * 10 + b"\r\n",
    "talks without end": b"250-" + b"x" * 100_000,
    "repeats lines without end": b"250-x\r\n" * 20_000,
    "says half a line": b"25",
    "says a wrong code": b"199 what\r\n",
    "is busy": b"421 busy\r\n",
    "says later": b"451 later\r\n",
    "refuses": b"554 no\r\n",
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_behaviour_at_every_stage_gives_an_outcome(stage: str) -> None:
    async def attempt(answer: bytes | None) -> Outcome:
        async with scripted({stage: answer, **({"HELO": answer} if stage == "EHLO" else {})}) as script:
            transport = Smtp(settings(script.port), timeout=0.4, pause=0)
            try:
                return await transport.send(message(), NOW)
            finally:
                await transport.close()

    async def check() -> None:
        outcomes = dict(
            zip(BEHAVIOURS, await asyncio.gather(*map(attempt, BEHAVIOURS.values())), strict=True)
        )
        for behaviour, outcome in outcomes.items():
            refuses = behaviour == "refuses" and stage in ("RCPT", "DATA", ".")
            assert outcome.result == (REFUSED if refuses else FAILED), (behaviour, outcome)
            assert str(outcome.error).startswith("the mail server 127.0.0.1:"), behaviour
            assert len(str(outcome.error)) < 500
            assert str(outcome.error).isprintable(), behaviour

    run(check())


@pytest.mark.parametrize("answer", [b"502 what\r\n", b"", b"nonsense\r\n", b"421 bye\r\n"])
def test_a_connection_that_cannot_be_reset_is_replaced(answer: bytes) -> None:
    async def check() -> None:
        answers: dict[str, bytes | None] = {"RCPT": b"550 unknown\r\n", "RSET": answer}
        async with scripted(answers) as script:
            transport = Smtp(settings(script.port))
            assert (await transport.send(message(), NOW)).result == REFUSED
            del answers["RCPT"]
            assert (await transport.send(message(), NOW)).result == DELIVERED
            assert script.commands.count("EHLO") == 2
            await transport.close()

    run(check())


def test_a_mail_is_not_sent_twice_if_the_server_closes_after_it() -> None:
    async def check() -> None:
        async with scripted({".": b""}) as script:
            transport = Smtp(settings(script.port))
            assert (await transport.send(message(), NOW)).result == FAILED
            assert script.commands.count(".") == 1
            await transport.close()

    run(check())


def test_a_server_that_is_not_there_is_not_asked_for_each_mail() -> None:
    async def check() -> None:
        async with scripted({"": b"554 go away\r\n"}) as script:
            transport = Smtp(settings(script.port), pause=0.2, connections=1)
            first = await transport.send(message(), NOW)
            assert (first.result, first.retry_after) == (FAILED, 0.2)
            port, script.answers = script.port, {}
            assert await transport.send(message(), NOW) == first
            await asyncio.sleep(0.25)
            assert (await transport.send(message(), NOW)).result == DELIVERED
            await transport.close()
        absent = Smtp(settings(port))
        assert "cannot be used" in str((await absent.send(message(), NOW)).error)

    run(check())


def test_letters_beyond_ascii_need_a_server_that_takes_them() -> None:
    async def check() -> None:
        async with inbox(enable_SMTPUTF8=True) as server:
            transport = Smtp(settings(server.port))
            address = transport.address("jörg@bücher.example")
            assert address == "jörg@xn--bcher-kva.example"
            assert (await transport.send(message(address), NOW)).result == DELIVERED
            assert server.recipients == [address]
            header = server.mails[0]["To"].addresses[0].addr_spec
            assert header.encode("utf-8", "surrogateescape").decode() == address
            await transport.close()
        async with inbox(enable_SMTPUTF8=False) as server:
            transport = Smtp(settings(server.port))
            outcome = await transport.send(message(address), NOW)
            assert outcome.result == REFUSED
            assert "no SMTPUTF8" in str(outcome.error)
            assert (await transport.send(message(), NOW)).result == DELIVERED
            assert server.connections == 1
            await transport.close()

    run(check())


def test_an_address_that_is_none_is_refused_before_anything_is_sent() -> None:
    async def check() -> None:
        transport = Smtp(settings(1))
        outcome = await transport.send(message("a@example.org>\r\nRCPT TO:<b@example.org"), NOW)
        assert outcome.result == REFUSED
        assert "mail address" in str(outcome.error)

    run(check())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    path = folder / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", path, "-out", folder / "only.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + (folder / "only.pem").read_bytes())
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.filterwarnings(
    "ignore:Requiring AUTH while not requiring TLS"
)  # the server does not see that it has TLS
@pytest.mark.parametrize("encryption", [Encryption.TLS, Encryption.STARTTLS])
def test_encryption_and_login(
    encryption: Encryption,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = server_context(certificate)
    tls = {"over_tls": context} if encryption is Encryption.TLS else {"tls_context": context}
    caplog.set_level(logging.DEBUG)

    async def check() -> None:
        async with inbox(
            authenticator=authenticate,
            auth_required=True,
            auth_require_tls=encryption is Encryption.STARTTLS,
            **tls,
        ) as server:
            stranger = Smtp(settings(server.port, encryption, "localhost", user="ann", password=PASSWORD))
            outcome = await stranger.send(message(), NOW)
            assert outcome.result == FAILED  # nobody has signed the certificate
            assert "certificate" in str(outcome.error).lower()
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            for password, result in ((PASSWORD, DELIVERED), ("wrong", FAILED)):
                transport = Smtp(
                    settings(server.port, encryption, "localhost", user="ann", password=password)
                )
                outcome = await transport.send(message(), NOW)
                assert outcome.result == result, outcome
                if result == FAILED:
                    assert "did not accept the login of ann" in str(outcome.error)
                assert password not in repr(outcome)
                await transport.close()
            assert len(server.mails) == 1

    run(check())
    written = [
        record.getMessage() for record in caplog.records if record.name.startswith(("tidings", "aiosmtplib"))
    ]
    assert not any(PASSWORD in text for text in written)


def test_without_encryption_nothing_is_sent_that_should_be_encrypted() -> None:
    async def check() -> None:
        async with inbox() as server:  # which has no STARTTLS
            transport = Smtp(settings(server.port, Encryption.STARTTLS, user="ann", password=PASSWORD))
            outcome = await transport.send(message(), NOW)
            assert outcome.result == FAILED
            assert "STARTTLS" in str(outcome.error)
            assert not server.mails

    run(check())
