"""Sends messages as mails, by connections to one SMTP server that stay open for the next message.

Every behaviour of the server gives an outcome. What the server says of the recipient decides about the channel: 5xx is
`REFUSED`. What it says of us (login, sender, policy) and all that may pass (4xx, silence, a lost connection) is `FAILED`. A mail whose
connection was lost after its last byte may arrive twice, with the same Message-ID.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tidings.service.delivery.channels.message import REFUSED, Message, Transport, Unavailable
from tidings.service.delivery.channels.transports.mail_message import mail
from tidings.service.delivery.channels.transports.message_words import line
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, Outcome
from tidings.service.mail_addresses import AddressError, mail_address
from tidings.service.mail_settings import Encryption, MailSettings
from tidings.service.settings import Settings

if TYPE_CHECKING:
    from aiosmtplib import SMTP, SMTPResponse

TIMEOUT = 60.0  # for all of a mail
CONNECTING = 20.0  # for each step until the server takes mails
CONNECTIONS = 8
KEPT_SECONDS = 30.0  # of a connection without mails; servers end theirs after minutes
PAUSE = 5.0  # without a connection or a login, before the next is attempted
_OURS = re.compile(
    r"5\.[57]\.\d"
)  # enhanced codes (RFC 3463) of protocol and policy, which are not the recipient's


class _Unusable(Exception):
    """There is no connection that takes mails; its text is a sentence."""


class _Stale(Exception):
    """The server has ended a connection before it took the sender of the next mail."""


class _Kept(NamedTuple):
    connection: SMTP
    until: float


class Smtp:
    """The transport of e-mail channels, in one event loop."""

    def __init__(
        self,
        settings: MailSettings,
        *,
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
        kept_seconds: float = KEPT_SECONDS,
        pause: float = PAUSE,
    ) -> None:
        self._settings = settings
        self._server = f"the mail server {settings.host}:{settings.port}"
        self._timeout, self._kept_seconds, self._pause = timeout, kept_seconds, pause
        self._turns = asyncio.Semaphore(connections)
        self._kept: deque[_Kept] = deque()  # the one that was used last is on the right
        self._expiry: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._context: ssl.SSLContext | None = None
        self._problem, self._problem_until = "", 0.0  # why no connection is made until then

    def address(self, given: str) -> str:
        return mail_address(given)

    async def send(self, message: Message, now: float) -> Outcome:
        try:
            recipient = mail_address(message.address)
        except AddressError as error:
            return Outcome(REFUSED, str(error))
        from aiosmtplib import SMTPException

        data = mail(message, self._settings.sender, now)
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._deliver(recipient, data)
            except TimeoutError:
                self._set_problem(f"{self._server} did not answer within {self._timeout:g} seconds")
                return Outcome(FAILED, self._problem)
            except _Unusable as problem:
                return Outcome(FAILED, str(problem), retry_after=self._pause)
            except (SMTPException, OSError, ValueError, RuntimeError) as error:
                return Outcome(
                    FAILED, f"{self._server} ended the transfer or speaks no SMTP: {_words(error)}"
                )

    async def close(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        while self._kept:
            self._end(self._kept.pop().connection)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _deliver(self, recipient: str, data: bytes) -> Outcome:
        while (connection := self._take()) is not None:
            try:
                return await self._transfer(connection, recipient, data)
            except _Stale:
                pass
        try:
            return await self._transfer(await self._connect(), recipient, data)
        except _Stale as error:
            return Outcome(FAILED, f"{self._server} closed the connection: {error}")

    async def _transfer(self, connection: SMTP, recipient: str, data: bytes) -> Outcome:
        """One mail. The connection is kept if the server is ready for the next mail afterwards."""
        is_kept = False
        try:
            outcome = await self._open_envelope(connection, recipient, len(data))
            if outcome is None:
                outcome = await self._content(connection, data)
            is_kept = connection.is_connected and (outcome.result == DELIVERED or await _is_reset(connection))
            return outcome
        finally:
            if is_kept:
                self._keep(connection)
            else:  # also if the caller gave it up: an answer may come yet
                connection.close()

    async def _open_envelope(self, connection: SMTP, recipient: str, size: int) -> Outcome | None:
        """Names sender and recipient; an outcome if the server takes one of them not."""
        from aiosmtplib import SMTPServerDisconnected

        options = [b"SIZE=%d" % size] if connection.supports_extension("size") else []
        if not recipient.isascii():
            if not connection.supports_extension("smtputf8"):
                return Outcome(
                    REFUSED, f"{self._server} takes only letters of ASCII before the @ (it has no SMTPUTF8)"
                )
            options += [b"SMTPUTF8", b"BODY=8BITMIME"]
        sender = self._settings.sender.address
        try:
            answer = await connection.execute_command(
                b"MAIL", b"FROM:<%b>" % sender.encode("ascii"), *options, timeout=None
            )
        except SMTPServerDisconnected as error:
            raise _Stale(_words(error)) from None
        if answer.code == 421:
            raise _Stale(f"421 {line(answer.message)}")
        if answer.code != 250:
            said = f"{answer.code} {line(answer.message)}"
            problem = f"refused the sender {sender}: {said}; check --mail-from and --smtp"
            return Outcome(FAILED, f"{self._server} {problem}", answer.code)
        answer = await connection.execute_command(b"RCPT", b"TO:<%b>" % recipient.encode(), timeout=None)
        if answer.code in (250, 251):
            return None
        return self._refused(answer, f"the address {recipient}", is_recipient=True)

    async def _content(self, connection: SMTP, data: bytes) -> Outcome:
        from aiosmtplib import SMTPDataError, SMTPResponse

        try:
            answer = await connection.data(data, timeout=None)
        except SMTPDataError as error:
            return self._refused(SMTPResponse(error.code, error.message), "the message", is_recipient=False)
        return Outcome(DELIVERED, status=answer.code)

    def _refused(self, answer: SMTPResponse, what: str, *, is_recipient: bool) -> Outcome:
        code, said = answer.code, f"{answer.code} {line(answer.message)}"
        if 400 <= code < 500:
            return Outcome(FAILED, f"{self._server} does not take {what} now: {said}", code)
        if not 500 <= code < 600:
            return Outcome(FAILED, f"{self._server} speaks no SMTP: {said}")
        sentence = f"{self._server} refused {what}: {said}"
        if code in (500, 501, 502, 503, 530) or (is_recipient and _OURS.match(answer.message)):
            return Outcome(
                FAILED, f"{sentence}; the settings of the service or of its mail server are wrong", code
            )
        return Outcome(REFUSED, sentence, code)

    # --- connections

    def _take(self) -> SMTP | None:
        while self._kept:
            connection = self._kept.pop().connection
            if connection.is_connected:
                return connection
        return None

    def _keep(self, connection: SMTP) -> None:
        loop = asyncio.get_running_loop()
        self._kept.append(_Kept(connection, loop.time() + self._kept_seconds))
        if self._expiry is None:
            self._expiry = loop.call_later(self._kept_seconds, self._expire)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        while self._kept and self._kept[0].until <= loop.time() + 0.001:
            self._end(self._kept.popleft().connection)
        self._expiry = loop.call_at(self._kept[0].until, self._expire) if self._kept else None

    def _end(self, connection: SMTP) -> None:
        task = asyncio.get_running_loop().create_task(_quit(connection))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _connect(self) -> SMTP:
        from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPException

        if asyncio.get_running_loop().time() < self._problem_until:
            raise _Unusable(self._problem)
        settings = self._settings
        if settings.encryption is not Encryption.NONE and self._context is None:
            self._context = await asyncio.to_thread(ssl.create_default_context)
        try:
            connection = SMTP(
                hostname=settings.host,
                port=settings.port,
                username=settings.user,
                password=settings.password,
                local_hostname=_own_name(),
                timeout=min(CONNECTING, self._timeout / 2),
                use_tls=settings.encryption is Encryption.TLS,
                start_tls=settings.encryption is Encryption.STARTTLS,
                tls_context=self._context,
            )
            await connection.connect()
            if connection.is_ehlo_or_helo_needed:
                await _greet(connection)
        except SMTPAuthenticationError as error:
            # The server's words may repeat what was sent.
            problem = f"did not accept the login of {settings.user} ({error.code}); check the password"
        except (SMTPException, OSError, ValueError, RuntimeError) as error:
            problem = f"cannot be used: {_words(error)}"
        else:
            return connection
        self._set_problem(f"{self._server} {problem}")
        raise _Unusable(self._problem)

    def _set_problem(self, problem: str) -> None:
        """Keeps other mails from waiting for the same."""
        self._problem, self._problem_until = problem, asyncio.get_running_loop().time() + self._pause


def transport(settings: Settings) -> Transport:
    if settings.mail is None:
        raise Unavailable(
            "this service has no mail server; start it with tidings serve --smtp smtp://mail.example.org --mail-from …"
        )
    return Smtp(settings.mail)


async def _greet(connection: SMTP) -> None:
    from aiosmtplib import SMTPHeloError

    try:
        await connection.ehlo()
    except SMTPHeloError:
        await connection.helo()


async def _is_reset(connection: SMTP) -> bool:
    """Takes back the mail that the server refused; whether it is ready for the next."""
    from aiosmtplib import SMTPException

    try:
        await connection.rset(timeout=None)
    except (SMTPException, OSError, ValueError):
        return False
    return True


async def _quit(connection: SMTP) -> None:
    from aiosmtplib import SMTPException

    try:
        await connection.quit(timeout=2.0)
    except (SMTPException, OSError, ValueError):
        pass
    finally:
        connection.close()


def _words(error: Exception) -> str:
    """What went wrong, in one line."""
    code = getattr(error, "code", None)
    said = line(str(getattr(error, "message", "") or error), 200) or type(error).__name__
    return f"{code} {said}" if isinstance(code, int) and code > 0 else said


def _own_name() -> str:
    """As which this machine greets the server."""
    name = socket.gethostname()
    return name if re.fullmatch(r"[A-Za-z0-9.-]+", name) else "localhost"
