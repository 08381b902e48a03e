"""The stream of a relay where something fails: the mailbox that it writes to, or what comes over the link."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidings import Engine, Event, Table
from tidings.dissemination.live.carriers import MemberRows, record_event, rows_event
from tidings.dissemination.live.join_messages import JoinMessages
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.service.matching.local_stream import LocalStream
from tidings.service.model import BatchRecord, Subscription
from tidings.service.relay.edge_stream import EdgeStream
from tidings.service.service import Service
from tidings.service.settings import Settings

TEXT = "SELECT * FROM stocks WHERE per > 50"
DECLARED = """
[stocks]
columns = { symbol = "text", per = "number" }
key = ["symbol"]
"""
STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
WIDER = Table("stocks", {"symbol": "text", "per": "number", "note": "text"}, key=["symbol"])


class Centre:
    """What a service above sends: the rows of the subscription, and records."""

    def __init__(self, table: Table = STOCKS) -> None:
        engine = Engine(tables=[table])
        engine.subscribe("s", TEXT)
        self._made = JoinMessages(engine)

    def rows(self, id: str) -> Event:
        found = self._made.snapshot("s")
        assert found.part is not None
        assert found.sequence is not None
        return rows_event(
            "s", id, MemberRows(to_text(parse(TEXT)), found.part, found.sequence, found.changes)
        )

    def insert(self, **row: Any) -> Event:
        (record,) = self._made.publish([Event.insert("stocks", row)])
        return record_event(record)


class Edge:
    """A service with one subscription over tables and one over events, and a stream that is stepped by hand."""

    def __init__(self, data: Path) -> None:
        (declared := data / "tables.toml").write_text(DECLARED)
        self.service = Service(Settings(data, tables=declared))
        for id, text in (("s", TEXT), ("plain", "WHERE topic = 'sport'")):
            if self.service.registry.find(id) is None:
                self.service.registry.add(Subscription(id, text, id, "", id, id, 0.0, None))
        self.service.start(driver=False)
        self.answers = EdgeStream(data, self.service.mailbox.last)
        self.asked: list[str] = []
        self.answers.on_missing = self.asked.extend
        self.stream = LocalStream(data, self.service.mailbox, answers=self.answers)

    def take(self, *events: Event) -> None:
        self.service.log_writer.accept(events)
        self.stream.step()

    def told(self, id: str = "s") -> list[tuple[int | None, list[Any]]]:
        return [
            (one.sequence, [change["row"] for change in one.changes])
            for one in self.service.mailbox.page([id], after=0)
        ]


@contextmanager
def edge(data: Path) -> Iterator[Edge]:
    made = Edge(data)
    try:
        yield made
    finally:
        made.answers.stop()
        made.service.stop()


def fail_once(edge: Edge, monkeypatch: pytest.MonkeyPatch, *, written: bool) -> None:
    """Has the next batch fail, before it is in the mailbox or after."""
    record = edge.service.mailbox.record

    def failing(batch: BatchRecord, notifications: pa.Table, events: pa.Table) -> bool:
        monkeypatch.undo()
        if written:
            record(batch, notifications, events)
        raise OSError("no space left")

    monkeypatch.setattr(edge.service.mailbox, "record", failing)


@pytest.mark.parametrize("written", [False, True])
def test_a_batch_that_is_not_recorded_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    centre = Centre()
    with edge(tmp_path) as below:
        below.take(centre.rows("1"))
        fail_once(below, monkeypatch, written=written)
        with pytest.raises(OSError, match="no space"):
            below.take(centre.insert(symbol="IBM", per=60))
        below.take(centre.insert(symbol="SAP", per=70))  # this step repeats the batch before
        below.stream.step()
        assert below.told() == [
            (1, [{"symbol": "IBM", "per": 60.0}]),
            (2, [{"symbol": "SAP", "per": 70.0}]),
        ]


def test_a_stop_before_a_batch_is_recorded_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre = Centre()
    with edge(tmp_path) as below:
        below.take(centre.rows("1"))
        fail_once(below, monkeypatch, written=False)
        with pytest.raises(OSError, match="no space"):
            below.take(centre.insert(symbol="IBM", per=60))
    with edge(tmp_path) as below:
        below.stream.step()
        assert below.told() == [(1, [{"symbol": "IBM", "per": 60.0}])]


def test_rows_of_other_tables_stop_nothing_else(tmp_path: Path) -> None:
    centre, wider = Centre(), Centre(WIDER)
    with edge(tmp_path) as below:
        below.take(centre.rows("1"))
        below.asked.clear()  # what was missing at the start
        other = wider.insert(symbol="IBM", per=60, note="new"), wider.insert(symbol="SAP", per=70, note="new")
        below.take(*other, wider.rows("2"), Event("x", {"topic": "sport"}, "1"))
        assert below.asked == [to_text(parse(TEXT))], "once"
        assert len(below.told("plain")) == 1
        assert below.told() == []
        assert len(below.service.mailbox.faults()) == 3


def test_a_relay_goes_on_with_other_tables(tmp_path: Path) -> None:
    centre, wider = Centre(), Centre(WIDER)
    with edge(tmp_path) as below:
        below.take(centre.rows("1"), centre.insert(symbol="IBM", per=60))
        (declared := tmp_path / "wider.toml").write_text(
            DECLARED.replace('"number"', '"number", note = "text"')
        )
        below.asked.clear()
        below.service.definitions.set_tables(declared)
        below.take(Event("x", {"topic": "sport"}, "1"))
        assert below.asked == [to_text(parse(TEXT))]
        wider.insert(symbol="IBM", per=60, note="old")
        below.take(wider.rows("2"), wider.insert(symbol="SAP", per=70, note="new"))
        assert below.told()[-1][1] == [{"symbol": "SAP", "per": 70.0, "note": "new"}]
        assert below.told()[-1][0] > 2, "so replicas notice the gap"
