"""Messages of a scheme for the join subscriptions of an engine: one process does what the stream of joins does in Spark.

    made = JoinMessages(engine)
    for record in made.publish(events): ...

It keeps rows of its own: those of the engine are not changed. All subscriptions whose rows are partitioned alike are a
population, which has one part here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidings.dissemination.live.membership import membership
from tidings.dissemination.live.population_server import BucketServer, PopulationServer, RowStep, begins
from tidings.dissemination.live.records import MessageRecord, packets_of, row_changes
from tidings.dissemination.schemes import DEFAULT, SCHEMES
from tidings.dissemination.schemes.scheme import Scheme
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError, did_you_mean
from tidings.kinds.joins.changes.changes import read_changes
from tidings.kinds.joins.changes.ledger import Ledger
from tidings.kinds.joins.changes.row_images import names_of
from tidings.kinds.joins.deltas import ONE_PART
from tidings.kinds.joins.kind import read_texts
from tidings.kinds.joins.schema.table import Row, Table
from tidings.model.event import Event, to_table
from tidings.model.notification import Notification


def live_scheme(name: str) -> type[Scheme]:
    """The scheme of a name, if it is one whose messages are rows of tables with a description of their subscribers."""
    known = [scheme for scheme in SCHEMES if scheme.startswith("Ref-SJ")]
    if name not in known:
        advice = did_you_mean(name, known, f"give one of {', '.join(known)}")
        raise TidingsError(f"the stream makes no messages of a scheme {name!r}; {advice}")
    return SCHEMES[name]


class JoinMessages:
    """`publish` applies events; it begins with the rows that the engine has then. Messages are for the subscriptions whose
    ids begin with `members`."""

    def __init__(self, engine: Engine, scheme: str = DEFAULT.name, members: str = "") -> None:
        self._engine, self._scheme, self._members = engine, live_scheme(scheme), members
        self._tables: list[Table] = list(engine.joins.subscriptions.tables)
        self._ledger: Ledger[str] = Ledger(self._tables, str.__eq__)
        self._populations: dict[str, tuple[PopulationServer, BucketServer]] = {}
        self._sequences: dict[str, int] = {}
        self._state: tuple[int, int] | None = None

    def use(self, engine: Engine) -> None:
        """Goes on with the subscriptions of another engine over the same tables."""
        if engine is not self._engine:
            self._follow()  # its rows are those to begin with
            self._engine, self._populations, self._state = engine, {}, (-1, -1)

    def publish(self, events: Sequence[Event] | pa.Table) -> list[MessageRecord]:
        """Applies events; the messages of each for each population. What cannot be applied is left out, as an engine's
        notifications say."""
        self._follow()
        table = events if isinstance(events, pa.Table) else to_table(list(events))
        changes = read_changes(table, self._tables)
        names = [
            names_of(table, images.columns, images.texts).to_pylist()
            for table, images in zip(self._tables, changes.images, strict=True)
        ]
        texts = [images.texts.to_pylist() for images in changes.images]
        steps = [
            RowStep(event, self._tables[place].name, self._row(place, text), sign)
            for event, place, text, sign in self._ledger.steps(changes, names, texts, {})
        ]
        names_of_events = list(zip(table["id"].to_pylist(), table["source"].to_pylist(), strict=True))
        return [
            record for name in self._populations for record in self._records(name, steps, names_of_events)
        ]

    def _records(
        self, name: str, steps: Sequence[RowStep], events: Sequence[tuple[str, str]]
    ) -> Iterator[MessageRecord]:
        population, bucket = self._populations[name]
        mine = [step for step in steps if step.table in population.reads]
        for event, messages in bucket.apply(mine):
            self._sequences[name] = sequence = self._sequences.get(name, 0) + 1
            packets = packets_of(messages, self._scheme.name, population.tables)
            yield MessageRecord(name, ONE_PART, sequence, *events[event], packets)

    def snapshot(self, id: str) -> Notification:
        """All rows that a subscription has from messages so far: what a `MessageReplica` begins with."""
        self._follow()
        if id not in self._engine.joins:
            raise SubscriptionError(f"there is no subscription {id!r} over tables; look at its spelling")
        subscriptions = self._engine.joins.subscriptions
        number = subscriptions.find(id)
        shape = subscriptions.shapes[subscriptions.shape_of.all[number]]
        name = membership(shape, self._engine.joins.tables).population
        population, bucket = self._populations[name]
        changes = row_changes(bucket.snapshot(subscriptions, number), population.tables)
        sequence = self._sequences.get(name, 0)
        return Notification(id, "", "", "snapshot", {}, part=ONE_PART, sequence=sequence, changes=changes)

    def _follow(self) -> None:
        """Takes in what has changed of the engine's subscriptions."""
        subscriptions = self._engine.joins.subscriptions
        before = self._state
        if before is None:
            rows = self._engine.joins.correlator.rows
            for place, table in enumerate(self._tables):
                texts = rows.contents.texts(np.array(rows.of(place), dtype=np.int64)).cast(pa.string())
                names = names_of(table, read_texts(table, texts), texts)
                for name, text in zip(names.to_pylist(), texts.to_pylist(), strict=True):
                    self._ledger.known[place].setdefault(name, []).append(text)
        self._state = state = len(subscriptions), subscriptions.ended
        if state == before:
            return
        chosen = subscriptions.live & begins(subscriptions, 0, self._members)
        shapes = np.unique(subscriptions.shape_of.all[chosen]).tolist()
        tables = self._engine.joins.tables
        for name in sorted({membership(subscriptions.shapes[n], tables).population for n in shapes}):
            if name not in self._populations:
                population = PopulationServer(name, self._tables, self._scheme)
            else:
                population = self._populations[name][0]
            population.follow(subscriptions, self._members)
            rows_of = {
                table.name: [self._row(place, text) for text in self._ledger.rows(place)]
                for place, table in enumerate(self._tables)
                if table.name in population.reads
            }
            self._populations[name] = population, population.bucket(rows_of)

    def _row(self, place: int, text: str) -> Row:
        return self._tables[place].read(json.loads(text))
