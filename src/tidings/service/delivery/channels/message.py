"""A message to a channel, and the contract of those who send it.

A message has all notifications that are delivered together, of one or several subscriptions. Its id is the same whenever it is
sent again, so that a receiver can drop a repetition. Every text of an item comes from outside: it is plain text here, and
each transport escapes it for its own form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from tidings.errors import TidingsError
from tidings.service.delivery.webhook_attempts import Outcome

REFUSED = "refused"
"""The result of an attempt that the server refused for good, such as an unknown mail address; `GONE` ends a channel at once, so many
refusals in a row as the service's documentation says end it too."""


class MessageKind(StrEnum):
    NOTIFICATIONS = "notifications"
    CONFIRMATION = "confirmation"  # asks the holder of the address whether it wants messages
    TEST = "test"


class Item(NamedTuple):
    """A notification in a message."""

    id: str
    subscription: str  # its id
    subscription_title: str
    at: float
    title: str  # one line
    link: str | None  # http or https
    summary: str  # plain text, shortened
    page: str  # the address of the notification at this service
    event: str | None  # the id of the event; None of a notice


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    kind: MessageKind
    channel: str  # its id
    address: str
    secret: str  # of the channel: signs webhooks, is the access token of a chat room
    title: str  # of the channel
    items: tuple[Item, ...] = ()
    more: int = 0  # notifications that are not among the items, because there are too many
    zone: str = "UTC"  # in which times are shown
    manage: str = ""  # address of the page that changes the channel
    unsubscribe: str | None = (
        None  # address that ends the channel by one POST (RFC 8058); None: there is none
    )
    confirm: str | None = None  # address that confirms the channel, in a confirmation


class Unavailable(TidingsError):
    """This service cannot send messages of a kind, such as mail without a server for it."""

    status = 422


class Transport(Protocol):
    """Sends messages of one kind of channel. No behaviour of a server raises an exception in `send`."""

    def address(self, given: str) -> str:
        """The address in its normal form; a TidingsError says what is wrong with it."""

    async def send(self, message: Message, now: float) -> Outcome:
        """Sends a message once: `DELIVERED`, `FAILED` (to be tried again), `REFUSED` or `GONE`."""

    async def close(self) -> None: ...
