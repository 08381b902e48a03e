"""Opens a database, migrates it to this version's tables, and provides its transactions.

On SQLite writers take turns (BEGIN IMMEDIATE; threads of one process by a lock, which is fair where SQLite's
waiting is not) and readers have connections of their own, which never wait. A commit is on disk before it
returns.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, MetaData, Table, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError,
)

from tidings.errors import TidingsError

BUSY_SECONDS: Final = 30
_CONNECT_SECONDS: Final = 5  # until a server that does not answer counts as away
_REPORT_SECONDS = 10.0  # between two lines of the log about one database that is away
_INCREMENTAL = 2  # of SQLite's auto_vacuum
_AT_ONCE = 1_000  # pages
_REWRITTEN = 512 << 20  # bytes of content, at most
_SMALL = 16 << 20
_MIGRATIONS = Path(__file__).parent / "migrations"
# Under which PostgreSQL lets one process at a time bring tables to this version.
_MIGRATING = 7_464_494_263_115_337_043


logger = logging.getLogger(__name__)


class StoreError(TidingsError):
    """The database cannot be used: unreachable, busy for too long, of another program, or of a newer version."""


class StoreAway(StoreError):
    """The database does not answer now. The message names no host: it is shown to users of the service."""

    status = 503
    retry_after = 5.0


class StoreUnreachable(StoreError):
    """The database does not answer when it is opened, and may do so soon."""


class Database:
    """The database of one store. Thread-safe; `name` is that of its chain of migrations, `head` the last of them. A
    `new` one has no tables until `create`."""

    def __init__(self, url: URL, tables: MetaData, name: str, head: str, *, new: bool = False) -> None:
        self.url, self.name, self.tables = url, name, tables
        self.on_postgresql = url.get_backend_name() == "postgresql"
        self._write_lock = None if self.on_postgresql else threading.Lock()
        self._reported = -_REPORT_SECONDS
        if self.on_postgresql:
            self._writers: Engine = _postgresql(url)
            # A read may take several statements, between which something may be deleted.
            self._readers: Engine = self._writers.execution_options(isolation_level="REPEATABLE READ")
        else:
            _prepare_file(Path(str(url.database)))
            self._readers, self._writers = _sqlite(url, read_only=True), _sqlite(url, read_only=False)
        try:
            if not new:
                self._migrate(tables, head)
        except BaseException:
            self.close()
            raise

    def create(self, connection: Connection, revision: str) -> None:
        """Makes the tables as they were at a revision, in the transaction of `connection`; StoreError if there are
        some."""
        if self._version(connection) is not None:
            raise StoreError(f"{self} holds a {self.name} already; name an empty database")
        self._upgrade(connection, self.tables, revision)

    def close(self) -> None:
        self._readers.dispose()
        self._writers.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees what was committed at its first statement, and changes nothing."""
        with self._store_errors(), self._readers.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Connection, str]]:
        """A transaction that sees, however long it takes, what was committed when it began; with the revision of the
        tables. Others go on writing."""
        with self.reading() as connection:
            yield connection, str(self._version(connection))  # the first read is the moment

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends, or is rolled back if it raises."""
        with self._store_errors(), self._turn(), self._writers.begin() as connection:
            yield connection

    def size(self) -> int:
        """The bytes of the content, without what is free in its files; an estimate on PostgreSQL."""
        with self.reading() as connection:
            if self.on_postgresql:
                return sum(_estimated_size(connection, name) for name in self.tables.tables)
            return (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * _pragma(
                connection, "page_size"
            )

    def shrink(self) -> None:
        """Makes the file smaller if a quarter of it is free, in portions, so that others can write in between. A
        file that an earlier version has made is rewritten once, when that takes seconds. PostgreSQL does it alone."""
        if self.on_postgresql:
            return
        with self.reading() as connection:
            pages, free = _pragma(connection, "page_count"), _pragma(connection, "freelist_count")
            used = (pages - free) * _pragma(connection, "page_size")
            can_shrink = _pragma(connection, "auto_vacuum") == _INCREMENTAL
        if free * 4 < pages:
            return
        content, before = pages - free, pages
        while can_shrink and free * 8 > content and free < before:
            before = free
            with self.writing() as connection:
                # Each step frees a page, and gives a row without columns, which SQLAlchemy does not fetch.
                raw: Any = connection.connection.driver_connection
                raw.execute(f"PRAGMA incremental_vacuum({_AT_ONCE})").fetchall()
                free = _pragma(connection, "freelist_count")
        with self._store_errors(), self._turn(), self._writers.connect() as connection:
            raw = connection.connection.driver_connection  # outside of a transaction
            if not can_shrink and used <= _REWRITTEN:
                raw.execute("PRAGMA temp_store = FILE")  # not in memory
                raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
                raw.execute("VACUUM")
                raw.execute("PRAGMA temp_store = MEMORY")
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._write_lock is None:
            yield
            return
        # Without an end to it, each of many writers would wait for a locked file after the others.
        if not self._write_lock.acquire(timeout=BUSY_SECONDS):
            raise StoreAway(f"the {self.name} is busy; try again in a few seconds")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, InterfaceError, InternalError, TimeoutError) as error:
            raise self._away(error) from error
        except DatabaseError as error:
            if type(error) is not DatabaseError:  # a child is a mistake of a statement, or a conflict of rows
                raise
            raise self._away(error) from error  # such as a damaged file

    def _away(self, error: SQLAlchemyError) -> StoreAway:
        now = time.monotonic()
        if now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            logger.warning("the %s cannot be used now: %s", self.name, _cause(error))
        if self.on_postgresql:  # whose messages name hosts
            return StoreAway(f"the {self.name} does not answer; try again in a few seconds")
        return StoreAway(f"the {self.name} cannot be used now: {_cause(error)}; try again in a few seconds")

    def _migrate(self, tables: MetaData, head: str) -> None:
        try:
            if self._version() == head:
                return
            with self.writing() as connection:
                if self.on_postgresql:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
                    encoding = connection.execute(text("SHOW server_encoding")).scalar()
                    if encoding != "UTF8":
                        raise StoreError(
                            f"the database {self} has the encoding {encoding}; create one with UTF8"
                        )
                self._upgrade(connection, tables, head)
        except StoreAway as error:
            cause = error.__cause__
            what = _cause(cause) if isinstance(cause, SQLAlchemyError) else error
            raise StoreUnreachable(
                f"the {self.name} cannot be used now: {what}; try again ({self})"
            ) from error
        except StoreError as error:
            raise StoreError(f"{error} ({self})" if str(self) not in str(error) else str(error)) from error
        except DatabaseError as error:
            if self.on_postgresql and isinstance(error, OperationalError) and not _is_refusal(error):
                raise StoreUnreachable(
                    f"the {self.name} does not answer: {_cause(error)}; start it, or name another by --store ({self})"
                ) from error
            raise StoreError(
                f"{self} cannot be used as {self.name}: {_cause(error)}; name another"
            ) from error

    def _upgrade(self, connection: Connection, tables: MetaData, head: str) -> None:
        at = self._version(connection)
        if at is not None and at > head:
            raise StoreError(
                f"the {self.name} in {self} has version {at}, this program knows {head}; install a newer tidings"
            )
        if at is None and (
            foreign := sorted(set(inspect(connection).get_table_names()) & set(tables.tables))
        ):
            raise StoreError(
                f"{self} has tables of somebody else, such as {foreign[0]!r}; give tidings a database of its own"
            )
        from alembic import command  # only here: a start without anything to do is quicker by it
        from alembic.config import Config

        config = Config(attributes={"connection": connection, "version_table": f"{self.name}_version"})
        config.set_main_option("script_location", _escaped(_MIGRATIONS))
        config.set_main_option("version_locations", _escaped(_MIGRATIONS / self.name))
        config.set_main_option("path_separator", "newline")
        command.upgrade(config, head)

    def _version(self, connection: Connection | None = None) -> str | None:
        if connection is None:
            with self._writers.connect() as connection:
                return self._version(connection)
        if not inspect(connection).has_table(f"{self.name}_version"):
            return None
        return connection.execute(text(f"SELECT version_num FROM {self.name}_version")).scalar()

    def __str__(self) -> str:
        return (
            self.url.set(drivername="postgresql").render_as_string()
            if self.on_postgresql
            else str(self.url.database)
        )


def _is_refusal(error: OperationalError) -> bool:
    """Whether a server has answered, and will answer the same: no such database, no such user, another password."""
    said = str(error.orig)
    return (
        "FATAL:" in said and "the database system is" not in said
    )  # starting up, shutting down, in recovery


def postgresql_url(given: str) -> URL:
    """The address of a PostgreSQL database, for the psycopg driver."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        shown = given.split(":")[0][:40]  # the rest may hold a password
        raise StoreError(
            f"the store {shown!r}… is no address of PostgreSQL; try postgresql://user@host/database"
        )
    return url.set(drivername="postgresql+psycopg")


