"""What is promised of the registry, on either database."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tests.service.store.batches import subscription
from tests.service.store.conftest import Stores
from tidings.service.model import (
    SERVICE,
    Definition,
    DefinitionKind,
    Delivery,
    IndexChange,
    Origin,
    Role,
    Source,
    State,
    Token,
)
from tidings.service.store.database import open_registry
from tidings.service.store.registry import Conflict, Registry


def ids(found: list) -> list[str]:
    return [one.id for one in found]


def test_a_subscription_is_found_as_it_was_added(registry: Registry) -> None:
    given = subscription("a", title="Ünï 😀", valid_until=5.5, public=True, warned=True, state=State.PAUSED)
    registry.add(given)
    assert registry.find("a") == given
    assert registry.by_feed("feed-a") == given
    assert registry.find("b") is None
    assert registry.by_feed("a") is None


def test_a_new_subscription_is_there_for_others_and_after_opening_again(stores: Stores) -> None:
    stores.registry.add(subscription("a"))
    other = open_registry(stores.settings)
    assert other.find("a") == stores.registry.find("a")
    other.close()


def test_every_addition_of_an_active_one_is_a_change_of_the_index(registry: Registry) -> None:
    assert registry.last_change() == 0
    assert registry.add(subscription("a")) == 1
    assert registry.add(subscription("p", state=State.PAUSED)) == 1
    assert (
        registry.add_many([subscription("b"), subscription("c", state=State.EXPIRED), subscription("d")]) == 3
    )
    assert registry.changes() == [
        IndexChange(1, "a", "WHERE topic = 'a'"),
        IndexChange(2, "b", "WHERE topic = 'b'"),
        IndexChange(3, "d", "WHERE topic = 'd'"),
    ]
    assert registry.changes(limit=1) == registry.changes()[:1]
    registry.applied(2)
    assert [change.number for change in registry.changes()] == [3]
    registry.applied(3)
    assert registry.changes() == []
    assert registry.last_change() == 3
    assert registry.add(subscription("e")) == 4
    assert registry.add_many([]) == 4


def test_an_id_or_a_feed_is_given_once(registry: Registry) -> None:
    registry.add(subscription("a"))
    for again in (subscription("a", feed="other"), subscription("b", feed="feed-a")):
        with pytest.raises(Conflict, match="already"):
            registry.add(again)
    with pytest.raises(Conflict):
        registry.add_many([subscription("x"), subscription("a")])
    assert registry.find("x") is None
    assert registry.last_change() == 1


def test_an_update_tells_the_index_what_it_has_to_know(registry: Registry) -> None:
    registry.add(subscription("a"))
    registry.applied(1)

    def updated(**changed: object) -> int | None:
        return registry.update(replace(registry.find("a"), **changed))

    assert updated(title="Other", valid_until=9.0) is None
    assert updated(state=State.PAUSED) == 2
    assert updated(text="WHERE x = 1") is None
    assert updated(state=State.ACTIVE) == 3
    assert updated(text="WHERE x = 2") == 4
    assert updated(state=State.CANCELLED) == 5
    assert updated(state=State.EXPIRED) is None
    assert [change.text for change in registry.changes()] == [None, "WHERE x = 1", "WHERE x = 2", None]
    found = registry.find("a")
    assert (found.revision, found.title, found.valid_until) == (8, "Other", 9.0)


def test_who_has_read_an_older_revision_changes_nothing(registry: Registry) -> None:
    registry.add(subscription("a"))
    mine = registry.find("a")
    registry.update(replace(mine, title="first"))
    with pytest.raises(Conflict, match="changed meanwhile"):
        registry.update(replace(mine, title="second"))
    with pytest.raises(Conflict):
        registry.update(subscription("nobody"))
    assert registry.find("a").title == "first"
    registry.add(subscription("b"))
    with pytest.raises(Conflict):
        registry.update(replace(registry.find("b"), feed="feed-a"))


def test_pages_are_newest_first_and_hold_under_inserts(registry: Registry) -> None:
    registry.add_many([subscription(f"s{i:02}", created=float(i // 3)) for i in range(30)])
    first = registry.page(owner=None, limit=10)
    registry.add_many([subscription(f"new{i}", created=100.0 + i) for i in range(5)])
    registry.add(subscription("s29b", created=9.0))  # among those that were shown
    second = registry.page(owner=None, after=first[-1].id, limit=10)
    third = registry.page(owner=None, after=second[-1].id, limit=100)
    assert ids(first + second + third) == [f"s{i:02}" for i in reversed(range(30))]
    assert registry.page(owner=None, after="s00") == []
    assert registry.page(owner=None, after="nobody") == []
    assert registry.page(owner=None, limit=0) == []
    assert registry.page(owner=None, limit=-1) == []


def test_a_page_is_of_an_owner_a_state_or_a_search(registry: Registry) -> None:
    registry.add_many(
        [
            subscription("a", owner="me", title="Straßenbahn 100%"),
            subscription("b", owner="me", state=State.PAUSED, text="WHERE x = 'ÄRGER'"),
            subscription("c", owner="you", title="strassen_bahn"),
        ]
    )
    assert ids(registry.page(owner="me")) == ["b", "a"]
    assert ids(registry.page(owner="you", state=State.ACTIVE)) == ["c"]
    assert ids(registry.page(owner=None, state=State.PAUSED)) == ["b"]
    assert ids(registry.page(owner=None, search="STRASSEN")) == ["c", "a"]
    assert ids(registry.page(owner=None, search="ärger")) == ["b"]
    assert ids(registry.page(owner=None, search="0%")) == ["a"]
    assert ids(registry.page(owner=None, search="n_b")) == ["c"]
    assert registry.page(owner="", search="a") == []
    assert registry.page(owner=None, search="x" * 100_000) == []
    assert registry.counts("me") == {
        State.ACTIVE: 1, State.PAUSED: 1, State.UNANSWERABLE: 0, State.EXPIRED: 0, State.CANCELLED: 0,
    }  # fmt: skip
    assert registry.counts(None)[State.ACTIVE] == 2
    assert set(registry.counts("nobody").values()) == {0}


def test_a_delegate_has_what_all_of_its_users_have(registry: Registry) -> None:
    owners = [
        "tabz/4",
        "tabz/42",
        "tabz/4/2",
        "tabz/é",
        "tabz/",
        "tabz",
        "tab/4",
        "taba/4",
        "tac/4",
        "tabzz/4",
        "tabz%/4",
    ]
    owners += ["TABZ", "(relay) tabz n1", "(service)", "", "tabz/(service)", "tabz/Z", "tabz/_"]
    registry.add_many([subscription(f"s{number}", owner=owner) for number, owner in enumerate(owners)])
    for delegate in ("tabz/", "tab/", "taba/", "tac/", "td/"):
        mine = {f"s{number}" for number, owner in enumerate(owners) if owner.startswith(delegate)}
        assert set(ids(registry.page(owner=delegate))) == mine
        assert set(registry.titles(owner=delegate, limit=100)) == mine
        assert set(registry.ids(owner=delegate, states=list(State), limit=100)) == mine
        assert {found.id for found in registry.active_texts([f"s{n}" for n in range(18)], delegate)} == mine
        assert registry.counts(delegate)[State.ACTIVE] == len(mine)
        assert {found.id for portion in registry.standing(delegate) for found in portion} == mine
    for number, owner in enumerate(owners[:4]):
        assert ids(registry.page(owner=owner)) == [f"s{number}"]


def test_those_whose_time_is_over_come_soonest_first(registry: Registry) -> None:
    registry.add_many(
        [
            subscription("late", valid_until=30.0),
            subscription("soon", valid_until=10.0, warned=True),
            subscription("paused", valid_until=20.0, state=State.PAUSED),
            subscription("over", valid_until=1.0, state=State.EXPIRED),
            subscription("gone", valid_until=1.0, state=State.CANCELLED),
            subscription("never"),
        ]
    )
    assert ids(registry.expiring(30.0)) == ["soon", "paused", "late"]
    assert ids(registry.expiring(29.9)) == ["soon", "paused"]
    assert ids(registry.expiring(99.0, warned=False)) == ["paused", "late"]
    assert ids(registry.expiring(99.0, warned=True)) == ["soon"]
    assert ids(registry.expiring(99.0, limit=1)) == ["soon"]


def test_many_end_or_are_warned_unless_changed_meanwhile(registry: Registry) -> None:
    registry.add_many([subscription(f"s{i}", valid_until=1.0) for i in range(2_500)])
    registry.add(subscription("p", valid_until=1.0, state=State.PAUSED))
    read = registry.expiring(1.0, limit=10_000)
    registry.update(replace(registry.find("s7"), valid_until=99.0))
    assert len(registry.warn(read[:10])) >= 9
    read = registry.expiring(1.0, limit=10_000)
    registry.update(replace(registry.find("s8"), valid_until=99.0))
    ended, number = registry.expire(read)
    assert len(ended) == 2_499
    assert not {"s7", "s8"} & ended
    assert number == registry.last_change() == 2_500 + 2_498
    assert registry.counts("")[State.EXPIRED] == 2_499
    assert registry.expire([]) == (set(), None)
    assert registry.remove_ended(2.0) == 2_499
    assert registry.find("p") is None


def test_all_active_ones_are_given_in_portions(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.store.registry._PORTION", 7)
    registry.add_many([subscription(f"s{i}") for i in range(21)])
    registry.add(subscription("p", state=State.PAUSED))
    assert sorted(registry.active()) == sorted((f"s{i}", f"WHERE topic = 's{i}'") for i in range(21))


def test_tokens_end_once(registry: Registry) -> None:
    token = Token("t1", "Ann", Role.PUBLISHER, "hash", 1.0, subscriptions=5, events_per_second=0.5)
    registry.add_token(token)
    registry.add_token(replace(token, id="t0", secret="hash 0", created=0.5, role=Role.ADMIN))
    for again in (replace(token, secret="x"), replace(token, id="x")):
        with pytest.raises(Conflict):
            registry.add_token(again)
    assert registry.token("hash") == token
    assert registry.token("t1") is None
    assert ids(registry.tokens()) == ["t0", "t1"]
    assert registry.end_token("t1", 9.0)
    assert not registry.end_token("t1", 10.0)
    assert not registry.end_token("nobody", 9.0)
    assert registry.token("hash") == replace(token, ended=9.0)


def test_sources_are_followed_once(registry: Registry) -> None:
    source = Source("http://a/", "A", "me", 2.0)
    assert registry.add_source(source)
    assert not registry.add_source(replace(source, title="B"))
    assert registry.add_source(Source("http://b/", "B", "", 1.0))
    assert registry.sources() == [Source("http://b/", "B", "", 1.0), source]
    assert registry.sources(limit=1) == [Source("http://b/", "B", "", 1.0)]
    assert registry.change_source(Source("http://b/", "C", "other", 9.0, 60.5))
    assert registry.source("http://b/") == Source("http://b/", "C", "", 1.0, 60.5)
    assert not registry.change_source(Source("http://none/", "C", "", 9.0))
    assert registry.sources(after=(1.0, "http://b/"), limit=5) == [source]
    assert (registry.source(source.url), registry.source("http://none/")) == (source, None)
    assert (registry.count_sources(source.owner), registry.count_sources("nobody")) == (1, 0)
    assert registry.remove_source("http://a/")
    assert not registry.remove_source("http://a/")


def test_a_delivery_moves_but_not_over_what_its_owner_set(registry: Registry) -> None:
    given = Delivery("s", "http://a/", "whsec_1", 3)
    registry.set_delivery(given)
    assert registry.delivery("s") == given
    tried = replace(given, cursor=5, failures=2, next_try=50.0, failing_since=1.0, error="refused")
    assert registry.move_deliveries([tried]) == 1
    assert registry.delivery("s") == tried
    changed = replace(tried, url="http://b/", failures=0, next_try=0.0)
    registry.set_delivery(changed)
    assert registry.move_deliveries([replace(tried, cursor=6)]) == 0
    assert registry.delivery("s") == changed
    registry.remove_delivery("s")
    assert registry.delivery("s") is None
    assert registry.move_deliveries([changed]) == 0


def test_deliveries_are_due_at_their_time(registry: Registry) -> None:
    later = Delivery("later", "http://a/", "x", 0, next_try=9.0)
    now = Delivery("now", "http://a/", "x", 0)
    for one in (later, now, Delivery("off", "http://a/", "x", 0, disabled="gone")):
        registry.set_delivery(one)
    assert registry.deliveries() == [now, later]
    assert registry.deliveries(due=8.9) == [now]
    assert registry.deliveries(due=9.0) == [now, later]


def test_standing_ones_are_read_in_portions(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.store.registry._MARKED", 2)
    states = {"a": State.ACTIVE, "b": State.PAUSED, "c": State.EXPIRED, "d": State.ACTIVE, "e": State.ACTIVE}
    registry.add_many([subscription(id, state=state, owner="me") for id, state in states.items()])
    registry.add(subscription("f", owner="other"))
    registry.add(subscription("own", owner=SERVICE))
    assert [ids(portion) for portion in registry.standing("me")] == [["a", "b"], ["d", "e"]]
    assert [ids(portion) for portion in registry.standing(None)] == [["a", "b"], ["d", "e"], ["f"]]
    assert "own" not in ids(registry.page(owner=None))
    assert registry.counts(None)[State.ACTIVE] == 4
    hooked = [Delivery("a", "http://a/", "x", 0), Delivery("d", "http://d/", "x", 1)]
    registry.set_deliveries(hooked)
    assert registry.deliveries_of(["a", "b", "d"]) == {"a": hooked[0], "d": hooked[1]}
    assert registry.deliveries_of([]) == {}


def test_threads_add_at_once_and_numbers_rise_without_gaps(registry: Registry) -> None:
    given: dict[str, int] = {}

    def add(name: str) -> None:
        for i in range(25):
            given[f"{name}{i}"] = registry.add(subscription(f"{name}{i}"))

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    seen: list[IndexChange] = []
    while any(thread.is_alive() for thread in threads) or registry.changes():
        seen += (some := registry.changes())
        if some:  # what comes later is never below what was applied
            registry.applied(some[-1].number)
    for thread in threads:
        thread.join()
    assert [change.number for change in seen] == list(range(1, 101))
    assert {change.id: change.number for change in seen} == given


def test_of_those_who_update_at_once_one_wins(registry: Registry) -> None:
    registry.add(subscription("a"))
    mine, lost = registry.find("a"), []
    start = threading.Barrier(6)

    def update(name: str) -> None:
        start.wait()
        try:
            registry.update(replace(mine, title=name))
        except Conflict:
            lost.append(name)

    threads = [threading.Thread(target=update, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lost) == 5
    found = registry.find("a")
    assert found.revision == 2
    assert found.title not in lost


def test_wanted_deliveries_are_of_those_that_may_be_told(registry: Registry) -> None:
    for id in ("a", "b", "c", "d"):
        state = State.CANCELLED if id == "c" else State.ACTIVE
        registry.add_many([subscription(id, state=state)])
        registry.set_delivery(Delivery(id, "http://x/", "s", 1))
    registry.move_deliveries([Delivery("b", "http://x/", "s", 1, disabled="gone")])
    found = registry.wanted_deliveries(["a", "b", "c", "none"])
    assert found == [Delivery("a", "http://x/", "s", 1)]


def test_what_cannot_be_asked_is_marked_with_its_reason_and_restored(registry: Registry) -> None:
    registry.add_many([subscription("a"), subscription("b"), subscription("c", over_tables=True)])
    number = registry.last_change()
    registry.update(replace(subscription("b"), text="WHERE topic = 'other'"))  # a later change
    found = registry.refusable(["a", "b", "c", "nobody"], number)
    assert ids(found) == ["a", "c"]
    assert list(registry.over_tables()) == [("c", "WHERE topic = 'c'")]
    registry.update(replace(found[1], title="changed meanwhile"))
    assert registry.refuse(found, {"a": "no prefix ex", "c": "no table"}) == {"a"}
    [[marked]] = registry.unanswerable()
    assert (marked.id, marked.state, marked.reason) == ("a", State.UNANSWERABLE, "no prefix ex")
    assert registry.counts(None)[State.UNANSWERABLE] == 1
    assert "a" not in dict(registry.active())
    before = registry.last_change()
    assert registry.restore([marked]) == {"a"}
    assert registry.restore([marked]) == set()
    assert registry.changes()[-1] == IndexChange(before + 1, "a", "WHERE topic = 'a'")


def test_a_whole_definition_replaces_those_before_and_a_change_does_not(registry: Registry) -> None:
    first = Definition(DefinitionKind.NETWORK, "n", 1, Origin.START, 1.5, given="hash")
    sent = replace(first, version=2, origin=Origin.REQUEST, content=b"\0\xff", media_type="a/b", author="me")
    change = replace(sent, version=3, origin=Origin.CHANGE)
    other = Definition(DefinitionKind.TAXONOMY, "", 1, Origin.REQUEST, 2.0)
    for definition in (first, sent, change, other):
        registry.define(definition)
    assert registry.definitions() == [sent, change, other]
    with pytest.raises(Conflict, match="meanwhile"):
        registry.define(change)
    again = replace(first, version=4)
    registry.define(again)
    assert registry.definitions() == [again, other]
