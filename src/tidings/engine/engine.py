"""All steps in one process: subscribe, publish, explain, save, load."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from tidings.engine.contracts import Kind, Stateful
from tidings.engine.explain import Explainer
from tidings.engine.index import SubscriptionIndex, kind_folder, save_kind
from tidings.engine.kind_registry import BUILT_IN, all_kinds, arranged
from tidings.engine.pipeline import candidates, match, match_one, of_all_events
from tidings.engine.plan import Plan, Planner, check_condition, make_plan
from tidings.engine.residual import Residuals
from tidings.engine.snapshot import Snapshot
from tidings.engine.subscriptions import ALWAYS
from tidings.engine.templates import Template
from tidings.errors import EventError, IndexFileError, SubscriptionError, TidingsError, check_columns
from tidings.formats.json_lines import read_lines
from tidings.kinds.filters.kind import Filters
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.kind import JoinKind, Joins
from tidings.kinds.joins.payload_once import Payload, deltas_once, wants_once
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.kind import Networks, load_networks, save_networks
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.threads import OperatorLock
from tidings.kinds.operators.kind import OperatorChecker, Operators
from tidings.kinds.operators.learning import Learning
from tidings.kinds.operators.scheduling.schedulers import Adaptive, Scheduler
from tidings.kinds.operators.statistics import Statistics, statistics
from tidings.kinds.patterns.kind import Patterns
from tidings.language.parameter_columns import parameter_columns, table_ids
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.language.query_json import from_json, is_json, stored_text
from tidings.model.batch import Batch, event_times
from tidings.model.event import Event, to_table
from tidings.model.explanation import Explanation
from tidings.model.notification import Notification
from tidings.model.taxonomy import Taxonomy
from tidings.model.values import instant


class BroadSubscription(UserWarning):
    """A subscription that nearly every event would match."""


class EmptySubscription(UserWarning):
    """A subscription that no row can ever match."""


class Engine:
    """Subscriptions, matched against every published event at once."""

    def __init__(
        self,
        *,
        taxonomy: Taxonomy | None = None,
        prefixes: Mapping[str, str] | None = None,
        networks: Mapping[str, Network] | None = None,
        operators: Iterable[Operator] = (),
        scheduler: Scheduler | None = None,
        tables: Iterable[Table] = (),
        kinds: Iterable[Kind] = (),
    ) -> None:
        """`operators` are what subscriptions can call, beside those of installed packages; `scheduler` decides in which
        order they are evaluated (Adaptive, unless another is to be compared with it). `tables` are what they can join;
        events insert, update and delete their rows. `kinds` are kinds of subscription of your own."""
        self.taxonomy = Taxonomy() if taxonomy is None else taxonomy  # one of properties alone is falsy
        self.prefixes = dict(prefixes or {})
        self.networks = dict(networks or {})
        self.operators = Catalogue(operators)
        self._scheduler = scheduler or Adaptive()
        own = self.own_kinds = all_kinds(kinds)
        self._conditions = tuple(condition for kind in own for condition in kind.conditions)
        self._kinds = arranged(
            Networks(self.networks),
            Operators(self.operators, self._scheduler, self.taxonomy, self._conditions),
            Patterns(self.taxonomy),
            Filters(),
            own,
        )
        self._planner = Planner(self.prefixes, self._kinds)
        self._lock = OperatorLock()  # one caller at a time: an index must not change while it is matched
        self._index = SubscriptionIndex(self._kinds, Residuals(self.taxonomy, self._conditions))
        self._keeping: list[Kind] = [
            JoinKind(tables, self.prefixes),
            *(kind for kind in own if kind.role == "state"),
        ]
        self._stateful: dict[str, Stateful] = {kind.name: kind.builder() for kind in self._keeping}

    def without_subscriptions(self) -> Engine:
        """An engine with the same definitions and no subscriptions."""
        return Engine(
            taxonomy=self.taxonomy,
            prefixes=self.prefixes,
            networks=self.networks,
            operators=self.operators,
            scheduler=self._scheduler,
            tables=self.joins.tables.values(),
            kinds=self.own_kinds,
        )

    @property
    def index(self) -> SubscriptionIndex:
        """The subscriptions and their rows, but for those of kinds that keep state."""
        return self._index

    @property
    def joins(self) -> Joins:
        """Tables and the subscriptions over them."""
        return cast(Joins, self._stateful["joins"])

    @joins.setter
    def joins(self, joins: Joins) -> None:
        self._stateful["joins"] = joins

    @property
    def _checker(self) -> OperatorChecker:
        return cast(OperatorChecker, self._index.checkers["operators"])

    def __len__(self) -> int:
        return sum(self._index.subscriptions.live) + sum(map(len, self._stateful.values()))

    def __contains__(self, id: str) -> bool:
        return self._index.subscriptions.find(id) >= 0 or self._kind_with(id) is not None

    def _kind_with(self, id: str) -> Stateful | None:
        """The stateful kind that has a subscription with this id."""
        return next((each for each in self._stateful.values() if id in each), None)

    def _kind_for(self, query: Query) -> Stateful | None:
        """The stateful kind that takes a query."""
        return next((each for each in self._stateful.values() if each.takes(query)), None)

    def subscribe(self, id: str, text: str | Query, *, valid_until: datetime | str | None = None) -> None:
        """Adds a subscription, as a text or as the tree of one; one with the same id is replaced."""
        check_id(id)
        if isinstance(text, Query):
            text = stored_text(text, self._conditions)
            query, constants = self._shape(text)
        elif isinstance(text, str):
            query, constants = self._planner.shape(text)
        else:
            raise SubscriptionError(f"the text of a subscription is {text!r}; give what it asks, as a text")
        until = end_of_validity(valid_until)
        taker = self._kind_for(query)
        if taker is not None:
            with self._lock:
                reason = taker.subscribe(id, text, query, constants, until)
                self._end([id], but=taker)
            if reason is not None:
                warnings.warn(
                    f"subscription {id!r} will never match: {reason}", EmptySubscription, stacklevel=2
                )
            return
        plan, values = self._planner.read(query, constants)
        if plan.is_broad:
            warnings.warn(
                f"subscription {id!r} would match nearly every event", BroadSubscription, stacklevel=2
            )
        with self._lock:
            replaced = self._index.subscriptions.find(id)
            self._index.add(id, text, plan, values, until)  # refused here, it replaces nothing
            self._end([id], [replaced])

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
        taker = self._kind_for(query)
        if taker is not None:
            ids = table_ids(table, query)
            with self._lock:
                taker.subscribe_table(template, query, ids, table)
                self._end(ids, but=taker)
            return
        ids, columns = parameter_columns(table, query, self.prefixes)
        literals = {parameter for parameter, column in columns.items() if column.literal}
        plan = make_plan(query, self._kinds, literals)
        texts = {parameter.name: (column.codes, column.texts) for parameter, column in columns.items()}
        with self._lock:
            find = self._index.subscriptions.find
            replaced = [find(id) for id in ids] if len(self) else []
            self._index.add_table(Template(query, ids, texts), plan)
            self._end(ids, replaced)

    def _end(self, ids: Sequence[str], numbers: Sequence[int] = (), but: Stateful | None = None) -> None:
        """Ends what subscriptions with these ids have replaced: `numbers` of the index, and those of stateful kinds."""
        subscriptions = self._index.subscriptions
        for number in numbers if but is None else map(subscriptions.find, ids):
            if number >= 0:
                subscriptions.end(number)
        for stateful in self._stateful.values():
            if stateful is not but and (
                len(ids) == 1 or len(stateful)
            ):  # to count them takes longer than to look
                for id in ids:
                    stateful.unsubscribe(id)

    def unsubscribe(self, id: str) -> bool:
        """Removes a subscription; False when there is none with this id."""
        with self._lock:
            number = self._index.subscriptions.find(id)
            if number >= 0:
                self._index.subscriptions.end(number)
                return True
            keeper = self._kind_with(id)
            return keeper is not None and keeper.unsubscribe(id)

    def text(self, id: str) -> str:
        """The text of a subscription; of one that came as a tree, its JSON."""
        number = self._index.subscriptions.find(id)
        if number >= 0:
            return self._index.subscriptions.text(number)
        keeper = self._kind_with(id)
        if keeper is not None:
            return keeper.text(id)
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
            return self.joins.snapshot(id)

    def publish(
        self, event: Event, *, all_bindings: bool = False, joined: bool = False, payload: Payload = "always"
    ) -> list[Notification]:
        """The notifications of one event, each with its first bindings or one for every binding.

        A subscription over tables gets the rows of each table that it gained and lost, or `joined` rows. With a
        `payload` of "once" rows are without payload columns that the subscriber has, which a `Replica` fills in.
        """
        if not isinstance(event, Event):
            raise EventError(f"an event is an Event, not {type(event).__name__}; try Event(attributes=...)")
        with self._lock:
            index = self._index.snapshot()
            if index.is_plain and not self._keeps_state:
                return match_one(Batch.of(event), index, event.source, event.id)
        found = self.publish_many([event], all_bindings=all_bindings, joined=joined, payload=payload)
        return list(Notification.from_table(found))

    @property
    def _keeps_state(self) -> bool:
        return True in [each.reads_events for each in self._stateful.values()]

    def publish_many(
        self,
        events: pa.Table | pa.RecordBatch | Sequence[Event],
        *,
        all_bindings: bool = False,
        joined: bool = False,
        payload: Payload = "always",
    ) -> pa.Table:
        """The notifications of many events, as a table."""
        table, is_once = _table(events), wants_once(payload, joined)
        with self._lock:
            found = [self._match(table, all_bindings)]
            if self._keeps_state:
                moments = event_times(table)
                for stateful in self._stateful.values():
                    if not stateful.reads_events:
                        continue
                    changes = stateful.apply(table, moments, joined=joined)
                    _drop_reported(changes.errors, table, found[0])
                    if is_once and isinstance(changes, Deltas):
                        changes = deltas_once(changes, self.joins.subscriptions.tables)
                    found.append(changes.notifications(table))
            return pa.concat_tables(found)

    def correlate(
        self,
        events: pa.Table | pa.RecordBatch | Sequence[Event],
        *,
        joined: bool = False,
        payload: Payload = "always",
    ) -> Deltas:
        """What subscriptions over tables gain and lose by events, in columns: for volumes in which a notification
        object for each is too slow."""
        table, is_once = _table(events), wants_once(payload, joined)
        with self._lock:
            deltas = self.joins.apply(table, event_times(table), joined=joined)
            return deltas_once(deltas, self.joins.subscriptions.tables) if is_once else deltas

    def publish_lines(self, data: bytes | str) -> pa.Table:
        """The notifications of JSON lines, each an event whose members are its attributes, as a table."""
        return self.publish_many(read_lines(data.encode() if isinstance(data, str) else data))

    def match(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The notifications of a batch of events, as a batch, for a worker that gets only a part of all events: kinds
        that keep state are left out."""
        with self._lock:
            found = self._match(pa.Table.from_batches([events]))
        batches = found.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=found.schema)

    def _match(self, events: pa.Table, every: bool = False) -> pa.Table:
        """The notifications of the kinds that find and check."""
        return match(events, self._index.snapshot(), every)

    def candidates(self, events: Sequence[Event]) -> list[str]:
        """The subscriptions that each of a few events would match if the places in networks and the operators let it through:
        none of them is called. Kinds that keep state are left out."""
        batch = Batch(_table(events))
        with self._lock:
            return self._candidates(batch)

    def _candidates(self, batch: Batch) -> list[str]:
        index = self._index.snapshot()
        return of_all_events(batch, index, candidates(batch, index))

    def index_snapshot(self) -> Snapshot:
        """What events are matched against now, for callers of single steps of the pipeline."""
        with self._lock:
            return self._index.snapshot()

    def explain(self, id: str, event: Event) -> Explanation:
        """Why an event matches a subscription, or the first clause that does not hold.

        Operators are called as for this subscription alone, without effect on what is learnt.
        """
        return self.why(self.tree(self.text(id)), event, id)

    def why(self, text: str | Query, event: Event, id: str = "") -> Explanation:
        """The same for a text, or its tree, without a subscription."""
        query = text if isinstance(text, Query) else parse(text, self.prefixes)
        taker = self._kind_for(query)
        if taker is not None:
            return taker.explain(id, query, event)
        check_condition(query)
        networks = Networks(self.networks)
        return Explainer(self.taxonomy, networks, self._checker.evaluator).explain(id, query, event)

    def tree(self, text: str) -> Query:
        """The tree of what is stored of a subscription: a text of the language, or JSON if it came as a tree.

        Not for texts from outside: only the parser bounds and checks what it reads.
        """
        if not is_json(text):
            return parse(text, self.prefixes)
        try:
            query: Query = from_json(text, self._conditions)
        except ValueError as error:
            raise SubscriptionError(
                f"the subscription cannot be read: {error}; give its kind, as in kinds=[...]"
            ) from None
        return query

    def _shape(self, text: str) -> tuple[Query, tuple[str, ...]]:
        """The query that a stored text shares with others, and its constants."""
        return (self.tree(text), ()) if is_json(text) else self._planner.shape(text)

    def _plan(self, text: str) -> tuple[Plan, Mapping[str, str]]:
        return self._planner.read(*self._shape(text))

    @property
    def evaluated_events(self) -> int:
        """How many events operators were evaluated for, here and in the engines that this one has learnt from."""
        return int(self._checker.table.predicates.events)

    def learnt(self) -> Learning:
        """What was learnt of operators since the last call, for other engines to `learn`."""
        with self._lock:
            return self._checker.learnt()

    def learn(self, learning: Learning) -> None:
        """Adds what other engines have learnt of operators."""
        with self._lock:
            self._checker.learn(learning)

    def stats(self) -> Statistics:
        """How often operators were evaluated and spared since the engine was made, and what was learnt of them."""
        with self._lock:
            return statistics(self._checker.table)

    def save(self, folder: str | Path) -> None:
        """Writes subscriptions, index, taxonomy and prefixes to a folder."""
        folder = Path(folder)
        with self._lock:
            folder.mkdir(parents=True, exist_ok=True)
            self._index.save(folder)
            for name, stateful in self._stateful.items():
                save_kind(stateful, folder, name)
            used = {*self._index.used_kinds(), *(name for name, each in self._stateful.items() if len(each))}
        (folder / "kinds.json").write_text(json.dumps(sorted(used)))
        (folder / "taxonomy.nt").write_bytes(self.taxonomy.to_ntriples())
        (folder / "prefixes.json").write_text(json.dumps(self.prefixes, indent=1))
        save_networks(self.networks, folder)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        operators: Iterable[Operator] = (),
        kinds: Iterable[Kind] = (),
        taxonomy: Taxonomy | None = None,
    ) -> Self:
        """The engine that was saved there; its arrays are mapped into memory, not read.

        Operators and kinds are code and not saved: give those that its subscriptions use. `taxonomy` is the one that was
        saved, if it is at hand.
        """
        folder = Path(folder)
        try:
            engine = cls(
                operators=operators,
                taxonomy=taxonomy
                if taxonomy is not None
                else Taxonomy.from_ntriples((folder / "taxonomy.nt").read_bytes()),
                prefixes=json.loads((folder / "prefixes.json").read_text()),
                networks=load_networks(folder),
                kinds=kinds,
            )
            engine._require_kinds(folder)
            engine._index.load(folder, engine._plan)
            for kind in engine._keeping:
                if kind.name in BUILT_IN or kind_folder(folder, kind.name).is_dir():
                    engine._stateful[kind.name] = kind.load(kind_folder(folder, kind.name))
        except SubscriptionError as error:
            raise _broken(folder, error) from None
        except TidingsError:
            raise
        except (
            Exception
        ) as error:  # a wrong byte in a file, such as the header of an array, raises nearly anything
            raise _broken(folder, error) from None
        return engine

    def _require_kinds(self, folder: Path) -> None:
        """Refuses an index with kinds that this engine was not given."""
        path = folder / "kinds.json"
        named = json.loads(path.read_text()) if path.exists() else []
        known = {kind.name for kind in self._kinds} | self._stateful.keys() | {*BUILT_IN}
        if missing := [name for name in named if name not in known]:
            raise IndexFileError(
                f"{folder} has subscriptions of kinds that are not known: {', '.join(missing)}; "
                "give them with kinds=[...], or install their packages"
            )


def _broken(folder: Path, error: Exception) -> IndexFileError:
    return IndexFileError(f"{folder} holds no whole index ({error!r:.200}); build it anew")


def _table(events: pa.Table | pa.RecordBatch | Sequence[Event]) -> pa.Table:
    if not isinstance(events, pa.Table | pa.RecordBatch):
        return to_table(events)
    check_columns(events.schema.names, "the events have", EventError)
    return events if isinstance(events, pa.Table) else pa.Table.from_batches([events])


def _drop_reported(errors: dict[int, str], events: pa.Table, found: pa.Table) -> None:
    """Takes out the errors of events that have been reported as unreadable already."""
    if errors:
        unreadable = set(found.filter(pc.equal(found["verdict"], "error"))["event"].to_pylist())
        ids = events["id"].to_pylist() if unreadable and "id" in events.column_names else ()
        for row, id in enumerate(ids):
            if id in unreadable:
                errors.pop(row, None)


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
