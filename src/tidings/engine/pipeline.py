"""The way of a batch: events -> graphs, attributes -> candidates -> settled answers -> notifications, in columns.

Each step takes what the one before gives. Only events that need a parser, and answers that need a later stage,
are ever Python objects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.arrays.spans import pick, plain_texts
from tidings.engine.checks import Candidates, Checks, Programs, notifications
from tidings.engine.layer import Layer
from tidings.engine.plan import alternatives
from tidings.engine.routing import Routes
from tidings.errors import EventError
from tidings.formats import rdf
from tidings.formats.documents import MAX_BYTES, is_utf8
from tidings.kinds.filters.columns import CONTENT, ENVELOPE, JSON, read_events
from tidings.kinds.networks.network import Network
from tidings.kinds.patterns import graphs, naive
from tidings.kinds.patterns.graphs import GraphBatch
from tidings.kinds.patterns.index import Matches
from tidings.language.parser import parse
from tidings.model.event import Event
from tidings.model.notification import NOTIFICATION_SCHEMA, to_table
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Term, Triple, from_ntriples
from tidings.model.values import instant

EVENTS_AT_ONCE = 1 << 14  # fewer would pay more often for what is paid by the batch
_TEXTS = ("id", "source", "type", "time", "datacontenttype")
_OUT_OF_STEPS = "the pattern has too many partial matches in this event; make it more specific"


@dataclass(frozen=True, slots=True)
class Means:
    """What subscriptions are understood by."""

    taxonomy: Taxonomy
    above: Mapping[str, Sequence[str]]
    prefixes: Mapping[str, str]
    networks: Mapping[str, Network]
    programs: Programs


def publish(events: pa.Table, layers: Sequence[Layer], means: Means, all_bindings: bool) -> pa.Table:
    """The notifications of `events`, in no particular order; those of events that cannot be read come last."""
    _check_columns(events)
    attributes = _Attributes(events)
    sources = _column(events, "source")
    routes = Routes(means.networks, lambda row: sources[row].as_py(), attributes)
    told: dict[int, set[tuple[int, int]]] = {}
    in_doubt: list[tuple[Layer, list[tuple[int, int]], pa.Table]] = []
    pieces = [NOTIFICATION_SCHEMA.empty_table()]
    with_patterns = [layer for layer in layers if layer.has_patterns]
    checks = Checks(means.programs, means.taxonomy, _Events(events, attributes), attributes)
    if with_patterns:
        documents = read_documents(events, attributes.errors)
        for batch in graphs.read(documents, _canonical, attributes.errors):
            batch = graphs.expand(batch, means.above)
            for layer in with_patterns:
                matches = layer.index(means.taxonomy).match(batch, every=all_bindings)
                residuals = _Residuals(batch, layer, means, attributes)
                kept = _settle(matches, batch, layer, events, residuals, routes, checks, all_bindings)
                if layer.several_ways is not None:
                    owner = layer.settled.arrays["row_owner"][matches.row[kept]]
                    # What ran out of steps may match in another way, and is told if it does not.
                    late = matches.undecided[kept] & layer.several_ways[owner]
                    pairs = list(
                        zip((matches.event[kept] + batch.first_row).tolist(), owner.tolist(), strict=True)
                    )
                    told.setdefault(id(layer), set()).update(pairs[i] for i in np.flatnonzero(~late).tolist())
                    doubtful = _notifications(matches, kept[late], batch, layer, events)
                    in_doubt.append((layer, [pairs[i] for i in np.flatnonzero(late).tolist()], doubtful))
                    kept = kept[~late]
                pieces.append(_notifications(matches, kept, batch, layer, events))
    for layer in layers:
        if layer.has_filters:
            pieces += _filtered(events, layer, attributes, routes, told.setdefault(id(layer), set()), checks)
    if any(layer.has_programs for layer in layers):

        def always(row: int) -> Iterator[Candidates]:
            for layer in layers:
                owner, way = layer.open_to_all
                if len(owner):
                    keep = _kept(layer, events, row, 1, np.full(len(owner), row), owner, routes)
                    yield Candidates(layer, owner[:0], owner[keep], way[keep])

        found = list(
            checks.decide(
                range(events.num_rows),
                always,
                lambda layer, row, owner: (row, owner) in told.get(id(layer), ()),
                all_bindings,
            )
        )
        pieces.append(notifications(found, events))
        if in_doubt:
            for one in found:
                told.setdefault(id(one.layer), set()).add((one.event, one.owner))
    for layer, pairs, doubtful in in_doubt:
        pieces.append(doubtful.filter(pa.array([pair not in told[id(layer)] for pair in pairs], pa.bool_())))
    if attributes.errors:
        pieces.append(_failures(events, attributes.errors))
    return pa.concat_tables(pieces)


def _kept(
    layer: Layer,
    events: pa.Table,
    first: int,
    count: int,
    row: np.ndarray,
    owner: np.ndarray,
    routes: Routes,
) -> np.ndarray:
    """Whether pairs of events, of `count` from `first` on, and subscriptions stand: live, valid, and reached."""
    keep = np.frombuffer(layer.live, dtype=np.bool_)[owner]
    if layer.some_end:
        until = np.frombuffer(layer.valid_until, dtype=np.float64)[owner]
        keep = keep & (until >= event_times(events, first, count)[row - first])
    if layer.places:
        kept = np.flatnonzero(keep)
        keep[kept] = routes.arrive(row[kept], np.asarray(layer.place)[owner[kept]], list(layer.places))
    return keep


def _filtered(
    events: pa.Table,
    layer: Layer,
    attributes: _Attributes,
    routes: Routes,
    told: set[tuple[int, int]],
    checks: Checks,
) -> Iterator[pa.Table]:
    """The notifications of a layer's filters; `told` are (row, subscription) that were found already.

    What a filter alone does not decide goes to `checks`.
    """
    reader, all_live = layer.reader, all(layer.live)
    for first in range(0, events.num_rows, EVENTS_AT_ONCE):
        some = events.slice(first, EVENTS_AT_ONCE)
        found = read_events(some, reader.wanted)
        attributes.refuse({first + event: text for event, text in found.errors.items()})
        pairs = reader.pairs(found, lambda event, first=first: attributes(first + event) or {})  # type: ignore[misc]
        matches = reader.index.match(pairs)
        row, owner = matches.event + np.int64(first), layer.filter_owner[matches.row]
        if all_live and not layer.some_end and not layer.places:
            keep = np.ones(len(row), dtype=np.bool_)
        else:
            keep = _kept(layer, events, first, some.num_rows, row, owner, routes)
        if attributes.refused:  # whatever could be read of such an event
            keep &= ~np.isin(row, list(attributes.refused))
        if layer.has_programs:
            way = layer.filter_way[matches.row]
            later = keep & (layer.program_rows(owner, way) >= 0)
            if later.any():
                keep &= ~later
                order = np.flatnonzero(later)
                order = order[np.argsort(row[order], kind="stable")]
                checks.candidates.append(Candidates(layer, row[order], owner[order], way[order]))
        if layer.several_ways is not None:
            kept = np.flatnonzero(keep)
            kept = kept[np.unique(row[kept] << 32 | owner[kept], return_index=True)[1]]
            if told:
                pair = zip(row[kept].tolist(), owner[kept].tolist(), strict=True)
                kept = kept[[one not in told for one in pair]]
            row, owner = row[kept], owner[kept]
            told.update(zip(row.tolist(), owner.tolist(), strict=True))
        elif not keep.all():
            row, owner = row[keep], owner[keep]
        yield _plain_notifications(events, layer, row, owner)


def _plain_notifications(events: pa.Table, layer: Layer, row: np.ndarray, owner: np.ndarray) -> pa.Table:
    """Notifications without bindings."""
    count = len(row)
    rows = pa.array(row)
    kind = NOTIFICATION_SCHEMA.field("bindings").type
    nothing = pa.array([], kind.key_type), pa.array([], kind.item_type)
    columns = {
        "subscription": _ids(layer, owner),
        "source": _taken(events, "source", rows),
        "event": _taken(events, "id", rows),
        "verdict": pa.repeat("match", count),
        "bindings": pa.MapArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), *nothing),
    }
    return to_table(columns)


def _put_off(
    matches: Matches, kept: np.ndarray, batch: GraphBatch, layer: Layer, residuals: _Residuals, checks: Checks
) -> np.ndarray:
    """Hands pairs that operators have to decide to `checks`; the others are left."""
    arrays = layer.settled.arrays
    owner, way = arrays["row_owner"][matches.row], arrays["row_way"][matches.row]
    later = (layer.program_rows(owner, way) >= 0) & ~matches.undecided
    asked = kept[later[kept]]
    if len(asked):
        pair = (matches.event[asked].astype(np.int64) << 32 | owner[asked]) << 10 | way[asked]
        _, starts, place = np.unique(pair, return_index=True, return_inverse=True)
        ways: dict[int, list[int]] = {}
        for i, at in zip(asked.tolist(), place.tolist(), strict=True):
            ways.setdefault(at, []).append(i)
        first = asked[starts]
        checks.candidates.append(
            Candidates(
                layer,
                matches.event[first] + np.int64(batch.first_row),
                owner[first],
                way[first],
                {at: partial(residuals.bindings, matches, some) for at, some in ways.items()},
            )
        )
        for event in np.unique(matches.event[first]).tolist():
            checks.graphs[event + batch.first_row] = partial(batch.triples, event)
    return kept[~later[kept]]


def _check_columns(events: pa.Table) -> None:
    """Refuses a table whose envelope is not made of texts, and of bytes where there is data."""
    for name in {"id", "source", "time", "datacontenttype", "data"} & set(events.column_names):
        wanted, given = pa.binary() if name == "data" else pa.string(), events.schema.field(name).type
        try:
            pa.array([], given).cast(wanted)
        except pa.ArrowException:
            raise EventError(
                f"column {name!r} of the events is of type {given}; it has to be {wanted}"
            ) from None


def read_documents(events: pa.Table, errors: dict[int, str]) -> list[bytes]:
    """The graph of each event as N-Triples, empty where it has none; what cannot be read goes to `errors`."""
    if "data" not in events.column_names or "datacontenttype" not in events.column_names:
        return [b""] * len(events)
    documents: list[bytes] = []
    types, contents = _column(events, "datacontenttype").to_pylist(), events["data"].to_pylist()
    for row, (media_type, data) in enumerate(zip(types, contents, strict=True)):
        document = b""
        if data and rdf.is_rdf(media_type):
            if isinstance(data, str):
                data = data.encode()
            try:
                document = data if _is_clean(data, media_type) else rdf.canonical(data, media_type)
            except EventError as error:
                errors[row] = str(error)
        documents.append(document)
    return documents


def _canonical(data: bytes) -> bytes:
    return rdf.canonical(data, rdf.NTRIPLES)


def _is_clean(data: bytes, media_type: str) -> bool:
    """Whether N-Triples can be tried without a parser: whether they are canonical is found out when read."""
    return media_type == rdf.NTRIPLES and len(data) <= MAX_BYTES and is_utf8(data)


def _settle(
    matches: Matches,
    batch: GraphBatch,
    layer: Layer,
    events: pa.Table,
    residuals: _Residuals,
    routes: Routes,
    checks: Checks,
    all_bindings: bool,
) -> np.ndarray:
    """The answers that stand: of live and valid subscriptions, with a residual that holds, once each.

    What operators have to decide goes to `checks`, with all its bindings.
    """
    arrays = layer.settled.arrays
    owner = arrays["row_owner"][matches.row]
    keep = np.frombuffer(layer.live, dtype=np.bool_)[owner]
    if layer.some_end:
        until = np.frombuffer(layer.valid_until, dtype=np.float64)[owner]
        keep = keep & (until >= event_times(events, batch.first_row, len(batch))[matches.event])
    shape = arrays["row_shape"][matches.row]
    if arrays["later"].any():
        keep = keep.copy()
        for i in np.flatnonzero(keep & arrays["later"][shape] & ~matches.undecided):
            keep[i] = residuals.holds(matches, int(i))
    kept = np.flatnonzero(keep)
    if layer.places:
        rows = matches.event[kept] + batch.first_row
        kept = kept[routes.arrive(rows, np.asarray(layer.place)[owner[kept]], list(layer.places))]
    if layer.has_programs:
        kept = _put_off(matches, kept, batch, layer, residuals, checks)
    if all_bindings or layer.one_answer_each:
        return kept
    # One notification for each pair: alternatives, and bindings a residual looked through, give several; a match
    # comes before an answer that ran out of steps.
    pair = matches.event[kept].astype(np.int64) << 32 | owner[kept]
    order = np.lexsort((matches.undecided[kept], pair))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = pair[order][1:] != pair[order][:-1]
    return kept[order[first]]


class _Attributes:
    """The attributes of events as Python's own values, for the few that need them; what cannot be read is noted."""

    def __init__(self, events: pa.Table) -> None:
        self.events = events
        self.errors: dict[int, str] = {}
        self.refused: set[int] = set()
        self._read: dict[int, Mapping[str, Any] | None] = {}

    def __call__(self, row: int) -> Mapping[str, Any] | None:
        """Those of one row; None if they cannot be read, which satisfies nothing."""
        if row not in self._read:
            try:
                self._read[row] = event_attributes(self.events, row)
            except EventError as error:
                self.refuse({row: str(error)})
                self._read[row] = None
        return self._read[row]

    def refuse(self, errors: Mapping[int, str]) -> None:
        """Notes rows whose attributes cannot be read."""
        self.errors.update(errors)
        self.refused.update(errors)


