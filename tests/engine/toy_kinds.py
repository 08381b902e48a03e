"""Three kinds of subscription that nothing in `src/` knows: one that finds, one that checks, one that keeps state.

They are as small as the contracts allow, and show what a new kind has to write.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import SubscriptionError
from tidings.language.alternatives import Way
from tidings.language.conditions import holds
from tidings.language.query import KindCondition, Query, conjuncts
from tidings.model.attributes import values_at
from tidings.model.batch import Batch, attributes_of
from tidings.model.event import Event
from tidings.model.explanation import Clause, Explanation
from tidings.model.notification import to_table
from tidings.model.pairs import Found, Pairs

# ---------------------------------------------------------------- a kind that finds


@dataclass(frozen=True)
class Aisle(KindCondition):
    """An event is on a shelf if its attribute `shelf` is that number."""

    number: int

    def __str__(self) -> str:
        return f"shelf {self.number}"

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        return self.number in values_at(attributes, "shelf")


@dataclass(frozen=True)
class ShelfPart:
    number: int
    is_broad: bool = False


class Shelves:
    name, role, conditions = "shelves", "find", (Aisle,)

    def compile(self, way: Way) -> tuple[ShelfPart | None, Way]:
        mine = [test for test in way.tests if isinstance(test, Aisle)]
        if not mine:
            return None, way
        return ShelfPart(mine[0].number), replace(way, tests=tuple(t for t in way.tests if t is not mine[0]))

    def builder(self) -> ShelfRows:
        return ShelfRows([])

    def load(self, folder: Path) -> ShelfRows:
        return ShelfRows(json.loads((folder / "shelves.json").read_text()))


class ShelfRows:
    """Builder and finder in one: row i is the shelf numbers[i]."""

    several, binds = False, False

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def prepare(self, part: ShelfPart, values: Mapping[str, str]) -> None:
        return None

    def add(self, part: ShelfPart, prepared: None) -> int:
        self.numbers.append(part.number)
        return len(self) - 1

    def add_many(self, part: ShelfPart, columns: Any, count: int) -> int:
        self.numbers += [part.number] * count
        return len(self) - count

    def extend(self, other: ShelfRows, rows: np.ndarray) -> None:
        self.numbers += [other.numbers[row] for row in rows.tolist()]

    def finder(self) -> ShelfRows:
        return ShelfRows(list(self.numbers))

    def find(self, batch: Batch) -> Found:
        rows = defaultdict(list)
        for row, number in enumerate(self.numbers):
            rows[number].append(row)
        found = [
            (event, row)
            for event in range(len(batch))
            for number in set(values_at(batch.attributes(event) or {}, "shelf"))
            for row in rows.get(number, ())
        ]
        columns = np.array(found, dtype=np.int32).reshape(-1, 2)
        return Found.certain(columns[:, 0], columns[:, 1])

    def save(self, folder: Path) -> None:
        (folder / "shelves.json").write_text(json.dumps(self.numbers))


# ---------------------------------------------------------------- a kind that checks


@dataclass(frozen=True)
class Heavier(KindCondition):
    """The event's weight is above a limit."""

    limit: float

    def __str__(self) -> str:
        return f"heavier than {self.limit:g}"

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        return any(weight > self.limit for weight in values_at(attributes, "weight"))


class Scales:
    name, role, conditions = "scales", "check", (Heavier,)

    def compile(self, way: Way) -> tuple[float | None, Way]:
        mine = [test for test in way.tests if isinstance(test, Heavier)]
        if not mine:
            return None, way
        rest = tuple(test for test in way.tests if test not in mine)
        return max(test.limit for test in mine), replace(way, tests=rest)

    def builder(self) -> Limits:
        return Limits([])

    def load(self, folder: Path) -> Limits:
        return Limits(json.loads((folder / "limits.json").read_text()))


