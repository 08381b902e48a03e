"""What ntfy and Matrix have in common: JSON is sent to a server that the user named, and its answer is an outcome.

The server's address passes the guard against private networks, when a channel is made and at each connection. An answer that would be the
same the next time (4xx) is `REFUSED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tidings.feeds.addresses import AddressRefused, AsyncGuard, check_url
from tidings.service.delivery.channels.message import REFUSED
from tidings.service.delivery.channels.transports.message_words import line
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.webhook_attempts import FAILED, LONGEST_WAIT, TIMEOUT, Outcome, request
from tidings.service.settings import Settings

_TOKEN = re.compile(r"[!-~]{1,2000}")
_AGAIN = (408, 425, 429)  # answers that may be others later


class ChatServers:
    """Sends to chat servers with the connections of `receivers`."""

    def __init__(
        self, receivers: Receivers, allowed: tuple[str, ...] = (), *, timeout: float = TIMEOUT
    ) -> None:
        self._receivers, self._allowed, self._timeout = receivers, allowed, timeout

    def parts(self, given: str, example: str) -> SplitResult:
        """An address with a server and one more part, such as a topic; AddressRefused says what is wrong with it."""
        given = given.strip()
        check_url(given, self._allowed)
        try:
            parts = urlsplit(given, allow_fragments=False)
        except ValueError:
            parts = SplitResult("", "", "", "", "")
        if "@" in parts.netloc or "?" in given or not parts.netloc.isascii():
            raise AddressRefused(
                f"{given[:200]!r} has a user, a ? or a server beyond ASCII; give an address like {example}, and nothing more"
            )
        return parts

    async def send(
        self, method: str, url: str, content: Mapping[str, Any], *, token: str, now: float
    ) -> Outcome:
        headers = {"Content-Type": "application/json", "User-Agent": "tidings", "Accept-Encoding": "identity"}
        if token:
            if not _TOKEN.fullmatch(token):
                return Outcome(
                    REFUSED,
                    "the access token has blanks or letters beyond ASCII; set the channel anew with the right one",
                )
            headers["Authorization"] = f"Bearer {token}"
        outcome, answer = await request(
            self._receivers,
            method,
            url,
            headers,
            json.dumps(content).encode(),
            now=now,
            timeout=self._timeout,
        )
        if answer is None or outcome.result != FAILED:
            return outcome
        said = _object(answer.body)
        if isinstance(said.get("error"), str):
            outcome = replace(outcome, error=f"{outcome.error}: {line(said['error'])}")
        wait = said.get("retry_after_ms")
        if outcome.status == 429 and isinstance(wait, int | float) and wait >= 0:
            outcome = replace(outcome, retry_after=min(wait, LONGEST_WAIT * 1000) / 1000)
        if 400 <= answer.status < 500 and answer.status not in _AGAIN:
            outcome = replace(outcome, result=REFUSED)
        return outcome

    def close(self) -> None:
        self._receivers.close()


def chat_servers(settings: Settings) -> ChatServers:
    return ChatServers(Receivers(AsyncGuard(settings.allowed)), settings.allowed)


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object in an answer, which may be anything."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