class _Residuals:
    """Conditions that are left for candidates, decided by the definition."""

    def __init__(self, batch: GraphBatch, layer: Layer, means: Means, attributes: _Attributes) -> None:
        self.batch, self.layer, self.means, self.attributes = batch, layer, means, attributes
        self.index = layer.index(means.taxonomy)
        self._graphs: dict[int, list[Triple]] = {}
        self._ways: dict[int, Any] = {}

    def holds(self, matches: Matches, i: int) -> bool:
        row, event = int(matches.row[i]), int(matches.event[i])
        owner, way = int(self.index.arrays["row_owner"][row]), int(self.index.arrays["row_way"][row])
        if owner not in self._ways:
            self._ways[owner] = alternatives(parse(self.layer.text(owner), self.means.prefixes))
        (binding,) = self.bindings(matches, [i])
        if event not in self._graphs:
            self._graphs[event] = self.batch.triples(event)
        attributes = self.attributes(self.batch.first_row + event)
        return attributes is not None and all(
            naive.holds(condition, binding, self._graphs[event], self.means.taxonomy, attributes)
            for condition in self._ways[owner][way].residual
        )

    def bindings(self, matches: Matches, some: Sequence[int]) -> list[dict[str, Term]]:
        """What the variables of some matches are bound to."""
        found = []
        for i in some:
            names = self.index.facts["variables"][int(self.index.arrays["row_shape"][int(matches.row[i])])]
            terms = matches.binding[matches.first[i] : matches.first[i + 1]]
            pairs = zip(names, terms, strict=True)
            found.append(
                {name: from_ntriples(self.batch.text(int(t))) for name, t in pairs if name is not None}
            )
        return found


