"""Plain value classes of the service: subscriptions, tokens, sources, deliveries, notifications and batch records.

Times are seconds since 1970, as floats. Ids are random, so that they cannot be guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from tidings.model.event import Event
from tidings.storage.event_log import Position

HIDDEN = "("
"""With which the owners begin whose subscriptions no list shows: they are not people's."""

SERVICE = f"{HIDDEN}service)"
"""The owner of subscriptions that the service keeps for itself."""

MEMBERS = "relay-"
"""With which the ids of relays' filters begin, and no others. Those over tables are answered by messages for all of them."""


class State(StrEnum):
    """Of a subscription. Only an active one is in the index. An unanswerable one lacks a table, an operator, a network or
    a prefix, and is active again once that is there; an expired or cancelled one stays so."""

    ACTIVE = "active"
    PAUSED = "paused"
    UNANSWERABLE = "unanswerable"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


LIVING: Final = (State.ACTIVE, State.PAUSED, State.UNANSWERABLE)  # those that have not ended


class Role(StrEnum):
    """What a token is good for. An admin may everything; a delegate acts for users who have no tokens."""

    ADMIN = "admin"
    DELEGATE = "delegate"
    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"
    RELAY = "relay"


READERS: Final = (Role.ADMIN, Role.SUBSCRIBER, Role.DELEGATE)  # those that have subscriptions
PUBLISHERS: Final = (Role.ADMIN, Role.PUBLISHER, Role.DELEGATE)  # those that publish and follow feeds


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription with its state and validity. `owner` is the id of a token, also with a
    delegate's user (`owners.py`), "" where nobody has one."""

    id: str
    text: str
    title: str
    owner: str
    ticket: str  # the hash of the secret that its subscriber was given
    feed: str  # the secret of its feed's address
    created: float
    valid_until: float | None  # None: for good; of one that ended, when it did
    state: State = State.ACTIVE
    public: bool = False  # its feed is listed, and found by its id
    warned: bool = False  # the notice before expiry was sent for this valid_until
    revision: int = 1  # counts changes of this subscription
    renewed: float | None = None  # when its validity last began anew; None: when it was created
    reason: str | None = None  # why it is unanswerable; None of any other
    over_tables: bool = (
        False  # it was accepted as one; without its tables, FROM would mean the stream of events
    )
    tags: tuple[str, ...] = ()  # words of its subscriber, in lower case


class ActiveText(NamedTuple):
    """What is asked by an active subscription."""

    id: str
    title: str
    text: str


class IndexChange(NamedTuple):
    """A change that the index has yet to apply: a text to add under an id, or None to remove the id."""

    number: int
    id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Token:
    """An access token. Its secret is shown once; `secret` is the hash of it."""

    id: str
    name: str
    role: Role
    secret: str
    created: float
    ended: float | None = None
    subscriptions: int = 1_000  # quota
    events_per_second: float = 1_000.0  # rate limit of publishing
    requests_per_second: float = 50.0  # of everything else
    sources: int = 1_000  # quota
    scope: str = ""  # a subscription that contains all that it may ask for; empty: it may ask for everything


