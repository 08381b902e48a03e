"""Notifications out of deltas: one for each event and subscription, in dictionaries or spelt out alike."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.examples import seeds
from tidings import Event
from tidings.kinds.joins.deltas import Deltas, JoinSnapshot
from tidings.model.event import to_table
from tidings.model.notification import NOTIFICATION_SCHEMA

TEXTS = pa.array(['{"a":1}', '{"a":2}', '{"b":"ä"}'], pa.large_string())
EVENTS = to_table([Event(id=f"e{i}", source="here") for i in range(6)])


def deltas(entries, **more):
    """Entries are (event, subscription, sequence, sign, row)."""
    event, number, sequence, sign, row = np.array(entries, dtype=np.int64).reshape(-1, 5).T
    return Deltas(
        event=event,
        number=number.astype(np.int32),
        sequence=sequence,
        sign=sign.astype(np.int8),
        row=row.astype(np.int32),
        ids=pa.array(["p", "q", "nobody"]),
        texts=TEXTS,
        table=np.array([0, 0, 1], dtype=np.int8),
        tables=pa.array(["r", "s"]),
        **more,
    )


def summary(table):
    return [
        (row["event"], row["subscription"], row["sequence"], [(c["change"], c["table"], c["row"]) for c in row["changes"]])
        for row in table.to_pylist()
    ]  # fmt: skip


def test_one_for_each_event_and_subscription():
    found = deltas([(0, 1, 1, 1, 0), (0, 1, 1, 1, 2), (0, 0, 1, 1, 0), (3, 1, 2, -1, 1)])
    assert summary(found.notifications(EVENTS)) == [
        ("e0", "q", 1, [("+", "r", '{"a":1}'), ("+", "s", '{"b":"ä"}')]),
        ("e0", "p", 1, [("+", "r", '{"a":1}')]),
        ("e3", "q", 2, [("-", "r", '{"a":2}')]),
    ]


def test_what_an_update_brings_and_takes_is_one_notification():
    found = deltas([(2, 0, 7, 1, 1), (2, 1, 4, 1, 1), (2, 1, 4, -1, 0), (2, 0, 7, -1, 0), (4, 0, 8, 1, 2)])
    assert summary(found.notifications(EVENTS)) == [
        ("e2", "p", 7, [("+", "r", '{"a":2}'), ("-", "r", '{"a":1}')]),
        ("e2", "q", 4, [("+", "r", '{"a":2}'), ("-", "r", '{"a":1}')]),
        ("e4", "p", 8, [("+", "s", '{"b":"ä"}')]),
    ]


@pytest.mark.parametrize("seed", seeds(8, 20))
def test_runs_are_grouped_as_one_by_one(seed):
    rng, entries, sequence = random.Random(seed), [], [0, 0]
    for event in range(6):
        heard = [number for number in (0, 1) if rng.random() < 0.7]
        for number in heard:
            sequence[number] += 1
        for _ in range(rng.randrange(1, 3)):  # steps of an event
            for number in rng.sample(heard, len(heard)):
                entries += [(event, number, sequence[number], 1, rng.randrange(3))] * rng.randrange(1, 3)
    expected = {}
    for event, number, count, _, row in entries:
        rows = expected.setdefault((f"e{event}", "pq"[number], count), [])
        rows.append(("+", "rrs"[row], TEXTS[row].as_py()))
    found = summary(deltas(entries).notifications(EVENTS))
    assert {tuple(row[:3]): row[3] for row in found} == expected
    assert len(found) == len(expected)
    assert [row[0] for row in found] == sorted(row[0] for row in found)


def test_dictionaries_read_back_as_texts(tmp_path):
    found = deltas([(0, 1, 1, 1, 0), (3, 1, 2, -1, 1)])
    table = found.in_dictionaries(EVENTS, "3/16")
    assert table["subscription"].chunk(0).dictionary.to_pylist() == ["q"]
    pq.write_table(table, tmp_path / "x.parquet", store_schema=False)
    back = pq.read_table(tmp_path / "x.parquet").cast(NOTIFICATION_SCHEMA)
    assert back.equals(found.notifications(EVENTS, "3/16"))


def test_errors_and_snapshots_come_behind():
    snapshot = JoinSnapshot(5, "p", 9, [("r", '{"a":1}')])
    found = deltas([(0, 1, 1, 1, 0)], errors={1: "no such row"}, snapshots=[snapshot])
    *_, error, last = found.notifications(EVENTS, "0/2").to_pylist()
    assert (error["event"], error["verdict"], error["message"]) == ("e1", "error", "no such row")
    assert (last["event"], last["verdict"], last["sequence"], last["part"]) == ("e5", "snapshot", 9, "0/2")
    assert last["changes"] == [{"table": "r", "change": "+", "row": '{"a":1}'}]


def test_nothing_is_no_notification():
    assert deltas([]).notifications(EVENTS).num_rows == 0