class _Events:
    """Events as operators see them."""

    def __init__(self, events: pa.Table, attributes: _Attributes) -> None:
        self._attributes = attributes
        self._texts = {name: _column(events, name) for name in _TEXTS}
        self._data = events["data"] if "data" in events.column_names else None

    def __call__(self, row: int) -> Event:
        given = self._attributes(row) or {}
        envelope = {name: column[row].as_py() or "" for name, column in self._texts.items()}
        data = None if self._data is None else self._data[row].as_py()
        return Event(
            attributes={name: value for name, value in given.items() if name not in ENVELOPE},
            data=data.encode() if isinstance(data, str) else data or b"",
            **envelope,
        )


def event_attributes(events: pa.Table, row: int) -> dict[str, Any]:
    """Everything a condition may name: the envelope, the attributes, and columns of the user's own.

    What is null in a column, or empty in the envelope, is not there. A name that is a column and an attribute has the
    values of both.
    """
    try:
        values = events.slice(row, 1).to_pylist(maps_as_pydicts="lossy")[0]
    except (OverflowError, ValueError, pa.ArrowException) as error:  # such as a date in the year 10000
        raise EventError(f"the event has a value that cannot be looked at: {error}; give another") from None
    values.pop(CONTENT, None)
    text = values.pop(JSON, None)
    columns = {
        name: value
        for name, value in values.items()
        if value is not None and not (value == "" and name in ENVELOPE)
    }
    try:
        given = dict((json.loads(text) if isinstance(text, str) and text.strip() else text) or {})
    except (ValueError, TypeError, RecursionError):
        raise EventError(f"the event's attributes are {str(text)[:40]!r}; give a JSON object") from None
    twice = {name: [columns[name], given[name]] for name in columns.keys() & given.keys()}
    return {**columns, **given, **twice}


