"""Packets as Hypothesis draws them: events of any content, and messages of every form and description."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
from hypothesis import strategies as st

from tidings.dissemination.packet import Packet, event_packet, image_of, row_packet
from tidings.dissemination.schemes import Bounds, Message, SelectionForm, Semijoin, Side, Skyline, binary
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event

LARGEST = 2**63 - 1
TABLES = {
    "r": Table("r", {"a": "integer", "b": "text", "photo": "text", "day": "date"}, payload=["photo", "day"]),
    "s": Table("s", {"b": "text", "c": "number", "d": "boolean", "e": "timestamp"}, payload=["e"]),
}
R_SIDE, S_SIDE = Side("r", (1,), 0), Side("s", (0,), 1)
_numbers = st.integers(-LARGEST, LARGEST)
_optional = st.none() | _numbers
_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_long = st.text(min_size=1, max_size=4).map(lambda text: text * 600)
_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

events = st.builds(
    Event,
    source=_names,
    attributes=st.dictionaries(_names, _plain | _long, max_size=4),
    id=_names,
    type=_names,
    time=st.none() | st.just("2004-01-31T10:00:00Z"),
    datacontenttype=_names,
    data=st.binary(max_size=20) | st.binary(min_size=1, max_size=3).map(lambda data: data * 400),
)


def _rows(table: str) -> st.SearchStrategy[tuple[object, ...]]:
    texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    if table == "r":
        days = st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31))
        return st.tuples(_optional, texts, texts, days)
    moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda at: at.replace(tzinfo=UTC))
    floats = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    return st.tuples(texts, floats, st.none() | st.booleans(), st.none() | moments)


_points = st.lists(st.tuples(_numbers, _numbers), max_size=5).map(
    lambda points: np.array(points, np.int64).reshape(-1, 2)
)
_same = st.lists(_numbers, max_size=5).map(lambda values: np.array([values, values], np.int64).T)
_descriptions = st.builds(Skyline, _points | _same) | st.builds(Bounds, _numbers, _optional, _optional)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(["selection", "join", "semijoin", "unicast"]))
    table = draw(st.sampled_from(["r", "s"]))
    tables = ("r", "s") if kind == "join" else (table,)
    rows = tuple(image_of(name, draw(_rows(name))) for name in tables)
    sign, size = draw(st.sampled_from("+-")), draw(st.integers(0, 10_000))
    sides = (R_SIDE, S_SIDE) if table == "r" else (S_SIDE, R_SIDE)
    if kind == "selection":
        return Message(SelectionForm(table), rows, sign, size)
    if kind == "join":
        return Message(binary(R_SIDE, S_SIDE), rows, sign, size)
    if kind == "unicast":
        targets = np.array(draw(st.lists(st.integers(0, 2**40), max_size=5)), np.int64)
        return Message(Semijoin(*sides), rows, sign, size, targets)
    return Message(Semijoin(*sides), rows, sign, size, description=draw(_descriptions))


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    sequence, source = draw(st.integers(0, LARGEST)), draw(_names)
    if draw(st.booleans()):
        return event_packet(draw(events), sequence, source)
    return row_packet(draw(messages()), "Ref-SJ-Clu+", TABLES, sequence, source)
