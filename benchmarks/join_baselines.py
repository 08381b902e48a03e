"""What one would try before Tidings: DuckDB with the subscriptions in a table, or running their queries again.

Each gives the exact semijoin deltas of the binary workload: which subscription gains or loses which row, for each change
and with the tables as they are at that change. Rows are given by number, without their contents, which spares these
contenders the copying that Tidings is measured with. A change is one or two halves: the new row comes, the old one goes.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.join_workloads import Stream, Workload

COMES, GOES = 1, -1
DELTAS = pa.schema(
    [
        ("event", pa.int64()),  # place in the stream
        ("subscription", pa.int64()),
        ("change", pa.int8()),  # COMES or GOES
        ("table", pa.int8()),
        ("row", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Side:
    """The table that changes, its column with ranges, and the same of the table it is joined with."""

    place: int
    table: str
    value: str
    other: str
    other_value: str
    cell: int  # width of a bucket of the other column's ranges


SIDES = (Side(0, "r", "a", "s", "c", 2_000), Side(1, "s", "c", "r", "a", 10_000))


def halves(stream: Stream, change: int) -> Iterator[tuple[int, int]]:
    """(COMES or GOES, row) of a change; the new row comes before the old one goes."""
    if stream.new[change] >= 0:
        yield COMES, int(stream.new[change])
    if stream.old[change] >= 0:
        yield GOES, int(stream.old[change])


class Baseline(ABC):
    """Is given a workload, then its changes in order."""

    name: str

    def __init__(self, workload: Workload):
        self.workload = workload
        self.seconds = 0.0  # spent on changes so far
        self.images = [
            (rows.columns["b"], rows.columns[side.value])
            for rows, side in zip(workload.tables, SIDES, strict=True)
        ]

    @abstractmethod
    def apply(self, first: int, last: int) -> pa.Table:
        """The deltas of some changes, as DELTAS."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what it holds."""

    def subscriptions(self) -> pa.Table:
        """Their numbers and ranges."""
        (group,) = self.workload.groups
        return pa.table({"sub": np.arange(len(group))} | group.columns)

    def rows(self, side: Side, first: int = 0, last: int | None = None) -> pa.Table:
        """Images of rows of one table: number, join value, value."""
        joined, values = self.images[side.place]
        last = self.workload.tables[side.place].initial if last is None else last
        return pa.table(
            {"row": np.arange(first, last), "b": joined[first:last], side.value: values[first:last]}
        )


class DuckTable(Baseline):
    """One statement for each half of a change; of four plans that were tried the fastest."""

    name = "DuckDB, subscriptions in a table"

    # With EXISTS instead of DISTINCT a half takes 2.3 times as long, with an ASOF join 1.7 times.
    _AFFECTED = """
        WITH near AS (
            SELECT coalesce(max({value}) FILTER ({value} <= $v), -1) AS below,
                   coalesce(min({value}) FILTER ({value} >= $v), 1000000) AS above
            FROM {table} WHERE b = $b
        ), pairs AS MATERIALIZED (
            SELECT sub, o.row, {value}_low > below AND {value}_high < above AS fresh
            FROM subs JOIN {other} o ON o.{other_value} BETWEEN {other_value}_low AND {other_value}_high, near
            WHERE o.b = $b AND $v BETWEEN {value}_low AND {value}_high
        )
        SELECT DISTINCT sub, true AS own, $row AS row FROM pairs
        UNION ALL SELECT sub, false, row FROM pairs WHERE fresh
    """

    def __init__(self, workload: Workload):
        super().__init__(workload)
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self._create("subs", self.subscriptions())
        for side in SIDES:
            self._create(side.table, self.rows(side))

    def apply(self, first: int, last: int) -> pa.Table:
        stream, parts = self.workload.stream, []
        start = time.perf_counter()
        for change in range(first, last):
            side = SIDES[stream.table[change]]
            for sign, row in halves(stream, change):
                if sign == GOES:
                    self._delete(side, row)
                parts.append((change, sign, side.place, self._affected(side, row)))
                if sign == COMES:
                    self._insert(side, row)
        found = _gathered(parts)
        self.seconds += time.perf_counter() - start
        return found

    def close(self) -> None:
        self.connection.close()

    def _affected(self, side: Side, row: int) -> dict[str, np.ndarray]:
        """Whom the coming or going of a row concerns; the row itself is not in its table."""
        joined, values = self.images[side.place]
        query = self._AFFECTED.format(
            table=side.table, value=side.value, other=side.other, other_value=side.other_value
        )
        parameters = {"v": int(values[row]), "b": int(joined[row]), "row": row}
        return self.connection.execute(query, parameters).fetchnumpy()

    def _insert(self, side: Side, row: int) -> None:
        joined, values = self.images[side.place]
        self.connection.execute(
            f"INSERT INTO {side.table} VALUES (?, ?, ?)", [row, int(joined[row]), int(values[row])]
        )

    def _delete(self, side: Side, row: int) -> None:
        self.connection.execute(f"DELETE FROM {side.table} WHERE row = ?", [row])

    def _create(self, name: str, content: pa.Table) -> None:
        self.connection.register("given", content)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.connection.unregister("given")


