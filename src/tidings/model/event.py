"""An event: a CloudEvents envelope around attributes, a graph, or both.

Batches of events are Arrow tables with `EVENT_SCHEMA`; the class represents a single event. An event without an id gets
the hash of its content, so that the same content published twice is one event.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from tidings.errors import EventError

EVENT_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("time", pa.string()),
        ("datacontenttype", pa.string()),
        ("data", pa.binary()),
        ("attributes", pa.string()),  # JSON object of every other attribute
    ]
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `data` is as published; `attributes` are all names outside the envelope."""

    source: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    type: str = ""
    time: str | None = None
    datacontenttype: str = ""
    data: bytes = b""
    # The attributes as JSON, if that is known; writing it again would cost as much as checking the event.
    _text: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:  # nearly all are plain, which is found at once
            plain = self.envelope_text().isascii()
        except TypeError:
            plain = False
        if not plain:
            for name in _CHECKED:
                _check_text(name, getattr(self, name))
        if not isinstance(self.data, bytes):
            raise EventError(f"an event's data is bytes, not {type(self.data).__name__}; encode it first")
        if not _has_text_names(self.attributes):
            raise EventError("an event's attributes are a dict from names to values; every name is a string")
        if not self.id:
            object.__setattr__(
                self, "id", content_id(self.datacontenttype, self.data, self._attributes_text())
            )

    @classmethod
    def from_rdf(
        cls, data: str | bytes, format: str, *, source: str = "", base: str | None = None, **envelope: Any
    ) -> Event:
        """An event whose content is a graph; format is "nt", "turtle", "rdfxml", "jsonld", … or a media type."""
        from tidings.formats.rdf import NTRIPLES, canonical

        graph = canonical(data, format, base)
        # The hash of the original bytes: a parser gives blank nodes other names each time.
        raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
        id = envelope.pop("id", "") or content_id(format, raw, None)
        return cls(source=source, id=id, datacontenttype=NTRIPLES, data=graph, **envelope)

    @classmethod
    def from_cloudevent(cls, obj: Mapping[str, Any]) -> Event:
        """An event from the JSON form of CloudEvents: a dict with source, type, data or data_base64, …"""
        if not isinstance(obj, _MAPPINGS):
            raise EventError(
                f"a CloudEvent is a JSON object, not {type(obj).__name__}; give one for each event"
            )
        envelope = {name: obj.get(name) for name in ("id", "source", "type", "time", "datacontenttype")}
        for name, value in envelope.items():
            if value is not None and not isinstance(value, str):
                raise EventError(f"the CloudEvent's {name!r} must be a string, not {value!r}")
        attributes = {k: v for k, v in obj.items() if k not in _ENVELOPE}
        data, media_type, attributes_text = obj.get("data"), envelope["datacontenttype"] or "", None
        if (encoded := obj.get("data_base64")) is not None:
            try:
                raw = base64.b64decode(encoded, validate=True)
            except (ValueError, TypeError):
                raise EventError(
                    "the CloudEvent's 'data_base64' is not valid base64; plain text goes into 'data'"
                ) from None
        elif isinstance(data, str):
            raw = data.encode(errors="surrogatepass")
        else:
            if not isinstance(data, dict) and isinstance(data, Mapping):
                data = dict(data)
            text = "" if data is None else _json(data, _AS_GIVEN)
            raw = text.encode()
            if isinstance(data, dict) and "json" in (media_type or "json") and "ld+json" not in media_type:
                attributes_text = text if data and not attributes else None
                attributes = {**data, **attributes}
        event = cls(
            id=envelope["id"] or "",
            source=envelope["source"] or "",
            type=envelope["type"] or "",
            time=envelope["time"],
            datacontenttype=media_type,
            data=raw,
            attributes=attributes,
        )
        if attributes_text is not None:
            object.__setattr__(event, "_text", attributes_text)
        return event

    @classmethod
    def from_object(cls, obj: Mapping[str, Any]) -> Event:
        """An event from a CloudEvent, or from an object of any other kind: its members are attributes, whatever they
        are called, and texts named id, source, type and time are the envelope's too."""
        if not isinstance(obj, dict) or "specversion" in obj or "datacontenttype" in obj:
            return cls.from_cloudevent(obj)
        own = {k: v for k, v in obj.items() if k in _TEXTS and not isinstance(v, str | None)}
        if isinstance(obj.get("data"), dict | list):
            own["data"] = obj["data"]
        event = cls.from_cloudevent({k: v for k, v in obj.items() if k not in own or k == "data"})
        if not own:
            return event
        id = obj.get("id")
        known = id if isinstance(id, str) else str(id) if type(id) is int else ""
        return replace(event, id=known, attributes={**event.attributes, **own})

    @classmethod
    def insert(
        cls,
        table: str,
        row: Mapping[str, Any],
        *,
        source: str = "",
        sequence: int | None = None,
        **envelope: Any,
    ) -> Event:
        """A row that comes into a table. `sequence` numbers the changes of a source upwards; one whose number is
        not above the last is known to come again, or late."""
        return cls._change("insert", table, {"row": row}, source, sequence, envelope)

    @classmethod
    def update(
        cls,
        table: str,
        row: Mapping[str, Any],
        before: Mapping[str, Any] | None = None,
        *,
        source: str = "",
        sequence: int | None = None,
        **envelope: Any,
    ) -> Event:
        """A row that takes the place of another: of `before`, or of the one with the same key."""
        rows = {"row": row} if before is None else {"row": row, "before": before}
        return cls._change("update", table, rows, source, sequence, envelope)

    @classmethod
    def delete(
        cls,
        table: str,
        row: Mapping[str, Any],
        *,
        source: str = "",
        sequence: int | None = None,
        **envelope: Any,
    ) -> Event:
        """A row that leaves a table; its key is enough where the table has one."""
        return cls._change("delete", table, {"row": row}, source, sequence, envelope)

    @classmethod
    def snapshot(cls, subscription: str, *, source: str = "", **envelope: Any) -> Event:
        """A request: the rows that a join subscription has now."""
        if not isinstance(subscription, str) or not subscription:
            raise EventError(f"a snapshot is of a subscription; give its id as a text, not {subscription!r}")
        return cls(source, {"subscription": subscription}, type="tidings.snapshot", **envelope)

    @classmethod
    def _change(
        cls,
        word: str,
        table: str,
        rows: Mapping[str, Mapping[str, Any]],
        source: str,
        sequence: int | None,
        envelope: Mapping[str, Any],
    ) -> Event:
        if not isinstance(table, str) or not table:
            raise EventError(f"the {word} is of a table; give its name as a text, not {table!r}")
        for row in rows.values():
            if not isinstance(row, Mapping):
                raise EventError(f"a row is a dict from columns to values, not {type(row).__name__}")
        attributes: dict[str, Any] = {"table": table, **{name: dict(row) for name, row in rows.items()}}
        if sequence is not None:
            if not isinstance(sequence, int) or isinstance(sequence, bool):
                raise EventError(f"a sequence is an integer, not {sequence!r}")
            attributes["sequence"] = sequence
        return cls(source, attributes, type=f"tidings.{word}", **envelope)

    def graph(self) -> bytes:
        """The event's graph as canonical N-Triples; empty when it has none."""
        from tidings.formats.rdf import canonical, is_rdf

        return canonical(self.data, self.datacontenttype) if is_rdf(self.datacontenttype) else b""

    def envelope_text(self) -> str:
        """The texts of the envelope in one, to check all of them at once."""
        time = "" if self.time is None else self.time
        return "".join((self.id, self.source, self.type, time, self.datacontenttype))

    def row(self) -> dict[str, Any]:
        """The event as a row of `EVENT_SCHEMA`."""
        return {
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "time": self.time,
            "datacontenttype": self.datacontenttype,
            "data": self.data,
            "attributes": self._text or self._attributes_text(),
        }

    def _attributes_text(self) -> str | None:
        return _json(dict(self.attributes), _SORTED) if self.attributes else None


