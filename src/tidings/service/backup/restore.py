"""Restores a backup into a new folder, and an empty database if it shall be in PostgreSQL; all of it or nothing.

The folder appears under its name when everything is in it. At its first start the service builds the index anew from
the registry, with the numbers that joins' subscriptions had, and goes on with the checkpoint. Sequences of joins go on
higher: a replica that has more notifications than the backup sees a gap, and requests a snapshot.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tarfile
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy import Connection, update

from tidings.service.backup.archive import STORES, ArchiveReader, BackupError, Report
from tidings.service.backup.rows import write_chunk
from tidings.service.settings import Settings
from tidings.service.store import tables
from tidings.service.store.database import HEADS, open_database
from tidings.spark.joins.sequence_mark import leave_sequences

# More notifications than were numbered between the backup and the loss of what it was taken of: listeners that had
# seen some of these go on with the first of the restored service, whose number is higher.
_SKIPPED: Final = 10**11


def restore(settings: Settings, stream: IO[bytes], report: Report = lambda what, done, total: None) -> None:
    """Restores a backup into `settings.data` and `settings.store`. The folder must be new or empty."""
    data = settings.data
    _refuse_used(data)
    archive = ArchiveReader(stream)
    _refuse_newer(archive)
    data.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{data.name}-restoring-", dir=data.parent))
    try:
        with ExitStack() as stack:
            # SQLite's files belong to the folder, which has another name until it is whole.
            stores = _new_stores(replace(settings, data=aside), archive, stack)
            for done, (parts, at, content) in enumerate(archive.members(), 1):
                if parts[0] in stores:
                    write_chunk(stores[parts[0]], "/".join(parts[1:]), content.read())
                elif parts[0] == "files":
                    _write_file(aside.joinpath(*parts[1:]), content, at)
                report("entries", done, 0)
            numbered = tables.counters.c
            raised = update(tables.counters).where(numbered.name == "number")
            stores["mailbox"].execute(raised.values(value=numbered.value + _SKIPPED))
            _name_schemas(aside, data)
            if (aside / "checkpoint" / "joins" / "spark").exists():
                leave_sequences(aside / "checkpoint" / "joins")
            os.sync()
        aside.chmod(0o755)
        aside.rename(data)
    except (tarfile.TarError, EOFError) as error:
        raise BackupError(f"the backup cannot be read to its end ({error}); take another") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _new_stores(settings: Settings, archive: ArchiveReader, stack: ExitStack) -> dict[str, Connection]:
    """Transactions of both stores with tables of the backup's revisions; they are committed when `stack` is closed
    without an error."""
    stores = {}
    for name in STORES:
        database = open_database(settings, name, new=True)
        stack.callback(database.close)
        stores[name] = stack.enter_context(database.writing())
        database.create(stores[name], str(archive.manifest[name]))
    return stores


def _refuse_used(data: Path) -> None:
    try:
        if not any(data.iterdir()):
            return
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise BackupError(f"{data} is a file; name a new folder by --data") from None
    holder = ""
    if (data / "LOCK").exists():
        with (data / "LOCK").open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = lock.read(32).strip()
    if holder:
        raise BackupError(f"process {holder} serves {data}; stop it, and name a new folder by --data")
    raise BackupError(f"{data} is not empty; name a new folder by --data, or move this one away")


def _refuse_newer(archive: ArchiveReader) -> None:
    for name in STORES:
        revision = str(archive.manifest.get(name, ""))
        if not revision.isdecimal():
            raise BackupError(f"the backup does not say which version its {name} has; take another")
        if revision > HEADS[name]:
            raise BackupError(
                f"the {name} in the backup has version {revision}, this program knows {HEADS[name]};"
                " install a newer tidings"
            )


def _write_file(path: Path, content: IO[bytes], at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    os.utime(path, (at, at))  # which is how old events of the log are


def _name_schemas(aside: Path, data: Path) -> None:
    """Spark notes where the schemas of its state are as whole paths: they get the path of this folder."""
    for path in (aside / "checkpoint").glob("**/state/*/_metadata/v2/*"):
        version, _, text = path.read_text().partition("\n")
        noted: dict[str, Any] = json.loads(text)
        folder = data.absolute() / path.relative_to(aside).parents[2]
        for store in noted.get("stateStoreInfo", ()):
            store["stateSchemaFilePaths"] = [
                f"file:{folder}/_stateSchema/{schema.partition('/_stateSchema/')[2]}"
                for schema in store.get("stateSchemaFilePaths", ())
            ]
        path.write_text(f"{version}\n{json.dumps(noted, separators=(',', ':'))}")
