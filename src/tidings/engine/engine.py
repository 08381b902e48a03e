"""All stages in one process: subscribe, publish, explain, save, load.

Subscriptions are in a base and a tail, each with an index of its own. A change goes to the tail, whose index is
rebuilt when the next event comes; when the tail has grown large it is folded into the base.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidings.arrays import folders
from tidings.engine.checks import Programs
from tidings.engine.explain import explain
from tidings.engine.layer import ALWAYS, Layer, Template
from tidings.engine.parameter_columns import parameter_columns, table_ids
from tidings.engine.pipeline import Means, event_times, publish
from tidings.engine.plan import Planner, make_plan
from tidings.engine.single import publish_one
from tidings.errors import EventError, IndexFileError, SubscriptionError, TidingsError
from tidings.formats.json_lines import read_lines
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.kind import Joins
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.checking import Checker
from tidings.kinds.operators.functions.caller import Caller
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.threads import OperatorLock
from tidings.kinds.operators.integrity import refuse_damage
from tidings.kinds.operators.learning import Learning, LearningRecorder, learn
from tidings.kinds.operators.scheduling.schedulers import Adaptive, Scheduler
from tidings.kinds.operators.statistics import Statistics, statistics
from tidings.kinds.operators.table import OperatorTable
from tidings.language.parameters import substitute
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.model.event import Event, to_table
from tidings.model.explanation import Explanation
from tidings.model.notification import Notification
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import from_ntriples
from tidings.model.values import instant

FOLD_AT_LEAST = 1_000
FOLD_SHARE = 0.25


class BroadSubscription(UserWarning):
    """A subscription that nearly every event would match."""


class EmptySubscription(UserWarning):
    """A subscription that no row can ever match."""


class Engine:
    """Standing questions, matched against every published event at once."""

    def __init__(
        self,
        *,
        taxonomy: Taxonomy | None = None,
        prefixes: Mapping[str, str] | None = None,
        networks: Mapping[str, Network] | None = None,
        operators: Iterable[Operator] = (),
        scheduler: Scheduler | None = None,
        tables: Iterable[Table] = (),
    ) -> None:
        """`operators` are what subscriptions can call, beside those of installed packages; `scheduler` says in which
        order they are evaluated (Adaptive, unless another is to be compared with it). `tables` are what they can join;
        events insert, update and delete their rows."""
        self.taxonomy = Taxonomy() if taxonomy is None else taxonomy  # one of properties alone is falsy
        self.prefixes = dict(prefixes or {})
        self.networks = dict(networks or {})
        self.operators = Catalogue(operators)
        self._planner = Planner(self.prefixes, self.operators)
        self._lock = OperatorLock()  # one caller at a time: a layer must not change while it is matched
        self._checker = Checker(OperatorTable(self.operators.find), scheduler or Adaptive(), Caller())
        self._programs = Programs(self._checker, self.prefixes)
        self._base = Layer(self._checker.table)
        self._tail = Layer(self._checker.table)
        self._diary, self._untold = LearningRecorder(self._checker.table.predicates), Learning()
        self._above = self.taxonomy.super_properties()
        self.joins = Joins(tables)

    def __len__(self) -> int:
        return sum(sum(layer.live) for layer in (self._base, self._tail)) + len(self.joins)

    def __contains__(self, id: str) -> bool:
        return self._base.find(id) >= 0 or self._tail.find(id) >= 0 or id in self.joins

    def subscribe(self, id: str, text: str, *, valid_until: datetime | str | None = None) -> None:
        """Adds a standing question; one with the same id is replaced."""
        check_id(id)
        if not isinstance(text, str):
            raise SubscriptionError(f"the text of a subscription is {text!r}; give what it asks, as a text")
        query, constants = self._planner.shape(text)
        until = end_of_validity(valid_until)
        if self.joins.concerns(query):
            with self._lock:
                can_match = self.joins.subscribe(id, text, query, constants, until)
                _end(self._places([id]))
            if not can_match:
                warnings.warn(
                    f"subscription {id!r} will never match: one of its ranges is empty",
                    EmptySubscription,
                    stacklevel=2,
                )
            return
        plan, values = self._planner.read(query, constants)
        self._check_place(plan.query)
        if plan.is_broad:
            warnings.warn(
                f"subscription {id!r} would match nearly every event", BroadSubscription, stacklevel=2
            )
        with self._lock:
            replaced = self._places([id])
            self._tail.add(id, text, plan, values, until)  # refused here, it replaces nothing
            _end(replaced)
            self.joins.unsubscribe(id)

    def subscribe_many(self, subscriptions: Iterable[tuple[str, str]]) -> list[tuple[str, TidingsError]]:
        """Adds many; returns the rejected ones with their errors."""
        rejected: list[tuple[str, TidingsError]] = []
        for id, text in subscriptions:
            try:
                self.subscribe(id, text)
            except TidingsError as error:
                rejected.append((id, error))
        return rejected

    def subscribe_table(self, template: str, table: pa.Table) -> None:
        """One text with `$parameters`, and a table of `id` and a column for each: a subscription a row."""
        query = parse(template, self.prefixes)
        if self.joins.concerns(query):
            ids = table_ids(table, query)
            with self._lock:
                self.joins.subscribe_table(template, query, ids, table)
                _end(self._places(ids))
            return
        self._check_place(query)
        ids, columns = parameter_columns(table, query, self.prefixes)
        literals = {parameter for parameter, column in columns.items() if column.literal}
        plan = make_plan(query, self.operators, literals)
        texts = {parameter.name: (column.codes, column.texts) for parameter, column in columns.items()}
        with self._lock:
            replaced = self._places(ids) if len(self) else []
            self._tail.add_table(Template(query, ids, texts), plan)
            _end(replaced)
            if len(self.joins):
                for id in ids:
                    self.joins.unsubscribe(id)

    def unsubscribe(self, id: str) -> bool:
        """Removes a standing question; False when there is none with this id."""
        with self._lock:
            return self._tail.remove(id) or self._base.remove(id) or self.joins.unsubscribe(id)

    def text(self, id: str) -> str:
        """The text of a subscription."""
        for layer in (self._tail, self._base):
            if (number := layer.find(id)) >= 0:
                return layer.text(number)
        if id in self.joins:
            text, row = self.joins.source(id)
            return text if row is None else self._filled(text, row)
        raise SubscriptionError(
            f"there is no subscription {id!r}; add it with subscribe, or look at its spelling"
        )

    def snapshot(self, id: str) -> Notification:
        """All rows that a subscription over tables has now: what a `Replica` begins with."""
        with self._lock:
            self.text(id)  # says so if there is none
            if id not in self.joins:
                raise SubscriptionError(
                    f"subscription {id!r} is over no tables; a snapshot is of one that joins tables"
                )
            asked = to_table([Event.snapshot(id)])
            return next(Notification.from_table(self.joins.apply(asked).notifications(asked)))

    def publish(
        self, event: Event, *, all_bindings: bool = False, joined: bool = False
    ) -> list[Notification]:
        """The notifications of one event, each with its first bindings or one for every binding.

        A subscription over tables is told of the rows of each table that it gained and lost, or of `joined` rows.
        """
        if not isinstance(event, Event):
            raise EventError(f"an event is an Event, not {type(event).__name__}; try Event(attributes=...)")
        with self._lock:
            layers = self._layers()
            if not self.joins.tables and not any(
                layer.has_patterns or layer.has_programs for layer in layers
            ):
                return publish_one(event, layers, self.networks)
        return list(
            Notification.from_table(self.publish_many([event], all_bindings=all_bindings, joined=joined))
        )

    def publish_many(
        self,
        events: pa.Table | pa.RecordBatch | Sequence[Event],
        *,
        all_bindings: bool = False,
        joined: bool = False,
    ) -> pa.Table:
        """The notifications of many events, as a table."""
        table = _table(events)
        with self._lock:
            found = self._matched(table, all_bindings)
            if not self.joins.tables:
                return found
            deltas = self.joins.apply(table, event_times(table, 0, len(table)), joined=joined)
            _tell_once(deltas.errors, table, found)
            return pa.concat_tables([found, deltas.notifications(table)])

    def correlate(
        self, events: pa.Table | pa.RecordBatch | Sequence[Event], *, joined: bool = False
    ) -> Deltas:
        """What subscriptions over tables gain and lose by events, in columns: for volumes in which a notification for
        each is too much."""
        table = _table(events)
        with self._lock:
            return self.joins.apply(table, event_times(table, 0, len(table)), joined=joined)

    def publish_lines(self, data: bytes | str) -> pa.Table:
        """The notifications of JSON lines, each an event whose members are its attributes, as a table."""
        return self.publish_many(read_lines(data.encode() if isinstance(data, str) else data))

    def match(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The notifications of a batch of events, as a batch, for whoever sees a part of them only: rows of tables stay
        as they are, and joins are not told."""
        with self._lock:
            table = self._matched(pa.Table.from_batches([events]), False).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

    def explain(self, id: str, event: Event) -> Explanation:
        """Why an event matches a subscription, or the first clause that does not hold.

        Operators are asked as they are for this subscription alone; it counts for nothing that is learnt.
        """
        return self.why(self.text(id), event, id)

    def why(self, text: str, event: Event, id: str = "") -> Explanation:
        """The same for a text that nobody has subscribed to."""
        query = parse(text, self.prefixes)
        return explain(id, query, event, self.taxonomy, self.networks, self._checker, self.joins)

    @property
    def heard(self) -> int:
        """How many events operators were asked about, here and by those that this engine has learnt from."""
        return int(self._checker.table.predicates.events)

    def learnt(self) -> Learning:
        """What operators have shown since this was last asked: for other engines to `learn`."""
        with self._lock:
            found, self._untold = self._untold.then(self._diary.take()), Learning()
            return found

    def learn(self, learning: Learning) -> None:
        """Takes in what operators have shown to others."""
        with self._lock:
            self._untold = self.learnt()
            learn(self._checker.table.predicates, learning)
            self._diary = LearningRecorder(self._checker.table.predicates)

    def stats(self) -> Statistics:
        """What operators were asked and spared since the engine was made, and what was learnt of them."""
        with self._lock:
            return statistics(self._checker.table)

    def save(self, folder: str | Path) -> None:
        """Writes subscriptions, index, taxonomy and prefixes to a folder."""
        folder = Path(folder)
        with self._lock:
            self._fold()
            self._base.save(folder, self.taxonomy)
            folders.save(folder / "operators", self._checker.table.freeze(), {})
            self.joins.save(folder / "joins")
        (folder / "taxonomy.nt").write_bytes(self.taxonomy.to_ntriples())
        (folder / "prefixes.json").write_text(json.dumps(self.prefixes, indent=1))
        # By number: a network's name need not be one of a folder.
        (folder / "networks.json").write_text(json.dumps(list(self.networks), indent=1))
        for number, network in enumerate(self.networks.values()):
            network.save(folder / "networks" / str(number))

    @classmethod
    def load(cls, folder: str | Path, *, operators: Iterable[Operator] = ()) -> Engine:
        """The engine that was saved there; its arrays are mapped into memory, not read.

        Operators are functions and not saved: give those that its subscriptions call.
        """
        folder = Path(folder)
        try:
            engine = cls(
                operators=operators,
                taxonomy=Taxonomy.from_ntriples((folder / "taxonomy.nt").read_bytes()),
                prefixes=json.loads((folder / "prefixes.json").read_text()),
                networks={
                    name: Network.load(folder / "networks" / str(number))
                    for number, name in enumerate(json.loads((folder / "networks.json").read_text()))
                },
            )
            arrays, _ = folders.load(folder / "operators")
            refuse_damage(folder / "operators", arrays)
            engine._use(OperatorTable.thaw(arrays, engine.operators.find))
            engine._base = Layer.load(folder, engine._checker.table)
            engine.joins = Joins.load(folder / "joins")
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise IndexFileError(f"{folder} holds no whole index ({error!r}); build it anew") from None
        return engine

    def _filled(self, template: str, row: pa.Table) -> str:
        """The text of one row of a template."""
        query = parse(template, self.prefixes)
        _, columns = parameter_columns(row, query, self.prefixes)
        values = {p.name: from_ntriples(column.texts[0]) for p, column in columns.items()}
        return to_text(substitute(query, values))  # type: ignore[arg-type]  # no table has blank nodes

    def _matched(self, events: pa.Table, all_bindings: bool) -> pa.Table:
        """The notifications of all subscriptions but those over tables."""
        layers = self._layers()  # first: folding them makes other programs
        means = Means(self.taxonomy, self._above, self.prefixes, self.networks, self._programs)
        return publish(events, layers, means, all_bindings)

    def _places(self, ids: Sequence[str]) -> list[tuple[Layer, int]]:
        """Where the subscriptions with these ids are."""
        layers = (self._tail, self._base)
        return [(layer, number) for id in ids for layer in layers if (number := layer.find(id)) >= 0]

    def _check_place(self, query: Query) -> None:
        """Refuses a place in a network that is not there."""
        via = query.via
        if via is None:
            return
        if via.network not in self.networks:
            known = ", ".join(sorted(self.networks)) or "none"
            raise SubscriptionError(
                f"there is no network {via.network!r}; the engine's networks are: {known}. Give it to the engine first"
            )
        if via.node not in self.networks[via.network]:
            raise SubscriptionError(
                f"the network {via.network!r} has no node {via.node!r}; add the node, or look at its spelling"
            )

    def _layers(self) -> list[Layer]:
        if len(self._tail) > max(FOLD_AT_LEAST, FOLD_SHARE * len(self._base)):
            self._fold()
        return [layer for layer in (self._base, self._tail) if len(layer)]

    def _fold(self) -> None:
        """Makes base and tail one base, without what was removed."""
        if not len(self._base) and all(self._tail.live):
            self._base, self._tail = self._tail, Layer(self._checker.table)
        elif len(self._tail) or not all(self._base.live):
            folded = Layer(self._checker.table)
            folded.extend(self._base)
            folded.extend(self._tail)
            self._base = folded
            self._use(folded.keep_programs())

    def _use(self, table: OperatorTable) -> None:
        """Goes on with another table of programs, which the base has its rows in; the tail begins anew."""
        self._untold = self._untold.then(self._diary.take())
        self._diary = LearningRecorder(table.predicates)
        self._checker.table = table
        self._programs = Programs(self._checker, self.prefixes)
        self._tail = Layer(table)


