"""Tables, subscriptions and changes as Select-joins draws them: Table 2 and Section 6.

A join value has a mean in each table (N1, N2) around which its rows lie, so that most subscriptions never meet most
join values; the means are the quantiles of their distribution in random order, which makes two seeds much alike.
Widths of ranges that came out below zero are drawn again: of the readings it comes nearest to Tables 3 and 4. A key
`id` stands beside the paper's columns; every image of a row has a payload of its own. Everything follows from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.kinds.joins.schema.table import Table

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How many subscriptions an insert affects hangs on where the few join values with most rows of S lie: 126 to 492 of
# 100,000 among the seeds 2007 to 2046. This is the seed of these that comes nearest to Table 3: 274 affected, with 2,141
# result rows; at 108 and 212 bytes a row, Enum-SJ sends 29.6 kB an insert (published 27.3) and Enum-J 454 (484.8).
SEED = 2016

INSERT, UPDATE, DELETE = range(3)
OPERATIONS = ("insert", "update", "delete")
DOMAIN = 100_000
JOIN_VALUES = 100
JOINING = 70  # of the join values have rows in S: 70 % of the inserts into R join something
ZIPF = 0.8
PAYLOAD = 100

# The column that ranges look at. R, T and U are alike; S is where interests are narrow.
COLUMNS = {"r": "a", "s": "c", "t": "d", "u": "e"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """One point of a figure. An event is an insert into R or the delete of its oldest row, so that its size stays;
    `s_share` of them go to S instead, `update_share` are updates of a row that keep its join value."""

    subscriptions: int = 100_000
    r_rows: int = 16_000
    s_rows: int = 5_100
    events: int = 20_000
    s_share: float = 0.0
    update_share: float = 0.0
    seed: int = SEED
    overlap: int | None = None
    """Reduces the spread of the centres of ranges, as in Figure 19; None: the spreads of Table 2."""

    def scaled(self, scale: float) -> Parameters:
        """The same, with `scale` times as many subscriptions, rows and events."""
        return replace(
            self,
            subscriptions=max(50, round(self.subscriptions * scale)),
            r_rows=max(100, round(self.r_rows * scale)),
            s_rows=max(100, round(self.s_rows * scale)),
            events=max(40, round(self.events * scale)),
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """All images of rows that a table ever has; those below `initial` are there before the first change. The last
    column is the one that ranges look at; `id` is the key."""

    name: str
    columns: dict[str, Longs]
    initial: int

    def __len__(self) -> int:
        return len(self.columns["id"])

    def declared(self) -> Table:
        """As an engine declares it."""
        columns = dict.fromkeys(self.columns, "integer") | {"payload": "text"}
        return Table(self.name, columns, key=("id",), payload=("payload",))

    def arrow(self, first: int = 0, last: int | None = None) -> pa.Table:
        """The images from `first` up to `last`, with their payloads."""
        return self.taken(np.arange(first, len(self) if last is None else last))

    def taken(self, numbers: npt.NDArray[np.integer]) -> pa.Table:
        """Some images, with their payloads."""
        payload = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), PAYLOAD - len(self.name), padding=".")
        columns = {name: pa.array(values[numbers]) for name, values in self.columns.items()}
        return pa.table(columns | {"payload": pc.binary_join_element_wise(self.name, payload, "")})


@dataclass(frozen=True, slots=True)
class Group:
    """Subscriptions of one text; row i is the subscription with the number `first` + i."""

    template: str
    columns: dict[str, Longs]
    first: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def arrow(self) -> pa.Table:
        """As `Engine.subscribe_table` takes them."""
        numbers = pa.array(np.arange(self.first, self.first + len(self)))
        ids = pc.binary_join_element_wise("q", pc.cast(numbers, pa.string()), "")
        return pa.table({"id": ids} | {name: pa.array(values) for name, values in self.columns.items()})


@dataclass(frozen=True, slots=True)
class Stream:
    """Changes in order: the table's place, and images of its rows, -1 where there is none."""

    table: npt.NDArray[np.int16]
    op: npt.NDArray[np.int8]
    new: npt.NDArray[np.int32]
    old: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, part: slice) -> Stream:
        return Stream(self.table[part], self.op[part], self.new[part], self.old[part])


