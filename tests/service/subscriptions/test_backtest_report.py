"""The report of a backtest: days of a zone, the busiest hour, and messages as the schedule of a channel plans them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.engine.backtest import Tally
from tidings.service.delivery.channels.schedule import Schedule, plan
from tidings.service.subscriptions.backtest_report import by_day, preview_digest, report

START = datetime(2026, 3, 20, tzinfo=UTC).timestamp()  # before the clocks change in Vienna
WEEKS = 21 * 24 * 60
counts = st.dictionaries(st.integers(0, WEEKS - 1), st.integers(1, 3), max_size=40)
schedules = st.sampled_from(
    [
        Schedule(),
        Schedule(digest="daily", zone="Europe/Vienna"),
        Schedule(digest="weekly", day=3, at=150, zone="Europe/Vienna"),
        Schedule(digest="hourly", zone="Asia/Kolkata", quiet=(22 * 60, 6 * 60)),
        Schedule(at_most=2, per=7_200.0),
    ]
)


@examples(30)
@given(counts, schedules)
def test_messages_have_the_items_that_a_plan_of_every_arrival_gives_them(
    given_: dict[int, int], schedule: Schedule
) -> None:
    minutes = {int(START // 60) + minute: count for minute, count in given_.items()}
    until = START + WEEKS * 60
    arrivals = sorted(60.0 * minute for minute, count in minutes.items() for _ in range(count))
    wanted = [(each.due, each.last - each.first + 1) for each in plan(schedule, arrivals)]
    found = preview_digest(minutes, schedule, until)
    sent = [(due, items) for due, items in wanted if due <= until]
    assert found.messages == len(sent)
    assert found.newest == sent[-60:]
    assert found.waiting == sum(items for due, items in wanted if due > until)
    assert (found.fewest, found.most) == (
        min((items for _, items in sent), default=0),
        max((items for _, items in sent), default=0),
    )


@examples(20)
@given(counts, st.sampled_from(["UTC", "Europe/Vienna", "Asia/Kolkata", "Pacific/Kiritimati"]))
def test_each_match_is_in_the_day_of_the_zone(given_: dict[int, int], zone: str) -> None:
    minutes = {int(START // 60) + minute: count for minute, count in given_.items()}
    days = by_day(minutes, START, START + WEEKS * 60, zone)
    naive = Counter[date]()
    for minute, count in minutes.items():
        naive[datetime.fromtimestamp(minute * 60, UTC).astimezone(ZoneInfo(zone)).date()] += count
    assert {day: count for day, count in days if count} == naive
    assert [day.day.toordinal() - days[0].day.toordinal() for day in days] == list(range(len(days)))


def test_a_report_of_nothing_and_of_a_flood() -> None:
    empty = report(Tally(), START, START, Schedule(digest="daily"))
    assert (empty.matched, empty.busiest, empty.warning) == (0, None, None)
    assert empty.digest.sentence() == "no daily message"
    minutes = Counter({int(START // 60) + minute: 2 for minute in range(2 * 24 * 60)})
    flood = report(Tally(7_000, 5_760, 0, 0, minutes), START, START + 2 * 86_400, Schedule(digest="daily"))
    assert flood.per_day == 2_880
    assert flood.warning is not None
    assert "about 2,900 events a day, 82% of all" in flood.warning
    assert flood.digest.sentence() == "2 daily messages with 962 to 2,880 items"
    assert flood.busiest is not None
    assert flood.busiest.matched == 120