def _table(events: pa.Table | pa.RecordBatch | Sequence[Event]) -> pa.Table:
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    return events if isinstance(events, pa.Table) else to_table(events)


def _tell_once(errors: dict[int, str], events: pa.Table, told: pa.Table) -> None:
    """Takes out what was told already of an event that cannot be read."""
    if errors:
        unreadable = set(told.filter(pc.equal(told["verdict"], "error"))["event"].to_pylist())
        ids = events["id"].to_pylist() if unreadable and "id" in events.column_names else ()
        for row, id in enumerate(ids):
            if id in unreadable:
                errors.pop(row, None)


def _end(places: Iterable[tuple[Layer, int]]) -> None:
    for layer, number in places:
        layer.live[number] = 0


def check_id(id: str) -> None:
    """Refuses what cannot be written to a file or a table."""
    try:
        if isinstance(id, str) and id.encode():
            return
    except UnicodeEncodeError:
        pass
    raise SubscriptionError(f"the id of a subscription is {id!r}; give a text that is not empty")


def end_of_validity(valid_until: datetime | str | None) -> float:
    """Seconds since 1970 of the end of a validity; without a zone it is in UTC, like every instant."""
    if valid_until is None:
        return ALWAYS
    text = valid_until.isoformat() if isinstance(valid_until, datetime) else valid_until
    micros = instant(text) if isinstance(text, str) else None
    if micros is None:
        raise SubscriptionError(
            f"valid_until is {valid_until!r}; give a datetime, or a text like 2030-01-31T10:00:00Z"
        )
    return micros / 1e6