@dataclass(frozen=True, slots=True)
class Workload:
    tables: tuple[Rows, ...]
    groups: tuple[Group, ...]
    stream: Stream

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return sum(map(len, self.groups))

    def declared(self) -> list[Table]:
        return [rows.declared() for rows in self.tables]

    def loading(self, table_number: int) -> pa.Table:
        """Events that insert the rows that a table begins with, as `Engine.correlate` takes them."""
        rows = self.tables[table_number]
        return _events(rows.name, "insert", _struct(rows.arrow(0, rows.initial)))

    def events(self, first: int, last: int) -> pa.Table:
        """Some changes, as `Engine.correlate` takes them: typed columns, of which each table has its own null in the
        rows of others."""
        stream = self.stream[first:last]
        row = np.where(stream.op == DELETE, stream.old, stream.new)
        before = np.where(stream.op == UPDATE, stream.old, -1)
        table = pa.array([rows.name for rows in self.tables]).take(pa.array(stream.table))
        events = _events(table, pa.array(OPERATIONS).take(pa.array(stream.op)), self._images(stream, row))
        if (before >= 0).any():
            events = events.append_column("before", self._images(stream, before))
        return events

    def _images(self, stream: Stream, numbers: npt.NDArray[np.int32]) -> pa.StructArray:
        """A row for each change, null where the number is -1."""
        parts: list[pa.Table] = []
        position = np.full(len(stream), -1)
        for number, rows in enumerate(self.tables):
            mine = np.flatnonzero((stream.table == number) & (numbers >= 0))
            position[mine] = sum(len(part) for part in parts) + np.arange(len(mine))
            parts.append(rows.taken(numbers[mine]))
        found = _struct(pa.concat_tables(parts, promote_options="default").combine_chunks())
        return found.take(pa.array(position, mask=position < 0))


def make(parameters: Parameters) -> Workload:
    """R(id, b, a, payload) and S(id, b, c, payload), joined on b."""
    drawn, rng = generators(parameters.seed)
    group = group_of(
        "r JOIN s USING (b)", ("r", "s"), parameters.subscriptions, drawn, overlap=parameters.overlap
    )
    # Rows of S by rank of their join value; both lists repeat as events go on.
    ranked = np.repeat(rng.permutation(JOIN_VALUES)[:JOINING], _zipf(parameters.s_rows))
    keys = {"r": np.arange(parameters.r_rows) % JOIN_VALUES, "s": ranked}
    tables = [
        TableDrawing(name, ("b",), rng.permutation(keys[name])[:, None], JOIN_VALUES, rng) for name in "rs"
    ]
    history = History(tables, rng)
    while len(history.changes) < parameters.events:
        table_number = int(rng.random() < parameters.s_share)
        history.update(table_number) if rng.random() < parameters.update_share else history.move(table_number)
    return Workload(history.rows(), (group,), history.stream())


class TableDrawing:
    """How rows of a table are drawn: join values in a fixed order that repeats, values around the join value's mean."""

    def __init__(
        self, name: str, joined: tuple[str, ...], keys: Longs, values: int, rng: np.random.Generator
    ):
        self.name, self.joined, self.keys, self.rng = name, joined, keys, rng
        quantiles = np.array([NormalDist().inv_cdf(share) for share in (np.arange(values) + 0.5) / values])
        if name == "s":
            self.means, self.spread = 50_000 + 10_000 * rng.permutation(quantiles), 3_000
        else:
            side = rng.permutation(np.where(np.arange(values) % 2, 25_000, 75_000))
            self.means, self.spread = side + 3_000 * rng.permutation(quantiles), 8_000
        self.images: list[tuple[int, ...]] = []
        self.live: list[int] = []  # images by age; those before `oldest` are gone
        self.oldest = 0
        self.drawn = 0
        for _ in range(len(keys)):
            self.insert()
        self.initial = len(self.images)

    def insert(self) -> int:
        number = self.drawn
        self.drawn += 1
        self.live.append(self._image(number, tuple(self.keys[number % len(self.keys)].tolist())))
        return self.live[-1]

    def delete(self) -> int:
        self.oldest += 1
        return self.live[self.oldest - 1]

    def update(self) -> tuple[int, int]:
        """A row at random gets another value: its new image and its old one."""
        at = int(self.rng.integers(self.oldest, len(self.live)))
        old = self.live[at]
        number, *joined, _ = self.images[old]
        self.live[at] = self._image(number, tuple(joined))
        return self.live[at], old

    def _image(self, number: int, joined: tuple[int, ...]) -> int:
        value = round(self.rng.normal(self.means[joined[0] if joined else number], self.spread))
        self.images.append((number, *joined, min(max(value, 0), DOMAIN)))
        return len(self.images) - 1

    def rows(self) -> Rows:
        names = ("id", *self.joined, COLUMNS[self.name])
        columns = np.array(self.images, np.int64).T.copy()
        return Rows(self.name, dict(zip(names, columns, strict=True)), self.initial)


