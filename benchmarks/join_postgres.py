"""The subscriptions in a table of PostgreSQL, joined to each change inside the server.

The server is one of the system's packages, as the tests start it. The changes are loaded before the clock starts, a
function goes through them one by one, and psql copies the deltas out: no round trip is paid for a change.
"""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from benchmarks.join_baselines import DELTAS, SIDES, Baseline, Side
from benchmarks.join_workloads import Workload
from tests.postgresql import Server

_SETTINGS = {
    "shared_buffers": "512MB",
    "work_mem": "64MB",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",
}


class PostgresTable(Baseline):
    """A GiST index over the rectangles of subscriptions, B-trees over (join value, value) of rows. Of the indexes that
    were tried it is the fastest: SP-GiST takes 3.6 times as long, GiST over two ranges 5.9 times."""

    name = "PostgreSQL, subscriptions in a table"

    # below and above: the nearest values among other rows with the join value, as in Select-joins, 3.1.2. Looking up
    # the segment that all joining rows lie on takes 0.4 times as long as looking up each of them.
    _HALF = """
        SELECT max({value}) INTO below FROM {table} WHERE b = b_ AND {value} <= v_;
        SELECT min({value}) INTO above FROM {table} WHERE b = b_ AND {value} >= v_;
        SELECT min({other_value}), max({other_value}) INTO low, high FROM {other} WHERE b = b_;
        RETURN QUERY WITH affected AS MATERIALIZED (
            SELECT sub, {other_value}_low, {other_value}_high,
                   {value}_low > coalesce(below, -1) AND {value}_high < coalesce(above, 1 << 30) AS fresh
            FROM subs WHERE area && {segment} AND EXISTS (
                SELECT 1 FROM {other} o WHERE o.b = b_ AND o.{other_value} BETWEEN {other_value}_low AND {other_value}_high
            )
        )
        SELECT q, p.sub, sign, {place}, row_ FROM affected p
        UNION ALL SELECT q, p.sub, sign, 1 - {place}, o.row FROM affected p
            JOIN {other} o ON o.b = b_ AND o.{other_value} BETWEEN {other_value}_low AND {other_value}_high
            WHERE p.fresh;
    """

    def __init__(self, workload: Workload, folder: Path):
        super().__init__(workload)
        self.server = Server(folder, _SETTINGS)
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def apply(self, first: int, last: int) -> pa.Table:
        start = time.perf_counter()
        text = self.server.sql(
            f"SET enable_seqscan = off; COPY (SELECT * FROM deltas({first}, {last})) TO STDOUT (FORMAT csv)"
        )
        found = DELTAS.empty_table()
        if text:
            options = csv.ReadOptions(column_names=DELTAS.names)
            types = csv.ConvertOptions(column_types=DELTAS)
            found = csv.read_csv(io.BytesIO(text), options, convert_options=types)
        self.seconds += time.perf_counter() - start
        return found

    def close(self) -> None:
        self.server.close()

    def _load(self) -> None:
        stream = self.workload.stream
        ranges = ", ".join(f"{name} int" for name in self.workload.groups[0].columns)
        self._create("subs", f"sub int, {ranges}", self.subscriptions())
        self.server.sql(
            "ALTER TABLE subs ADD area box GENERATED ALWAYS AS (box(point(a_low, c_low), point(a_high, c_high))) STORED;"
            "CREATE INDEX ON subs USING gist (area)"
        )
        for side in SIDES:
            columns = f"row int, b int, {side.value} int"
            self._create(side.table, columns, self.rows(side))
            everything = self.rows(side, 0, len(self.workload.tables[side.place]))
            self._create(f"{side.table}_images", columns, everything)
            self.server.sql(
                f"CREATE INDEX ON {side.table} (b, {side.value}); CREATE INDEX ON {side.table} (row);"
                f"CREATE INDEX ON {side.table}_images (row)"
            )
            self.server.sql(self._function(side))
        changes = {"q": np.arange(len(stream)), "place": stream.table, "new": stream.new, "old": stream.old}
        self._create("changes", "q int PRIMARY KEY, place int, new int, old int", pa.table(changes))
        self.server.sql(
            f"""CREATE FUNCTION deltas(first int, last int)
            RETURNS TABLE (event int, sub int, change int, place int, met int) LANGUAGE plpgsql AS $$
            #variable_conflict use_column
            DECLARE x changes;
            BEGIN
                FOR x IN SELECT * FROM changes WHERE q >= first AND q < last ORDER BY q LOOP
                    IF x.place = 0 THEN {self._steps(SIDES[0])} ELSE {self._steps(SIDES[1])} END IF;
                END LOOP;
            END $$;
            ANALYZE"""
        )

    def _steps(self, side: Side) -> str:
        table = side.table
        return f"""
            IF x.new >= 0 THEN
                RETURN QUERY SELECT * FROM {table}_half(x.q, 1, x.new);
                INSERT INTO {table} SELECT * FROM {table}_images i WHERE i.row = x.new;
            END IF;
            IF x.old >= 0 THEN
                DELETE FROM {table} t WHERE t.row = x.old;
                RETURN QUERY SELECT * FROM {table}_half(x.q, -1, x.old);
            END IF;"""

    def _function(self, side: Side) -> str:
        ends = ("point(v_, low), point(v_, high)", "point(low, v_), point(high, v_)")
        body = self._HALF.format(
            table=side.table,
            value=side.value,
            other=side.other,
            other_value=side.other_value,
            place=side.place,
            segment=f"box({ends[side.place]})",
        )
        return f"""CREATE FUNCTION {side.table}_half(q int, sign int, row_ int)
            RETURNS TABLE (event int, sub int, change int, place int, met int) LANGUAGE plpgsql AS $$
            #variable_conflict use_column
            DECLARE b_ int; v_ int; below int; above int; low int; high int;
            BEGIN
                SELECT b, {side.value} INTO b_, v_ FROM {side.table}_images i WHERE i.row = row_;
                {body}
            END $$"""

    def _create(self, name: str, columns: str, content: pa.Table) -> None:
        out = io.BytesIO()
        csv.write_csv(content, out, csv.WriteOptions(include_header=False))
        self.server.sql(f"CREATE UNLOGGED TABLE {name} ({columns})")
        self.server.sql(f"COPY {name} FROM STDIN (FORMAT csv)", out.getvalue())
