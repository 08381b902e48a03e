"""A batch of events while it is matched: its columns, what was read of single events, and what was found about them.

Only events that a step has to see as a whole ever become Python objects, each once. What cannot be read is the error
of that event and of no other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import EventError
from tidings.model.event import Event, to_table
from tidings.model.pairs import Bindings
from tidings.model.terms import Triple
from tidings.model.values import instant

JSON = "attributes"
CONTENT = "data"  # what an event carries is no attribute
ENVELOPE = ("id", "source", "type", "time", "datacontenttype")


class Batch:
    """Events by their rows, from 0 on; `every` requests all bindings of a match, not the first."""

    events: pa.Table

    def __init__(self, events: pa.Table | None, every: bool = False) -> None:
        if events is not None:
            self.events = events
        self.every = every
        self.documents: list[Mapping[str, Any]] | None = None
        """The attributes of all events, if they are at hand as Python's values."""
        self.bindings, self.messages = Bindings(), list[str]()
        self.finders_doubts = 0
        """How many of the messages are of finders, not of checkers."""
        self.errors: dict[int, str] = {}
        """Why rows could not be read."""
        self.refused: set[int] = set()
        """The rows whose attributes could not be read; their graphs may have been."""
        self.triples: Callable[[int], Iterable[Triple]] = lambda row: ()
        """The triples of a row, where a pattern has looked at them."""
        self.graphs: list[bytes | None] | None = None
        """The graphs of all events as N-Triples, empty where there is none; None where nobody has read it yet."""
        self.shared: dict[str, Any] = {}
        """What finders of one kind, of the base and of the tail, read once for all of them."""
        self._attributes: dict[int, Mapping[str, Any] | None] = {}
        self._columns: dict[str, pa.ChunkedArray] = {}

    @classmethod
    def of(cls, event: Event) -> Batch:
        """A batch of one event, for filters alone: no table is made of it unless one is requested."""
        return _Single(event)

    def __len__(self) -> int:
        return int(self.events.num_rows)

    def attributes(self, row: int) -> Mapping[str, Any] | None:
        """Everything that a condition may name; None if it cannot be read, which satisfies nothing."""
        if row not in self._attributes:
            try:
                self._attributes[row] = attributes_of_row(self.events, row)
            except EventError as error:
                self.refuse({row: str(error)})
                self._attributes[row] = None
        return self._attributes[row]

    def take(self, rows: np.ndarray) -> Batch:
        """Some of the events, with what was read of them and is expensive to read: attributes and graphs."""
        taken = Batch(self.events.take(pa.array(rows)), self.every)
        if self.graphs is not None:
            taken.graphs = [self.graphs[row] for row in rows.tolist()]
        if self._attributes or self.errors:
            for place, row in enumerate(rows.tolist()):
                if row in self._attributes:
                    taken._attributes[place] = self._attributes[row]
                if row in self.errors:
                    taken.errors[place] = self.errors[row]
                if row in self.refused:
                    taken.refused.add(place)
        return taken

    def refuse(self, errors: Mapping[int, str]) -> None:
        """Notes rows whose attributes cannot be read."""
        self.errors.update(errors)
        self.refused.update(errors)

    def doubt(self, message: str) -> int:
        """The number of a message for pairs that are undecided."""
        self.messages.append(message)
        return len(self.messages) - 1

    def event(self, row: int) -> Event:
        """An event as operators see it."""
        given = self.attributes(row) or {}
        envelope = {name: self.texts(name)[row].as_py() or "" for name in ENVELOPE}
        data = self.events[CONTENT][row].as_py() if CONTENT in self.events.column_names else None
        return Event(
            attributes={name: value for name, value in given.items() if name not in ENVELOPE},
            data=data.encode() if isinstance(data, str) else data or b"",
            **envelope,
        )

    def source(self, row: int) -> str | None:
        text: str | None = self.texts("source")[row].as_py()
        return text

    def texts(self, name: str) -> pa.ChunkedArray:
        """A column of the envelope; null where there is none."""
        if name not in self._columns:
            self._columns[name] = text_column(self.events, name)
        return self._columns[name]

    @cached_property
    def times(self) -> np.ndarray:
        """When the events happened, or now, in seconds since 1970."""
        return event_times(self.events)


class _Single(Batch):
    def __init__(self, event: Event) -> None:
        super().__init__(None)
        self._event = event
        self.documents = [attributes_of(event)]

    def __len__(self) -> int:
        return 1

    @cached_property
    def events(self) -> pa.Table:
        return to_table([self._event])

    def attributes(self, row: int) -> Mapping[str, Any] | None:
        return self.documents[0] if self.documents else None

    def source(self, row: int) -> str | None:
        return self._event.source

    @cached_property
    def times(self) -> np.ndarray:
        return _moments([self._event.time])


def attributes_of(event: Event) -> Mapping[str, Any]:
    """Everything that a condition may name in an event: its envelope and its attributes."""
    return _united({name: getattr(event, name) for name in ENVELOPE}, event.attributes)


def attributes_of_row(events: pa.Table, row: int) -> dict[str, Any]:
    """The same for a row of a table, in which columns of the user's own are attributes too."""
    try:
        values = events.slice(row, 1).to_pylist(maps_as_pydicts="lossy")[0]
    except (OverflowError, ValueError, pa.ArrowException) as error:  # such as a date in the year 10000
        raise EventError(f"the event has a value that cannot be looked at: {error}; give another") from None
    values.pop(CONTENT, None)
    text = values.pop(JSON, None)
    try:
        given = dict((json.loads(text) if isinstance(text, str) and text.strip() else text) or {})
    except (ValueError, TypeError, RecursionError):
        raise EventError(f"the event's attributes are {str(text)[:40]!r}; give a JSON object") from None
    return _united(values, given)


def _united(columns: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is null in a column, or empty in the envelope, is not there; a name that is a column and an attribute has
    the values of both."""
    there = {
        name: value
        for name, value in columns.items()
        if value is not None and not (value == "" and name in ENVELOPE)
    }
    twice = {name: [there[name], given[name]] for name in there.keys() & given.keys()}
    return {**there, **given, **twice}


def event_times(events: pa.Table) -> np.ndarray:
    """When events happened, or now, in seconds since 1970."""
    if "time" not in events.column_names:
        return np.full(events.num_rows, time.time())
    return _moments(events["time"].cast(pa.string()).to_pylist())


def _moments(texts: list[str | None]) -> np.ndarray:
    now = time.time()
    moments = [instant(text.replace(" ", "T")) if text else None for text in texts]
    return np.array([now if moment is None else moment / 1e6 for moment in moments])


def text_column(events: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of texts; null where there is none."""
    if name in events.column_names:
        column = events[name]
        return column if column.type == pa.string() else column.cast(pa.string())
    return pa.chunked_array([pa.nulls(events.num_rows, pa.string())])


def check_columns(events: pa.Table) -> None:
    """Refuses a table whose envelope is not made of texts, and of bytes where there is data."""
    for name in {"id", "source", "time", "datacontenttype", CONTENT} & set(events.column_names):
        wanted, given = pa.binary() if name == CONTENT else pa.string(), events.schema.field(name).type
        try:
            pa.array([], given).cast(wanted)
        except pa.ArrowException:
            raise EventError(
                f"column {name!r} of the events is of type {given}; it has to be {wanted}"
            ) from None
