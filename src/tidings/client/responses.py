"""The service's answers as dataclasses. Unknown members, which a newer service may add, are ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.model.notification import RowChange


class ServiceError(TidingsError):
    """The service refused a call, or did not answer. The text is the service's own sentence. `status` is the HTTP
    status, None without an answer. `line` and `column` are of a subscription's text; `retry_after` is in seconds."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})
        self.retry_after = retry_after
        self.line: int | None = self.problem.get("line")
        self.column: int | None = self.problem.get("column")


class _Answer:
    """A dataclass made from a JSON object."""

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        values = {}
        for member in fields(cls):  # type: ignore[arg-type]
            if member.name in answer:
                convert = member.metadata.get("convert")
                value = answer[member.name]
                values[member.name] = value if convert is None else convert(value)
        return cls(**values)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _row_changes(changes: list[Mapping[str, Any]] | None) -> list[RowChange] | None:
    if not changes:
        return None if changes is None else []
    from tidings.model.notification import RowChange  # here: it needs Arrow, and most notifications do not

    return [RowChange(change["table"], change["change"], change["row"]) for change in changes]


def _backtest(answer: Mapping[str, Any] | None) -> Backtest | None:
    return None if answer is None else Backtest.read(answer)


_TIME = {"convert": _moment}


@dataclass(frozen=True, slots=True)
class Subscription(_Answer):
    """A subscription. `ticket` is set only in the answer to `subscribe`, `webhook_secret` where a webhook was set; keep
    them. `revision` counts its changes. `reason` says why one with the state "unanswerable" cannot be matched. `user` is set of
    those of a delegate's users."""

    id: str
    text: str
    title: str
    state: str
    public: bool
    created: datetime = field(metadata=_TIME)
    valid_until: datetime | None = field(metadata=_TIME)
    feeds: Mapping[str, str] = field(default_factory=dict)
    webhook: Mapping[str, Any] | None = None
    ticket: str | None = field(default=None, repr=False)
    webhook_secret: str | None = field(default=None, repr=False)
    warnings: list[str] = field(default_factory=list)
    revision: int = 0
    reason: str | None = None
    tags: list[str] = field(default_factory=list)
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Channel(_Answer):
    """Where the messages of several subscriptions go, and how often. `secret` is set only in the answer to `add_channel` of a
    webhook; keep it. `waiting` notifications are not sent yet, `next_message` is when they are due."""

    id: str
    kind: str
    address: str
    title: str
    state: str
    created: datetime = field(metadata=_TIME)
    schedule: Mapping[str, Any] = field(default_factory=dict)
    zone: str = "UTC"
    subscriptions: list[str] = field(default_factory=list)
    failures: int = 0
    error: str | None = None
    ended_because: str | None = None
    waiting: int = 0
    next_message: datetime | None = field(default=None, metadata=_TIME)
    last_message: datetime | None = field(default=None, metadata=_TIME)
    secret: str | None = field(default=None, repr=False)
    user: str | None = None


@dataclass(frozen=True, slots=True)
class BulkItem(_Answer):
    """What became of one of many subscriptions: its id, ticket and state, or the `error` with its line and column. `reason` says
    why one with the state "unanswerable" cannot be matched."""

    place: str
    id: str | None = None
    ticket: str | None = field(default=None, repr=False)
    webhook_secret: str | None = field(default=None, repr=False)
    warnings: list[str] = field(default_factory=list)
    error: str | None = None
    line: int | None = None
    column: int | None = None
    state: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Notification(_Answer):
    """A notification of a subscription. `kind` is "match", "undecided", "snapshot", or a notice: "expires-soon",
    "expired", "missed", "unanswerable", "answerable". `number` is what `after` takes. A `Replica` applies it as it is."""

    id: str
    number: int
    subscription: str
    kind: str
    time: datetime | None = field(default=None, metadata=_TIME)
    url: str = ""
    event: Mapping[str, Any] | None = None
    bindings: Mapping[str, Any] = field(default_factory=dict)
    changes: list[RowChange] = field(default_factory=list, metadata={"convert": _row_changes})
    part: str | None = None
    sequence: int | None = None
    message: str | None = None

    @property
    def verdict(self) -> str:
        """The same as `kind`, by the name that it has in `tidings.Notification`."""
        return self.kind

    @property
    def cost(self) -> float | None:
        """The cost of the cheapest valid path, of a subscription at a node of a network that has costs."""
        return next((float(value) for name, value in self.bindings.items() if name.endswith(".cost")), None)


@dataclass(frozen=True, slots=True)
class Receipt(_Answer):
    """The result of publishing: the events are durable. `rejected` has place and message of those that could not be
    read."""

    accepted: int = 0
    duplicates: int = 0
    ids: list[str] = field(default_factory=list)
    rejected: list[Mapping[str, str]] = field(default_factory=list)

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(
            self.accepted + other.accepted,
            self.duplicates + other.duplicates,
            self.ids + other.ids,
            self.rejected + other.rejected,
        )


@dataclass(frozen=True, slots=True)
class Match(_Answer):
    """A subscription that an event would match; `kind` is "match" or "undecided"."""

    subscription: str
    kind: str = "match"
    bindings: Mapping[str, Any] = field(default_factory=dict)
    message: str | None = None


