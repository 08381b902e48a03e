"""Defines the tables of both stores. A test compares them with the result of the migrations.

Every text is passed through `clean` before it is stored or compared: PostgreSQL refuses NUL, and no database
takes a lone surrogate, so both become U+FFFD, in either store.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with NUL and lone surrogates replaced."""
    return _UNSTORABLE.sub("\ufffd", text)


class CleanText(TypeDecorator[str]):
    """A column of clean text, or of an enumeration by its value."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else clean(str(value))


# SQLite's own row number, where it is the primary key: rows then lie in its order.
Number = BigInteger().with_variant(Integer(), "sqlite")

REGISTRY = MetaData()
MAILBOX = MetaData()

# --- registry

subscriptions = Table(
    "subscriptions",
    REGISTRY,
    Column("id", CleanText, primary_key=True),
    Column("text", CleanText, nullable=False),
    Column("title", CleanText, nullable=False),
    Column("owner", CleanText, nullable=False),
    Column("ticket", CleanText, nullable=False),
    Column("feed", CleanText, nullable=False),
    Column("created", Double, nullable=False),
    Column("valid_until", Double),
    Column("state", CleanText, nullable=False),
    Column("public", Boolean, nullable=False),
    Column("warned", Boolean, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("renewed", Double),
    Column("folded", CleanText, nullable=False),  # title and text without case, which is what is searched
    Column("reason", CleanText),
    Column("over_tables", Boolean, nullable=False, server_default=false()),
    Column(
        "tags", CleanText, nullable=False, server_default=""
    ),  # each on a line, with a line end before and after
    UniqueConstraint("feed", name="subscriptions_feed"),
    Index("subscriptions_created", "created", "id"),
    Index("subscriptions_owner_created", "owner", "created", "id"),
    Index("subscriptions_owner_state", "owner", "state", "created", "id"),
    Index("subscriptions_state_valid_until", "state", "valid_until"),
)

# The newest whole definition of each kind and name, and the changes of it since.
definitions = Table(
    "definitions",
    REGISTRY,
    Column("kind", CleanText, primary_key=True),
    Column("name", CleanText, primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("origin", CleanText, nullable=False),
    Column("at", Double, nullable=False),
    Column("given", CleanText, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("media_type", CleanText, nullable=False),
    Column("author", CleanText, nullable=False),
)

index_changes = Table(
    "index_changes",
    REGISTRY,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("id", CleanText, nullable=False),
    Column("text", CleanText),
)

# "change" is the number of the last change. A writer holds it until the commit, so numbers rise in the order
# of commits, and `applied` never forgets one that is yet to appear. "base" is the last number of a base of the index.
index_change_numbers = Table(
    "index_change_numbers",
    REGISTRY,
    Column("name", CleanText, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    REGISTRY,
    Column("id", CleanText, primary_key=True),
    Column("name", CleanText, nullable=False),
    Column("role", CleanText, nullable=False),
    Column("secret", CleanText, nullable=False),
    Column("created", Double, nullable=False),
    Column("ended", Double),
    Column("subscriptions", BigInteger, nullable=False),
    Column("events_per_second", Double, nullable=False),
    Column("requests_per_second", Double, nullable=False),
    Column("sources", BigInteger, nullable=False, server_default="1000"),
    Column("scope", CleanText, nullable=False, server_default=""),
    UniqueConstraint("secret", name="tokens_secret"),
)

sources = Table(
    "sources",
    REGISTRY,
    Column("url", CleanText, primary_key=True),
    Column("title", CleanText, nullable=False),
    Column("owner", CleanText, nullable=False),
    Column("added", Double, nullable=False),
    Column("interval", Double),
    Index("sources_added", "added", "url"),
    Index("sources_owner", "owner"),
)

# Sessions that were logged out of, by the hash of their cookie, until they would have ended by themselves.
ended_sessions = Table(
    "ended_sessions",
    REGISTRY,
    Column("session", CleanText, primary_key=True),
    Column("until", Double, nullable=False),
)

deliveries = Table(
    "deliveries",
    REGISTRY,
    Column("subscription", CleanText, primary_key=True),
    Column("url", CleanText, nullable=False),
    Column("secret", CleanText, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("next_try", Double, nullable=False),
    Column("failing_since", Double),
    Column("error", CleanText),
    Column("disabled", CleanText),
    Index("deliveries_next_try", "next_try"),
)

# Who is pushed which feed (WebSub). The key is what the address of the feed has: its secret, or the id of a public
# subscription.
hub_subscriptions = Table(
    "hub_subscriptions",
    REGISTRY,
    Column("id", CleanText, primary_key=True),  # a hash of feed and callback
    Column("subscription", CleanText, nullable=False),
    Column("key", CleanText, nullable=False),
    Column("format", CleanText, nullable=False),
    Column("callback", CleanText, nullable=False),
    Column("host", CleanText, nullable=False),
    Column("secret", CleanText),
    Column("until", Double, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("next_try", Double, nullable=False),
    Column("error", CleanText),
    Index("hub_subscriptions_subscription", "subscription"),
    Index("hub_subscriptions_host", "host"),
    Index("hub_subscriptions_until", "until"),
)

# --- mailbox

_OF_NOTICES: Any = dict.fromkeys(("sqlite_where", "postgresql_where"), text("event IS NULL"))
_OF_UNDECIDED: Any = dict.fromkeys(("sqlite_where", "postgresql_where"), text("kind = 'undecided'"))

_BLOCK: Final = 16  # bits of a number within its block; what an index is made of cannot be changed here alone


def block(number: int) -> int:
    """The block of a notification's number."""
    return number >> _BLOCK


