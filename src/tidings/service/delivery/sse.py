"""Streams notifications of subscriptions as server-sent events.

The stream starts with what the mailbox has after the client's cursor, a page at a time, and continues with new
notifications (stream_reads.py reads for all streams at once). The next page is read when the client has received the one before, so a slow client needs no more
memory than a quick one. The id of an event is its number in the mailbox, which a browser sends back as
Last-Event-ID when it reconnects; nothing is skipped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping

from tidings.service.delivery.hub import Hub
from tidings.service.delivery.stream_reads import NOTHING, MailboxPages, StreamReads
from tidings.service.model import NOTICES, NotificationKind, StoredNotification

MEDIA_TYPE = "text/event-stream"
# Proxies neither keep it nor hold it back.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
PAGE = 100
HEARTBEAT = 15.0
RETRY = 3_000  # milliseconds until a client that lost its connection tries again

_NAMES = dict.fromkeys(NOTICES, "notice") | {NotificationKind.MISSED: "missed"}


async def stream(
    mailbox: MailboxPages,
    hub: Hub,
    subscriptions: Callable[[], Mapping[str, bool]],
    reads: StreamReads,
    *,
    change: Callable[[], int],
    last_event_id: str | None = None,
    endless: bool = False,
    heartbeat: float = HEARTBEAT,
) -> AsyncGenerator[bytes, None]:
    """Yields the bytes of the stream. `subscriptions` returns id -> whether it lives; it is called in a thread, at the
    start and when `change` returns a different number, which is looked at with every notice and heartbeat. The
    stream ends with the hub, and when no subscription lives and everything is sent, unless it is `endless`, such as
    the stream of all subscriptions of one person, which may grow at any time. Without a cursor the stream starts with
    the next notification."""
    yield f"retry: {RETRY}\n\n".encode()
    seen, remark = await asyncio.to_thread(_start, mailbox, last_event_id)
    if remark:
        yield remark
    # The change is read before the subscriptions: one that is added between the two is found by a later change.
    changed = change()
    lives = dict(await asyncio.to_thread(subscriptions))
    loop = asyncio.get_running_loop()
    due = loop.time() + heartbeat
    has_news = True
    while not hub.stopped:
        beats = loop.time() >= due
        if beats:
            yield b": still here\n\n"
            due = loop.time() + heartbeat
        ids, mark = frozenset(lives), hub.last if has_news else seen
        # Without news the mailbox is not read: most listeners wait most of the time.
        page, text = await reads.read(ids, seen) if has_news else NOTHING
        is_whole = len(page) < reads.limit
        looks = beats or endless or any(entry.kind in NOTICES for entry in page)
        if looks and (now := change()) != changed:
            changed, is_whole = now, False
            lives = _updated(lives, await asyncio.to_thread(subscriptions))
            if not lives.keys() <= ids:
                # A new one may have notifications before those of this page: the client's cursor, which it may
                # send back in a moment, must not pass them.
                has_news = True
                continue
        if text:
            yield text
            seen = page[-1].number
            if not is_whole:
                continue
        seen = max(seen, mark)
        if not endless and not any(lives.values()):
            if has_news:
                return
            has_news = True  # its last notice may be there by now
            continue
        has_news = await hub.wait(ids, seen, due - loop.time())


def _start(mailbox: MailboxPages, last_event_id: str | None) -> tuple[int, bytes]:
    """The number after which the stream starts, and what is sent to the client about that."""
    seen = first_number(mailbox, last_event_id)
    if isinstance(seen, str):
        return mailbox.last(), f": {seen}\n\n".encode()
    if last_event_id and seen < (first := mailbox.first()) - 1:
        return first - 1, _missed(seen + 1, first - 1)
    return seen, b""


def _updated(known: Mapping[str, bool], found: Mapping[str, bool]) -> dict[str, bool]:
    """What was found. A removed one stays for one more round: the notice of its expiry may be on the next page."""
    return {**{id: False for id, lived in known.items() if lived}, **found}


def first_number(mailbox: MailboxPages, last_event_id: str | None) -> int | str:
    """The number after which the stream starts, or the reason why it starts at the present end instead."""
    last = mailbox.last()
    if not last_event_id:
        return last
    given = last_event_id.strip()
    if not (given.isascii() and given.isdecimal()):
        return f"Last-Event-ID {given[:40]!a} is not a number of ours; beginning with what comes next"
    if len(given) > 18 or int(given) > last:
        return f"Last-Event-ID {given[:40]} is not given out yet; beginning with what comes next"
    return int(given)


def encode(notification: StoredNotification, text: str) -> bytes:
    """A notification as an event of a stream. Its JSON is ASCII: no reader takes a line of it for two."""
    name = _NAMES.get(notification.kind, "notification")
    return f"id: {notification.number}\nevent: {name}\ndata: {text}\n\n".encode()


def _missed(first: int, last: int) -> bytes:
    data = json.dumps({"from": first, "to": last})
    return f"id: {last}\nevent: missed\ndata: {data}\n\n".encode()
