"""Finds the subscription of a feed's address, and renders a page of it as it is now or as it was at a notification.

The first page of a feed is a topic of this service's own hub (WebSub), and names it; older pages never change, and do not.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from tidings.service.delivery.subscription_feeds import FORMATS, Rendered, render
from tidings.service.model import State, StoredNotification, Subscription
from tidings.service.settings import Settings

PAGE = 50
_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")


class FeedRegistry(Protocol):
    """The part of a registry that feeds use."""

    def by_feed(self, secret: str) -> Subscription | None: ...
    def find(self, id: str) -> Subscription | None: ...


class FeedMailbox(Protocol):
    """The part of a mailbox that feeds use."""

    def page(
        self,
        subscriptions: list[str],
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[StoredNotification]: ...


class Topic(NamedTuple):
    """The address of a feed's first page. `key` is the secret, or the id of a public subscription."""

    key: str
    format: str


class FeedUpdate(NamedTuple):
    """A feed as it was at the notification `number`; `more` have come since, or may have."""

    number: int
    more: bool
    rendered: Rendered


class FeedDocuments:
    """The feeds of all subscriptions; thread-safe."""

    def __init__(self, registry: FeedRegistry, mailbox: FeedMailbox, settings: Settings) -> None:
        self._registry, self._mailbox, self._settings = registry, mailbox, settings
        self.hub = f"{settings.address}/websub"

    def address(self, topic: Topic) -> str:
        return f"{self._settings.address}/feeds/{topic.key}.{topic.format}"

    def topic(self, address: str) -> Topic | None:
        """The topic at an address, whether or not there is a feed; None if no feed can be there."""
        rest = address.removeprefix(f"{self._settings.address}/feeds/")
        key, _, format = rest.rpartition(".")
        if rest == address or format not in FORMATS or not _KEY.fullmatch(key):
            return None
        return Topic(key, format)

    def found(self, key: str) -> Subscription | None:
        """The subscription that has its feeds there, also if it was cancelled."""
        by_secret = self._registry.by_feed(key)
        if by_secret is not None:
            return by_secret
        by_id = self._registry.find(key)
        return by_id if by_id is not None and by_id.public else None

    def page(self, subscription: Subscription, topic: Topic, before: int | None = None) -> Rendered:
        """The page with the notifications before a number; without one the first page."""
        address = self.address(topic)
        if before is None:
            return self._rendered(subscription, topic, None, address, self.hub)
        return self._rendered(subscription, topic, before, f"{address}?before={before}", None)

    def update(self, topic: Topic, after: int) -> FeedUpdate | None:
        """The first page once it has the next notifications after a number; None if there are none. Of more than a
        page of them, it is the page as it was when the first ones had come, so that none is left out."""
        subscription = self.found(topic.key)
        if subscription is None or subscription.state is State.CANCELLED:
            return None
        new = self._mailbox.page([subscription.id], after=after, limit=PAGE)
        if not new:
            return None
        number = new[-1].number
        rendered = self._rendered(subscription, topic, number + 1, self.address(topic), self.hub)
        return FeedUpdate(number, len(new) == PAGE, rendered)

    def _rendered(
        self, subscription: Subscription, topic: Topic, before: int | None, self_url: str, hub: str | None
    ) -> Rendered:
        found = self._mailbox.page([subscription.id], before=before, limit=PAGE + 1)
        page = found[:PAGE]
        next_url = f"{self.address(topic)}?before={page[-1].number}" if len(found) > PAGE else None
        return render(subscription, page, topic.format, self._settings, self_url, next_url=next_url, hub=hub)
