"""Writes notifications: as text for people, as NDJSON or Parquet for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import click
from rich.console import Console

from tidings.cli import terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.cli.event_names import EventNames

FORMATS = ("text", "ndjson", "parquet")
_OF_JOINS = ("part", "sequence", "changes")


class NotificationWriter(Protocol):
    """Writes tables of notifications, one after the other; `names` are those of their events."""

    def write(self, notifications: pa.Table, names: EventNames | None = None) -> None: ...


@contextmanager
def open_writer(format: str, output: Path | None) -> Iterator[NotificationWriter]:
    """A writer to a file, or to standard output; in text form, errors of events go to standard error."""
    if format == "parquet":
        if output is None:
            raise TidingsError("Parquet needs a file; name one with --output FILE")
        with _parquet(output) as writer:
            yield writer
    elif output is None:
        yield _Text(terminal.out) if format == "text" else _Ndjson(None)
    else:
        with output.open("w", encoding="utf-8") as file:
            plain = Console(file=file, highlight=False, soft_wrap=True, emoji=False, markup=False)
            yield _Text(plain) if format == "text" else _Ndjson(file)


class _Text:
    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, notifications: pa.Table, names: EventNames | None = None) -> None:
        from tidings.cli.event_names import EventNames, is_named

        answers, names = [], names or EventNames()
        for row in notifications.to_pylist():
            if row["verdict"] == "error":
                place = names.places.get((row["source"] or "", row["event"]), row["source"])
                named = f"event {row['event']}" if is_named(row["event"]) or not place else ""
                terminal.warn(": ".join(filter(None, [place, named, row["message"]])))
            else:
                answers.append(row)
        for line in terminal.notification_lines(answers, names):
            self._console.print(line)


class _Ndjson:
    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def write(self, notifications: pa.Table, names: EventNames | None = None) -> None:
        lines = [json.dumps(_members(row), ensure_ascii=False) for row in notifications.to_pylist()]
        if lines:  # standard output is looked up only now: it may have been redirected
            click.echo("\n".join(lines), file=self._file)


def _members(row: dict[str, Any]) -> dict[str, Any]:
    """A notification as a JSON object: rows as objects, and the members of joins only for joins."""
    members = {name: value for name, value in row.items() if value is not None or name not in _OF_JOINS}
    if row["changes"] is not None:
        members["changes"] = [{**change, "row": json.loads(change["row"])} for change in row["changes"]]
    return {**members, "bindings": dict(row["bindings"] or ())}


@contextmanager
def _parquet(output: Path) -> Iterator[NotificationWriter]:
    import pyarrow.parquet as pq

    from tidings.model.notification import NOTIFICATION_SCHEMA

    with pq.ParquetWriter(output, NOTIFICATION_SCHEMA, compression="zstd") as writer:

        class _Parquet:
            def write(self, notifications: pa.Table, names: EventNames | None = None) -> None:
                writer.write_table(notifications)

        yield _Parquet()
