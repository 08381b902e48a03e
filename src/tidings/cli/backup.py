"""`tidings backup` and `tidings restore`: everything that a service keeps, in one file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from tidings.cli import options, terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.service.backup.archive import Report


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@options.data
@options.store
def backup(file: Path, data: Path, store: str | None) -> None:
    """Write a backup of a service to FILE. The service may run meanwhile.

    It holds everything that cannot be rebuilt: subscriptions, tokens, sources, webhooks, notifications, the event log, the
    stream's checkpoint with the rows of joined tables, the key of cookies. It contains secrets, so the file can be read by
    its owner alone. Files that 'tidings serve' is given (taxonomy, networks, operators, tables) are not in it. FILE is a tar
    archive; - is standard output.

    \b
    Example:
      tidings backup tidings-$(date +%F).tar
      tidings backup --data /var/lib/tidings - | zstd > tidings.tar.zst
    """
    _need_packages()
    from tidings.service.backup.backup import backup as write
    from tidings.service.settings import Settings

    with _new_file(file) as stream, _progress() as report:
        write(Settings(data.absolute(), store=store), stream, report)
    terminal.note(f"The backup is in {file}; it contains secrets." if str(file) != "-" else "Done.")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@options.data
@options.store
def restore(file: Path, data: Path, store: str | None) -> None:
    """Restore a service from FILE, which 'tidings backup' has written.

    The folder must be new or empty, and so must the database of --store. It may have another path, be on another machine,
    and use another kind of store than the service that was backed up. Then start 'tidings serve' with the options it had.

    \b
    Example:
      tidings restore tidings-2026-11-16.tar
      zstd -dc tidings.tar.zst | tidings restore - --data /var/lib/tidings
    """
    _need_packages()
    from tidings.service.backup.restore import restore as read
    from tidings.service.settings import Settings

    with click.open_file(str(file), "rb") as stream, _progress() as report:
        read(Settings(data.absolute(), store=store), stream, report)
    terminal.note(f"Restored into {data}; start it with 'tidings serve' and the options it had.")


def _need_packages() -> None:
    if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
        raise TidingsError("this command needs more packages; install Tidings with the extra 'service'")


@contextmanager
def _new_file(file: Path) -> Iterator[IO[bytes]]:
    """A file for its owner alone, which has its name when it is whole."""
    if str(file) == "-":
        yield sys.stdout.buffer
        return
    if file.exists():
        raise TidingsError(f"{file} exists; name a new file, or remove it first")
    aside = file.with_name(f".{file.name}.writing")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.rename(file)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _progress() -> Iterator[Report]:
    with terminal.progress() as bar:
        tasks = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
            bar.update(tasks[what], completed=done)

        yield report