def event_times(events: pa.Table, first: int, count: int) -> np.ndarray:
    """When `count` events happened, or now, in seconds since 1970."""
    now = time.time()
    if "time" not in events.column_names:
        return np.full(count, now)
    texts = events["time"].slice(first, count).cast(pa.string()).to_pylist()
    moments = [instant(text.replace(" ", "T")) if text else None for text in texts]
    return np.array([now if moment is None else moment / 1e6 for moment in moments])


def _notifications(
    matches: Matches, kept: np.ndarray, batch: GraphBatch, layer: Layer, events: pa.Table
) -> pa.Table:
    arrays = layer.settled.arrays
    row, undecided = matches.row[kept], matches.undecided[kept]
    rows = pa.array(matches.event[kept] + batch.first_row)
    bindings = _bindings(matches, kept, batch, layer)
    if undecided.any():
        which = pa.array(undecided.astype(np.int8))
        verdicts = pa.array(["match", "undecided"]).take(which)
        messages = pa.array([None, _OUT_OF_STEPS], pa.string()).take(which)
    else:
        verdicts, messages = pa.repeat("match", len(kept)), pa.nulls(len(kept), pa.string())
    columns = {
        "subscription": _ids(layer, arrays["row_owner"][row]),
        "source": _taken(events, "source", rows),
        "event": _taken(events, "id", rows),
        "verdict": verdicts,
        "bindings": bindings,
        "message": messages,
    }
    return to_table(columns)


