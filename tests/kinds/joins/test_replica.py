"""A replica equals the query's result whatever happens to its notifications, or says what it lacks."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import islice
from zlib import crc32

import pytest

from tests.examples import seeds
from tests.kinds.joins.cases import GRAPHS, Changes, some_inserts, some_query, some_tables
from tests.kinds.joins.sql import Sql, flat
from tidings import Replica, Table
from tidings.errors import EventError, SubscriptionError
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.table import TableError
from tidings.model.notification import Notification, RowChange, to_table

STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, ["symbol"])
REVIEWS = Table("reviews", {"symbol": "text", "rating": "integer", "day": "date"})
TEXT = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 10"


def notification(sequence, gained=(), lost=(), part="0/1", verdict="match"):
    changes = [RowChange(table, "+", row) for table, row in gained]
    changes += [RowChange(table, "-", row) for table, row in lost]
    return Notification("s", "", "e", verdict, {}, None, part, sequence, tuple(changes))


def snapshot(sequence, rows=(), part="0/1"):
    return notification(sequence, rows, part=part, verdict="snapshot")


def stock(symbol, per=20.0):
    return "stocks", {"symbol": symbol, "per": per}


def review(symbol, rating=5):
    return "reviews", {"symbol": symbol, "rating": rating, "day": None}


@pytest.fixture
def replica():
    return Replica(TEXT, [STOCKS, REVIEWS])


class Server:
    """Naive's deltas as the notifications of a subscription whose rows are spread over parts."""

    def __init__(self, naive, id, parts):
        self.naive, self.id, self.parts = naive, id, parts
        self.sequences = [0] * parts
        shape = naive.subscriptions[id][0]
        places = shape.variables[0] if shape.one_key and shape.variables else ()
        self.columns = {shape.tables[slot]: column for slot, column in places}

    def bucket(self, table, row):
        return crc32(str(row[self.columns[table]]).encode()) % self.parts if self.columns else 0

    def notifications(self, gained, lost):
        for bucket in range(self.parts):
            changes = self.changes("+", gained, bucket) + self.changes("-", lost, bucket)
            if changes:
                self.sequences[bucket] += 1
                yield self.notification("match", bucket, changes)

    def snapshot(self):
        for bucket in range(self.parts):
            yield self.notification("snapshot", bucket, self.changes("+", self.naive.forms[self.id], bucket))

    def changes(self, sign, form, bucket):
        return tuple(
            RowChange(table, sign, self.naive.tables[table].text(row))
            for table, row in form.elements()
            if self.bucket(table, row) == bucket
        )

    def notification(self, verdict, bucket, changes):
        """Through Arrow, as it would come from an engine."""
        table = to_table(
            {
                "subscription": [self.id],
                "verdict": [verdict],
                "part": [f"{bucket}/{self.parts}"],
                "sequence": [self.sequences[bucket]],
                "changes": [[{"table": c.table, "change": c.change, "row": c.row} for c in changes]],
            }
        )
        (found,) = Notification.from_table(table)
        return found


def joined(replica, naive, id):
    tables = naive.subscriptions[id][0].tables
    return flat(Counter(tuple(tuple(row[name].values()) for name in tables) for row in replica.result()))


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_equals_duckdb_after_every_change(seed):
    """Notifications are lost, which a new snapshot mends, come again and in another order of their parts."""
    rng = random.Random(seed)
    tables = some_tables(rng)
    naive, sql = Naive(tables), Sql(tables)
    for change in some_inserts(rng, tables):
        naive.apply(*change)
    for name, there in naive.rows.items():
        sql.set(name, there)
    case = some_query(rng, tables, GRAPHS[seed % 4])
    naive.subscribe("s", case.query)
    server = Server(naive, "s", rng.choice((1, 1, 3)))
    copy = Replica(case.text if seed % 2 else case.query, tables)
    for notification in server.snapshot():
        assert copy.missing
        assert copy.apply(notification)
    kept = []
    for change in islice(Changes(rng, tables, naive.rows), 40):
        try:
            deltas = naive.apply(*change)
        except EventError:
            continue
        sql.set(change.table, naive.rows[change.table])
        sent = list(server.notifications(*deltas["s"])) if "s" in deltas else []
        fate = rng.choice(("lost", "reversed", "again", *["well"] * 7))
        if fate == "lost":
            sent = sent[1:]
        elif fate == "reversed":  # parts know nothing of each other
            sent.reverse()
        for notification in sent:
            copy.apply(notification)
        if fate == "again" and kept:
            assert not copy.apply(rng.choice(kept))
        kept += sent
        if fate == "lost" or copy.missing:
            for notification in server.snapshot():
                copy.apply(notification)
        assert copy.missing is None
        assert joined(copy, naive, "s") == sql.result(case.text, naive.subscriptions["s"][0].tables)
        form = Counter((name, tuple(row.values())) for name in copy._shape.tables for row in copy.rows(name))
        assert form == naive.forms["s"]


