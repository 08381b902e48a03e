"""Debezium's messages are changes, with or without their schema, one by one or many at once."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from tidings.formats.json_lines import read_lines
from tidings.kinds.joins.changes.changes import DELETE, INSERT, TRUNCATE, UPDATE, Changes, read_changes
from tidings.kinds.joins.changes.sequences import NONE
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event, to_table

ORDERS = Table(
    "orders",
    {"id": "integer", "total": "number", "day": "date", "at": "timestamp", "note": "text", "paid": "boolean"},
    key=["id"],
)
NOTES = Table("notes", {"note": "text"})
TABLES = [ORDERS, NOTES]
DAYS, SECONDS = 12448, 1075543200  # 2004-01-31, 10:00 of it
AFTER = {"id": 1, "total": 2.5, "day": DAYS, "at": SECONDS * 1000, "note": "é", "paid": True}
TEXT = '{"id":1,"total":2.5,"day":"2004-01-31","at":"2004-01-31T10:00:00.000000Z","note":"é","paid":true}'
SOURCE = {
    "connector": "postgresql",
    "name": "shop",
    "db": "shop",
    "schema": "public",
    "table": "orders",
    "lsn": 100,
}


def message(op: str, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    return {
        "op": op,
        "before": before,
        "after": after,
        "source": {**SOURCE, **source},
        "ts_ms": 5,
        "transaction": None,
    }


def wrapped(payload: dict[str, Any], **types: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"field": name, "optional": True, **types.get(name, {"type": "string"})} for name in ORDERS.names
    ]
    sides = [{"type": "struct", "field": side, "fields": fields} for side in ("before", "after")]
    return {"schema": {"type": "struct", "fields": sides, "name": "Envelope"}, "payload": payload}


def read(*messages: object, copies: int = 1) -> Changes:
    changes = read_changes(read_lines("\n".join(map(json.dumps, messages * copies)).encode()), TABLES)
    assert changes.event.tolist() == sorted(changes.event.tolist())
    return changes


def rows(changes: Changes, which: str = "new") -> list[str | None]:
    numbers = getattr(changes, which).tolist()
    images = [changes.images[table].texts for table in changes.table.tolist()]
    return [
        texts[number].as_py() if number >= 0 else None for texts, number in zip(images, numbers, strict=True)
    ]


@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize("wrap", [False, True])
def test_operations(wrap: bool, copies: int) -> None:
    messages = [
        message("c", None, AFTER),
        message("r", None, AFTER, snapshot="true"),
        message("u", None, AFTER, lsn=101),
        message("u", {"id": 2}, AFTER, lsn=101),
        message("d", AFTER, None, lsn=102),
        message("t", lsn=103),
        message("m", lsn=104),
    ]
    changes = read(*([{"payload": m} for m in messages] if wrap else messages), copies=copies)
    key = ORDERS.text(ORDERS.read({"id": 2}))
    assert changes.errors == {}
    assert changes.op.tolist() == [INSERT, INSERT, UPDATE, UPDATE, DELETE, TRUNCATE] * copies
    assert rows(changes) == [TEXT, TEXT, TEXT, TEXT, None, None] * copies
    assert rows(changes, "old") == [None, None, None, key, TEXT, None] * copies
    assert changes.sequence.tolist() == [100, NONE, 101, 101, 102, 103] * copies
    assert changes.ties.all()
    assert set(changes.source.to_pylist()) == {"shop:orders"}


def test_what_is_no_change_of_a_row_is_left_alone() -> None:
    schema_change = {"source": SOURCE, "databaseName": "shop", "ddl": "CREATE TABLE x", "tableChanges": []}
    transaction = {"status": "BEGIN", "id": "571", "ts_ms": 5}
    changes = read(None, schema_change, {"payload": schema_change}, {"payload": None}, transaction)
    assert (len(changes), changes.errors) == (0, {})


@pytest.mark.parametrize("copies", [1, 100])
def test_times_by_the_declared_type(copies: int) -> None:
    for at in (
        SECONDS * 1000,
        SECONDS * 10**6,
        SECONDS * 10**9,
        "2004-01-31T10:00:00Z",
        "2004-01-31T11:00:00+01:00",
    ):
        assert rows(read(message("c", None, {**AFTER, "at": at}), copies=copies)) == [TEXT] * copies
    assert rows(read(message("c", None, {**AFTER, "day": "2004-01-31"}), copies=copies)) == [TEXT] * copies


@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("io.debezium.time.Timestamp", SECONDS * 1000),
        ("io.debezium.time.MicroTimestamp", SECONDS * 10**6),
        ("io.debezium.time.NanoTimestamp", SECONDS * 10**9),
        ("io.debezium.time.ZonedTimestamp", "2004-01-31T10:00:00Z"),
        ("org.apache.kafka.connect.data.Timestamp", SECONDS * 1000),
    ],
)
def test_times_by_the_schema(name: str, value: Any, copies: int) -> None:
    kinds = {"at": {"type": "int64", "name": name}, "day": {"type": "int32", "name": "io.debezium.time.Date"}}
    assert (
        rows(read(wrapped(message("c", None, {**AFTER, "at": value}), **kinds), copies=copies))
        == [TEXT] * copies
    )


@pytest.mark.parametrize("copies", [1, 100])
def test_the_schema_counts_where_the_size_misleads(copies: int) -> None:
    early = {**AFTER, "at": 1_000_000}  # one second after 1970 began, in microseconds
    schema = {"at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}}
    kinds = {"at": {"type": "int64", "name": "io.debezium.time.Timestamp"}}
    changes = read(
        wrapped(message("c", None, early), **schema),
        wrapped(message("c", None, early), **kinds),
        copies=copies,
    )
    second, quarter = (changes.images[0].columns[3][number].as_py() for number in changes.new[:2].tolist())
    assert (str(second), str(quarter)) == ("1970-01-01 00:00:01+00:00", "1970-01-01 00:16:40+00:00")
    assert len(set(rows(changes)[::2])) == len(set(rows(changes)[1::2])) == 1


def unscaled(number: int) -> str:
    return base64.b64encode(number.to_bytes(4, "big", signed=True)).decode()


@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize("value", ["2.5", "2.50", "25e-1", {"scale": 2, "value": unscaled(250)}, 2.50])
def test_decimals(value: Any, copies: int) -> None:
    assert rows(read(message("c", None, {**AFTER, "total": value}), copies=copies)) == [TEXT] * copies


@pytest.mark.parametrize("copies", [1, 100])
def test_precise_decimals_have_their_scale_in_the_schema(copies: int) -> None:
    def decimal(scale: int) -> dict[str, Any]:
        return {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": str(scale)},
        }

    image = {**AFTER, "total": unscaled(-250), "id": unscaled(10)}
    changes = read(wrapped(message("c", None, image), total=decimal(2), id=decimal(1)), copies=copies)
    assert rows(changes) == [TEXT.replace("2.5", "-2.5")] * copies
    wrong = read(wrapped(message("c", None, image), total=decimal(2), id=decimal(2)), copies=copies)
    assert len(wrong.errors) == copies
    assert "orders.id is 'AAAACg=='; the column needs a whole number" in wrong.errors[0]


def test_other_columns_of_the_database_are_left_out() -> None:
    assert rows(read(message("c", None, {**AFTER, "picture": "…", "tags": [1]}), copies=100)) == [TEXT] * 100


@pytest.mark.parametrize(
    ("message_", "words"),
    [
        (message("c", None, AFTER, table="order"), "no table 'order'; did you mean 'orders'?"),
        (message("x", None, AFTER), "the change is 'x'"),
        (message("c"), "has no row"),
        (message("d"), "a delete of table 'orders' has no row"),
        (message("d", {"note": "x"}), "has no id"),
        (message("u", None, {"note": "x"}, table="notes"), "which has no key, needs the row as it was"),
        (message("c", None, {**AFTER, "at": 10**30}), "orders.at is"),
        (message("c", None, {**AFTER, "total": "much"}), "orders.total is 'much'"),
        (message("c", None, {**AFTER, "total": "1e999"}), "orders.total is inf"),
        (message("c", None, {**AFTER, "id": "1e999999999"}), "orders.id is '1e999999999'"),
        (message("c", None, {**AFTER, "day": 10**12}), "orders.day is"),
        (message("c", None, [AFTER]), "the row of table 'orders' is ["),
    ],
)
def test_what_is_wrong_is_said_where_it_is(message_: dict[str, Any], words: str) -> None:
    good = message("c", None, AFTER)
    (alone,) = read(message_).errors.values()
    changes = read(*[good] * 50, message_, {"payload": message_}, *[good] * 50)
    assert changes.errors == {50: alone, 51: alone}
    assert rows(changes) == [TEXT] * 100
    assert words in alone


def test_positions_in_the_log_of_a_database() -> None:
    mysql = {"lsn": None, "file": "mysql-bin.000003", "pos": 154}
    oracle, mongo = {"lsn": None, "scn": "29000123"}, {"lsn": None, "ts_ms": 1700000000000}
    changes = read(
        *(message("c", None, AFTER, **source) for source in (mysql, oracle, mongo)),
        message("r", None, AFTER, snapshot=True),
        message("c", None, AFTER, lsn=None),
    )
    assert changes.sequence.tolist() == [(3 << 32) + 154, 29000123, 1700000000000, NONE, NONE]


def test_a_message_as_an_event() -> None:
    body = json.dumps(message("c", None, AFTER))
    events = [
        Event.from_cloudevent({"source": "kafka/3", "data": message("c", None, AFTER)}),
        Event(source="kafka/3", datacontenttype="application/json", data=body.encode()),
        Event(source="kafka/3", datacontenttype="text/plain", data=body.encode()),
        Event.insert("orders", {"id": 1}, source="kafka/3"),
    ]
    changes = read_changes(to_table(events), TABLES)
    assert changes.event.tolist() == [0, 1, 3]
    assert rows(changes)[:2] == [TEXT] * 2
    assert changes.source.to_pylist() == ["kafka/3:orders", "kafka/3:orders", "kafka/3"]
    values = pa.table({"data": pa.array([body.encode(), None] * 100, pa.large_binary())})
    assert rows(read_changes(values, TABLES)) == [TEXT] * 100


def test_collections_are_tables_too() -> None:
    source = {"table": None, "collection": "notes"}
    assert rows(read(message("c", None, {"note": "x"}, **source))) == ['{"note":"x"}']