class Limits:
    """Row i is the limit limits[i]."""

    binds = False

    def __init__(self, limits: list[float]) -> None:
        self.limits = limits
        self.checked = 0

    def __len__(self) -> int:
        return len(self.limits)

    def prepare(self, part: float, values: Mapping[str, str]) -> None:
        return None

    def add(self, part: float, prepared: None) -> int:
        self.limits.append(part)
        return len(self) - 1

    def add_many(self, part: float, columns: Any, count: int) -> np.ndarray:
        return np.full(count, self.add(part, None))

    def keep(self, rows: np.ndarray) -> None:
        self.limits = [self.limits[row] for row in rows.tolist()]

    def check(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Pairs:
        keep = rows < 0
        for i in np.flatnonzero(~keep).tolist():
            self.checked += 1
            keep[i] = Heavier(self.limits[rows[i]]).holds(batch.attributes(int(pairs.event[i])) or {})
        return pairs.take(keep)

    def save(self, folder: Path) -> None:
        (folder / "limits.json").write_text(json.dumps(self.limits))


# ---------------------------------------------------------------- a kind that keeps state


@dataclass(frozen=True)
class EveryNth(KindCondition):
    """Of the events that satisfy the rest of the subscription every n-th."""

    n: int

    def __str__(self) -> str:
        return f"every {self.n}th"

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        return True


class Counting:
    name, role, conditions = "counting", "state", (EveryNth,)

    def builder(self) -> Counters:
        return Counters()

    def load(self, folder: Path) -> Counters:
        made = Counters()
        made.counters = json.loads((folder / "counters.json").read_text())
        return made


class Counters:
    """By id the text, n, how many events have come, and until when they count."""

    reads_events = True

    def __init__(self) -> None:
        self.counters: dict[str, list[Any]] = {}
        self.queries: dict[str, Query] = {}

    def __len__(self) -> int:
        return len(self.counters)

    def __contains__(self, id: str) -> bool:
        return id in self.counters

    def takes(self, query: Query) -> bool:
        return any(isinstance(part, EveryNth) for part in conjuncts(query.where))

    def subscribe(
        self, id: str, text: str, query: Query, constants: Sequence[str], until: float
    ) -> str | None:
        if query.via is not None:
            raise SubscriptionError(
                f"every n-th event is counted before a network; leave VIA {query.via.network} out"
            )
        n = next(part.n for part in conjuncts(query.where) if isinstance(part, EveryNth))
        self.counters[id], self.queries[id] = [text, n, 0, until], query
        return None if n > 0 else "it counts to nothing"

    def subscribe_table(self, text: str, query: Query, ids: Sequence[str], table: pa.Table) -> None:
        raise SubscriptionError("a text has no every n-th; subscribe to trees, one by one")

    def unsubscribe(self, id: str) -> bool:
        return self.counters.pop(id, None) is not None

    def text(self, id: str) -> str:
        return str(self.counters[id][0])

    def apply(self, events: pa.Table, moments: np.ndarray, *, joined: bool = False) -> Counted:
        batch, found = Batch(events), []
        for event in range(events.num_rows):
            for id, counter in self.counters.items():
                valid = counter[3] >= moments[event]
                if valid and holds(self._query(id).where, batch.attributes(event) or {}):
                    counter[2] += 1
                    if counter[1] > 0 and counter[2] % counter[1] == 0:
                        found.append((id, event))
        return Counted(found)

    def _query(self, id: str) -> Query:
        if id not in self.queries:
            from tidings.language.query_json import from_json

            self.queries[id] = from_json(self.counters[id][0], (EveryNth, Aisle, Heavier))
        return self.queries[id]

    def explain(self, id: str, query: Query, event: Event) -> Explanation:
        parts = conjuncts(query.where)
        clauses = tuple(Clause(str(part), holds(part, attributes_of(event))) for part in parts)
        return Explanation(id, "match" if all(clause.held for clause in clauses) else "no match", clauses)

    def save(self, folder: Path) -> None:
        (folder / "counters.json").write_text(json.dumps(self.counters))


class Counted:
    def __init__(self, found: list[tuple[str, int]]) -> None:
        self.found, self.errors = found, dict[int, str]()

    def notifications(self, events: pa.Table) -> pa.Table:
        rows = pa.array([event for _, event in self.found], pa.int64())
        return to_table(
            {
                "subscription": pa.array([id for id, _ in self.found], pa.string()),
                "source": events["source"].take(rows),
                "event": events["id"].take(rows),
                "verdict": pa.array(["match"] * len(self.found), pa.string()),
            }
        )


KINDS = (Shelves(), Scales(), Counting())