_MAPPINGS = (dict, Mapping)  # first what nearly all are: the test for the other takes longer
_CHECKED = ("id", "source", "type", "time", "datacontenttype")
_TEXTS = frozenset({"id", "source", "type", "time"})
_ENVELOPE = frozenset(
    {"id", "source", "type", "time", "datacontenttype", "data", "data_base64", "specversion", "dataschema"}
)


def _has_text_names(attributes: object) -> bool:
    """Whether it is a mapping of texts to values."""
    try:
        return isinstance(attributes, _MAPPINGS) and "".join(attributes) is not None
    except TypeError:
        return False


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) and not (name == "time" and value is None):
        raise EventError(f"an event's {name} is a string, not {value!r}")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise EventError(
                f"an event's {name} has half a surrogate pair in it: {value!r}; correct its Unicode"
            ) from None


def _json(value: object, encoder: json.JSONEncoder) -> str:
    try:
        return encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise EventError(
            f"the event's content cannot be written as JSON: {error}; give plain values"
        ) from None


def _plain(value: object) -> object:
    """Converts values that JSON cannot represent: dates to ISO texts, sets to lists, anything else to Python's text."""
    if isinstance(value, date):
        return value.isoformat()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


_AS_GIVEN = json.JSONEncoder(default=_plain)
_SORTED = json.JSONEncoder(default=_plain, sort_keys=True)


def content_id(media_type: str, data: bytes, attributes: str | None) -> str:
    """The id of an event that came without one."""
    digest = blake2b(data, digest_size=16)
    digest.update(f"\0{media_type}\0{attributes or ''}".encode(errors="surrogatepass"))
    return digest.hexdigest()


def to_table(events: Iterable[Event]) -> pa.Table:
    """Events as one Arrow table."""
    events = list(events)
    for event in events:
        if not isinstance(event, Event):
            raise EventError(f"an event is an Event, not {type(event).__name__}; try Event(attributes=...)")
    rows = [event.row() for event in events]
    return pa.table({name: [row[name] for row in rows] for name in EVENT_SCHEMA.names}, schema=EVENT_SCHEMA)
