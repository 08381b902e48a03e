"""Answers events in a stream without Spark, with messages for the joins that relays ask for.

A service that matches in its own process does by this what the stream of joins does in Spark: subscriptions of its own are
notified of their deltas, and the members behind links of messages for all of them.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from tidings.dissemination.live.carriers import carried
from tidings.dissemination.live.join_messages import JoinMessages
from tidings.dissemination.live.population_server import begins
from tidings.dissemination.live.records import notification_of
from tidings.engine.engine import Engine
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import MEMBERS
from tidings.storage.event_log import EventLog, Offset


class MemberMessages:
    """`answer` takes events in their order. The rows of tables are in the memory of this process."""

    def __init__(self) -> None:
        self._made: JoinMessages | None = None

    def catch_up(self, engine: Engine, log: EventLog, reached: Offset) -> None:
        """There is nothing on disk that this goes on from."""

    def recorded(self, end: Offset) -> None:
        pass

    def stop(self) -> None:
        pass

    def answer(self, engine: Engine, events: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The notifications of events, and all events that they may be of."""
        subscriptions = engine.joins.subscriptions
        if self._made is None and not (subscriptions.live & begins(subscriptions, 0, MEMBERS)).any():
            return engine.publish_many(events), events
        if self._made is None:
            self._made = JoinMessages(engine, members=MEMBERS)
        self._made.use(engine)
        records = [notification_of(record) for record in self._made.publish(events)]
        found = engine.publish_many(events)
        of_members = pc.and_(pc.is_valid(found["part"]), pc.starts_with(found["subscription"], MEMBERS))
        of_members = pc.fill_null(of_members, False)
        asked = found.filter(pc.and_(of_members, pc.equal(found["verdict"], "snapshot")))
        rows = [self._rows(engine, row) for row in asked.to_pylist()]
        made = pa.Table.from_pylist([*records, *rows], schema=NOTIFICATION_SCHEMA)
        kept = found.filter(pc.invert(of_members)).cast(NOTIFICATION_SCHEMA)
        return carried(pa.concat_tables([kept, made]), events, MEMBERS)

    def _rows(self, engine: Engine, request: dict[str, object]) -> dict[str, object]:
        """The answer to a member's request for a snapshot: the rows that it has from messages."""
        assert self._made is not None
        id = str(request["subscription"])
        found = self._made.snapshot(id)
        changes = [
            {"table": change.table, "change": "+", "row": json.dumps(change.row)} for change in found.changes
        ]
        return {**request, "sequence": found.sequence, "message": engine.text(id), "changes": changes}
