"""An opened base whose subscriptions are divided: an engine, which is its front, with parts that are opened when needed.

Changes of the tail are made in the front. A subscription in a part that was removed or replaced is dead there, which the
table of ids finds without opening the part. The front never folds: routes go by its numbers, and a container that was
removed, or has expired, must go on to route.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.arrays import folders
from tidings.arrays.bounds import ascends, refuse_unless
from tidings.arrays.vocabulary import StoredTexts
from tidings.engine.contracts import Kind, Stateful
from tidings.engine.engine import Engine
from tidings.engine.pipeline import candidates, find, matched, notifications, of_all_events, settled
from tidings.errors import IndexFileError
from tidings.formats.rdf import NTRIPLES
from tidings.kinds.operators.functions.operator import Operator
from tidings.model.batch import Batch, check_columns
from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.model.notification import NOTIFICATION_SCHEMA, error_table
from tidings.model.pairs import Pairs
from tidings.storage.division import (
    Division,
    front_of,
    id_hash,
    part_of,
    refuse_too_large,
    taxonomy_hash,
)
from tidings.storage.part_visits import PartVisits, VisitCounter
from tidings.storage.remote_index import need_part

_READ_BY_LOOPS = (NTRIPLES, "text/turtle")  # again in less time than more bytes take to be sent


class Forwards(NamedTuple):
    """Which events have to visit which parts: event[i], by its row, visits part[i]."""

    event: np.ndarray
    part: np.ndarray
    graphs: pa.Array | None = None
    """The graphs of all events, as N-Triples, that are expensive to parse, so that parts need not do that again; else null."""


class DividedIndex(Engine):
    """The front is this engine itself: prefixes, networks, operators and joins are its own."""

    division: Division

    @classmethod
    def open(
        cls,
        base: Path,
        division: Division,
        *,
        operators: Iterable[Operator] = (),
        kinds: Iterable[Kind] = (),
        memory: int | None = None,
    ) -> DividedIndex:
        """Opens the front of a base. `memory` is how many bytes of its files may be open at once."""
        if memory is not None:
            refuse_too_large(base, division, memory)
        index = cls.load(front_of(base), operators=operators, kinds=kinds)
        index._attach(base, division, memory)
        return index

    def _attach(self, base: Path, division: Division, memory: int | None) -> None:
        if taxonomy_hash(front_of(base)) != division.taxonomy:
            raise IndexFileError(f"{base} was divided by another taxonomy; build the index anew")
        self.base, self.division = base, division
        self._room = None if memory is None else memory - division.front.bytes
        self._routes = folders.load(base / "routes")[0]["parts"]
        self._id_table = folders.load(base / "ids")[0]
        self._check()
        division.end_mergers(self)
        self._texts: dict[int, tuple[StoredTexts, StoredTexts]] = {}
        self._ended: list[set[int]] = [set() for _ in division.parts]
        self._visit_counter = VisitCounter(len(division.parts))
        self._parts: dict[int, Engine] = {}  # the one that was used last is the last one
        self._index.keeps_numbers = True
        self._index.reads = frozenset(division.reads)

    def _check(self) -> None:
        """Refuses arrays that do not fit each other. The table of ids, of which little is ever read, is checked where it is."""
        parts, table = self.division.parts, self._id_table
        in_parts = sum(piece.subscriptions for piece in parts)
        names = ("hash", "part", "number", *(["above"] if "above" in table else ()))
        refuse_unless(self.base / "ids", [(name, table[name].shape == (in_parts,)) for name in names])
        shape = (self.division.front.subscriptions + self.division.mergers, (len(parts) + 7) // 8)
        fits = self._routes.shape == shape and len(self._index.subscriptions) == shape[0]
        refuse_unless(self.base / "routes", [("parts", fits)])

    def __len__(self) -> int:
        in_parts = sum(piece.subscriptions for piece in self.division.parts)
        return super().__len__() + in_parts - sum(map(len, self._ended))

    def __contains__(self, id: str) -> bool:
        return super().__contains__(id) or self._find(id) is not None

    def part_with(self, id: str) -> int | None:
        """The part that has the subscription with this id; None if the front has it, or nobody."""
        found = self._find(id)
        return None if found is None else found[0]

    def container_of(self, id: str) -> str | None:
        """The subscription or the merger in the front that contains one in a part; None if the front has it, or if no forest was made."""
        found = self._find(id)
        if found is None or "above" not in self._id_table:
            return None
        above = int(self._id_table["above"][found[2]])
        refuse_unless(self.base / "ids", [("above", 0 <= above < len(self._routes))])
        return self._index.subscriptions.id_list([above])[0]

    def _find(self, id: str) -> tuple[int, int, int] | None:
        """Part and number of the live subscription with this id, if it is in a part, and its place in the table."""
        hash, hashes = id_hash(id), self._id_table["hash"]
        for at in range(np.searchsorted(hashes, hash), np.searchsorted(hashes, hash, side="right")):
            part, number = int(self._id_table["part"][at]), int(self._id_table["number"][at])
            known = 0 <= part < len(self._ended) and 0 <= number < self.division.parts[part].subscriptions
            refuse_unless(self.base / "ids", [("number", known)])
            if self._stored(part)[0][number] == id:
                return None if number in self._ended[part] else (part, number, at)
        return None

    def _stored(self, part: int) -> tuple[StoredTexts, StoredTexts]:
        """The ids and the texts of a part, which need not be open."""
        if part not in self._texts:
            arrays, _ = folders.load(need_part(part_of(self.base, part)) / "subscriptions")
            count = self.division.parts[part].subscriptions
            for name in ("id", "text"):
                start = arrays[f"{name}_start"]
                fits = len(start) - 1 == count and ascends(start, len(arrays[f"{name}_blob"]))
                refuse_unless(part_of(self.base, part) / "subscriptions", [(f"{name}_start", fits)])
            self._texts[part] = (
                StoredTexts(arrays["id_blob"], arrays["id_start"]),
                StoredTexts(arrays["text_blob"], arrays["text_start"]),
            )
        return self._texts[part]

    def text(self, id: str) -> str:
        found = self._find(id)
        if found is None:
            return super().text(id)
        text: str = self._stored(found[0])[1][found[1]]
        return text

    def explain(self, id: str, event: Event) -> Explanation:
        """As every engine does; it says which part the subscription is in."""
        explanation, part = super().explain(id, event), self.part_with(id)
        if part is None:
            return explanation
        return replace(explanation, part=part, below=self.container_of(id) or "")

    def unsubscribe(self, id: str) -> bool:
        with self._lock:
            return self._end_in_part(id) or super().unsubscribe(id)

    def _end(self, ids: Sequence[str], numbers: Sequence[int] = (), but: Stateful | None = None) -> None:
        super()._end(ids, numbers, but)
        for id in ids:
            self._end_in_part(id)

    def _end_in_part(self, id: str) -> bool:
        found = self._find(id)
        if found is None:
            return False
        part, number, _ = found
        self._ended[part].add(number)
        if part in self._parts:
            self._parts[part].index.subscriptions.end(number)
        return True

    def part(self, number: int) -> Engine:
        """An open part. As many as there is room for stay open, those that were used last."""
        engine = self._parts.pop(number, None)
        if engine is None:
            sizes = [piece.bytes for piece in self.division.parts]
            while self._room is not None and self._parts:
                if sum(sizes[each] for each in self._parts) + sizes[number] <= self._room:
                    break
                del self._parts[next(iter(self._parts))]
            folder = need_part(part_of(self.base, number))
            engine = Engine.load(folder, kinds=self.own_kinds, taxonomy=self.taxonomy)
            if len(engine) != self.division.parts[number].subscriptions:
                raise IndexFileError(f"{folder} has others than it should; build the index anew")
            for ended in self._ended[number]:
                engine.index.subscriptions.end(ended)
            self._visit_counter.opened(number)
        self._parts[number] = engine
        return engine

    def save(self, folder: str | Path) -> None:
        """Writes all subscriptions as one engine, which it is from then on: the front takes over what the parts have."""
        with self._lock:
            parts = [self.part(number).index for number in range(len(self.division.parts))]  # all, or none
            for part in parts:
                self._index.take_over(part, np.frombuffer(bytes(part.subscriptions.live), dtype=np.bool_))
            self.division = self.division._replace(place="split", parts=(), mergers=0)
            self._id_table = {name: array[:0] for name, array in self._id_table.items()}
            self._ended, self._parts, self._index.reads = [], {}, frozenset()
            super().save(folder)

    @property
    def open_parts(self) -> list[int]:
        """The parts that are open now, the one that was used last at the end."""
        return list(self._parts)

    def visits(self) -> PartVisits:
        """What parts were visited for since the last call."""
        with self._lock:
            return self._visit_counter.take()

    def forwards(self, events: pa.Table | pa.RecordBatch) -> Forwards:
        """The parts that events have to visit. Nothing is checked: no operator is called."""
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        found, index = [Forwards(np.zeros(0, np.int64), np.zeros(0, np.int64))], self._index.snapshot()
        with self._lock:
            for first in range(0, table.num_rows, index.events_at_once):
                batch = Batch(table.slice(first, index.events_at_once))
                visits = self._visits(batch, find(batch, index))
                found.append(Forwards(visits.event + first, visits.part))
        event, part = (np.concatenate([getattr(each, name) for each in found]) for name in ("event", "part"))
        return Forwards(event, part)

    def match_front(self, events: pa.Table | pa.RecordBatch) -> tuple[pa.Table, Forwards]:
        """The notifications of the front, also those of events that cannot be read, and the parts to visit: the first of
        two stages, the second being `match_part`."""
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        found, first = [NOTIFICATION_SCHEMA.empty_table()], 0
        forwards, graphs = Forwards(np.zeros(0, np.int64), np.zeros(0, np.int64)), pa.nulls(0, pa.binary())
        with self._lock:
            for batch, notified, visits in self._front(table, False):
                found += notified
                graphs = pa.concat_arrays([graphs, _parsed(batch)])
                event = np.concatenate([forwards.event, visits.event + first])
                forwards = Forwards(event, np.concatenate([forwards.part, visits.part]), graphs)
                first += len(batch)
        return pa.concat_tables(found), forwards

    def match_part(
        self, part: int, events: pa.Table | pa.RecordBatch, graphs: Sequence[bytes | None] | None = None
    ) -> pa.Table:
        """The notifications of a part. What it cannot read, the front reports; `graphs` are those that it has read."""
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        check_columns(table)
        with self._lock:
            index = self.part(part).index.snapshot()
            found = [NOTIFICATION_SCHEMA.empty_table()]
            for first in range(0, table.num_rows, index.events_at_once):
                batch = Batch(table.slice(first, index.events_at_once))
                if graphs is not None:
                    batch.graphs = list(graphs[first : first + len(batch)])
                found += self._in_part(part, batch)
        return pa.concat_tables(found)

    def _match(self, events: pa.Table, every: bool = False) -> pa.Table:
        found, failed = [NOTIFICATION_SCHEMA.empty_table()], list[pa.Table]()
        for batch, (*notified, errors), visits in self._front(events, every):
            found += notified
            failed.append(errors)
            # Those that are open first: one that is opened may close another.
            for part in sorted(np.unique(visits.part).tolist(), key=lambda part: part not in self._parts):
                rows = visits.event[visits.part == part]
                found += self._in_part(part, batch if len(rows) == len(batch) else batch.take(rows))
        return pa.concat_tables([*found, *failed])

    def _candidates(self, batch: Batch) -> list[str]:
        index = self._index.snapshot()
        pairs = candidates(batch, index)
        found = of_all_events(batch, index, pairs)
        visits = np.bincount(self._visits(batch, pairs).part, minlength=len(self.division.parts))
        for part in np.flatnonzero(visits == len(batch)).tolist():
            index = self.part(part).index.snapshot()
            found += of_all_events(batch, index, candidates(batch, index))
        return found

    def _front(self, events: pa.Table, every: bool) -> Iterator[tuple[Batch, list[pa.Table], Forwards]]:
        """Batches, the notifications of the front with those of errors last, and the parts to visit."""
        check_columns(events)
        index = self._index.snapshot()
        for first in range(0, events.num_rows, index.events_at_once):
            batch = Batch(events.slice(first, index.events_at_once), every)
            pairs = find(batch, index)
            found = list(notifications(batch, index, settled(batch, index, pairs)))
            found.append(error_table(batch.events, batch.errors))
            yield batch, found, self._visits(batch, pairs)

    def _visits(self, batch: Batch, pairs: Pairs) -> Forwards:
        """Where events go that were found for these subscriptions of the front, dead ones and undecided ones too. Those that
        can be read in part go everywhere: a container is not found by what it cannot read."""
        used = np.array([piece.subscriptions > 0 for piece in self.division.parts])
        if self.division.place == "split":
            visited = np.broadcast_to(used, (len(batch), len(used)))
        else:
            routing = pairs.subscription < len(self._routes)  # the others are of the tail
            bits = np.zeros((len(batch), self._routes.shape[1]), dtype=np.uint8)
            np.bitwise_or.at(bits, pairs.event[routing], self._routes[pairs.subscription[routing]])
            bits[list(batch.errors)] = 255
            visited = np.unpackbits(bits, axis=1, count=len(used)) & used
        return Forwards(*np.nonzero(visited))

    def _in_part(self, part: int, batch: Batch) -> Iterator[pa.Table]:
        index = self.part(part).index.snapshot()
        pairs = matched(batch, index)
        self._visit_counter.visited(part, len(batch), len(np.unique(pairs.event)), len(pairs))
        return notifications(batch, index, pairs)


def visits_of(index: Engine) -> PartVisits:
    """What the parts of an index were visited for since the last call; nothing if it is not divided."""
    return index.visits() if isinstance(index, DividedIndex) else PartVisits()


def _parsed(batch: Batch) -> pa.Array:
    """The graphs of a batch that no compiled loop has read."""
    if batch.graphs is None:
        return pa.nulls(len(batch), pa.binary())
    types = batch.texts("datacontenttype").to_pylist()
    parsed = [
        graph if graph and media_type not in _READ_BY_LOOPS else None
        for graph, media_type in zip(batch.graphs, types, strict=True)
    ]
    return pa.array(parsed, pa.binary())