class DuckQueries(DuckTable):
    """The query of every affected subscription, run again and compared with what it gave before. Which ones are
    affected, and their first results, are told: that time is not counted."""

    name = "DuckDB, each affected query again"

    _RESULT = """
        SELECT 0 AS "table", row FROM r WHERE a BETWEEN $a_low AND $a_high
            AND EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND c BETWEEN $c_low AND $c_high)
        UNION ALL SELECT 1, row FROM s WHERE c BETWEEN $c_low AND $c_high
            AND EXISTS (SELECT 1 FROM r WHERE r.b = s.b AND a BETWEEN $a_low AND $a_high)
    """

    def __init__(self, workload: Workload):
        super().__init__(workload)
        self._known: dict[int, set[tuple[int, int]]] = {}

    def apply(self, first: int, last: int) -> pa.Table:
        stream, found = self.workload.stream, []
        for change in range(first, last):
            side = SIDES[stream.table[change]]
            concerned: set[int] = set()
            for sign, row in halves(stream, change):
                if sign == GOES:  # those that a going row concerns are found when it is in nobody's way
                    self._delete(side, row)
                concerned.update(self._affected(side, row)["sub"].tolist())
                if sign == GOES:
                    self._insert(side, row)
            for sub in concerned - self._known.keys():
                self._known[sub] = self._result(sub)
            start = time.perf_counter()
            for sign, row in halves(stream, change):
                if sign == COMES:
                    self._insert(side, row)
                else:
                    self._delete(side, row)
            for sub in sorted(concerned):
                result = self._result(sub)
                found += [(change, sub, COMES, *row) for row in result - self._known[sub]]
                found += [(change, sub, GOES, *row) for row in self._known[sub] - result]
                self._known[sub] = result
            self.seconds += time.perf_counter() - start
        return pa.Table.from_pylist([dict(zip(DELTAS.names, row, strict=True)) for row in found], DELTAS)

    def _result(self, sub: int) -> set[tuple[int, int]]:
        ranges = {name: int(values[sub]) for name, values in self.workload.groups[0].columns.items()}
        return set(self.connection.execute(self._RESULT, ranges).fetchall())


