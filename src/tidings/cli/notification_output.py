"""Writes notifications: as text for people, as NDJSON or Parquet for programs.

People get an event by its title, or else by its id, or else by its source and the line of its file. An id that is the hash of
the content, because the event came without one, names nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import click
from rich.console import Console

from tidings.cli import terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.model.event import Event

FORMATS = ("text", "ndjson", "parquet")
_OF_JOINS = ("part", "sequence", "changes")
_ATTRIBUTES = ("title", "name", "headline")
_HASH = re.compile(r"[0-9a-f]{32}")
_TRIPLES = 2_000
_PLACE = 50  # characters

Key = tuple[str, str]  # source and id of an event


def key_of(event: Event) -> Key:
    return event.source, event.id


def title_of(event: Event) -> str:
    """The title of an event, from its attributes or its graph; empty if it has none."""
    for name in _ATTRIBUTES:
        if isinstance(title := event.attributes.get(name), str) and title.strip():
            return " ".join(title.split())
    from tidings.feeds.facts import DC, DCTERMS, RSS
    from tidings.formats.namespaces import RDF, RDFS
    from tidings.model.terms import Iri, Literal, plain, read_graph

    try:
        triples = read_graph(event.graph())[:_TRIPLES] if event.datacontenttype else ()
    except (TidingsError, ValueError):
        return ""
    channel = Iri(RDF + "type"), Iri(RSS + "channel")
    channels = {subject for subject, predicate, kind in triples if (predicate, kind) == channel}
    names = RSS + "title", DC + "title", DCTERMS + "title", RDFS + "label"
    titles: dict[str, str] = {}
    for subject, predicate, object_ in triples:
        if isinstance(object_, Literal) and subject not in channels:
            titles.setdefault(plain(predicate), " ".join(object_.text.split()))
    return next((titles[name] for name in names if titles.get(name)), "")


def is_named(id: str) -> bool:
    """Whether an event's id came with the event, and is not the hash of its content."""
    return not _HASH.fullmatch(id)


class EventNames:
    """Names the events of notifications, by the events themselves and by FILE:LINE of those that are lines."""

    def __init__(self, events: Iterable[Event] = (), places: Mapping[Key, str] | None = None) -> None:
        self._events = {key_of(event): event for event in events}
        self._titles: dict[Key, str] = {}  # found when they are needed: a graph is parsed
        self.places = places or {}

    def _title(self, key: Key) -> str:
        if key not in self._titles:
            self._titles[key] = title_of(self._events[key]) if key in self._events else ""
        return self._titles[key]

    def label(self, notification: Mapping[str, Any], shown: Iterable[str] = ()) -> str:
        """The event of a notification, as its line names it; `shown` are texts that the line has already."""
        source, id = key = notification["source"] or "", notification["event"]
        place = self.places.get(key, "")
        place = place if len(place) <= _PLACE else f"…{place[-_PLACE:]}"  # its end has the line
        name = self._title(key) or (id if is_named(id) else "")
        where = terminal.brief(source)
        if name and name in {" ".join(text.split()) for text in shown}:
            return where or place or id
        return ", ".join(filter(None, [terminal.brief(name), where] if name else [where, place])) or id


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
