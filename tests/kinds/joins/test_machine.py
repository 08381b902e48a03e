"""Whatever a user does, in whatever order: Hypothesis looks for the shortest story in which the parts disagree."""

from __future__ import annotations

import warnings
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.examples import is_thorough
from tidings import Engine, Event, Replica, Table
from tidings.engine.engine import EmptySubscription
from tidings.errors import EventError
from tidings.kinds.joins.naive import Naive
from tidings.language.parser import parse
from tidings.model.notification import Notification

TABLES = [
    Table("r", {"k": "integer", "a": "integer", "t": "text"}),
    Table("s", {"id": "integer", "k": "integer", "c": "number"}, key=["id"]),
    Table("u", {"c": "number", "t": "text"}),
]
WHOLE = st.none() | st.integers(0, 2) | st.sampled_from([2**63 - 1, -(2**63) + 1])
NUMBER = st.none() | st.sampled_from([-0.0, 0.5, 1e300, -1e-300])
TEXT = st.none() | st.sampled_from(["", "prefix--a", "prefix--b", "prefix--", "\U0010ffff"])
ROWS = {
    "r": st.fixed_dictionaries({"k": WHOLE, "a": WHOLE, "t": TEXT}),
    "s": st.fixed_dictionaries({"id": st.integers(0, 3), "k": WHOLE, "c": NUMBER}),
    "u": st.fixed_dictionaries({"c": NUMBER, "t": TEXT}),
}
CHANGES = st.sampled_from(list(ROWS)).flatmap(
    lambda name: st.tuples(
        st.sampled_from(["insert", "insert", "update", "delete", "truncate"]),
        st.just(name),
        ROWS[name],
        st.none() | ROWS[name],
    )
)
FROM = [
    "r",
    "r JOIN s USING (k)",
    "r JOIN u USING (t)",
    "r JOIN s USING (k) JOIN u USING (c)",
    "r JOIN s USING (k) JOIN u ON s.c = u.c AND r.t = u.t",
]
WHERE = st.lists(
    st.one_of(
        st.tuples(st.integers(-1, 3), st.integers(-1, 3)).map(
            lambda ends: "a BETWEEN {} AND {}".format(*ends)
        ),
        st.sampled_from(
            ["k > 0", "k IN (0, 2)", "r.t >= 'prefix--a'", "r.t < 'prefix--b'", "r.t IN ('', 'prefix--')"]
        ),
    ),
    min_size=1,
    max_size=3,
)
IDS = st.sampled_from(["one", "two", "three"])


class Story(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.engine, self.naive = Engine(tables=TABLES), Naive(TABLES)
        self.replicas: dict[str, Replica] = {}

    @rule(id=IDS, tables=st.sampled_from(FROM), where=WHERE)
    def subscribe(self, id: str, tables: str, where: list[str]) -> None:
        if "JOIN s" not in tables:  # k is then a column of one table
            where = [part.replace("k ", "r.k ") for part in where]
        text = f"SELECT * FROM {tables} WHERE {' AND '.join(where)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptySubscription)
            self.engine.subscribe(id, text)
        self.naive.subscribe(id, parse(text))
        self.replicas[id] = Replica(text, TABLES)
        assert self.replicas[id].apply(self.engine.snapshot(id))

    @rule(id=IDS)
    def unsubscribe(self, id: str) -> None:
        assert self.engine.unsubscribe(id) == (self.replicas.pop(id, None) is not None)
        if id in self.naive.forms:
            self.naive.unsubscribe(id)

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=4))
    def change(self, changes: list[tuple[str, str, dict[str, Any], dict[str, Any] | None]]) -> None:
        events = [self._event(number, *change) for number, change in enumerate(changes)]
        found = {
            (notification.event, notification.subscription): notification
            for event in events
            for notification in self.engine.publish(event)
        }
        for event, (op, table, row, before) in zip(events, changes, strict=True):
            try:
                expected = self.naive.apply(op, table, row, before if op == "update" else None)
            except EventError:
                assert found.pop((event.id, None)).verdict == "error"
                continue
            for id, (gained, lost) in expected.items():
                self._take(id, found.pop((event.id, id)), gained, lost)
        assert not found

    def _take(self, id: str, notification: Notification, gained: Any, lost: Any) -> None:
        assert len(notification.changes) == gained.total() + lost.total()
        assert self.replicas[id].apply(notification)

    def _event(
        self, number: int, op: str, table: str, row: dict[str, Any], before: dict[str, Any] | None
    ) -> Event:
        attributes: dict[str, Any] = {"table": table, "row": row}
        if op == "update" and before is not None:
            attributes["before"] = before
        return Event(attributes=attributes, id=f"e{number}", type=f"tidings.{op}")

    @invariant()
    def replicas_hold_the_rows(self) -> None:
        for id, replica in self.replicas.items():
            assert replica.missing is None
            names = self.naive.subscriptions[id][0].tables
            held = [(name, tuple(row.values())) for name in names for row in replica.rows(name)]
            assert sorted(held, key=repr) == sorted(self.naive.forms[id].elements(), key=repr)


TestStory = Story.TestCase
TestStory.settings = settings(
    max_examples=60 if is_thorough() else 8,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
