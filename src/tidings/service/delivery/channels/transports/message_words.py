"""The words of a message that all transports share: its subject, its groups, times, links, and the whole as plain text.

Texts of events come from outside. Here they become single lines without control characters and without characters that
change the direction of what follows, and links that are no web addresses are left out. Escaping for HTML is up to the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import httpx

from tidings.service.delivery.channels.message import Item, Message, MessageKind
from tidings.service.delivery.markup import one_line

MAX_TITLE = 200  # characters
MAX_SUMMARY = 600
MAX_LINK = 2_000
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")
_WEB = re.compile(
    r"https?://(?P<host>(?:\[[0-9a-f:.]+\]|[^\s/?#\\<>\"'@:\[\]]+)(?::[0-9]{1,5})?)"
    r"(?:[/?#][^\s\\<>\"`{}|^\x00-\x20\x7f]*)?",
    re.IGNORECASE,
)
_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Group(NamedTuple):
    """The items of one subscription."""

    title: str
    items: list[Item]


def line(text: str, length: int = MAX_TITLE) -> str:
    """`text` in one line that shows what it is: no controls, no overrides of the direction of writing."""
    return one_line(_UNSEEN.sub("", text[: 4 * length + 1_000]), length)


def link(address: str | None) -> str | None:
    """A web address in ASCII, or None if it is none, or too long."""
    if not address or len(address) > MAX_LINK or not _WEB.fullmatch(address):
        return None
    scheme, _, rest = address.partition(":")
    address = f"{scheme.lower()}:{rest}"
    if address.isascii():
        return address
    try:
        ascii_form = str(httpx.URL(address))
    except (httpx.InvalidURL, ValueError):
        return None
    return ascii_form if _WEB.fullmatch(ascii_form) else None


def service_name(message: Message) -> str:
    """The host of this service, as its own links name it."""
    own = (message.confirm, message.manage, message.unsubscribe, *(item.page for item in message.items[:1]))
    address = _WEB.fullmatch(next(filter(None, map(link, own)), ""))
    return address["host"] if address else "Tidings"


def subject(message: Message) -> str:
    """One line about the whole message. That of a confirmation has no word of whoever asked for it."""
    if message.kind is MessageKind.CONFIRMATION:
        return f"Confirm messages from {service_name(message)}"
    channel = line(message.title, 100)
    if message.kind is MessageKind.TEST:
        return f"Test message: {channel}" if channel else "Test message from Tidings"
    found = groups(message)
    count = len(message.items) + message.more
    title = found[0].title if len(found) == 1 else channel
    if count == 1 and message.items:
        return f"{title}: {item_title(message.items[0])}" if title else item_title(message.items[0])
    return f"{title or 'Tidings'}: {count:,} notifications"


def item_title(item: Item) -> str:
    return line(item.title) or "Without a title"


def groups(message: Message) -> list[Group]:
    """The items by subscription, in the order in which each first appears."""
    found: dict[str, Group] = {}
    for item in message.items:
        group = found.get(item.subscription)
        if group is None:
            group = found[item.subscription] = Group(line(item.subscription_title, 100), [])
        group.items.append(item)
    return list(found.values())


def clock(at: float, zone: str) -> str:
    """A time as people of a zone read it: "Wed 18 Nov 2026, 12:41 CET"."""
    try:
        moment = datetime.fromtimestamp(at, UTC).astimezone(_zone(zone))
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return ""
    day = f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
    return f"{day}, {moment:%H:%M} {moment.tzname()}"


@lru_cache(maxsize=1_000)
def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # of a zone that this machine does not know
        return UTC


def more(message: Message) -> str:
    """What is said of notifications that are not among the items; empty if all are."""
    return f"and {message.more:,} more" if message.more > 0 else ""


def as_text(message: Message) -> str:
    """The message as plain text: what a mail reader without HTML shows."""
    return "\n".join((*_body(message), *_footer(message)))


def _body(message: Message) -> Iterator[str]:
    if message.kind is MessageKind.CONFIRMATION:
        yield f"{service_name(message)} was asked to send messages to this address."
        yield from ("", "To get them, open this page and confirm:", "", link(message.confirm) or "")
        yield from ("", "If you did not ask for them, do nothing: you will get none.", "")
        return
    if message.kind is MessageKind.TEST:
        yield from ("This is a test message: messages of this channel arrive here.", "")
        return
    for group in groups(message):
        if group.title:
            yield from (group.title, "-" * min(len(group.title), 70), "")
        for item in group.items:
            yield from _item(item, message.zone)
    if words := more(message):
        yield from (f"{words}: {link(message.manage)}" if link(message.manage) else words, "")


def _item(item: Item, zone: str) -> Iterator[str]:
    yield f"* {item_title(item)}"
    if summary := line(item.summary, MAX_SUMMARY):
        yield f"  {summary}"
    if when := clock(item.at, zone):
        yield f"  {when}"
    for address in dict.fromkeys(found for found in (link(item.link), link(item.page)) if found):
        yield f"  {address}"
    yield ""


def _footer(message: Message) -> Iterator[str]:
    if message.kind is MessageKind.CONFIRMATION:
        return
    yield "-- "
    yield reason(message)
    if address := link(message.manage):
        yield f"Change what is sent: {address}"
    if address := link(message.unsubscribe):
        yield f"Unsubscribe: {address}"
    yield ""


def reason(message: Message) -> str:
    """Why somebody gets the message."""
    channel = line(message.title, 100)
    return f"You get this from {service_name(message)}" + (
        f" by the channel “{channel}”." if channel else "."
    )


def as_list(message: Message, length: int) -> str:
    """The message as a short text for a chat, of at most `length` bytes in UTF-8: a line for each item, without a footer."""
    if message.kind is MessageKind.NOTIFICATIONS:
        text = "\n".join(_list(message, length - 40))  # which the last line may have
    else:
        text = "\n".join(_body(message)).strip()
    return (text or subject(message)).encode()[:length].decode(errors="ignore")


def _list(message: Message, left: int) -> Iterator[str]:
    is_single = len(message.items) == 1
    count = 0
    for group in groups(message):
        for number, item in enumerate(group.items):
            text = _short(item, is_single)
            if group.title and not number and not is_single:
                text = f"{group.title}:\n{text}"
            left -= len(text.encode()) + 1
            if left < 0 and count:
                yield f"and {len(message.items) - count + message.more:,} more"
                return
            yield text
            count += 1
    if words := more(message):
        yield words


def _short(item: Item, is_single: bool) -> str:
    address = link(item.link) or link(item.page) or ""
    if is_single:  # its title is that of the whole message
        return "\n".join(filter(None, (line(item.summary, MAX_SUMMARY), address))) or item_title(item)
    return f"• {item_title(item)} {address}".rstrip()
