"""What is to be done about subscriptions at hubs, by their states alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.feeds.hubs import NamedHubs
from tidings.feeds.push_states import Push, PushState
from tidings.service.settings import Settings
from tidings.service.websub.push_plan import ENDINGS, IN_A_ROUND, Plan, can_call, plan

OUTSIDE = Settings(Path(), url="https://tidings.example")
NAMED = {"u": NamedHubs("t", ("h", "i"))}
NOW = 1_000.0


def push(state: PushState, **more: object) -> Push:
    given = {"due": NOW + 1, "until": NOW + 1, **more}
    return Push(**{"key": "k", "url": "u", "hub": "h", "topic": "t", "secret": "s", "state": state, **given})  # type: ignore[arg-type]


def planned(*pushes: Push, named: dict[str, NamedHubs] = NAMED, followed: tuple[str, ...] = ("u",)) -> Plan:
    return plan(pushes, named, set(followed), OUTSIDE, NOW)


def test_a_hub_is_asked_once() -> None:
    [asked] = planned().ask
    assert (asked.url, asked.hub, asked.topic, asked.state, asked.failures) == (
        "u",
        "h",
        "t",
        PushState.ASKED,
        0,
    )
    assert planned(push(PushState.ASKED)) == Plan([], [], [], [], [])
    assert planned(push(PushState.ACTIVE)) == Plan([], [], [], [], [])
    assert planned(followed=()) == Plan([], [], [], [], [])
    assert planned(named={}) == Plan([], [], [], [], [])


def test_a_lease_is_renewed_after_the_feed_was_fetched() -> None:
    due = push(PushState.ACTIVE, due=NOW)
    assert planned(due) == Plan([], [], [due], [], [])
    checked = push(PushState.ACTIVE, due=NOW, checked=1)
    assert [asked.key == due.key for asked in planned(checked).ask] == [False]
    assert planned(checked).drop == []
    assert planned(checked, push(PushState.ASKED, key="l")) == Plan([], [], [], [], [])


def test_a_failure_is_followed_by_the_next_hub() -> None:
    assert planned(push(PushState.FAILED)) == Plan([], [], [], [], [])
    failed = push(PushState.FAILED, due=NOW, failures=2)
    work = planned(failed)
    assert [(asked.hub, asked.failures) for asked in work.ask] == [("i", 3)]
    assert work.drop == [failed]
    late = push(PushState.ASKED, due=NOW)
    assert planned(late) == Plan([], [], [], [late], [])


def test_a_denial_counts_as_long_as_the_feed_names_the_same() -> None:
    denied = push(PushState.DENIED, due=0.0)
    assert [asked.hub for asked in planned(denied).ask] == ["i"]
    assert planned(denied, push(PushState.DENIED, key="l", hub="i")).ask == []
    moved = planned(denied, named={"u": NamedHubs("t2", ("h",))})
    assert ([asked.hub for asked in moved.ask], moved.drop) == (["h"], [denied])


def test_what_is_not_wanted_is_ended_a_few_times() -> None:
    for state in (PushState.ASKED, PushState.ACTIVE):
        [ending] = planned(push(state), named={}).end
        assert ending.state is PushState.ENDING
    assert planned(push(PushState.FAILED), push(PushState.DENIED), named={}).end == []
    ending = push(PushState.ENDING, due=NOW, failures=ENDINGS - 1)
    assert planned(ending, push(PushState.ACTIVE, key="l")).end == [ending]
    assert planned(push(PushState.ENDING)).end == []
    given_up = push(PushState.ENDING, failures=ENDINGS)
    assert planned(given_up, push(PushState.ACTIVE, key="l")).drop == [given_up]


def test_there_are_only_so_many_requests_in_a_round() -> None:
    named = {str(number): NamedHubs("t", ("h",)) for number in range(IN_A_ROUND + 50)}
    assert len(planned(named=named, followed=tuple(named)).ask) == IN_A_ROUND


@pytest.mark.parametrize(
    ("settings", "hub", "can"),
    [
        ({}, "https://hub.example/", False),
        ({"host": "0.0.0.0"}, "https://hub.example/", False),
        ({"host": "::"}, "https://hub.example/", False),
        ({"host": "localhost"}, "https://hub.example/", False),
        ({}, "http://127.0.0.1:9/", True),
        ({}, "http://localhost/", True),
        ({"host": "192.168.1.7"}, "http://192.168.1.8/", True),
        ({"host": "tidings.lan"}, "http://hub.lan/", True),
        ({"url": "https://tidings.example"}, "https://hub.example/", True),
    ],
)
def test_only_hubs_that_can_call_back_are_asked(settings: dict[str, str], hub: str, can: bool) -> None:
    known = Settings(Path(), **settings)  # type: ignore[arg-type]
    assert can_call(known, hub) is can
    assert bool(plan([], {"u": NamedHubs("t", (hub,))}, {"u"}, known, NOW).ask) is can


times = st.sampled_from([NOW - 1, NOW, NOW + 1])
pushes = st.builds(
    Push,
    st.uuids().map(str),
    st.sampled_from(["u", "v"]),
    st.sampled_from(["h", "i"]),
    st.sampled_from(["t", "t2"]),
    st.just("s"),
    st.sampled_from(list(PushState)),
    times,
    times,
    st.integers(0, 6),
    checked=st.integers(0, 1),
)


@examples(100)
@given(st.lists(pushes, max_size=6), st.sets(st.sampled_from(["u", "v"])), st.booleans())
def test_the_plan_is_never_contradictory(known: list[Push], followed: set[str], names: bool) -> None:
    named = {url: NamedHubs("t", ("h", "i")) for url in ("u", "v")} if names else {}
    work = plan(known, named, followed, OUTSIDE, NOW)
    assert len({push.url for push in work.ask}) == len(work.ask), "one for each feed"
    touched = [push.key for push in (*work.end, *work.fail, *work.drop, *work.fetch)]
    assert len(touched) == len(set(touched)), "one thing is done about each"
    for asked in work.ask:
        assert names
        assert asked.url in followed
        mine = [push for push in known if push.url == asked.url and push.topic == "t"]
        assert not any(push.state is PushState.DENIED and push.hub == asked.hub for push in mine)
        assert not any(push.state is PushState.ASKED and push.due > NOW for push in mine)
    for ended in work.end:
        assert (
            ended.url not in followed
            or not names
            or any(push.key == ended.key and push.state is PushState.ENDING for push in known)
        )
