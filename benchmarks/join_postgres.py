"""The subscriptions in a table of PostgreSQL, joined to each change inside the server.

A server of the system's packages is started on a folder of its own, reached by a socket in it, and stopped; nothing of
it is left. The changes are loaded before the clock starts, a function goes through them one by one, and psql copies the
deltas out: no round trip is paid for a change.
"""

from __future__ import annotations

import io
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from benchmarks.join_baselines import DELTAS, SIDES, Baseline, Side
from benchmarks.join_workloads import Workload

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/usr/pgsql", "/opt/homebrew/opt")
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "synchronous_commit": "off",
    "jit": "off",
    "shared_buffers": "512MB",
    "work_mem": "64MB",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",
}


def programs() -> Path | None:
    """The folder of the newest PostgreSQL on this machine."""
    found = [path.parent for folder in _FOLDERS for path in Path(folder).glob("**/bin/initdb")]
    if not found and (path := shutil.which("initdb")):
        found = [Path(path).resolve().parent]
    return max(found, default=None, key=lambda folder: _version(folder))


def _version(folder: Path) -> int:
    said = subprocess.run([folder / "initdb", "--version"], capture_output=True, text=True, check=True)
    return int(said.stdout.split()[-1 if "(" not in said.stdout else 2].split(".")[0])


class Server:
    """A server with an empty database. As root it runs under an account that may: PostgreSQL refuses root."""

    def __init__(self, folder: Path):
        self.programs = folder
        self.home = Path(tempfile.mkdtemp(prefix="tidings-postgres-"))
        self.account: dict[str, object] = {}
        if os.geteuid() == 0:
            owner = next(one for one in pwd.getpwall() if one.pw_name in ("postgres", "nobody"))
            os.chown(self.home, owner.pw_uid, owner.pw_gid)
            self.account = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        try:
            self._run("initdb", "-D", f"{self.home}/data", "-A", "trust", "-U", "tidings", "-N")
            self._run(
                "pg_ctl", "-D", f"{self.home}/data", "-l", f"{self.home}/log", "-w", "-o",
                f"-k {self.home} {settings}", "start",
            )  # fmt: skip
        except BaseException:
            self.close()
            raise

    def sql(self, text: str, given: bytes | None = None) -> bytes:
        """What psql prints for some statements; `given` is what a COPY reads."""
        words = ["-h", str(self.home), "-U", "tidings", "-d", "postgres", "-X", "-q", "-A", "-t"]
        return self._run("psql", *words, "-v", "ON_ERROR_STOP=1", "-c", text, given=given)

    def close(self) -> None:
        if (self.home / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", f"{self.home}/data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.home)

    def _run(self, program: str, *words: str, given: bytes | None = None) -> bytes:
        # pg_ctl's server keeps its output open: a pipe would never end.
        out = subprocess.PIPE if program == "psql" else subprocess.DEVNULL
        done = subprocess.run(
            [self.programs / program, *words],
            input=given,
            stdout=out,
            stderr=subprocess.PIPE if program == "psql" else subprocess.DEVNULL,
            cwd=self.home,
            **self.account,  # type: ignore[call-overload]
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(done.stderr or b'').decode().strip()}")
        return bytes(done.stdout or b"")


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
        self.server = Server(folder)
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
