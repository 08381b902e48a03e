"""A mailbox and a registry under any sequence of calls agree with a few dicts and lists."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.examples import is_thorough
from tests.postgresql import Server
from tests.service.store.batches import batch, forgotten, notification_row, subscription
from tidings.service.model import Notice, NotificationKind, State, Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.store.registry import Conflict

IDS = st.sampled_from("abc")
EVENTS = st.sampled_from("123456")


class Machine(RuleBasedStateMachine):
    where: Settings

    def __init__(self) -> None:
        super().__init__()
        self.registry, self.mailbox = open_stores(self.where)
        with self.registry._database.writing() as one, self.mailbox._database.writing() as two:
            for table in ("subscriptions", "index_changes"):
                one.exec_driver_sql(f"DELETE FROM {table}")
            one.exec_driver_sql("UPDATE index_change_numbers SET value = 0")
            for table in ("notifications", "events", "batches", "reached", "faults"):
                two.exec_driver_sql(f"DELETE FROM {table}")
            two.exec_driver_sql("UPDATE counters SET value = 0")
        self.subscriptions: dict[str, Subscription] = {}
        self.asked: dict[str, str] = {}  # by the index, if it hears of every change
        self.notifications: list[
            tuple[str, str, float]
        ] = []  # (subscription, event or notice, at) in their order
        self.recorded = -1  # the last batch
        self.clock = 1.0

    def teardown(self) -> None:
        self.registry.close()
        self.mailbox.close()

    @rule(id=IDS)
    def add(self, id: str) -> None:
        given = subscription(id)
        if id in self.subscriptions:
            with pytest.raises(Conflict):
                self.registry.add(given)
        else:
            self.registry.add(given)
            self.subscriptions[id] = given

    @rule(id=IDS, state=st.sampled_from(State), text=st.sampled_from("xy"), late=st.booleans())
    def update(self, id: str, state: State, text: str, late: bool) -> None:
        known = self.subscriptions.get(id, subscription(id))
        given = replace(known, state=state, text=text, revision=known.revision - late)
        if id not in self.subscriptions or late:
            with pytest.raises(Conflict):
                self.registry.update(given)
        else:
            self.registry.update(given)
            self.subscriptions[id] = replace(given, revision=known.revision + 1)

    @rule()
    def apply(self) -> None:
        for change in self.registry.changes():
            if change.text is None:
                del self.asked[change.id]  # nothing is taken out that is not in
            else:
                self.asked[change.id] = change.text
            self.registry.applied(change.number)
        active = {one.id: one.text for one in self.subscriptions.values() if one.state is State.ACTIVE}
        assert self.asked == active == dict(self.registry.active())

    @rule(number=st.integers(-1, 1), pairs=st.lists(st.tuples(IDS, EVENTS), max_size=4))
    def record(self, number: int, pairs: list[tuple[str, str]]) -> None:
        self.clock += 1
        number = max(0, number + self.recorded)
        new = number > self.recorded
        given = batch(number, [notification_row(*pair) for pair in pairs], ended=self.clock)
        assert self.mailbox.record(*given) is new
        if new:
            self.recorded = number
            self._tell(pairs)

    @rule(id=IDS, notice=st.sampled_from(["n1", "n2"]))
    def notify(self, id: str, notice: str) -> None:
        self.clock += 1
        self.mailbox.notify([Notice(id, NotificationKind.MISSED, notice, self.clock, "Late.")])
        self._tell([(id, notice)])

    @rule(numbers=st.sampled_from([1, 65_000, 1 << 17, 10**11]))
    def skip(self, numbers: int) -> None:
        """Others have got numbers, whose notifications are gone: searches go through many blocks."""
        with self.mailbox._database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE counters SET value = value + {numbers} WHERE name = 'number'")

    @rule(age=st.integers(0, 6))
    def forget(self, age: int) -> None:
        before = self.clock - age
        last = {one[0]: self._number(one) for one in self.notifications if one[2] < before}
        assert forgotten(self.mailbox, before) == last
        self.notifications = [one for one in self.notifications if one[2] >= before]

    @invariant()
    def agrees(self) -> None:
        found = self.mailbox.page(["a", "b", "c"], after=0, limit=1_000)
        assert [
            (one.subscription, one.event.id if one.event else one.id, one.at) for one in found
        ] == self.notifications
        assert [one.number for one in found] == sorted({one.number for one in found})
        assert self.mailbox.page(["a", "b", "c"], limit=1_000) == found[::-1]
        of_each = {id: [one for one in found if one.subscription == id] for id in "abc"}
        assert self.mailbox.pages(dict.fromkeys("abc", 0), 3) == {
            id: of[:3] for id, of in of_each.items() if of
        }
        for one in found[:1] + found[-1:]:
            assert self.mailbox.find(one.subscription, one.id) == one
            assert self.mailbox.page([one.subscription], limit=1) == of_each[one.subscription][-1:]
        first, last = self.mailbox.first(), self.mailbox.last()
        assert first == (found[0].number if found else last + 1)
        assert self.mailbox.news(0) == (last, {one.subscription: one.number for one in found})
        kept = {one.id: one for one in self.registry.page(owner=None)}
        assert kept == self.subscriptions

    def _tell(self, pairs: list[tuple[str, str]]) -> None:
        for id, what in pairs:
            if not any(one[:2] == (id, what) for one in self.notifications):
                self.notifications.append((id, what, self.clock))

    def _number(self, one: tuple[str, str, float]) -> int:
        found = self.mailbox.page([one[0]], after=0, limit=1_000)
        return next(t.number for t in found if one[1] in (t.event.id if t.event else t.id,))


def test_any_sequence_of_calls(request: pytest.FixtureRequest, kind: str, made_files: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="tidings-machine-"))
    if kind == "sqlite":
        shutil.copytree(made_files, folder, dirs_exist_ok=True)
        where = Settings(folder)
    else:
        server: Server = request.getfixturevalue("server")
        template = request.getfixturevalue("made_database")
        where = Settings(folder, store=server.create("machine", f"TEMPLATE {template}"))
    try:
        run_state_machine_as_test(
            type("Here", (Machine,), {"where": where}),
            settings=profile(
                max_examples=40 if is_thorough() else 5,
                stateful_step_count=25,
                deadline=None,
                phases=[Phase.generate],
            ),
        )
    finally:
        shutil.rmtree(folder)
