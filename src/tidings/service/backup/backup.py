"""Writes a backup of a service, which may be running: everything that cannot be rebuilt, as of one moment.

The moments follow each other within milliseconds, in an order that loses nothing: registry, mailbox (webhooks'
cursors are numbers of it), the checkpoint cut to that mailbox, the index, the log. An event that was accepted before the
backup began is in it, matched or waiting.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import IO, Final

from sqlalchemy import Connection, select

from tidings import __version__
from tidings.service.backup.archive import STORES, ArchiveWriter, BackupError, Report
from tidings.service.backup.files import LinkedFiles, Overtaken, linked_files
from tidings.service.backup.rows import read_chunks, row_count
from tidings.service.settings import Settings
from tidings.service.store import tables
from tidings.service.store.database import open_database

_ATTEMPTS: Final = 5


def backup(settings: Settings, stream: IO[bytes], report: Report = lambda what, done, total: None) -> None:
    """Writes a backup of the service in `settings.data` and `settings.store`."""
    if not any((settings.data / name).exists() for name in ("log", "registry.db")):
        raise BackupError(f"no service keeps anything in {settings.data}; name its folder by --data")
    for left in reversed(range(_ATTEMPTS)):
        try:
            _backup(settings, stream, report)
            return
        except Overtaken:  # before anything was written
            if not left:
                raise


def _backup(settings: Settings, stream: IO[bytes], report: Report) -> None:
    with ExitStack() as stack:
        files = stack.enter_context(linked_files(settings.data))
        databases = {name: open_database(settings, name) for name in STORES}
        for database in databases.values():
            stack.callback(database.close)
        files.keep_log()  # of what retention removes from now on, too
        stores = {name: stack.enter_context(database.snapshot()) for name, database in databases.items()}
        files.keep_checkpoint(_batches(stores["mailbox"][0]))
        files.keep_index()
        files.keep_others()
        files.keep_log()
        revisions = {name: revision for name, (_, revision) in stores.items()}
        writer = ArchiveWriter(stream, {"tidings": __version__, **revisions})
        for name, (connection, _) in stores.items():
            _write_rows(writer, name, connection, report)
        _write_files(writer, files, report)
        writer.close()


def _batches(mailbox: Connection) -> dict[str, int]:
    """The last batch of each query."""
    kept = tables.reached.c
    return {row.query: row.batch for row in mailbox.execute(select(kept.query, kept.batch))}


def _write_rows(writer: ArchiveWriter, name: str, connection: Connection, report: Report) -> None:
    metadata = {"registry": tables.REGISTRY, "mailbox": tables.MAILBOX}[name]
    done, total = 0, row_count(connection, metadata)
    for chunk, rows, content in read_chunks(connection, metadata):
        writer.add(f"{name}/{chunk}", content)
        done += rows
        report(f"{name}, rows", done, total)


def _write_files(writer: ArchiveWriter, files: LinkedFiles, report: Report) -> None:
    done, total = 0, sum(files.sizes.values())
    for name, size in sorted(files.sizes.items()):
        writer.add_file(f"files/{name}", files.path(name), size)
        done += size
        report("files, bytes", done, total)