def sqlite_url(path: Path) -> URL:
    return URL.create("sqlite+pysqlite", database=str(path))


def insert_columns(
    connection: Connection, table: Table, columns: Mapping[str, Sequence[Any]], conflict: str = ""
) -> None:
    """Inserts many rows into a table, given as columns of plain values with clean texts. `conflict` is an ON
    CONFLICT clause for rare conflicts. IntegrityError if a row exists already."""
    if not len(next(iter(columns.values()))):
        return
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) {conflict}",
            list(zip(*columns.values(), strict=True)),
        )
    elif not conflict:
        _copy(connection, table.name, columns)
    else:
        # 100,000 notifications took 1.1 s by COPY, 1.8 s through a table aside, 2.1 s and more as arrays.
        try:
            with connection.begin_nested():
                _copy(connection, table.name, columns)
        except IntegrityError:
            aside, names = f"{table.name}_aside", ", ".join(columns)
            connection.exec_driver_sql(f"CREATE TEMP TABLE {aside} (LIKE {table.name}) ON COMMIT DROP")
            _copy(connection, aside, columns)
            connection.exec_driver_sql(
                f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {aside} ORDER BY ctid {conflict}"
            )


def _copy(connection: Connection, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
    import psycopg

    raw: Any = connection.connection.cursor()
    try:
        with raw as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)
    except psycopg.IntegrityError as error:
        raise IntegrityError("COPY", None, error) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise OperationalError("COPY", None, error) from error


