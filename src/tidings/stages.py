"""The way of a batch: events -> graphs -> candidates -> settled answers -> notifications, column by column.

Each step takes what the one before gives. Only events that need a parser, and answers that need a later stage,
are ever Python objects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings import rdf
from tidings.arrays.spans import pick, plain_texts
from tidings.documents import MAX_BYTES, is_utf8
from tidings.errors import EventError
from tidings.language.parser import parse
from tidings.layer import Layer
from tidings.notification import NOTIFICATION_SCHEMA
from tidings.patterns import graphs, naive
from tidings.patterns.graphs import GraphBatch
from tidings.patterns.index import Matches
from tidings.plan import alternatives
from tidings.taxonomy import Taxonomy
from tidings.terms import Triple, from_ntriples
from tidings.values import instant

_OUT_OF_STEPS = "the pattern has too many partial matches in this event; make it more specific"


def publish(
    events: pa.Table,
    layers: Sequence[Layer],
    taxonomy: Taxonomy,
    above: Mapping[str, Sequence[str]],
    prefixes: Mapping[str, str],
    all_bindings: bool,
) -> pa.Table:
    """The notifications of `events`, in no particular order; those of events that cannot be read come last."""
    _check_columns(events)
    errors: dict[int, str] = {}
    documents = read_documents(events, errors)
    pieces = [NOTIFICATION_SCHEMA.empty_table()]
    for batch in graphs.read(documents, lambda data: rdf.canonical(data, rdf.NTRIPLES), errors):
        batch = graphs.expand(batch, above)
        for layer in layers:
            matches = layer.index(taxonomy).match(batch, every=all_bindings)
            residuals = _Residuals(batch, layer, events, taxonomy, prefixes, errors)
            kept = _settle(matches, batch, layer, events, residuals, all_bindings)
            pieces.append(_notifications(matches, kept, batch, layer, events))
    if errors:
        pieces.append(_failures(events, errors))
    return pa.concat_tables(pieces)


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


def _is_clean(data: bytes, media_type: str) -> bool:
    """Whether N-Triples can be tried without a parser: whether they are canonical is found out when read."""
    return media_type == rdf.NTRIPLES and len(data) <= MAX_BYTES and is_utf8(data)


def _settle(
    matches: Matches,
    batch: GraphBatch,
    layer: Layer,
    events: pa.Table,
    residuals: _Residuals,
    all_bindings: bool,
) -> np.ndarray:
    """The answers that stand: of live and valid subscriptions, with a residual that holds, once each."""
    arrays = layer.settled.arrays
    owner = arrays["row_owner"][matches.row]
    keep = np.frombuffer(layer.live, dtype=np.bool_)[owner]
    if layer.some_end:
        until = np.frombuffer(layer.valid_until, dtype=np.float64)[owner]
        keep = keep & (until >= _times(events, batch)[matches.event])
    shape = arrays["row_shape"][matches.row]
    if arrays["later"].any():
        keep = keep.copy()
        for i in np.flatnonzero(keep & arrays["later"][shape] & ~matches.undecided):
            keep[i] = residuals.holds(matches, int(i))
    kept = np.flatnonzero(keep)
    if all_bindings or layer.one_answer_each:
        return kept
    # One notification for each pair: alternatives, and bindings a residual looked through, give several; a match
    # comes before an answer that ran out of steps.
    pair = matches.event[kept].astype(np.int64) << 32 | owner[kept]
    order = np.lexsort((matches.undecided[kept], pair))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = pair[order][1:] != pair[order][:-1]
    return kept[order[first]]


class _Residuals:
    """Conditions that are left for candidates, decided by the definition."""

    def __init__(
        self,
        batch: GraphBatch,
        layer: Layer,
        events: pa.Table,
        taxonomy: Taxonomy,
        prefixes: Mapping[str, str],
        errors: dict[int, str],
    ) -> None:
        self.batch, self.layer, self.events = batch, layer, events
        self.taxonomy, self.prefixes, self.errors = taxonomy, prefixes, errors
        self.index = layer.index(taxonomy)
        # None: unreadable, which satisfies nothing
        self._attributes: dict[int, Mapping[str, Any] | None] = {}
        self._graphs: dict[int, list[Triple]] = {}
        self._ways: dict[int, Any] = {}

    def holds(self, matches: Matches, i: int) -> bool:
        row, event = int(matches.row[i]), int(matches.event[i])
        owner, way = int(self.index.arrays["row_owner"][row]), int(self.index.arrays["row_way"][row])
        if owner not in self._ways:
            self._ways[owner] = alternatives(parse(self.layer.text(owner), self.prefixes))
        names = self.index.facts["variables"][int(self.index.arrays["row_shape"][row])]
        terms = matches.binding[matches.first[i] : matches.first[i + 1]]
        binding = {
            name: from_ntriples(self.batch.text(int(t)))
            for name, t in zip(names, terms, strict=True)
            if name is not None
        }
        if event not in self._attributes:
            self._graphs[event] = self.batch.triples(event)
            self._attributes[event] = self._read(self.batch.first_row + event)
        attributes = self._attributes[event]
        return attributes is not None and all(
            naive.holds(condition, binding, self._graphs[event], self.taxonomy, attributes)
            for condition in self._ways[owner][way].residual
        )

    def _read(self, row: int) -> Mapping[str, Any] | None:
        try:
            return event_attributes(self.events, row)
        except EventError as error:
            self.errors[row] = str(error)
            return None


def event_attributes(events: pa.Table, row: int) -> dict[str, Any]:
    """Everything a condition may name: the envelope, the attributes, and columns of the user's own."""
    values = events.slice(row, 1).to_pylist()[0]
    values.pop("data", None)
    text = values.pop("attributes", None)
    try:
        given = json.loads(text) if isinstance(text, str) else text
        return {**values, **dict(given or {})}
    except (ValueError, TypeError, RecursionError):
        raise EventError(f"the event's attributes are {str(text)[:40]!r}; give a JSON object") from None


def _times(events: pa.Table, batch: GraphBatch) -> np.ndarray:
    """When each event of the batch happened, or now, in seconds since 1970."""
    now = time.time()
    if "time" not in events.column_names:
        return np.full(len(batch), now)
    texts = events["time"].slice(batch.first_row, len(batch)).cast(pa.string()).to_pylist()
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
        "subscription": layer.id_column.take(pa.array(arrays["row_owner"][row])).cast(pa.string()),
        "source": _column(events, "source").take(rows),
        "event": _column(events, "id").take(rows),
        "verdict": verdicts,
        "bindings": bindings,
        "message": messages,
    }
    return pa.table(columns, schema=NOTIFICATION_SCHEMA)


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
        "source": _column(events, "source").take(rows),
        "event": _column(events, "id").take(rows),
        "verdict": pa.array(["error"] * count),
        "bindings": pa.nulls(count, NOTIFICATION_SCHEMA.field("bindings").type),
        "message": pa.array([errors[row] for row in sorted(errors)], pa.string()),
    }
    return pa.table(columns, schema=NOTIFICATION_SCHEMA)
