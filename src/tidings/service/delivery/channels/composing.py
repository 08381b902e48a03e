"""Makes the messages that are sent of the ranges that are stored: the items, the titles, the addresses for people.

The links that confirm or end a channel carry the channel's id and a signature by the key of the service: they are made for each
message anew, and nothing of them is stored.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from tidings.service.delivery.channels.message import Item, Message, MessageKind
from tidings.service.delivery.channels.schedule import Schedule, ScheduleError
from tidings.service.delivery.markup import one_line
from tidings.service.delivery.notification_json import notification_url
from tidings.service.delivery.presentation import content_of, plain_text
from tidings.service.model import Channel, QueuedMessage, StoredNotification, Subscription
from tidings.service.settings import Settings
from tidings.service.store.channel_messages import ChannelMessages

MOST_ITEMS = 50
SUMMARY = 300  # characters
_TITLE = 100
CONFIRM, UNSUBSCRIBE = "confirm", "unsubscribe"


class Titles(Protocol):
    """The part of a registry that titles come from."""

    def find_many(self, ids: Sequence[str]) -> list[Subscription]: ...


@lru_cache(maxsize=10_000)
def schedule_of(written: str) -> Schedule:
    """The schedule that is stored with a channel. A time zone that this machine does not know any more is UTC: an error would
    keep all channels waiting."""
    given = json.loads(written)
    try:
        return Schedule.from_json(given)
    except ScheduleError:
        return Schedule.from_json({**given, "zone": None})


class Links:
    """Addresses that confirm and end channels, for whoever gets their messages."""

    def __init__(self, settings: Settings, sign: Callable[[str, str], str]) -> None:
        self._settings, self._sign = settings, sign

    def of(self, action: str, channel: str) -> str:
        return f"{self._settings.address}/channels/{action}/{self.secret(action, channel)}"

    def secret(self, action: str, channel: str) -> str:
        return f"{channel}.{self._sign(f'{action} channel', channel)}"

    def channel(self, action: str, secret: str) -> str | None:
        """The channel that a secret is for; None if it is not of this service, or for something else."""
        channel, _, _ = secret.partition(".")
        wanted = self.secret(action, channel).encode("utf-8", "surrogatepass")
        return channel if hmac.compare_digest(secret.encode("utf-8", "surrogatepass"), wanted) else None


class Composer:
    """Makes messages, many at once."""

    def __init__(self, messages: ChannelMessages, registry: Titles, settings: Settings, links: Links) -> None:
        self._messages, self._registry, self._settings, self._links = messages, registry, settings, links

    def compose(self, queued: Sequence[QueuedMessage]) -> list[Message]:
        """A message for each range; one of notifications that are no longer kept has no items."""
        with_items = [message for message in queued if message.kind == MessageKind.NOTIFICATIONS]
        contents = self._messages.contents(with_items, MOST_ITEMS)
        ids = sorted({each.subscription for content in contents for each in content.first})
        titles = {found.id: _title_of(found) for found in self._registry.find_many(ids)}
        ranges = {message.id: content for message, content in zip(with_items, contents, strict=True)}
        composed = []
        for message in queued:
            content = ranges.get(message.id)
            first = [] if content is None else content.first
            items = tuple(self._item(each, titles.get(each.subscription, "")) for each in first)
            more = 0 if content is None else content.total - len(items)
            composed.append(self.message(message.channel, message.id, MessageKind(message.kind), items, more))
        return composed

    def message(
        self, channel: Channel, id: str, kind: MessageKind, items: tuple[Item, ...] = (), more: int = 0
    ) -> Message:
        is_request = kind is MessageKind.CONFIRMATION
        return Message(
            id=id,
            kind=kind,
            channel=channel.id,
            address=channel.address,
            secret=channel.secret,
            title=channel.title,
            items=items,
            more=more,
            zone=schedule_of(channel.schedule).zone,
            manage=f"{self._settings.address}/channels/{channel.id}",
            unsubscribe=self._links.of(UNSUBSCRIBE, channel.id),
            confirm=self._links.of(CONFIRM, channel.id) if is_request else None,
        )

    def _item(self, notification: StoredNotification, title: str) -> Item:
        content = content_of(notification)
        return Item(
            id=notification.id,
            subscription=notification.subscription,
            subscription_title=title,
            at=notification.at,
            title=content.title,
            link=content.link,
            summary=plain_text(content.summary_html, SUMMARY),
            page=notification_url(notification, self._settings),
            event=None if notification.event is None else notification.event.id,
        )


def _title_of(subscription: Subscription) -> str:
    return one_line(subscription.title, _TITLE) or one_line(subscription.text, _TITLE) or subscription.id