def _sqlite(url: URL, *, read_only: bool) -> Engine:
    engine = create_engine(
        url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, pool_size=8, max_overflow=56
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: the driver would say it late
        if connection.execute("PRAGMA page_count").fetchone() == (0,):  # later it takes VACUUM
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("PRAGMA temp_store = MEMORY")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _estimated_size(connection: Connection, table: str) -> int:
    """The bytes of the rows of a PostgreSQL table and of their part of the indexes. Its files do not become smaller
    when rows are deleted: if they are small nothing is counted, otherwise rows are, times the mean of some."""
    sizes = f"SELECT pg_total_relation_size('{table}'), pg_indexes_size('{table}'), pg_table_size('{table}')"
    total, indexes, rows = connection.exec_driver_sql(sizes).one()
    if total < _SMALL:
        return int(total)
    mean = f"SELECT avg(pg_column_size(kept.*)) + 28 FROM (SELECT * FROM {table} LIMIT 1000) kept"
    counted = connection.exec_driver_sql(f"SELECT count(*), coalesce(({mean}), 0) FROM {table}").one()
    return min(int(total), int(counted[0] * float(counted[1]) * (1 + indexes / max(1, rows))))


def _postgresql(url: URL) -> Engine:
    try:
        engine = create_engine(
            url,
            pool_pre_ping=True,
            pool_size=8,
            max_overflow=24,
            connect_args={} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS},
        )
    except ModuleNotFoundError:
        raise StoreError(
            "PostgreSQL needs the package psycopg; install Tidings with the extra 'postgresql'"
        ) from None

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:
        # A server that answers before a commit is written would lose it in a crash, with numbers that clients know.
        connection.autocommit = True
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.autocommit = False

    return engine


def _prepare_file(path: Path) -> None:
    """Creates the file, readable only by its owner: it holds the secrets of feeds and webhooks."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; name another folder") from error


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")


def _cause(error: SQLAlchemyError) -> str:
    """The database's own message, on one line."""
    cause = getattr(error, "orig", None) or error
    return " ".join(str(cause).split())[:300] or type(cause).__name__
