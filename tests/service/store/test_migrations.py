"""Databases come to this version's tables, from nothing and from the first revision; what is newer, or not ours, is
refused in a sentence."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from tests.postgresql import Server
from tests.service.store.batches import batch, notification_row, subscription
from tests.service.store.conftest import Stores
from tidings.service.model import Source
from tidings.service.settings import Settings
from tidings.service.store import mailbox, registry, tables
from tidings.service.store.database import StoreError, open_database, open_mailbox, open_registry, open_stores
from tidings.service.store.mailbox_rows import event_key
from tidings.service.store.transactions import _MIGRATIONS

KEY = event_key("//here", "e")


@pytest.mark.parametrize(("name", "head"), [("registry", registry.HEAD), ("mailbox", mailbox.HEAD)])
def test_the_head_that_is_looked_for_is_the_last_revision(name: str, head: str) -> None:
    scripts = ScriptDirectory(str(_MIGRATIONS), version_locations=[str(_MIGRATIONS / name)])
    assert scripts.get_current_head() == head
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert sorted(revisions, reverse=True) == revisions
    files = [path.stem[1:5] for path in (_MIGRATIONS / name).glob("r*.py")]
    assert sorted(files, reverse=True) == revisions  # each revision has one file


@pytest.mark.filterwarnings("ignore:.*expression-based index")  # of SQLite, whose index other tests use
def test_the_migrations_come_to_the_tables_of_this_version(empty: Settings) -> None:
    opened = open_stores(empty)
    for store, metadata, others in zip(
        opened, (tables.REGISTRY, tables.MAILBOX), (tables.MAILBOX, tables.REGISTRY), strict=True
    ):
        ignored = {"registry_version", "mailbox_version", *others.tables}

        def ours(thing, name, kind, reflected, other, ignored=ignored) -> bool:
            return not (kind == "table" and name in ignored)

        with store._database.reading() as connection:
            options = {"include_object": ours, "compare_type": True}
            assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        store.close()


def test_opening_again_keeps_everything(stores: Stores) -> None:
    stores.registry.add(subscription("a"))
    again = open_registry(stores.settings)
    assert again.find("a") is not None
    again.close()


def test_sources_from_before_intervals_have_that_of_the_service(empty: Settings) -> None:
    database = open_database(empty, "registry", new=True)
    with database.writing() as connection:
        database.create(connection, "0006")
        connection.execute(
            text("INSERT INTO sources (url, title, owner, added) VALUES ('http://a/', 'A', 'me', 2)")
        )
    database.close()
    opened = open_registry(empty)
    assert opened.sources() == [Source("http://a/", "A", "me", 2.0, None)]
    assert opened.change_source(Source("http://a/", "A", "me", 2.0, 60.0))
    opened.close()


def test_a_mailbox_from_before_blocks_is_taken_over(empty: Settings) -> None:
    """What revision 0003 wrote: no event says at which number its notifications begin."""
    database = open_database(empty, "mailbox", new=True)
    told = "INSERT INTO notifications (number, subscription, kind, at, event) VALUES "
    with database.writing() as connection:
        database.create(connection, "0003")
        connection.execute(
            text(told + f"(70, 's', 'match', 1, :key), ({1 << 20}, 's', 'match', 1, :key)"), {"key": KEY}
        )
        values = {"key": KEY, "last": 1 << 20}
        connection.execute(
            text("INSERT INTO events (key, id, source, last) VALUES (:key, 'e', '//here', :last)"), values
        )
        connection.execute(text(f"UPDATE counters SET value = {1 << 20} WHERE name = 'number'"))
    database.close()
    opened = open_mailbox(empty)
    newest, oldest = opened.page(["s"])
    assert (oldest.number, newest.number) == (70, 1 << 20)
    assert opened.find("s", oldest.id) == newest  # both are of the same event
    assert opened.record(*batch(0, [notification_row("s", "e"), notification_row("t", "e")]))
    assert [one.subscription for one in opened.page(["s", "t"])] == ["t", "s", "s"]  # the event is known
    opened.close()


def test_many_may_open_a_new_database_at_once(empty: Settings) -> None:
    opened, failed = [], []

    def run() -> None:
        try:
            opened.append(open_mailbox(empty))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert {store.last() for store in opened} == {0}
    for store in opened:
        store.close()


def test_a_newer_database_is_refused(stores: Stores) -> None:
    with stores.mailbox._database.writing() as connection:
        connection.execute(text("UPDATE mailbox_version SET version_num = '0999'"))
    with pytest.raises(StoreError, match="version 0999, this program knows .*; install a newer tidings"):
        open_stores(stores.settings)


def test_tables_of_somebody_else_are_left_alone(empty: Settings, kind: str, request) -> None:
    if kind == "sqlite":
        with sqlite3.connect(empty.data / "registry.db") as connection:
            connection.execute("CREATE TABLE tokens (mine)")
        connection.close()
    else:
        import psycopg

        with psycopg.connect(empty.store) as connection:
            connection.execute("CREATE TABLE tokens (mine text)")
    with pytest.raises(StoreError, match="tables of somebody else, such as 'tokens'"):
        open_registry(empty)


def test_files_that_are_no_database_are_refused(tmp_path: Path) -> None:
    (tmp_path / "registry.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="registry.db"):
        open_registry(Settings(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        open_registry(Settings(tmp_path / "file"))


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    for store in open_stores(Settings(tmp_path / "new" / "data")):
        store.close()
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "new" / "data").iterdir()} == {"0o600"}


@pytest.mark.parametrize(
    "store",
    ["mysql://ann:s3cret@host/db", "postgresql:/", "s3cret", "", "postgresql+asyncpg://ann:s3cret@h/d"],
)
def test_other_addresses_are_refused_without_their_password(store: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        open_stores(Settings(tmp_path, store=store))
    assert "s3cret@" not in str(error.value)


def test_a_server_out_of_reach_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        open_stores(Settings(tmp_path, store=f"postgresql://ann:s3cret@/db?host={tmp_path}"))
    assert "s3cret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_database_of_another_encoding_is_refused(server: Server, tmp_path: Path) -> None:
    options = "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    with pytest.raises(StoreError, match="encoding LATIN1"):
        open_stores(Settings(tmp_path, store=server.create("latin", options)))


def test_a_store_whose_disk_is_taken_away_says_so(stores: Stores, kind: str, server: Server) -> None:
    if kind == "sqlite":
        pytest.skip("a file that is open stays")
    other = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname <> 'postgres'"
    assert stores.registry.last_change() == 0
    server.sql(other)
    assert stores.registry.add(subscription("a")) == 1  # a broken connection is noticed before it is used
    assert os.path.exists(stores.settings.data)