class History:
    """The changes so far."""

    def __init__(self, tables: list[TableDrawing], rng: np.random.Generator):
        self.tables, self.rng = tables, rng
        self.changes: list[tuple[int, int, int, int]] = []

    def move(self, table_number: int) -> None:
        """An insert, then the delete of the oldest row."""
        self.changes.append((table_number, INSERT, self.tables[table_number].insert(), -1))
        self.changes.append((table_number, DELETE, -1, self.tables[table_number].delete()))

    def update(self, table_number: int) -> None:
        self.changes.append((table_number, UPDATE, *self.tables[table_number].update()))

    def rows(self) -> tuple[Rows, ...]:
        return tuple(table.rows() for table in self.tables)

    def stream(self) -> Stream:
        table, op, new, old = np.array(self.changes, np.int32).T.copy()
        return Stream(table.astype(np.int16), op.astype(np.int8), new, old)


def generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Of subscriptions and of rows: the rows are the same however many subscriptions there are."""
    return np.random.default_rng((seed, 0)), np.random.default_rng((seed, 1))


def group_of(
    joined: str,
    tables: tuple[str, ...],
    count: int,
    rng: np.random.Generator,
    first: int = 0,
    overlap: int | None = None,
) -> Group:
    """A range for each of the tables."""
    conditions, columns = [], {}
    for table in tables:
        name = COLUMNS[table]
        conditions.append(f"{table}.{name} BETWEEN ${name}_low AND ${name}_high")
        columns[f"{name}_low"], columns[f"{name}_high"] = _ranges(table, count, rng, overlap)
    return Group(f"SELECT * FROM {joined} WHERE {' AND '.join(conditions)}", columns, first)


def _ranges(
    table: str, count: int, rng: np.random.Generator, overlap: int | None = None
) -> tuple[Longs, Longs]:
    """Interests are low or high: two humps on R.A, far from most rows on S.C."""
    low, high, spread, mean, deviation = (
        (15_000, 85_000, 6_000, 6_000, 5_000) if table == "s" else (30_000, 70_000, 10_000, 20_000, 5_000)
    )
    if overlap is not None:
        spread = 7_500 - overlap if table == "s" else 13_000 - 2 * overlap
    centre = rng.normal(np.where(rng.random(count) < 0.5, low, high), spread)
    width = rng.normal(mean, deviation, count)
    while (below := width < 0).any():
        width[below] = rng.normal(mean, deviation, int(below.sum()))
    first, last = np.rint(centre - width / 2), np.rint(centre + width / 2)
    return tuple(np.clip(ends, 0, DOMAIN).astype(np.int64) for ends in (first, last))  # type: ignore[return-value]


def _struct(rows: pa.Table) -> pa.StructArray:
    (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return batch.to_struct_array()


def _events(table: str | pa.Array, op: str | pa.Array, row: pa.StructArray) -> pa.Table:
    table, op = (pa.repeat(one, len(row)) if isinstance(one, str) else one for one in (table, op))
    return pa.table({"table": table, "op": op, "row": row})


def _zipf(rows: int) -> Longs:
    """How many rows each of the JOINING values has, by rank: at least one."""
    weight = 1 / np.arange(1, JOINING + 1) ** ZIPF
    counts = np.maximum(1, np.floor(rows * weight / weight.sum())).astype(np.int64)
    counts[0] += rows - counts.sum()
    return np.asarray(counts)