@dataclass(frozen=True, slots=True)
class Source:
    """A followed feed. Its fetch state is stored by the fetcher."""

    url: str
    title: str
    owner: str
    added: float
    interval: float | None = None  # seconds from one fetch to the next; None: that of the service


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook of a subscription: its address, its cursor and the state of its retries."""

    subscription: str
    url: str
    secret: str  # "whsec_…", which receivers verify signatures with
    cursor: int  # number of the last notification that was delivered
    failures: int = 0  # in a row
    next_try: float = 0.0
    failing_since: float | None = None
    error: str | None = None  # of the last try, one sentence
    disabled: str | None = None  # why it is not tried any more


@dataclass(frozen=True, slots=True)
class HubSubscription:
    """A callback that the hub of this service pushes a feed to (WebSub), until its lease ends."""

    id: str  # of feed and callback
    subscription: str
    key: str  # in the address of the feed: its secret, or the id of a public subscription
    format: str
    callback: str
    host: str  # of the callback
    secret: str | None  # which the pushed feeds are signed with
    until: float
    cursor: int  # number of the last notification that was pushed
    failures: int = 0  # in a row
    next_try: float = 0.0
    error: str | None = None  # of the last try, one sentence


class ChannelState(StrEnum):
    """Of a channel. Nothing but the request to confirm it is sent to an unconfirmed one, and nothing to an ended one."""

    UNCONFIRMED = "unconfirmed"
    ACTIVE = "active"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Channel:
    """Where the messages of several subscriptions go, and how often. `owner` is that of its subscriptions."""

    id: str
    owner: str
    kind: str
    address: str
    title: str
    schedule: str  # JSON
    created: float
    secret: str = ""
    state: ChannelState = ChannelState.ACTIVE
    cursor: int = 0  # what is numbered up to it is in messages, or needs none
    sent: tuple[float, ...] = ()  # when its last messages were sent, as far as its limit needs it
    failures: int = 0  # in a row
    refusals: int = 0  # in a row
    error: str | None = None  # of the last attempt, a sentence
    reason: str | None = None  # why it has ended


class QueuedMessage(NamedTuple):
    """A message of a channel that is to be sent, of the notifications numbered above `after` up to `until`."""

    channel: Channel
    kind: str
    after: int
    until: int
    due: float

    @property
    def id(self) -> str:
        """The same at every attempt. A number is given once, also after the restoration of a backup."""
        return f"{self.channel.id}-{self.kind if self.until < 0 else self.until}"


MATCH, JOINS = "match", "joins"  # the roles of the stream's queries
IN_PROCESS = "in-process"  # the query of a stream without Spark; the mailbox knows all of it


class DefinitionKind(StrEnum):
    """What subscriptions refer to, and can be changed while the service runs."""

    TAXONOMY = "taxonomy"
    PREFIXES = "prefixes"
    NETWORK = "network"


class Origin(StrEnum):
    """Where a definition came from: what was given at the start, a request with all of it, or one with changes of it."""

    START = "start"
    REQUEST = "request"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Definition:
    """A version of a definition. Versions count from 1 for each kind and name; only networks have names.

    `content` is what a request has sent: all of it, or the changes; it is empty where it was given at the start. `given` is
    the hash of what was given at the start, "" for nothing: what is given anew is the next version.
    """

    kind: DefinitionKind
    name: str
    version: int
    origin: Origin
    at: float
    given: str = ""
    content: bytes = b""
    media_type: str = ""
    author: str = ""  # the name of a token


class NotificationKind(StrEnum):
    """Of a notification: what the stream said, or a notice of the subscription's life."""

    MATCH = "match"
    UNDECIDED = "undecided"
    SNAPSHOT = "snapshot"
    EXPIRES_SOON = "expires-soon"
    EXPIRED = "expired"
    MISSED = "missed"
    UNANSWERABLE = "unanswerable"
    ANSWERABLE = "answerable"


NOTICES: Final = frozenset(NotificationKind) - {
    NotificationKind.MATCH,
    NotificationKind.UNDECIDED,
    NotificationKind.SNAPSHOT,
}


@dataclass(frozen=True, slots=True)
class StoredNotification:
    """A notification as the mailbox stores it. `number` rises over all subscriptions and is what cursors hold; `id`
    is the same for the same notification whenever and however often it is delivered. `event` is None for notices."""

    number: int
    id: str
    subscription: str
    kind: NotificationKind
    at: float
    event: Event | None = None
    bindings: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    sequence: int | None = None
    changes: tuple[Mapping[str, Any], ...] = ()  # {"table", "change": "+" | "-", "row": {…}}
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about a subscription, to be stored as a notification. `id` makes repeated notices one: "expired
    1731..."."""

    subscription: str
    kind: NotificationKind
    id: str
    at: float
    message: str


@dataclass(frozen=True, slots=True)
class Fault:
    """An event that could not be read, shown to the operators of the service."""

    source: str
    event: str
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A micro-batch that is in the mailbox. (segment, byte) is the end of the range that it read from the log."""

    query: str
    batch: int
    version: str
    segment: int
    byte: int
    events: int
    notifications: int
    errors: int
    began: float
    ended: float


class RecordedSlices(NamedTuple):
    """What is recorded of a micro-batch that is not complete: the end of its last slice, and the sums."""

    until: Position
    events: int
    notifications: int
    errors: int


NO_SLICES = RecordedSlices(Position(-1, -1, -1), 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Principal:
    """The author of a request. `token` is the owner of what it makes and sees: the id of the token, also with the user whom a
    delegate acts for (`owners.py`); "" without one: an open service needs none, but a subscription without an owner is
    changed by its ticket alone."""

    name: str
    role: Role
    token: str = ""
    session: str = field(default="", compare=False)  # the hash of the page's session, if it came by one
