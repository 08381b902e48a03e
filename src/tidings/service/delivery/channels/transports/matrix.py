"""Sends messages to rooms of Matrix by the client-server API, such as https://matrix.example.org/!room:example.org.

The transaction id follows from the id of the message, so the server drops a repetition. The channel's secret is the access token of
an account that has joined the room. Messages are of the type m.notice, which other programs do not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from html import escape
from typing import Any
from urllib.parse import quote, unquote

from tidings.feeds.addresses import AddressRefused
from tidings.service.delivery.channels.message import REFUSED, Item, Message, MessageKind, Transport
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.channels.transports.chat_requests import ChatServers, chat_servers
from tidings.service.delivery.webhook_attempts import Outcome
from tidings.service.settings import Settings

EXAMPLE = "https://matrix.example.org/!room:example.org"
MAX_BODY = 12_000  # bytes of each form; an event has at most 65,536, in which some letters are six
_ROOM = re.compile(r"!([^\s/?#:%\x00-\x20\x7f]{1,200})(:[A-Za-z0-9.:\[\]-]{1,200})?")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Matrix:
    """The transport of channels of the kind matrix."""

    def __init__(self, servers: ChatServers) -> None:
        self._servers = servers

    def address(self, given: str) -> str:
        server, room = self._parts(given)
        return f"{server}/{room}"

    def _parts(self, given: str) -> tuple[str, str]:
        parts = self._servers.parts(given, EXAMPLE)
        room = unquote(parts.path[1:])
        if not _ROOM.fullmatch(room) or not room.isprintable() or len(room) > 255 or not room.isascii():
            raise AddressRefused(
                f"{given[:200]!r} has no id of a room, which begins with !; give an address like {EXAMPLE}"
                " (a name such as #news:example.org may change its room and is not accepted)"
            )
        return f"{parts.scheme.lower()}://{parts.netloc.lower()}", room

    async def send(self, message: Message, now: float) -> Outcome:
        try:
            server, room = self._parts(message.address)
        except AddressRefused as error:
            return Outcome(REFUSED, str(error))
        if not message.secret:
            return Outcome(
                REFUSED,
                "a room of Matrix needs an access token; make the channel anew with one as its secret",
            )
        path = (
            f"/_matrix/client/v3/rooms/{quote(room, safe='')}/send/m.room.message/{transaction(message.id)}"
        )
        return await self._servers.send("PUT", server + path, content(message), token=message.secret, now=now)

    async def close(self) -> None:
        self._servers.close()


def transport(settings: Settings) -> Transport:
    return Matrix(chat_servers(settings))


def transaction(id: str) -> str:
    """The same for each attempt to send a message, and different for every other."""
    plain = (
        id
        if _PLAIN_ID.fullmatch(id)
        else blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    )
    return f"tidings-{plain}"


def content(message: Message) -> dict[str, Any]:
    """The message in Matrix's terms."""
    subject = words.subject(message)
    formatted = f"<p><strong>{escape(subject)}</strong></p>"
    if message.kind is MessageKind.NOTIFICATIONS:
        formatted += "".join(_formatted(message))
    else:
        text = escape(words.as_list(message, MAX_BODY))
        formatted += f"<p>{text.replace(chr(10), '<br>')}</p>"
    return {
        "msgtype": "m.notice",
        "body": f"{subject}\n{words.as_list(message, MAX_BODY)}",
        "format": "org.matrix.custom.html",
        "formatted_body": formatted,
        "m.mentions": {},  # no text of an event calls anybody
    }


def _formatted(message: Message) -> Iterator[str]:
    left, count = MAX_BODY, 0
    is_single = len(message.items) == 1
    for group in words.groups(message):
        heading = f"<p>{escape(group.title)}</p>" if group.title and not is_single else ""
        yield f"{heading}<ul>"
        for item in group.items:
            text = _item(item)
            left -= len(text.encode())
            if left < 0 and count:
                yield f"</ul><p>and {len(message.items) - count + message.more:,} more</p>"
                return
            yield text
            count += 1
        yield "</ul>"
    if more := words.more(message):
        yield f"<p>{more}</p>"


def _item(item: Item) -> str:
    title = escape(words.item_title(item))
    if address := words.link(item.link) or words.link(item.page):
        title = f'<a href="{escape(address)}">{title}</a>'
    summary = escape(words.line(item.summary, 300))
    return f"<li>{title}{'<br>' if summary else ''}{summary}</li>"
