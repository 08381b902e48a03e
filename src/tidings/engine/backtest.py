"""A backtest: what a subscription would have matched of past events, and when.

The text is matched by the same steps as everywhere, in an engine of its own. What is left of a batch is a `Tally`: counts by
minute, and the newest matches; tallies of parts of the events are added up in any order. Neither the validity of a
subscription nor when it was made counts. A subscription over tables is refused: what an event gives it depends on all rows.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.engine import pipeline
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.model.batch import Batch, check_columns
from tidings.model.event import EVENT_SCHEMA, Event

MINUTE = 60
SAMPLE = 50  # of the newest matches
_SAMPLE_BYTES = 1 << 20  # of their content in all
_THIS, _SCOPE = "this", "scope"

Timed = tuple[pa.RecordBatch | pa.Table, np.ndarray]
"""Events, and when each of them arrived, in seconds since 1970."""


class Match(NamedTuple):
    """An event that matches, and when it arrived."""

    at: float
    event: Event


@dataclass(slots=True)
class Tally:
    """What was counted. `minutes` has the number of matches by minutes since 1970, `matches` the newest of them, newest
    first. `events` were looked at; with a scope, only those that are in it."""

    events: int = 0
    matched: int = 0
    undecided: int = 0
    unreadable: int = 0
    minutes: Counter[int] = field(default_factory=Counter)
    matches: list[Match] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.events + other.events,
            self.matched + other.matched,
            self.undecided + other.undecided,
            self.unreadable + other.unreadable,
            self.minutes + other.minutes,
            _newest([*other.matches, *self.matches]),  # of those that came at once, the later ones first
        )

    def to_json(self) -> str:
        """For `from_json` in another process."""
        matches = [[match.at, _row_to_json(match.event.row())] for match in self.matches]
        minutes = sorted(self.minutes.items())
        return json.dumps(
            [self.events, self.matched, self.undecided, self.unreadable, minutes, matches], allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> Tally:
        events, matched, undecided, unreadable, minutes, matches = json.loads(text)
        newest = [Match(at, _event(row)) for at, row in matches]
        return cls(events, matched, undecided, unreadable, Counter(dict(minutes)), newest)


def backtest_engine(definitions: Engine, text: str, scope: str = "") -> Engine:
    """An engine with the text as its one subscription; with a scope, only events that match this text too count."""
    engine = definitions.without_subscriptions()
    engine.subscribe(_THIS, text)
    if engine.index.subscriptions.find(_THIS) < 0:
        raise SubscriptionError(
            "a subscription over tables has no backtest: what an event gives it depends on the rows that were there before,"
            " which the log does not have; try it on the latest changes instead"
        )
    if scope:
        engine.subscribe(_SCOPE, scope)
    return engine


def backtest(engine: Engine, batches: Iterable[Timed]) -> Tally:
    """Counts what the text of an engine that `backtest_engine` made matches of events."""
    total = Tally()
    for events, arrivals in batches:
        total += tally(engine, events, arrivals)
    return total


def tally(engine: Engine, events: pa.RecordBatch | pa.Table, arrivals: np.ndarray) -> Tally:
    """What was counted of one batch."""
    table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
    check_columns(table)
    index, total = engine.index_snapshot(), Tally()
    for first in range(0, table.num_rows, index.events_at_once):
        part = table.slice(first, index.events_at_once)
        total += _tally(engine, Batch(part), arrivals[first : first + index.events_at_once])
    return total


def _tally(engine: Engine, batch: Batch, arrivals: np.ndarray) -> Tally:
    subscriptions = engine.index.subscriptions
    this, scope = subscriptions.find(_THIS), subscriptions.find(_SCOPE)
    pairs = pipeline.matched(batch, engine.index_snapshot())
    is_visible = np.ones(len(batch), dtype=np.bool_)
    if scope >= 0:
        is_visible[:] = False
        is_visible[pairs.event[(pairs.subscription == scope) & (pairs.doubt < 0)]] = True
    mine = (pairs.subscription == this) & is_visible[pairs.event]
    found = np.unique(pairs.event[mine & (pairs.doubt < 0)])
    minutes, counts = np.unique(arrivals[found] // MINUTE, return_counts=True)
    return Tally(
        events=int(is_visible.sum()),
        matched=len(found),
        undecided=len(np.unique(pairs.event[mine & (pairs.doubt >= 0)])),
        unreadable=sum(bool(is_visible[row]) for row in batch.errors),
        minutes=Counter(dict(zip(minutes.astype(np.int64).tolist(), counts.tolist(), strict=True))),
        matches=_sample(batch.events, found, arrivals),
    )


def _sample(events: pa.Table, rows: np.ndarray, arrivals: np.ndarray) -> list[Match]:
    """The newest of these rows; only they become Python's objects."""
    newest = rows[np.argsort(arrivals[rows], kind="stable")][-SAMPLE:][::-1]
    if not len(newest):
        return []
    from tidings.model.envelope import conform

    taken = conform(events.take(pa.array(newest))).to_pylist()
    return _newest(
        [Match(float(arrivals[row]), _event(found)) for row, found in zip(newest, taken, strict=True)]
    )


def _newest(matches: list[Match]) -> list[Match]:
    """The first of them by time, as far as they are not too large together."""
    kept, size = list[Match](), 0
    for match in sorted(matches, key=lambda match: -match.at)[:SAMPLE]:
        size += len(match.event.data) + len(match.event.row()["attributes"] or "")
        if size > _SAMPLE_BYTES:
            break
        kept.append(match)
    return kept


def _row_to_json(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "data": base64.b64encode(row["data"]).decode()}


def _event(row: Mapping[str, Any]) -> Event:
    """The event of a row; attributes that are no JSON object are left out."""
    data = row["data"] or b""
    try:
        attributes = json.loads(row["attributes"] or "{}")
    except (ValueError, RecursionError):
        attributes = {}
    texts = {
        name: row[name] or "" for name in EVENT_SCHEMA.names if name not in ("data", "attributes", "time")
    }
    return Event(
        attributes=attributes if isinstance(attributes, dict) else {},
        time=row["time"],
        data=base64.b64decode(data) if isinstance(data, str) else data,
        **texts,
    )
