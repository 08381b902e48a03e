"""Sends messages to topics of ntfy (https://docs.ntfy.sh/publish/), such as https://ntfy.sh/my-topic.

They are published as JSON to the server, which needs no encoding of headers. A message has at most 4,096 bytes there; a longer one would
become an attachment, so it is cut to what fits. The access token of a protected topic is the channel's secret.
"""

from __future__ import annotations

import re
from typing import Any

from tidings.feeds.addresses import AddressRefused
from tidings.service.delivery.channels.message import REFUSED, Message, MessageKind, Transport
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.channels.transports.chat_requests import ChatServers, chat_servers
from tidings.service.delivery.webhook_attempts import Outcome
from tidings.service.settings import Settings

MAX_MESSAGE = 4_000  # bytes
EXAMPLE = "https://ntfy.sh/my-topic"
_TOPIC = re.compile(r"/([-_A-Za-z0-9]{1,64})/?")
_TAGS = {
    MessageKind.NOTIFICATIONS: "bell",
    MessageKind.TEST: "white_check_mark",
    MessageKind.CONFIRMATION: "question",
}


class Ntfy:
    """The transport of channels of the kind ntfy."""

    def __init__(self, servers: ChatServers) -> None:
        self._servers = servers

    def address(self, given: str) -> str:
        server, topic = self._parts(given)
        return f"{server}/{topic}"

    def _parts(self, given: str) -> tuple[str, str]:
        parts = self._servers.parts(given, EXAMPLE)
        topic = _TOPIC.fullmatch(parts.path)
        if topic is None:
            raise AddressRefused(
                f"{given[:200]!r} has no topic of ntfy, which has up to 64 letters, digits, - and _; give an address like {EXAMPLE}"
            )
        return f"{parts.scheme.lower()}://{parts.netloc.lower()}", topic[1]

    async def send(self, message: Message, now: float) -> Outcome:
        try:
            server, topic = self._parts(message.address)
        except AddressRefused as error:
            return Outcome(REFUSED, str(error))
        return await self._servers.send(
            "POST", f"{server}/", content(message, topic), token=message.secret, now=now
        )

    async def close(self) -> None:
        self._servers.close()


def transport(settings: Settings) -> Transport:
    return Ntfy(chat_servers(settings))


def content(message: Message, topic: str) -> dict[str, Any]:
    """The message in ntfy's terms."""
    found: dict[str, Any] = {
        "topic": topic,
        "title": words.subject(message),
        "message": words.as_list(message, MAX_MESSAGE),
        "tags": [_TAGS[message.kind]],
        "priority": 3,  # its default
    }
    if address := _click(message):
        found["click"] = address
    return found


def _click(message: Message) -> str | None:
    """The page that opens: of the only item, or that of the channel."""
    if message.kind is MessageKind.CONFIRMATION:
        return words.link(message.confirm)
    if len(message.items) == 1 and not message.more:
        return words.link(message.items[0].link) or words.link(message.items[0].page)
    return words.link(message.manage)