class DuckBuckets(DuckTable):
    """Many changes in one statement: rows carry the changes at which they came and went, and ranges are spread over
    buckets, because DuckDB joins by hash what it would else join by sorting (17 times as slow). Nobody is told before
    the last change of a batch has come."""

    name = "DuckDB, batches and buckets"

    _FOREVER = 1 << 40
    _AFFECTED_BATCH = """
        WITH near AS (
            SELECT q, sign, max(m.{value}) FILTER (m.{value} <= v) AS below,
                   min(m.{value}) FILTER (m.{value} >= v) AS above
            FROM halves JOIN {table} m USING (b)
            WHERE CASE WHEN sign > 0 THEN born < q AND died >= q ELSE born <= q AND died > q END
            GROUP BY q, sign
        ), points AS (
            SELECT h.*, o.row AS met, o.{other_value} AS w, coalesce(below, -1) AS below,
                   coalesce(above, {forever}) AS above
            FROM halves h JOIN {other} o ON o.b = h.b AND born < h.q AND died >= h.q
                LEFT JOIN near ON near.q = h.q AND near.sign = h.sign
        ), pairs AS MATERIALIZED (
            SELECT q, sign, sub, p.row, met, {value}_low > below AND {value}_high < above AS fresh
            FROM points p JOIN {other_value}_buckets ON bucket = w // {cell}
            WHERE v BETWEEN {value}_low AND {value}_high AND w BETWEEN {other_value}_low AND {other_value}_high
        )
        SELECT DISTINCT q AS event, sub AS subscription, sign AS change, {place} AS "table", row FROM pairs
        UNION ALL SELECT q, sub, sign, 1 - {place}, met FROM pairs WHERE fresh
    """

    def __init__(self, workload: Workload):
        super().__init__(workload)
        for side in SIDES:
            name, cell = side.other_value, side.cell
            self.connection.execute(
                f"CREATE TABLE {name}_buckets AS SELECT subs.*, bucket FROM subs, LATERAL "
                f"(SELECT unnest(generate_series({name}_low // {cell}, {name}_high // {cell})) AS bucket)"
            )
            self.connection.execute(f"ALTER TABLE {side.table} ADD COLUMN born BIGINT DEFAULT -1")
            self.connection.execute(
                f"ALTER TABLE {side.table} ADD COLUMN died BIGINT DEFAULT {self._FOREVER}"
            )

    def apply(self, first: int, last: int) -> pa.Table:
        start = time.perf_counter()
        stream, execute = self.workload.stream, self.connection.execute
        places = stream.table[first:last]
        numbers = np.arange(first, last)
        batches = []
        for side in SIDES:
            joined, values = self.images[side.place]
            signs = ((COMES, stream.new[first:last]), (GOES, stream.old[first:last]))
            kept = [(sign, (places == side.place) & (rows >= 0), rows) for sign, rows in signs]
            row = np.concatenate([rows[some] for _, some, rows in kept])
            batch = pa.table(
                {
                    "q": np.concatenate([numbers[some] for _, some, _ in kept]),
                    "sign": np.concatenate([np.full(some.sum(), sign, np.int8) for sign, some, _ in kept]),
                    "row": row,
                    "b": joined[row],
                    "v": values[row],
                }
            )
            self.connection.register("halves", batch)
            execute(
                f"INSERT INTO {side.table} SELECT row, b, v, q, {self._FOREVER} FROM halves WHERE sign > 0"
            )
            execute(f"UPDATE {side.table} t SET died = q FROM halves h WHERE h.row = t.row AND h.sign < 0")
            self.connection.unregister("halves")
            batches.append((side, batch))
        found = []
        for side, batch in batches:
            if batch.num_rows:
                self.connection.register("halves", batch)
                query = self._AFFECTED_BATCH.format(
                    table=side.table,
                    value=side.value,
                    other=side.other,
                    other_value=side.other_value,
                    cell=side.cell,
                    place=side.place,
                    forever=self._FOREVER,
                )
                found.append(self.connection.sql(query).to_arrow_table().cast(DELTAS))
                self.connection.unregister("halves")
        for side in SIDES:
            execute(f"DELETE FROM {side.table} WHERE died < {last}")
        table = pa.concat_tables([*found, DELTAS.empty_table()])
        self.seconds += time.perf_counter() - start
        return table


def _gathered(parts: list[tuple[int, int, int, dict[str, np.ndarray]]]) -> pa.Table:
    """The answers of single halves as one table."""
    counts = [len(found["sub"]) for *_, found in parts]
    own = np.concatenate([found["own"] for *_, found in parts])
    place = np.repeat([place for _, _, place, _ in parts], counts)
    columns = (
        np.repeat([change for change, *_ in parts], counts),
        np.concatenate([found["sub"] for *_, found in parts]),
        np.repeat([sign for _, sign, *_ in parts], counts),
        np.where(own, place, 1 - place),
        np.concatenate([found["row"] for *_, found in parts]),
    )
    return pa.table(dict(zip(DELTAS.names, columns, strict=True))).cast(DELTAS)