def numbers_in(block: int) -> tuple[int, int]:
    """The first and the last number of a block."""
    return block << _BLOCK, ((block + 1) << _BLOCK) - 1


def block_of(notifications: FromClause) -> ColumnElement[int]:
    """The block of a notification, written as the index has it."""
    return notifications.c.number.op(">>", return_type=BigInteger())(literal_column(str(_BLOCK)))


notifications = Table(
    "notifications",
    MAILBOX,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("subscription", CleanText, nullable=False),
    Column("id", CleanText),  # of a notice; that of another is made of what it is about (mailbox_rows.py)
    Column("kind", CleanText, nullable=False),
    Column("at", Double, nullable=False),
    Column("event", LargeBinary),  # key of `events`; null for notices
    Column("bindings", CleanText),  # JSON
    Column("part", CleanText),
    Column("sequence", BigInteger),
    Column("changes", CleanText),  # JSON
    Column("message", CleanText),
    # Numbers rise: what is recorded goes into the last block, not all over the index (notification_search.py).
    Index("notifications_block", text(f"(number >> {_BLOCK})"), "subscription", "number"),
    # A unique index over the ids of all notifications took more than half of the time of recording them.
    Index("notifications_notice", "subscription", "id", unique=True, **_OF_NOTICES),
    # A failing operator makes thousands: pages leave them out and count them, without reading what they are.
    Index(
        "notifications_undecided", text(f"(number >> {_BLOCK})"), "subscription", "number", **_OF_UNDECIDED
    ),
)

# An event is here once, however many notifications refer to it. Their numbers are from `first`, which events of an older
# version lack, to `last`: when notifications up to it are deleted, nothing refers to the event any more, and no search
# for references is needed.
events = Table(
    "events",
    MAILBOX,
    Column("key", LargeBinary, primary_key=True),
    Column("id", CleanText),
    Column("source", CleanText),
    Column("type", CleanText),
    Column("time", CleanText),
    Column("datacontenttype", CleanText),
    Column("data", LargeBinary),
    Column("attributes", CleanText),
    Column("first", BigInteger),
    Column("last", BigInteger, nullable=False),
    Index("events_last", "last"),
)

# What readers mark. A reader is an owner (`owners.py`), "" where nobody has a token. Marks go with what they mark: a position
# below all notifications that are kept says the same as none.
read_positions = Table(
    "read_positions",
    MAILBOX,
    Column("reader", CleanText, primary_key=True),
    Column("subscription", CleanText, primary_key=True),
    Column("number", BigInteger, nullable=False),  # the last notification that was read
    Index("read_positions_number", "number"),
)

