"""Posts a whole message as one signed JSON body, by the Standard Webhooks rules, of the type `tidings.message`."""

from __future__ import annotations

import json
from typing import Any

from tidings.feeds.addresses import AsyncGuard, check_url
from tidings.service.delivery.channels.message import Message, MessageKind, Transport
from tidings.service.delivery.notification_json import moment
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.webhook_attempts import TIMEOUT, Outcome, send
from tidings.service.model import Delivery
from tidings.service.settings import Settings


class WebhookTransport:
    """The connections are made in the event loop that sends."""

    def __init__(self, allowed: tuple[str, ...], timeout: float = TIMEOUT) -> None:
        self._allowed, self._timeout = allowed, timeout
        self._receivers = Receivers(AsyncGuard(allowed))

    def address(self, given: str) -> str:
        check_url(given, self._allowed)
        return given

    async def send(self, message: Message, now: float) -> Outcome:
        receiver = Delivery(message.channel, message.address, message.secret, 0)
        body = json.dumps(
            {
                "type": "tidings.test" if message.kind is MessageKind.TEST else "tidings.message",
                "timestamp": moment(now),
                "data": data_of(message),
            },
            separators=(",", ":"),
        )
        return await send(self._receivers, receiver, message.id, body, now, timeout=self._timeout)

    async def close(self) -> None:
        self._receivers.close()


def data_of(message: Message) -> dict[str, Any]:
    """What a receiver gets of a message, apart from the rules of webhooks."""
    return {
        "id": message.id,
        "channel": message.channel,
        "title": message.title,
        "items": [{**item._asdict(), "at": moment(item.at)} for item in message.items],
        "more": message.more,
        "unsubscribe": message.unsubscribe,
        "manage": message.manage,
    }


def transport(settings: Settings) -> Transport:
    return WebhookTransport(settings.allowed)