def _matches(items: list[Mapping[str, Any]]) -> list[Match]:
    return [Match.read(item) for item in items]


@dataclass(frozen=True, slots=True)
class Matches(_Answer):
    """What an event would match, with a version of the index. `matched` counts all, `items` has the first 100."""

    version: str
    matched: int
    items: list[Match] = field(metadata={"convert": _matches})


@dataclass(frozen=True, slots=True)
class Source(_Answer):
    """A followed feed, with its fetch state. `interval` is in seconds; None: that of the service."""

    url: str
    title: str
    added: datetime = field(metadata=_TIME)
    fetched: datetime | None = field(default=None, metadata=_TIME)
    error: str | None = None
    due: datetime | None = field(default=None, metadata=_TIME)
    failures: int = 0
    gone: bool = False
    interval: float | None = None


@dataclass(frozen=True, slots=True)
class TextWarning(_Answer):
    """What is probably not meant: about the characters of the text from `start` to before `end`."""

    message: str
    start: int
    end: int


def _warnings(found: list[Mapping[str, Any] | str]) -> list[TextWarning]:
    """A service of version 0.1.0 sends sentences without a place."""
    return [TextWarning(one, 0, 0) if isinstance(one, str) else TextWarning.read(one) for one in found]


@dataclass(frozen=True, slots=True)
class Covering(_Answer):
    """A subscription that contains a text; `same` if the text contains it, too."""

    id: str
    title: str
    same: bool


def _covering(found: list[Mapping[str, Any]] | None) -> list[Covering] | None:
    return None if found is None else [Covering.read(one) for one in found]


@dataclass(frozen=True, slots=True)
class Checked(_Answer):
    """Whether a text can be subscribed to; if not, why and where. `covered_by` are one's own subscriptions that already
    match whatever matches it, None if that is not known; there may be others if `covered_by_more`."""

    ok: bool
    kinds: list[str] = field(default_factory=list)
    message: str = ""
    line: int | None = None
    column: int | None = None
    warnings: list[TextWarning] = field(default_factory=list, metadata={"convert": _warnings})
    covered_by: list[Covering] | None = field(default=None, metadata={"convert": _covering})
    covered_by_more: bool = False

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True)
class Trial(_Answer):
    """A text tried on the last events. Matches and near misses have an event and an explanation each; `rows` is what a
    subscription over tables would have now."""

    looked: int
    matched: int
    matches: list[Mapping[str, Any]] = field(default_factory=list)
    near: list[Mapping[str, Any]] = field(default_factory=list)
    late: bool = False
    rows: list[RowChange] | None = field(default=None, metadata={"convert": _row_changes})
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Backtest(_Answer):
    """What a text would have matched. `days` has the matches of each day, `matches` the newest of them, `digest` the messages
    of a schedule; `warning` is set if it would flood its owner. Times are RFC 3339."""

    since: str
    until: str
    events: int
    matched: int
    undecided: int
    unreadable: int
    per_day: float
    days: list[Mapping[str, Any]]
    busiest: Mapping[str, Any] | None
    matches: list[Mapping[str, Any]]
    digest: Mapping[str, Any]
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class BacktestState(_Answer):
    """A backtest that was asked for: how far it is, and its report when it is done."""

    id: str
    status: str
    progress: float
    message: str
    report: Backtest | None = field(default=None, metadata={"convert": _backtest})

    def result(self) -> Backtest | None:
        """The report, None while it is under way; ServiceError if there will be none."""
        if self.status in ("failed", "cancelled"):
            raise ServiceError(f"the backtest was {self.status}: {self.message or 'ask anew'}")
        return self.report


@dataclass(frozen=True, slots=True)
class Explanation(_Answer):
    """Why an event matched. `text` is for reading; `versions` are those of the index and the definitions that say so."""

    verdict: str
    text: str = ""
    clauses: list[Mapping[str, Any]] = field(default_factory=list)
    bindings: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    versions: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Definition(_Answer):
    """A version of what subscriptions refer to. `kind` is "taxonomy", "prefixes" or "network"; `origin` is "start", "request"
    or "change"; `index_version` is that of the index as it is now."""

    kind: str
    name: str
    version: int
    origin: str = ""
    time: datetime | None = field(default=None, metadata=_TIME)
    author: str = ""
    index_version: str | None = None


@dataclass(frozen=True, slots=True)
class Status(_Answer):
    """The status of the service."""

    version: str
    ready: bool
    reason: str | None = None
    driver: Mapping[str, Any] = field(default_factory=dict)
    subscriptions: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    notifications: int = 0
    events_per_second: float = 0.0
    notifications_per_second: float = 0.0
    waiting_events: int = 0
    lag_seconds: float = 0.0
    latency_seconds: float | None = None
    last_number: int = 0
    index_version: str | None = None


def error_of(status: int, body: bytes, retry_after: str | None) -> ServiceError:
    """The error in an answer; if the answer is not of the service, the beginning of its text."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    wait = float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 10 else None
    if isinstance(problem, dict) and isinstance(problem.get("detail"), str):
        return ServiceError(problem["detail"], status, problem=problem, retry_after=wait)
    said = " ".join(body[:200].decode(errors="replace").split())
    return ServiceError(f"the answer was {status}: {said or 'without a word'}", status, retry_after=wait)