stars = Table(
    "stars",
    MAILBOX,
    Column("reader", CleanText, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("subscription", CleanText, nullable=False),
    Index("stars_number", "number"),
)

batches = Table(
    "batches",
    MAILBOX,
    Column("query", CleanText, primary_key=True),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("version", CleanText, nullable=False),
    Column("segment", BigInteger, nullable=False),
    Column("byte", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("notifications", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("began", Double, nullable=False),
    Column("ended", Double, nullable=False),
    Index("batches_ended", "ended"),
)

# How far each query has come: the last of its batches, found without going through them. The batch is -1 of a query that
# has answered nothing yet, and goes on there. `role` distinguishes queries that match from those that keep joins.
reached = Table(
    "reached",
    MAILBOX,
    Column("query", CleanText, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("segment", BigInteger, nullable=False),
    Column("byte", BigInteger, nullable=False),
    Column("role", CleanText),
)

# How far the slices go that are recorded of a batch that is not complete, and what they sum up to.
slices = Table(
    "slices",
    MAILBOX,
    Column("query", CleanText, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("segment", BigInteger, nullable=False),
    Column("byte", BigInteger, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("notifications", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
)

faults = Table(
    "faults",
    MAILBOX,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("source", CleanText, nullable=False),
    Column("event", CleanText, nullable=False),
    Column("message", CleanText, nullable=False),
    Column("at", Double, nullable=False),
)

# "number" is the last that a notification or a fault has got, "events" and "notifications" are totals of all time.
# Writers change "number" first and hold it until the commit: they take turns, and numbers rise in their order.
counters = Table(
    "counters",
    MAILBOX,
    Column("name", CleanText, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# --- channels, in the mailbox: the range of a message and the numbers in it are committed together

channels = Table(
    "channels",
    MAILBOX,
    Column("id", CleanText, primary_key=True),
    Column("owner", CleanText, nullable=False),
    Column("kind", CleanText, nullable=False),
    Column("address", CleanText, nullable=False),
    Column("secret", CleanText, nullable=False),
    Column("title", CleanText, nullable=False),
    Column("schedule", CleanText, nullable=False),  # JSON
    Column("created", Double, nullable=False),
    Column("state", CleanText, nullable=False),
    Column("cursor", BigInteger, nullable=False),  # what is numbered up to it is in messages, or needs none
    Column(
        "sent", CleanText, nullable=False
    ),  # JSON: when the last messages were sent, as far as a limit needs it
    Column("failures", BigInteger, nullable=False),  # in a row
    Column("refusals", BigInteger, nullable=False),  # in a row
    Column("error", CleanText),
    Column("reason", CleanText),
    Index("channels_owner", "owner", "created", "id"),
)

# A notification is of a channel if its subscription was a member at its number: `since` < number <= `until`.
channel_subscriptions = Table(
    "channel_subscriptions",
    MAILBOX,
    Column("channel", CleanText, primary_key=True),
    Column("subscription", CleanText, primary_key=True),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger),  # null while it is a member
    Index("channel_subscriptions_subscription", "subscription", "channel"),
)

_COLLECTING: Any = dict.fromkeys(("sqlite_where", "postgresql_where"), text("until_number IS NULL"))
_SEALED: Any = dict.fromkeys(("sqlite_where", "postgresql_where"), text("until_number IS NOT NULL"))

# Messages that are not sent yet: the notifications of the channel numbered above `after_number` up to `until_number`, which is
# null while the message collects. A channel has at most one that collects and one that is being sent.
channel_messages = Table(
    "channel_messages",
    MAILBOX,
    Column("channel", CleanText, primary_key=True),
    Column("after_number", BigInteger, primary_key=True, autoincrement=False),
    Column("until_number", BigInteger),
    Column("kind", CleanText, nullable=False),
    Column("first_at", Double, nullable=False),  # when the first of its notifications arrived
    Column("due", Double, nullable=False),
    Column("next_try", Double, nullable=False),
    Column(
        "written", Double, nullable=False
    ),  # when these times were reckoned: later than now, the clock was set back
    # Thousands may be on their way while thousands collect: each search sees its own alone.
    Index("channel_messages_collecting", "next_try", **_COLLECTING),
    Index("channel_messages_sealed", "next_try", **_SEALED),
)