def test_nothing_is_taken_before_the_snapshot(replica):
    assert replica.missing == "no snapshot yet"
    assert not replica.apply(notification(1, [stock("A"), review("A")]))
    assert replica.missing == "no snapshot yet"
    assert replica.result() == []
    assert replica.apply(snapshot(1, [stock("A"), review("A")]))
    assert replica.missing is None
    assert replica.result() == [
        {
            "stocks": {"symbol": "A", "per": 20.0},
            "reviews": {"symbol": "A", "rating": 5, "day": None},
        }
    ]


def test_what_comes_again_counts_once(replica):
    replica.apply(snapshot(0))
    first = notification(1, [stock("A"), review("A")])
    assert replica.apply(first)
    assert not replica.apply(first)
    assert not replica.apply(snapshot(0))
    assert not replica.apply(snapshot(1))
    assert replica.apply(notification(2, [review("A")]))
    assert not replica.apply(first)
    assert len(replica.rows("reviews")) == len(replica.result()) == 2


def test_a_gap_is_noticed_and_a_new_snapshot_mends_it(replica):
    replica.apply(snapshot(3))
    assert not replica.apply(notification(5, [review("A")]))
    assert replica.missing == "a gap: expected 4, got 5"
    assert not replica.apply(notification(4, [stock("A"), review("A")]))
    assert replica.missing
    assert not replica.apply(snapshot(4, [stock("A"), review("A")])), "older than what was heard of"
    assert "5 was heard of" in replica.missing
    assert replica.apply(snapshot(5, [stock("A"), review("A"), review("A")]))
    assert replica.missing is None
    assert len(replica.result()) == 2
    assert replica.apply(notification(6, lost=[stock("A"), review("A"), review("A")]))
    assert replica.rows("stocks") == replica.result() == []


def test_a_newer_snapshot_brings_what_was_lost_unnoticed(replica):
    replica.apply(snapshot(0))
    assert replica.apply(snapshot(2, [stock("A"), review("A")]))
    assert len(replica.result()) == 1


def test_every_part_needs_its_snapshot(replica):
    replica.apply(snapshot(7, [stock("A"), review("A")], part="2/3"))
    assert replica.missing == "no snapshot yet (part 0/3)"
    replica.apply(snapshot(0, part="0/3"))
    replica.apply(snapshot(0, part="1/3"))
    assert replica.missing is None
    assert replica.apply(notification(1, [stock("B"), review("B")], part="0/3"))
    assert not replica.apply(notification(9, [review("A")], part="2/3"))
    assert replica.missing == "a gap: expected 8, got 9 (part 2/3)"
    assert len(replica.result()) == 2


def test_another_number_of_parts_begins_anew(replica):
    replica.apply(snapshot(7, [stock("A"), review("A")]))
    assert replica.apply(snapshot(0, [stock("B"), review("B")], part="0/2"))
    assert replica.missing == "no snapshot yet (part 1/2)"
    assert replica.apply(snapshot(0, part="1/2"))
    assert [row["stocks"]["symbol"] for row in replica.result()] == ["B"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (notification(1, lost=[stock("A")]), "takes away a row"),
        (notification(1, [("stocks", {"symbol": 5})]), "cannot be read"),
        (notification(1, [("nowhere", {})]), "cannot be read"),
    ],
)
def test_what_cannot_be_makes_it_incomplete(replica, change, words):
    replica.apply(snapshot(0, [stock("B"), review("B")]))
    assert not replica.apply(change)
    assert words in replica.missing
    assert len(replica.result()) == 1


def test_other_notifications_are_none_of_its_matter(replica):
    replica.apply(snapshot(0))
    assert not replica.apply(Notification(None, "", "e", "error", {}, "unreadable"))
    assert replica.missing is None


def test_a_query_over_other_tables_is_refused():
    with pytest.raises(SubscriptionError, match="no table 'reviews'"):
        Replica(TEXT, [STOCKS])


def test_what_others_are_told_is_ignored(replica):
    """A loop over all notifications of an engine is no mistake, whatever numbers the others have."""
    other = Notification(
        "other", "", "e", "match", {}, None, "0/1", 40, (RowChange("stocks", "+", {"symbol": "Z"}),)
    )
    assert not replica.apply(other)
    assert replica.apply(snapshot(3, [stock("A"), review("A")]))
    assert not replica.apply(other)
    assert not replica.apply(replace(other, sequence=4))
    assert replica.apply(notification(4, [review("A", 7)]))
    assert replica.missing is None
    assert len(replica.result()) == 2


def test_rows_of_a_table_that_is_not_asked_for(replica):
    with pytest.raises(TableError, match="no table 'stoks'; its tables are stocks, reviews"):
        replica.rows("stoks")


def test_a_question_about_no_table():
    with pytest.raises(SubscriptionError, match="the subscription names no table"):
        Replica("WHERE topic = 'x'", [STOCKS])
