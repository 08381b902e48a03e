"""Answers events at a relay: joins from the messages that come over the link, everything else by matching.

A relay has no rows of tables but those that its subscriptions need. They come as events that carry records and rows
(`dissemination/live/carriers.py`), are in the log like all events, and so the state is a function of the log: it is written to a file
now and then, with the offset that it is of, and the log is read again from there after a kill. What members of relays below are sent
is stored as it came.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.dissemination.live.carriers import (
    MEMBER_ROWS,
    MESSAGES,
    carrier_notification,
    record_in,
    rows_event,
    rows_in,
)
from tidings.dissemination.live.edge import EdgeChange, EdgeJoins
from tidings.dissemination.live.records import stream_of
from tidings.dissemination.packet import ID_BYTES, WireError, pack, payload_id, unpack
from tidings.engine.engine import Engine
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.model.event import EVENT_SCHEMA, Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA, RowChange
from tidings.service.ingest.recent_events import event_of
from tidings.service.model import MEMBERS
from tidings.storage.event_log import EventLog, Offset, Position

_SAVE_SECONDS = 5.0
_REQUEST = "tidings.snapshot"
_OWN_TYPES = pa.array([MESSAGES, MEMBER_ROWS, _REQUEST])
_PIECE = 2_000  # events that are read again at once

logger = logging.getLogger(__name__)
Columns = dict[str, Any]


class EdgeStream:
    """`answer` takes events in their order. `on_missing` is called with the texts of joins whose rows have to come again;
    `last_number` gives a number that no sequence is above."""

    def __init__(
        self, data: Path, last_number: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file, self._last_number, self._clock = data / "joins.state", last_number, clock
        self._edge: EdgeJoins | None = None
        self._tables: list[Table] = []
        self._followed: tuple[int, int, int] | None = None
        self._numbers: dict[str, int] = {}
        self._asked: list[tuple[str, str, str]] = []  # source and id of a request, and the subscription
        self._lost: set[str] = set()  # texts whose rows were requested since a record could not be read
        self._at: Offset | None = None
        self._saved = float("-inf")
        self._is_changed = False
        self._is_ahead = False  # of `_at`: what was answered last is not in the mailbox yet
        self.on_missing: Callable[[Sequence[str]], None] = lambda texts: None

    # --- the state

    def catch_up(self, engine: Engine, log: EventLog, reached: Offset) -> None:
        """Reads the state, and the log from where it was written up to where everything was answered."""
        self._follow(engine)
        assert self._edge is not None
        start = reached
        try:
            written = self._file.read_bytes()
            if payload_id(written[ID_BYTES:]) != written[:ID_BYTES]:
                raise ValueError("it is damaged")
            segment, byte, asked, state = unpack(written[ID_BYTES:], 1 << 31)
            if not log.start() <= Offset(segment, byte) <= reached:
                raise ValueError("the log has other events")
            self._edge.restore(state)
            self._asked = [tuple(request) for request in asked]
            start = Offset(segment, byte)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, WireError) as error:
            logger.warning("%s cannot be used (%s); the rows of joins come anew", self._file, error)
        for batch, _ in log.pieces(Position(*start), reached, lambda: _PIECE):
            self.answer(engine, pa.Table.from_batches([batch], EVENT_SCHEMA))
        self._at, self._is_ahead = reached, False
        self._request_missing()

    def recorded(self, end: Offset) -> None:
        """Everything up to there is answered."""
        self._at, self._is_ahead = end, False
        if self._is_changed and self._clock() - self._saved > _SAVE_SECONDS:
            self._save()

    def stop(self) -> None:
        if self._is_changed and self._at is not None and not self._is_ahead:
            self._save()

    def _save(self) -> None:
        assert self._edge is not None
        assert self._at is not None
        aside = self._file.with_suffix(".writing")
        content = pack([*self._at, [list(request) for request in self._asked], self._edge.state()])
        aside.write_bytes(payload_id(content) + content)
        aside.replace(self._file)
        self._saved, self._is_changed = self._clock(), False

    def _follow(self, engine: Engine) -> None:
        """Takes in what has changed of the subscriptions."""
        subscriptions = engine.joins.subscriptions
        state = id(subscriptions), len(subscriptions), subscriptions.ended
        if state == self._followed:
            return
        if self._followed is None or self._followed[0] != state[0]:
            self._numbers = {}  # another index gives other numbers
        self._followed, self._is_changed = state, True
        tables, before = list(engine.joins.tables.values()), self._edge
        if before is None or tables != self._tables:
            self._edge, self._tables, self._numbers = EdgeJoins(tables), tables, {}
        assert self._edge is not None
        live = subscriptions.id_column.filter(pa.array(subscriptions.live)).to_pylist()
        numbers = {id_: subscriptions.find(id_) for id_ in live}
        for id_ in self._edge.ids - numbers.keys():
            self._edge.remove(id_)
        for id_, number in numbers.items():
            if self._numbers.get(id_) != number:
                query = parse(engine.text(id_), engine.prefixes)
                if self._edge.text(id_) != (text := to_text(query)):
                    self._edge.add(id_, text, query)
        self._numbers = numbers
        if before is not None and before is not self._edge and before.ids:  # their rows were of other tables
            self._request_missing()

    def _request_missing(self) -> None:
        """Requests the rows of joins that have none."""
        assert self._edge is not None
        if missing := self._edge.without_rows():
            last = self._last_number()
            self._edge.start_after(last and last + 1)  # the next after the last would be no gap
            self.on_missing(sorted(missing))

    # --- answers

    def answer(self, engine: Engine, events: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The notifications of events, and all events that they may be of."""
        self._is_ahead = True
        self._follow(engine)
        own = pc.is_in(events["type"], value_set=_OWN_TYPES)
        if not pc.any(own).as_py():
            return _matched(engine, events), events
        others = _matched(engine, events.filter(pc.invert(own)))
        rows, made = list[Columns](), list[Event]()
        for event in map(event_of, events.filter(own).to_pylist()):
            try:
                rows += self._join_answers(event, made)
            except WireError as error:  # of other tables, or of nobody that this relay trusts
                if event.type == MESSAGES:
                    self._lose(event.source)
                rows.append(
                    {"source": event.source, "event": event.id, "verdict": "error", "message": str(error)}
                )
        joins = pa.Table.from_pylist(rows, schema=NOTIFICATION_SCHEMA)
        given = events.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
        return pa.concat_tables([others, joins]), pa.concat_tables([given, to_table(made)])

    def _join_answers(self, event: Event, made: list[Event]) -> Iterable[Columns]:
        """The notifications of one event about joins; events that they are of are added to `made`."""
        edge = self._edge
        assert edge is not None
        self._is_changed = True
        if event.type == MESSAGES:
            record = record_in(event)
            if any(id.startswith(MEMBERS) and edge.population(id) == record.population for id in edge.ids):
                yield carrier_notification(stream_of(record.population), event)
            if not record.packets:
                texts = {edge.text(id) for id in edge.ids if edge.population(id) == record.population}
                self.on_missing(sorted(filter(None, texts)))
            yield from self._changes(edge.take_record(record), record.source, record.event)
        elif event.type == MEMBER_ROWS:
            found = rows_in(event)
            changes = edge.take_rows(found)
            self._lost.discard(found.text)
            yield from self._changes(changes, event.source, event.id)
            anew = [(event.source, event.id, id) for id in edge.begun_anew() if not id.startswith(MEMBERS)]
            asked, self._asked = self._asked + anew, []
            for source, id, subscription in asked:
                yield from self._snapshot(source, id, subscription, made)
        else:
            yield from self._snapshot(event.source, event.id, str(event.attributes.get("subscription")), made)

    def _lose(self, stream: str) -> None:
        """A record of a population cannot be read: the rows of its subscriptions are requested, once until they come."""
        edge = self._edge
        assert edge is not None
        texts = {edge.text(id) or "" for id in edge.ids if stream_of(edge.population(id)) == stream}
        if new := sorted(texts - self._lost):
            logger.warning("a record of %s cannot be read; its rows are requested", stream)
            self._lost.update(new)
            self.on_missing(new)

    def _changes(self, changes: Sequence[EdgeChange], source: str, event: str) -> Iterable[Columns]:
        assert self._edge is not None
        for change in changes:
            if not change.subscription.startswith(MEMBERS):
                rows = self._edge.result_changes(change.gained) + self._edge.result_changes(change.lost, "-")
                yield _notification(
                    change.subscription, source, event, "match", change.part, change.sequence, rows
                )

    def _snapshot(self, source: str, event: str, id: str, made: list[Event]) -> Iterable[Columns]:
        """All rows of a subscription, as soon as they are there."""
        edge = self._edge
        assert edge is not None
        if id not in edge:
            message = f"there is no subscription {id!r} over tables; look at its spelling"
            yield {"source": source, "event": event, "verdict": "error", "message": message}
            return
        found = edge.rows(id)
        if found is None:
            self._asked.append((source, event, id))
            return
        for part in found:
            if id.startswith(MEMBERS):
                carrier = rows_event(id, event, edge.member_rows(id, part))
                made.append(carrier)
                yield carrier_notification(id, carrier)
            else:
                rows = edge.result_changes(part.result)
                yield _notification(id, source, event, "snapshot", part.part, part.sequence, rows)


def _matched(engine: Engine, events: pa.Table) -> pa.Table:
    """The notifications of events that are no business of joins."""
    found = [engine.match(batch) for batch in events.combine_chunks().to_batches()]
    return pa.Table.from_batches(found, NOTIFICATION_SCHEMA)


def _notification(subscription: str, source: str, event: str, verdict: str, *in_part: Any) -> Columns:
    part, sequence, rows = in_part
    changes = [{"table": change.table, "change": change.change, "row": _text(change)} for change in rows]
    return {
        "subscription": subscription,
        "source": source,
        "event": event,
        "verdict": verdict,
        "part": part,
        "sequence": sequence,
        "changes": changes,
    }


def _text(change: RowChange) -> str:
    return json.dumps(change.row, ensure_ascii=False, separators=(",", ":"))
