"""Renders the notifications of a subscription as a feed: RSS 1.0, RSS 2.0, Atom or JSON Feed.

The id of an entry is made of the ids of subscription and notification, so it is the same in every format and on
every page. The same notifications give the same bytes and the same ETag, so repeated polls are answered with 304.
"""

from __future__ import annotations

import html as characters
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from urllib.parse import quote, unquote

from tidings.errors import TidingsError
from tidings.feeds.write import Channel, Entry, atom, jsonfeed, rss1, rss2
from tidings.service.delivery.markup import one_line
from tidings.service.delivery.notification_json import notification_url
from tidings.service.delivery.presentation import content_of, plain_text, safe_html
from tidings.service.model import StoredNotification, Subscription
from tidings.service.settings import Settings

FORMATS: Mapping[str, tuple[str, Callable[[Channel], bytes]]] = {
    "rdf": (rss1.MEDIA_TYPE, rss1.write),
    "rss": (rss2.MEDIA_TYPE, rss2.write),
    "atom": (atom.MEDIA_TYPE, atom.write),
    "json": (jsonfeed.MEDIA_TYPE, jsonfeed.write),
}
_NOTIFICATION = "urn:tidings:notification:"
_TAG = re.compile(r'(?:W/)?("[^"]*")')


_REMEMBERED = 10_000  # feeds


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered feed."""

    body: bytes
    media_type: str
    etag: str
    links: Mapping[str, str]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the feed, also for an answer of 304."""
        shown = ", ".join(f'<{address}>; rel="{relation}"' for relation, address in self.links.items())
        return {"ETag": self.etag, "Link": shown}


class FeedChanges:
    """When each feed became what it is, for clients that send a date. Thread-safe.

    The time of a notification does not say when it could first be seen, and two of them may share a second. So the
    date of a feed is the first full second after it was first seen as it is: a client that got another state was answered
    before, with an earlier date. A feed that is not remembered has changed now, which costs one answer in full.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, int]] = OrderedDict()  # by address: tag, date
        self._lock = threading.Lock()

    def date(self, url: str, etag: str, now: float) -> int:
        """In seconds since 1970. While it is in the future, the feed has no date."""
        with self._lock:
            tag, date = self._seen.pop(url, ("", 0))
            if tag != etag:
                soon = int(now) + 1
                date = soon if soon >= date else date + 1  # else the clock was set back
            self._seen[url] = etag, date
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return date


def render(
    subscription: Subscription,
    page: Sequence[StoredNotification],
    format: str,
    settings: Settings,
    self_url: str,
    *,
    next_url: str | None = None,
    previous_url: str | None = None,
    hub: str | None = None,
) -> Rendered:
    """Renders `page`, newest first, as a feed of one of `FORMATS`; the addresses are those of this page and of its
    neighbours."""
    if format not in FORMATS:
        raise TidingsError(f"there is no feed format {format!r}; ask for one of {', '.join(FORMATS)}")
    media_type, write = FORMATS[format]
    title = one_line(subscription.title, 200) or one_line(subscription.text, 200) or subscription.id
    about = f"What answers {one_line(subscription.text, 2_000)}"
    if format in ("rdf", "rss"):  # whose readers take a description for HTML
        about = characters.escape(about, quote=False)
    channel = Channel(
        id=f"urn:tidings:subscription:{quote(subscription.id, safe='')}",
        url=self_url,
        link=f"{settings.address}/subscriptions/{quote(subscription.id, safe='')}",
        title=title,
        description=about,
        updated=max((notification.at for notification in page), default=subscription.created),
        entries=tuple(entry_of(notification, settings) for notification in page),
        next_url=next_url,
        previous_url=previous_url,
        hub=hub,
    )
    body = write(channel)
    etag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
    return Rendered(body, media_type, etag, channel.links)


def entry_of(notification: StoredNotification, settings: Settings) -> Entry:
    """A notification as an entry of a feed. Without an address of its own it links to the page that shows it."""
    item = content_of(notification)
    return Entry(
        id=f"{_NOTIFICATION}{quote(notification.subscription, safe='')}:{quote(notification.id, safe='')}",
        title=item.title,
        link=item.link or notification_url(notification, settings),
        updated=notification.at,
        published=item.published,
        summary_html=safe_html(item.summary_html),
        summary_text=plain_text(item.summary_html, 300),
        content_html=safe_html(item.content_html) if item.content_html else "",
        author=item.author,
        categories=item.categories,
        properties=item.properties,
    )


def notification_id_of_entry(entry: str, subscription: str) -> str | None:
    """The id of the notification whose entry has the id `entry`; None if it is not of this subscription."""
    prefix = f"{_NOTIFICATION}{quote(subscription, safe='')}:"
    return unquote(entry[len(prefix) :]) if entry.startswith(prefix) else None


def is_unchanged(etag: str, date: int, headers: Mapping[str, str], now: float) -> bool:
    """Whether the client has this feed already: 304 instead of the body (RFC 9110, 13.1). A tag takes precedence
    over a date, and a date in the future says nothing."""
    given = {name.lower(): value for name, value in headers.items()}
    if (tags := given.get("if-none-match")) is not None:
        return tags.strip() == "*" or etag.removeprefix("W/") in _TAG.findall(tags)
    if (since := given.get("if-modified-since")) is None:
        return False
    try:
        moment = parsedate_to_datetime(since)
        return date <= moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() <= now
    except (ValueError, TypeError, IndexError, OverflowError):
        return False
