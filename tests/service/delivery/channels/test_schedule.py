"""When messages are due, against a look at every minute; clocks of many zones, also where they are changed."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.service.delivery.channels.schedule import (
    DAYS,
    Planned,
    Schedule,
    ScheduleError,
    next_due,
    plan,
)

MINUTE, HOUR, DAY = 60, 3_600, 86_400

# Vienna changes by an hour in the night, Lord Howe by half an hour, Samoa has left out a day, Havana changes at midnight,
# Kathmandu has a quarter of an hour; each is looked at around a change, where it has any.
CHANGES = {
    "Europe/Vienna": [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)],
    "America/New_York": [datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)],
    "Australia/Lord_Howe": [datetime(2026, 4, 4, 15, tzinfo=UTC), datetime(2026, 10, 3, 15, 30, tzinfo=UTC)],
    "Pacific/Apia": [datetime(2011, 12, 30, 10, tzinfo=UTC)],
    "America/Havana": [datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 11, 1, 5, tzinfo=UTC)],
    "Asia/Kathmandu": [datetime(2026, 5, 1, tzinfo=UTC)],
    "UTC": [datetime(2026, 5, 1, tzinfo=UTC)],
}


def is_of_digest(schedule: Schedule, moment: float, before: list[datetime]) -> bool:
    """Whether a digest is due at a full minute. A day reaches its time when no minute before had that local time or a later
    one; `before` has the local times of many minutes until this one."""
    local = datetime.fromtimestamp(moment, ZoneInfo(schedule.zone)).replace(tzinfo=None)
    if schedule.digest == "hourly":
        return local.minute == 0
    latest = max(before)
    days = (local.date() - timedelta(days) for days in range(-1, 3))
    times = (datetime(day.year, day.month, day.day) + timedelta(minutes=schedule.at) for day in days)
    return any(
        latest < time <= local and (schedule.digest == "daily" or time.weekday() == schedule.day)
        for time in times
    )


def is_quiet(schedule: Schedule, moment: float) -> bool:
    if schedule.quiet is None:
        return False
    local = datetime.fromtimestamp(moment, ZoneInfo(schedule.zone))
    minute, (begin, end) = local.hour * 60 + local.minute, schedule.quiet
    while minute != begin:  # back to the last beginning or end, whichever comes first
        if minute == end:
            return False
        minute = (minute - 1) % 1_440
    return True


def scanned(schedule: Schedule, first_waiting: float, sent: list[float]) -> float:
    """The definition: the first full minute, or the moment of the arrival, at which everything allows a message."""
    earliest = first_waiting
    if schedule.muted_until is not None:
        earliest = max(earliest, schedule.muted_until)
    if schedule.at_most is not None:
        while sum(earliest - schedule.per < time for time in sent) >= schedule.at_most:
            earliest += MINUTE
    minute = int(first_waiting // MINUTE) * MINUTE
    before = [
        datetime.fromtimestamp(minute - back * MINUTE, ZoneInfo(schedule.zone)).replace(tzinfo=None)
        for back in range(3 * 1_440)
    ]
    is_reached = schedule.digest is None
    if is_reached and not is_quiet(schedule, earliest):
        return earliest
    while True:
        minute += MINUTE
        if schedule.digest is not None and minute >= earliest and is_of_digest(schedule, minute, before):
            is_reached = True
        before.append(datetime.fromtimestamp(minute, ZoneInfo(schedule.zone)).replace(tzinfo=None))
        if is_reached and minute >= earliest and not is_quiet(schedule, minute):
            return float(minute)


minutes = st.integers(0, 1_439)


@st.composite
def schedules(draw: st.DrawFn, zone: str) -> Schedule:
    quiet = draw(st.none() | st.tuples(minutes, minutes).filter(lambda pair: pair[0] != pair[1]))
    return Schedule(
        digest=draw(st.sampled_from([None, "hourly", "daily", "weekly"])),
        at=draw(minutes),
        day=draw(st.integers(0, 6)),
        zone=zone,
        at_most=draw(st.none() | st.integers(1, 3)),
        per=float(MINUTE * draw(st.integers(1, 300))),
        quiet=quiet,
    )


@st.composite
def situations(draw: st.DrawFn) -> tuple[Schedule, float, list[float]]:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    change = draw(st.sampled_from(CHANGES[zone])).timestamp()
    first = change + MINUTE * draw(st.integers(-1_600, 300))
    schedule = draw(schedules(zone))
    if draw(st.booleans()):
        muted = first + MINUTE * draw(st.integers(-100, 1_000))
        schedule = Schedule(
            **{name: getattr(schedule, name) for name in Schedule.__slots__} | {"muted_until": muted}
        )
    sent = sorted(first - MINUTE * draw(st.integers(0, 400)) for _ in range(draw(st.integers(0, 4))))
    return schedule, first, sent


@given(situations())
@examples(60)
def test_the_next_message_is_due_at_the_first_minute_that_is_allowed(
    situation: tuple[Schedule, float, list[float]],
) -> None:
    schedule, first, sent = situation
    assert next_due(schedule, first, sent) == scanned(schedule, first, sent)


@given(situations(), st.lists(st.integers(0, 40_000), min_size=1, max_size=40))
@examples(60)
def test_a_plan_has_each_arrival_once_and_none_early(
    situation: tuple[Schedule, float, list[float]], pauses: list[int]
) -> None:
    schedule, begin, _ = situation
    arrivals, at = [], begin
    for pause in pauses:
        at += pause / 4
        arrivals.append(at)
    planned = plan(schedule, arrivals)
    assert [index for message in planned for index in range(message.first, message.last + 1)] == list(
        range(len(arrivals))
    )
    dues = [message.due for message in planned]
    assert all(earlier < later for earlier, later in pairwise(dues))
    for message in planned:
        assert arrivals[message.last] <= message.due
        assert schedule.muted_until is None or message.due >= schedule.muted_until
        assert not is_quiet(schedule, message.due)
    if schedule.at_most is not None:
        for index, due in enumerate(dues):
            in_window = index + 1 - bisect_left(dues, due - schedule.per + 1e-3)
            assert in_window <= schedule.at_most
    if schedule == Schedule():
        assert dues == sorted(set(arrivals))


@given(situations())
@examples(100)
def test_json_says_the_same(situation: tuple[Schedule, float, list[float]]) -> None:
    schedule, first, sent = situation
    again = Schedule.from_json(schedule.to_json())
    assert again.to_json() == schedule.to_json()
    assert next_due(again, first, sent) == next_due(schedule, first, sent)


def at(zone: str, *local: int, fold: int = 0) -> float:
    return datetime(*local, tzinfo=ZoneInfo(zone), fold=fold).timestamp()  # type: ignore[arg-type,misc]


VIENNA = "Europe/Vienna"


def test_a_digest_at_a_time_that_does_not_exist_comes_after_the_gap() -> None:
    daily = Schedule(digest="daily", at=150, zone=VIENNA)  # 02:30
    assert next_due(daily, at(VIENNA, 2026, 3, 28, 12)) == at(VIENNA, 2026, 3, 29, 3)
    assert next_due(daily, at(VIENNA, 2026, 3, 29, 3)) == at(VIENNA, 2026, 3, 30, 2, 30)


def test_a_digest_at_a_time_that_comes_twice_comes_once() -> None:
    daily = Schedule(digest="daily", at=150, zone=VIENNA)
    first = at(VIENNA, 2026, 10, 25, 2, 30)
    assert next_due(daily, at(VIENNA, 2026, 10, 24, 12)) == first
    assert next_due(daily, first) == at(VIENNA, 2026, 10, 26, 2, 30)


def test_a_digest_at_the_moment_of_its_first_notification_is_the_next_one() -> None:
    weekly = Schedule(digest="weekly", at=480, day=DAYS.index("monday"))
    monday = at("UTC", 2026, 5, 4, 8)
    assert date(2026, 5, 4).weekday() == 0
    assert next_due(weekly, monday - 1) == monday
    assert next_due(weekly, monday) == monday + 7 * DAY


def test_what_is_more_than_allowed_comes_together() -> None:
    arrivals = [0.0, 10.0, 20.0, 30.0, 4_000.0]
    assert plan(Schedule(at_most=2, per=3_600.0), arrivals) == [
        Planned(0.0, 0, 0),
        Planned(10.0, 1, 1),
        Planned(3_600.0, 2, 3),
        Planned(4_000.0, 4, 4),
    ]


def test_a_mute_ends_at_a_time_of_the_digest() -> None:
    begin = at("UTC", 2026, 5, 4, 9)
    muted = Schedule(digest="daily", at=480, muted_until=begin + 2 * DAY)
    assert next_due(muted, begin) == at("UTC", 2026, 5, 7, 8)
    assert next_due(Schedule(muted_until=begin + 5), begin) == begin + 5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"digst": "daily"}, "a schedule has no 'digst'; did you mean 'digest'?"),
        ({"digest": "yearly"}, "the digest is 'yearly'; give hourly, daily or weekly"),
        ({"digest": "daily", "at": "8"}, "the time 'at' of the schedule is '8'; write it as 08:00"),
        (
            {"at": "08:00"},
            'the schedule has \'at\', which is for a daily or weekly digest; add "digest": "daily"',
        ),
        ({"digest": "weekly", "day": "Mo"}, "the day of the schedule is 'Mo'; write a day such as monday"),
        ({"zone": "Europe/Wien"}, "the time zone 'Europe/Wien' is not known; did you mean 'Europe/Vienna'?"),
        ({"at_most": 0}, "'at_most' is 0; give a number of messages from 1 to 100"),
        (
            {"per": 60},
            "the schedule has 'per' without 'at_most'; say how many messages are allowed in that time",
        ),
        (
            {"at_most": 1, "per": float("nan")},
            "'per' is nan; give seconds from 60 to 2678400, such as 3600 for an hour",
        ),
        (
            {"quiet": {"from": "22:00"}},
            'quiet hours are {\'from\': \'22:00\'}; write {"from": "22:00", "to": "07:00"}',
        ),
        (
            {"quiet": {"from": "22:00", "to": "22:00"}},
            "quiet hours from 22:00 to 22:00 have no end; give two times that differ",
        ),
        (
            {"muted_until": "2026-08-01T09:00:00"},
            "'muted_until' is '2026-08-01T09:00:00'; write a time with its zone, such as 2026-08-01T09:00:00Z",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        Schedule.from_json(given)
    assert str(refused.value) == sentence
