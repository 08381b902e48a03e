"""Models of requests and responses. OpenAPI is generated from them, so every field has a description.

Texts are without NUL and lone surrogates, which no database takes; unknown members of a request are refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tidings.service.matching.backtests import DAYS, MOST_DAYS
from tidings.service.model import NotificationKind, Role, State
from tidings.service.owners import LONGEST_USER
from tidings.service.settings import DAY
from tidings.service.subscriptions.lifecycle import MAX_TAG, MAX_TAGS, MAX_TEXT, MAX_TITLE

MAX_URL = 2_000
MOST_ROWS = 100  # of a join that is tried
CENTURY = 100 * 365 * 86_400


def _whole(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a NUL character in it; take it out")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("it has half a surrogate pair in it; correct its Unicode")
    return text


Text = Annotated[str, AfterValidator(_whole)]
SubscriptionText = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_TEXT,
        description="A subscription in the language of Tidings.",
        examples=["WHERE topic = 'sport' AND price < 20"],
    ),
]
Title = Annotated[
    Text, Field(max_length=MAX_TITLE, description="What people call it.", examples=["Cheap sport"])
]
Tags = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=MAX_TAG)]],
    Field(
        max_length=MAX_TAGS,
        description="Words by which subscriptions are found.",
        examples=[["sport", "cheap"]],
    ),
]
Address = Annotated[Text, Field(min_length=1, max_length=MAX_URL, description="An http or https address.")]
Validity = Annotated[
    Annotated[float, Field(strict=True, gt=0, le=CENTURY, allow_inf_nan=False)] | Literal["never"] | None,
    Field(
        description='Seconds from now, or "never"; the default of the service if it is left out.',
        examples=[86400],
    ),
]
Moment = Annotated[
    str,
    Field(
        description="RFC 3339, in UTC.",
        examples=["2026-11-16T10:06:50.123Z"],
        json_schema_extra={"format": "date-time"},
    ),
]


class RequestModel(BaseModel):
    """Base of the models of requests; unknown members are refused."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """Base of the models of responses. Members are added over time, never renamed."""


# Subscriptions


class NewSubscription(RequestModel):
    text: SubscriptionText
    title: Title = ""
    valid_for: Validity = None
    public: bool = Field(default=False, strict=True, description="Its feeds are found by its id, by anybody.")
    webhook: Address | None = Field(
        default=None, description="Where notifications are posted to.", examples=["https://example.org/hook"]
    )
    tags: Tags = []


class SubscriptionChange(RequestModel):
    """What changes; what is left out stays as it is."""

    text: SubscriptionText = Field(default_factory=str)
    title: Title = Field(default_factory=str, description='What people call it; "" makes one of the text.')
    valid_for: Validity = None
    public: bool = Field(
        default_factory=bool, strict=True, description="Its feeds are found by its id, by anybody."
    )
    webhook: Address | None = Field(
        default=None, description="Where notifications are posted to; null: no more.", examples=[None]
    )
    tags: Tags = Field(default_factory=list, description="All of them; [] removes all.")
    ticket: Text | None = Field(
        default=None, max_length=200, description="Instead of the header Tidings-Ticket."
    )


class BulkSubscription(NewSubscription):
    """A line of the export is taken as it is; the new subscription has an id and a ticket of its own."""

    id: Text | None = Field(default=None, max_length=64, description="Of the export; it is not used.")
    user: Text | None = Field(
        default=None, max_length=LONGEST_USER, description="Of the export; no other than the caller's own."
    )
    state: Literal["active", "paused"] = "active"


class Renewal(RequestModel):
    valid_for: Validity = None
    ticket: Text | None = Field(
        default=None, max_length=200, description="Instead of the header Tidings-Ticket."
    )


class Ticketed(RequestModel):
    """A body is needed only to bring the ticket along, where no header can be sent."""

    ticket: Text | None = Field(
        default=None, max_length=200, description="Instead of the header Tidings-Ticket."
    )


class WebhookSettings(RequestModel):
    url: Address = Field(examples=["https://example.org/hook"])
    ticket: Text | None = Field(
        default=None, max_length=200, description="Instead of the header Tidings-Ticket."
    )


class FeedAddresses(ResponseModel):
    """The same notifications in four forms. Keep the addresses secret unless the subscription is public."""

    rss1: str
    rss2: str
    atom: str
    json_feed: str


class Webhook(ResponseModel):
    url: str
    state: Literal["waiting", "failing", "disabled"]
    failures: int = Field(description="Tries in a row that failed.")
    error: str | None = Field(description="Of the last try.")
    disabled: str | None = Field(description="Why it is not tried any more.")
    next_try: Moment | None


class WebhookWithSecret(Webhook):
    secret: str = Field(description='"whsec_…", to verify signatures with. It is shown only once.')


class Subscription(ResponseModel):
    id: str
    text: str
    title: str
    state: State
    reason: str | None = Field(default=None, description="Why it is unanswerable.")
    public: bool
    tags: list[str] = []
    created: Moment
    valid_until: Moment | None = Field(description="null: for good.")
    feeds: FeedAddresses
    webhook: Webhook | None = None
    revision: int = Field(description="Counts its changes; an edit takes it as If-Match.")
    user: str | None = Field(
        default=None, description="Whose it is, of a delegate's users; null: no delegate's."
    )


class SubscriptionEdited(Subscription):
    webhook_secret: str | None = Field(
        default=None,
        description="The secret of a new address, to verify signatures with. It is shown only once.",
    )
    warnings: list[str] = Field(description="What may be a mistake, such as a text that every event matches.")


class SubscriptionCreated(Subscription):
    ticket: str = Field(
        description="What renews, pauses or cancels the subscription. It is shown only once: store it."
    )
    webhook_secret: str | None = Field(
        default=None, description="What the webhook's signatures are verified with."
    )
    warnings: list[str] = Field(description="What may be a mistake, such as a text that every event matches.")


class SubscriptionPage(ResponseModel):
    items: list[Subscription]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class BulkItem(ResponseModel):
    place: str = Field(description='"line 3" or "item 3" of the body.')
    id: str | None = Field(default=None, description="null: it was refused.")
    ticket: str | None = Field(default=None, description="It is shown only once: store it.")
    webhook_secret: str | None = None
    warnings: list[str] = []
    state: State | None = None
    reason: str | None = Field(default=None, description="Why it is unanswerable.")
    error: str | None = Field(default=None, description="Why it was refused.")
    line: int | None = Field(default=None, description="Where the mistake is in the text.")
    column: int | None = None


class BulkAnswer(ResponseModel):
    subscribed: int
    refused: int
    items: list[BulkItem] = Field(description="In the order of the body.")


# Notifications


class NotifiedEvent(ResponseModel):
    id: str
    source: str
    type: str
    time: str | None
    title: str
    link: str | None
    summary: str
    attributes: dict[str, Any]


class RowChange(ResponseModel):
    table: str
    change: Literal["+", "-"]
    row: dict[str, Any]


class Notification(ResponseModel):
    id: str = Field(description="The same however often, and however, it is delivered.")
    number: int = Field(description="Rises over all subscriptions; what `after` and `before` take.")
    subscription: str
    kind: NotificationKind
    time: Moment
    url: str
    event: NotifiedEvent | None
    bindings: dict[str, Any] = Field(
        description="Texts; numbers and truth values where an operator declares them."
    )
    changes: list[RowChange]
    part: str | None
    sequence: int | None
    message: str | None


class NotificationPage(ResponseModel):
    items: list[Notification]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class ReadUpTo(RequestModel):
    number: int = Field(strict=True, ge=0, le=2**62, description="Of the last notification that was read.")


class ReadPosition(ResponseModel):
    number: int = Field(description="Of the last notification that was read; 0 before the first.")
    unread: int = Field(description="Unread notifications that are not undecided.")
    undecided: int = Field(description="Unread notifications that are undecided.")
    more: bool = Field(description="Whether there are more than were counted, which are 100 together.")


class Clause(ResponseModel):
    text: str
    depth: int
    held: bool | None = Field(description="null: it was not looked at.")
    evidence: str
    decides: bool


class UsedVersions(ResponseModel):
    index: str | None = Field(examples=["v3+17"])
    taxonomy: int = Field(description="0: there is none.")
    prefixes: int
    networks: dict[str, int]


class Explanation(ResponseModel):
    verdict: Literal["match", "no match", "undecided", "error"]
    clauses: list[Clause]
    bindings: dict[str, str]
    message: str
    text: str = Field(description="All of it for reading.")
    versions: UsedVersions | None = Field(default=None, description="By which it was found out.")


# Events


class Rejected(ResponseModel):
    place: str
    message: str


class Receipt(ResponseModel):
    accepted: int
    duplicates: int = Field(description="Those whose source and id were there already.")
    ids: list[str]
    rejected: list[Rejected]


class MatchedSubscription(ResponseModel):
    subscription: str
    kind: Literal["match", "undecided"]
    bindings: dict[str, Any]
    message: str | None = Field(description="Why it is undecided.")


class EventMatches(ResponseModel):
    version: str = Field(description="Of the index that the event was matched with.")
    matched: int = Field(description="How many in all, of those that the caller may see.")
    items: list[MatchedSubscription]


# Tables


class Table(ResponseModel):
    name: str
    columns: dict[str, str] = Field(description="The type of each column.")
    key: list[str] = Field(description="What a row is known by; none: by all of it.")
    payload: list[str] = Field(description="Columns that come along, and that no condition looks at.")


class Tables(ResponseModel):
    items: list[Table]


class TableRows(ResponseModel):
    table: str
    total: int = Field(description="How many rows there are now.")
    items: list[dict[str, Any]]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class SnapshotRequested(ResponseModel):
    event: str = Field(description="The id of the event that the snapshot's notifications are of.")


# Texts of subscriptions


class TextToCheck(RequestModel):
    text: Annotated[Text, Field(max_length=MAX_TEXT, examples=["WHERE topic = 'sport'"])]


class TextToCompare(TextToCheck):
    edited: str | None = Field(
        default=None,
        max_length=100,
        description="The id of the subscription whose text it is to be; it is not named as one that covers it.",
    )


class TextWarning(ResponseModel):
    message: str
    start: int = Field(description="The first character that it is about, counted from 0.")
    end: int = Field(description="The character after the last one.")


class Covering(ResponseModel):
    id: str
    title: str
    same: bool = Field(description="The text contains it, too: both match the same.")


class Checked(ResponseModel):
    ok: bool
    kinds: list[str]
    message: str
    line: int | None
    column: int | None
    warnings: list[TextWarning] = Field(
        description="What is probably a mistake, such as an attribute that no recent event has."
    )
    covered_by: list[Covering] | None = Field(
        description="The caller's active subscriptions that contain a valid text: whatever matches it matches them, too. Only what"
        " is certain is named, and no more than a few. Null if it was not found out in time; check again."
    )
    covered_by_more: bool = Field(description="There may be others.")


class Reason(ResponseModel):
    event: NotifiedEvent
    explanation: Explanation
    changes: list[RowChange] = Field(default=[], description="Of a join: the rows that it gained and lost.")


class Trial(ResponseModel):
    looked: int
    matched: int
    matches: list[Reason]
    near: list[Reason]
    late: bool = Field(description="The time was over before all events were looked at.")
    warning: str | None = Field(default=None, description="Set if it would flood its owner.")
    rows: list[RowChange] | None = Field(
        default=None,
        description=f"Of a join: its result now, at most {MOST_ROWS} rows; null if the rows of its tables are not known.",
    )


class NewBacktest(TextToCheck):
    days: int = Field(default=DAYS, ge=1, le=MOST_DAYS, description="How far back it looks.")
    schedule: dict[str, Any] | None = Field(
        default=None,
        description="The schedule of a channel, whose messages are foretold; a daily digest without one.",
        examples=[{"digest": "daily", "at": "08:00", "zone": "Europe/Vienna"}],
    )


class BacktestDay(ResponseModel):
    day: str = Field(description="A day of the schedule's time zone.", examples=["2026-11-16"])
    matched: int


class BacktestHour(ResponseModel):
    start: Moment
    matched: int


class BacktestMessage(ResponseModel):
    due: Moment
    items: int


class BacktestDigest(ResponseModel):
    schedule: dict[str, Any]
    sentence: str = Field(examples=["28 daily messages with 3 to 41 items"])
    messages: int
    fewest: int = Field(description="Items of the smallest message.")
    most: int = Field(description="Items of the largest message.")
    waiting: int = Field(description="Matches for a message that is due later.")
    newest: list[BacktestMessage] = Field(description="The last messages, oldest first.")


class BacktestMatch(ResponseModel):
    arrived: Moment
    event: NotifiedEvent


class BacktestReport(ResponseModel):
    since: Moment = Field(description="When the oldest event arrived, if the log does not go back further.")
    until: Moment
    events: int = Field(description="How many events were looked at, of those that the caller may see.")
    matched: int
    undecided: int
    unreadable: int
    per_day: float = Field(description="Matches a day, on average.")
    days: list[BacktestDay]
    busiest: BacktestHour | None = Field(description="The hour with the most matches.")
    matches: list[BacktestMatch] = Field(description="The newest matches, newest first.")
    digest: BacktestDigest
    warning: str | None = Field(description="Set if it would flood its owner.")


class Backtest(ResponseModel):
    id: str
    status: Literal["waiting", "running", "done", "failed", "cancelled"]
    progress: float = Field(description="The part that is done, from 0 to 1.")
    message: str = Field(description="Why it has failed.")
    report: BacktestReport | None = Field(description="Set when it is done.")


class Completion(ResponseModel):
    text: str
    kind: str
    detail: str
    start: int = Field(description="`text` takes the place of the characters from here to the caret.")


class Completions(ResponseModel):
    items: list[Completion]


class NamedClass(ResponseModel):
    iri: str
    written: str = Field(description="As a subscription writes it.")
    label: str
    below: int


class AboutClass(NamedClass):
    labels: list[str]
    parents: list[NamedClass]
    children: list[NamedClass]
    instances: list[NamedClass]
    instances_in_all: int


class TaxonomyAnswer(ResponseModel):
    version: int = Field(default=0, description="Of the taxonomy; 0: there is none.")
    classes: int = Field(description="How many there are in all.")
    items: list[NamedClass] = Field(description="The roots, or what a search found.")
    about: AboutClass | None = None


# Sources


Interval = Annotated[
    float | None,
    Field(
        ge=60,
        le=7 * DAY,
        allow_inf_nan=False,
        description="Seconds from one fetch to the next, a minute to a week; null: that of the service.",
        examples=[3600],
    ),
]


class NewSource(RequestModel):
    url: Address = Field(examples=["https://example.org/feed.xml"])
    title: Title = ""
    interval: Interval = None


class SourceChange(RequestModel):
    """What changes; what is left out stays as it is."""

    title: Title = Field(default_factory=str)
    interval: Interval = None


class Source(ResponseModel):
    url: str
    title: str = Field(description="Given by whoever follows it.")
    added: Moment
    fetched: Moment | None = Field(default=None, description="When it was last fetched with success.")
    error: str | None = None
    due: Moment | None = Field(default=None, description="When it will be fetched next.")
    failures: int = 0
    gone: bool = False
    feed_title: str = Field(default="", description="What the feed calls itself.")
    items: int = Field(default=0, description="How many items were taken as events.")
    new_items: int = Field(default=0, description="How many of them at the last fetch.")
    interval: float | None = Field(
        default=None, description="Seconds from one fetch to the next; null: that of the service."
    )
    hub: str | None = Field(
        default=None, description="The hub that pushes it (WebSub); null if it is only polled."
    )
    pushed_until: Moment | None = Field(
        default=None, description="When the hub's lease ends; it is renewed before."
    )
    pushed: Moment | None = Field(default=None, description="When the hub last pushed it.")
    push_note: str | None = Field(default=None, description="Why a hub that it names does not push it.")


class SourcePage(ResponseModel):
    items: list[Source]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class Imported(ResponseModel):
    added: int
    known: int = Field(description="Those that were followed already.")
    refused: list[Rejected]


# The service


class Driver(ResponseModel):
    status: str
    message: str
    since: Moment | None
    restarts: int


class Rates(ResponseModel):
    """The last five minutes, hour or day in 60 numbers, oldest first."""

    bucket_seconds: float
    events_per_second: list[float]
    notifications_per_second: list[float]
    latency_median: list[float | None]
    latency_p95: list[float | None]


class Status(ResponseModel):
    version: str
    ready: bool = Field(description="Whether events that are published now are matched now.")
    reason: str | None = Field(description="Why they are not.")
    driver: Driver
    subscriptions: dict[str, int] = Field(description="By state; those that the caller may see.")
    events: int
    notifications: int
    events_per_second: float
    notifications_per_second: float
    waiting_events: int = Field(description="Those that the slowest query of the stream has yet to answer.")
    lag_seconds: float = Field(description="How long the oldest of them has waited.")
    latency_seconds: float | None = Field(description="From acceptance to notification: the median of late.")
    latency_p95_seconds: float | None
    rates: Rates
    last_number: int = Field(description="The number of the last notification of all; what `after` takes.")
    index_version: str | None


class NewToken(RequestModel):
    name: Annotated[Text, Field(min_length=1, max_length=100, examples=["the newsroom"])]
    role: Role
    subscriptions: int = Field(default=1_000, ge=0, le=10_000_000)
    events_per_second: float = Field(default=1_000.0, gt=0, le=1e6, allow_inf_nan=False)
    requests_per_second: float = Field(default=50.0, gt=0, le=1e6, allow_inf_nan=False)
    sources: int = Field(default=1_000, ge=0, le=10_000_000)
    scope: Annotated[
        Text,
        Field(
            max_length=MAX_TEXT,
            description="A subscription that contains all that the token may ask for; empty: everything.",
            examples=["WHERE topic = 'sport'"],
        ),
    ] = ""


class Token(ResponseModel):
    id: str
    name: str
    role: Role
    created: Moment
    ended: Moment | None = Field(description="When it was revoked; null: it is valid.")
    last_used: Moment | None = Field(default=None, description="null: not since the service was started.")
    subscriptions: int
    events_per_second: float
    requests_per_second: float
    sources: int
    scope: str = Field(description="What it may ask for; empty: everything.")


class TokenCreated(Token):
    secret: str = Field(description='"tid_…", for the Authorization header. It is shown only once: store it.')


class Tokens(ResponseModel):
    items: list[Token]


class Health(ResponseModel):
    status: Literal["ok", "starting", "failing"]
    message: str = ""


class UpstreamState(ResponseModel):
    status: Literal["connected", "away", "refuses"]
    message: str | None = Field(default=None, description="What to do if it is not connected.")


class Readiness(Health):
    waiting_events: int = Field(description="Those that the slowest query of the stream has yet to answer.")
    lag_seconds: float = Field(description="How long the oldest of them has waited.")
    upstream: UpstreamState | None = Field(
        default=None,
        description="Of a relay, the service that its events come from. A relay is ready without it.",
    )


class ProblemPlace(BaseModel):
    place: str
    message: str


class ProblemDetails(BaseModel):
    """RFC 9457. `detail` says what to change."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["/problems/not-found"])
    title: str
    status: int
    detail: str
    instance: str | None = None
    line: int | None = Field(default=None, description="Where a subscription's text is wrong, from 1 on.")
    column: int | None = None
    errors: list[ProblemPlace] | None = Field(
        default=None, description="Every value that cannot be accepted."
    )
