"""What users get wrong with joins: each has its documented meaning or one clear sentence, and the state stays right."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pyarrow as pa
import pytest

from tidings import Engine, Event, Replica, Table
from tidings.engine.engine import EmptySubscription
from tidings.errors import SubscriptionError
from tidings.model.notification import Notification

TABLES = [
    Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"]),
    Table("reviews", {"symbol": "text", "rating": "integer"}),
]
TEXT = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per BETWEEN 45 AND 70 AND rating >= 6"
A, GOOD = {"symbol": "A", "per": 50.0}, {"symbol": "A", "rating": 7}


class Subscriber:
    """An engine with one subscription and its copy; `sent` gives what is told and keeps the copy."""

    def __init__(self) -> None:
        self.engine, self.copy = Engine(tables=TABLES), Replica(TEXT, TABLES)
        self.engine.subscribe("s", TEXT)
        self.copy.apply(self.engine.snapshot("s"))

    def sent(self, *events: Event) -> list[Notification]:
        found = list(Notification.from_table(self.engine.publish_many(events)))
        for notification in found:
            if notification.verdict == "match":
                assert self.copy.apply(notification)
        return found

    def refused(self, event: Event, words: str) -> None:
        """One error in one sentence, and nothing has changed."""
        before = self.engine.snapshot("s")
        (error,) = self.sent(event)
        assert error.verdict == "error"
        assert words in (error.message or "")
        assert "\n" not in (error.message or "")
        assert self.engine.snapshot("s").changes == before.changes

    def result(self) -> list[tuple[str, float, int]]:
        return sorted(
            (joined["stocks"]["symbol"], joined["stocks"]["per"], joined["reviews"]["rating"])
            for joined in self.copy.result()
        )


@pytest.fixture
def subscriber() -> Subscriber:
    found = Subscriber()
    found.sent(Event.insert("stocks", A), Event.insert("reviews", GOOD))
    assert found.result() == [("A", 50.0, 7)]
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM stocks JOIN review USING (symbol)", "no table 'review'; did you mean 'reviews'"),
        ("SELECT * FROM stock JOIN reviews USING (symbol)", "no table 'stock'; did you mean 'stocks'"),
        ("SELECT * FROM stocks JOIN reviews USING (name)", "no column"),
        ("SELECT * FROM stocks JOIN reviews USING (symbol) WHERE size > 1", "size"),
        ("SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.rating > 1", "no column"),
        ("SELECT * FROM stocks JOIN reviews WHERE per > 1", ""),
        ("SELECT * FROM stocks JOIN reviews ON stocks.per > 1 WHERE per > 1", ""),
    ],
)
def test_a_subscription_that_cannot_be(subscriber: Subscriber, text: str, words: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        subscriber.engine.subscribe("s", text)
    assert words in str(error.value)
    assert subscriber.engine.text("s") == TEXT, "refused, it replaces nothing"
    assert len(subscriber.sent(Event.insert("reviews", GOOD))) == 1


def test_an_empty_range_is_legal_warned_and_matches_nothing(subscriber: Subscriber) -> None:
    with pytest.warns(EmptySubscription, match="'never' will never match"):
        subscriber.engine.subscribe("never", "SELECT * FROM stocks WHERE per > 5 AND per < 5")
    assert "never" in subscriber.engine
    assert subscriber.engine.snapshot("never").changes == ()
    assert {notification.subscription for notification in subscriber.sent(Event.insert("reviews", GOOD))} == {
        "s"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subscriber.engine.subscribe("point", "SELECT * FROM stocks WHERE per >= 5 AND per <= 5")


def test_a_row_that_is_not_there(subscriber: Subscriber) -> None:
    subscriber.refused(Event.delete("stocks", {"symbol": "B"}), "no such row to delete")
    subscriber.refused(Event.delete("reviews", {"symbol": "A", "rating": 8}), "no such row to delete")
    subscriber.refused(Event.update("stocks", {"symbol": "B", "per": 1.0}), "no such row to update")
    subscriber.refused(Event.update("reviews", GOOD), "before")
    subscriber.sent(Event.delete("stocks", {"symbol": "A"}))
    assert subscriber.result() == []


def test_a_key_that_is_there(subscriber: Subscriber) -> None:
    subscriber.refused(Event.insert("stocks", {"symbol": "A", "per": 60.0}), "with this key is there")
    subscriber.sent(Event.insert("stocks", {"symbol": "B", "per": 60.0}))
    subscriber.refused(Event.update("stocks", {"symbol": "B", "per": 1.0}, before=A), "the key of another")
    assert subscriber.result() == [("A", 50.0, 7)]


def test_an_update_that_changes_the_key(subscriber: Subscriber) -> None:
    """One event: the old row goes, the new one comes."""
    subscriber.sent(Event.insert("reviews", {"symbol": "B", "rating": 9}))
    (notification,) = subscriber.sent(Event.update("stocks", {"symbol": "B", "per": 55.0}, before=A))
    assert sorted((change.change, change.table) for change in notification.changes) == [
        ("+", "reviews"),
        ("+", "stocks"),
        ("-", "reviews"),
        ("-", "stocks"),
    ]
    assert subscriber.result() == [("B", 55.0, 9)]
    subscriber.refused(Event.delete("stocks", {"symbol": "A"}), "no such row")


def test_null_joins_nothing(subscriber: Subscriber) -> None:
    assert subscriber.sent(Event.insert("reviews", {"rating": 9})) == []
    assert subscriber.sent(Event.insert("reviews", {"symbol": "A"})) == [], "nor is it in a range"
    subscriber.refused(Event.insert("stocks", {"per": 50.0}), "every column of the key")
    assert subscriber.sent(Event.delete("reviews", {"symbol": None, "rating": 9})) == []
    assert subscriber.result() == [("A", 50.0, 7)]


def test_duplicate_rows_are_counted(subscriber: Subscriber) -> None:
    subscriber.sent(Event.insert("reviews", GOOD), Event.insert("reviews", GOOD))
    assert subscriber.result() == [("A", 50.0, 7)] * 3
    (notification,) = subscriber.sent(Event.delete("reviews", GOOD))
    assert [(change.change, change.table) for change in notification.changes] == [("-", "reviews")]
    assert subscriber.result() == [("A", 50.0, 7)] * 2


def test_changes_that_come_again_or_late(subscriber: Subscriber) -> None:
    first = Event.insert("reviews", {"symbol": "A", "rating": 8}, source="db", sequence=5)
    assert len(subscriber.sent(first)) == 1
    subscriber.refused(first, "came again or late")
    late = Event.delete("reviews", GOOD, source="db", sequence=4)
    subscriber.refused(late, "came again or late")
    assert len(subscriber.sent(Event.delete("reviews", GOOD, source="other", sequence=4))) == 1
    assert len(subscriber.sent(Event.insert("reviews", GOOD, source="db", sequence=6))) == 1
    assert subscriber.result() == [("A", 50.0, 7), ("A", 50.0, 8)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"insert": "stocks", "row": {"symbol": "B", "per": "high"}}, "needs a finite number"),
        ({"insert": "stocks", "row": {"symbol": "B", "size": 5}}, "no column 'size'"),
        ({"insert": "stock", "row": A}, "no table 'stock'; did you mean 'stocks'"),
        ({"insert": "stocks"}, "row"),
        ({"type": "tidings.upsert", "table": "stocks", "row": A}, "upsert"),
        ({"insert": "reviews", "row": {"symbol": "A", "rating": 2**63}}, "63 bits"),
        ({"type": "tidings.snapshot", "subscription": "nobody"}, "no subscription 'nobody'"),
    ],
)
def test_a_change_that_cannot_be_read(subscriber: Subscriber, change: dict[str, Any], words: str) -> None:
    """Its neighbours in the batch are applied."""
    good = json.dumps({"insert": "reviews", "row": GOOD})
    found = list(
        Notification.from_table(subscriber.engine.publish_lines(f"{good}\n{json.dumps(change)}\n{good}\n"))
    )
    (error,) = (notification for notification in found if notification.verdict == "error")
    assert words in (error.message or "")
    for notification in found:
        subscriber.copy.apply(notification)
    assert subscriber.result() == [("A", 50.0, 7)] * 3


def test_what_was_told_stays_as_it_was(subscriber: Subscriber) -> None:
    subscriber.engine.subscribe("other", "SELECT * FROM stocks WHERE per > 100")
    first = subscriber.engine.correlate([Event.insert("reviews", GOOD)])
    assert first.table_of_deltas()["subscription"].to_pylist() == ["s"]
    subscriber.engine.correlate([Event.insert("stocks", {"symbol": "B", "per": 101.0})])
    assert first.table_of_deltas()["subscription"].to_pylist() == ["s"]


def test_what_is_given_to_an_engine_wrongly() -> None:
    engine = Engine(tables=[Table("t", {"a": "integer"})])
    engine.subscribe("filter", "WHERE a = 1")
    with pytest.raises(SubscriptionError, match="is over no tables"):
        engine.snapshot("filter")
    with pytest.raises(SubscriptionError, match="give what it asks, as a text"):
        engine.subscribe("nothing", None)  # type: ignore[arg-type]
    with pytest.raises(SubscriptionError, match="give a pyarrow.Table"):
        engine.subscribe_table("FROM t WHERE a = $a", [{"id": "1", "a": 1}])  # type: ignore[arg-type]
    assert len(engine.publish_many(pa.record_batch({"id": ["e"], "a": [1]}))) == 1


def test_all_rows_of_a_table_also_those_with_nulls() -> None:
    engine, copy = Engine(tables=TABLES), Replica("FROM reviews", TABLES)
    engine.subscribe("all", "FROM reviews")
    copy.apply(engine.snapshot("all"))
    rows = [GOOD, GOOD, {"symbol": None, "rating": 1}, {"rating": None}]
    engine_told = engine.publish_many([Event.insert("reviews", row, id=str(n)) for n, row in enumerate(rows)])
    for notification in Notification.from_table(engine_told):
        assert copy.apply(notification)
    assert len(copy.rows("reviews")) == 4
    with pytest.raises(SubscriptionError, match="'news' is no table here; write one behind WHERE"):
        engine.subscribe("none", "SELECT * FROM news")
    with pytest.raises(SubscriptionError, match="'news' is no table here"):
        engine.why("FROM news", Event("s", {"a": 1}))
    assert engine.why("FROM reviews", Event("s", {"a": 1})).verdict == "no match"
