"""Notifications on their way out: as text for people, as NDJSON or Parquet for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

import click
from rich.console import Console

from tidings.cli import terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("text", "ndjson", "parquet")


class Answers(Protocol):
    """Takes tables of notifications, one after the other."""

    def write(self, notifications: pa.Table) -> None: ...


@contextmanager
def open_answers(format: str, output: Path | None) -> Iterator[Answers]:
    """To a file, or to standard output; events that could not be read are told on standard error in text form."""
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

    def write(self, notifications: pa.Table) -> None:
        answers = []
        for row in notifications.to_pylist():
            if row["verdict"] == "error":
                terminal.warn(f"{row['source']}: event {row['event']}: {row['message']}")
            else:
                answers.append(row)
        for line in terminal.notification_lines(answers):
            self._console.print(line)


class _Ndjson:
    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def write(self, notifications: pa.Table) -> None:
        lines = [
            json.dumps({**row, "bindings": dict(row["bindings"] or ())}, ensure_ascii=False)
            for row in notifications.to_pylist()
        ]
        if lines:  # standard output is looked up only now: it may have been redirected
            click.echo("\n".join(lines), file=self._file)


@contextmanager
def _parquet(output: Path) -> Iterator[Answers]:
    import pyarrow.parquet as pq

    from tidings.notification import NOTIFICATION_SCHEMA

    with pq.ParquetWriter(output, NOTIFICATION_SCHEMA, compression="zstd") as writer:

        class _Parquet:
            def write(self, notifications: pa.Table) -> None:
                writer.write_table(notifications)

        yield _Parquet()