def _bindings(matches: Matches, kept: np.ndarray, batch: GraphBatch, layer: Layer) -> pa.Array:
    """Variable -> plain text, for the variables a subscription selects."""
    names, first, slots, name_numbers = layer.selected
    shape = layer.settled.arrays["row_shape"][matches.row[kept]]
    offsets = np.zeros(len(kept) + 1, dtype=np.int32)
    np.cumsum((first[shape + 1] - first[shape]) * ~matches.undecided[kept], out=offsets[1:])
    terms, keys = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int32)
    pick(offsets, first[shape], slots, name_numbers, matches.first[kept], matches.binding, terms, keys)
    texts = plain_texts(batch.blob, batch.term_low, batch.term_high, terms)
    return pa.MapArray.from_arrays(pa.array(offsets), names.take(pa.array(keys)), texts)


def _ids(layer: Layer, owner: np.ndarray) -> pa.Array:
    ids = layer.id_column.take(pa.array(owner))
    return ids if ids.type == pa.string() else ids.cast(pa.string())


def _taken(events: pa.Table, name: str, rows: pa.Array) -> pa.Array | pa.ChunkedArray:
    if name not in events.column_names:
        return pa.nulls(len(rows), pa.string())
    return _column(events, name).take(rows)


def _column(events: pa.Table, name: str) -> pa.ChunkedArray:
    if name in events.column_names:
        column = events[name]
        return column if column.type == pa.string() else column.cast(pa.string())
    return pa.chunked_array([pa.nulls(len(events), pa.string())])


def _failures(events: pa.Table, errors: Mapping[int, str]) -> pa.Table:
    """A notification without a subscription for every event that could not be read."""
    rows = pa.array(sorted(errors), pa.int64())
    count = len(errors)
    columns = {
        "subscription": pa.nulls(count, pa.string()),
        "source": _taken(events, "source", rows),
        "event": _taken(events, "id", rows),
        "verdict": pa.array(["error"] * count),
        "message": pa.array([errors[row] for row in sorted(errors)], pa.string()),
    }
    return to_table(columns)
