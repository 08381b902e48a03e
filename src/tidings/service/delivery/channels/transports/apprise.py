"""Sends messages to other services by the package apprise, such as discord://id/token. These are untested: nothing here has ever spoken to them.

Apprise knows addresses that run programs, read files or call any host, and it resolves names by itself, past the guard against
private networks. So only those in `SCHEMES` are accepted: each calls fixed public hosts, over TLS, whatever the address says. An address has
no parameters (?…), because with them plugins read local files or switch the check of certificates off.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from tidings.errors import TidingsError
from tidings.service.delivery.channels.message import REFUSED, Message, Transport, Unavailable
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, Outcome
from tidings.service.settings import Settings

SCHEMES: Final = {
    "discord": "Discord", "gchat": "Google Chat", "line": "Line", "pagerduty": "PagerDuty", "pbul": "Pushbullet", "pover": "Pushover",
    "prowl": "Prowl", "pushy": "Pushy", "revolt": "Revolt", "slack": "Slack", "tgram": "Telegram",
}  # fmt: skip
TIMEOUT = 20.0
MAX_BODY = 1_500  # bytes, which all of them take at once
AT_ONCE = 4
_ADDRESS = re.compile(r"([a-z]{2,20})://[!-~]{1,1000}")
_STATUS = re.compile(r"\berror=(\d{3})\b")
_MENTION = re.compile(r"@(?=everyone|here|channel|room)|<(?=[@!#])", re.IGNORECASE)


class AppriseAddressError(TidingsError):
    """An address that is not accepted."""

    status = 422


class Apprise:
    """The transport of channels of the kind apprise. The package blocks, so it runs in a few threads."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(AT_ONCE, "apprise")
        for name in ("apprise", "urllib3"):
            logging.getLogger(name).setLevel(
                logging.WARNING
            )  # lines below it have addresses, which are secrets

    def address(self, given: str) -> str:
        address, name = _parts(given)
        if _plugin(address) is None:
            raise AppriseAddressError(
                f"this is no address of {name}; see https://appriseit.com/services/ for its form, with one target"
            )
        return address

    async def send(self, message: Message, now: float) -> Outcome:
        try:
            address, name = _parts(message.address)
        except AppriseAddressError as error:
            return Outcome(REFUSED, str(error))
        title, body = (
            _MENTION.sub("\\g<0>\u200b", text)
            for text in (words.subject(message), words.as_list(message, MAX_BODY))
        )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._threads, _notify, address, name, title, body)
        except TimeoutError:
            return Outcome(FAILED, f"{name} did not answer within {self._timeout:g} seconds")
        except Exception as error:  # of a plugin, which may raise anything
            return Outcome(FAILED, f"the message to {name} failed: {type(error).__name__}")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _parts(given: str) -> tuple[str, str]:
    """The address, and the name of the service; an error never repeats the address, which has a secret."""
    given = given.strip()
    scheme, separator, rest = given.partition("://")
    name = SCHEMES.get(scheme.lower())
    if not separator or name is None:
        known = ", ".join(f"{known}://" for known in SCHEMES)
        raise AppriseAddressError(
            f"an address for the kind apprise begins with one of {known}; others are not accepted"
        )
    address = f"{scheme.lower()}://{rest}"
    if set("?#&;\\") & set(rest) or "://" in rest or not _ADDRESS.fullmatch(address):
        raise AppriseAddressError(
            f"an address of {name} has its keys alone; leave out what begins with ? or #"
        )
    return address, name


def transport(settings: Settings) -> Transport:
    if find_spec("apprise") is None:
        raise Unavailable("this kind of channel needs another package; install Tidings with the extra 'chat'")
    return Apprise()


def _plugin(address: str) -> Any:
    """What sends to the address, once; None if it has another form, or several targets, between which plugins wait. The class must be of
    the package itself: another package may have put a plugin of its own in its place."""
    import apprise

    try:
        found = apprise.Apprise.instantiate(address, suppress_exceptions=True)
    except Exception:  # of a plugin, which may raise anything
        return None
    if found is None or not type(found).__module__.startswith("apprise.plugins."):
        return None
    return found if found.verify_certificate and len(found) == 1 else None


def _notify(address: str, name: str, title: str, body: str) -> Outcome:
    """In a thread."""
    import apprise

    plugin = _plugin(address)
    if plugin is None:
        return Outcome(REFUSED, f"this is no address of {name} any more; make the channel anew")
    with _warnings() as said:
        is_sent = plugin.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT)
    if is_sent:
        return Outcome(DELIVERED)
    status = next((int(found[1]) for text in said if (found := _STATUS.search(text))), None)
    result = REFUSED if status in (400, 401, 403, 404, 410) else FAILED
    return Outcome(result, f"{name} did not take the message" + (f" ({status})" if status else ""), status)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the package says in this thread while it fails: it returns no reason."""
    said: list[str] = []
    thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                said.append(record.getMessage())

    listener = Listener(logging.WARNING)
    logger = logging.getLogger("apprise")
    logger.addHandler(listener)
    try:
        yield said
    finally:
        logger.removeHandler(listener)
