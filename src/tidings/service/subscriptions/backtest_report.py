"""What a backtest comes to: matches by day, the busiest hour, the messages of a schedule, and a warning of a flood.

Days are those of a time zone. Messages are planned by the schedules of channels; arrivals are known to the minute, so a
message at once stands for a minute.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tidings.engine.backtest import MINUTE, Match, Tally
from tidings.feeds.write.channel import moment
from tidings.model.event import Event
from tidings.service.delivery.channels.schedule import Schedule, plan
from tidings.service.subscriptions.flood import flood_warning

HOUR, DAY = 3_600, 86_400
SHOWN_MESSAGES = 60


class DayCount(NamedTuple):
    day: date
    matched: int


class HourCount(NamedTuple):
    """The matches of an hour that begins at a time, in seconds since 1970."""

    start: float
    matched: int


class PlannedMessage(NamedTuple):
    due: float
    items: int


@dataclass(frozen=True, slots=True)
class DigestPreview:
    """The messages that a schedule would have sent: how many, with how few and how many items; `newest` are the last of them,
    oldest first. `waiting` matches are for a message that is due later."""

    schedule: Schedule
    messages: int
    fewest: int
    most: int
    waiting: int
    newest: list[PlannedMessage]

    def sentence(self) -> str:
        """Such as "28 daily messages with 3 to 41 items"."""
        kind = f"{self.schedule.digest} " if self.schedule.digest else ""
        if not self.messages:
            return f"no {kind}message"
        count = f"{self.messages:,} {kind}message{'' if self.messages == 1 else 's'}"
        items = f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"
        return f"{count} with {items} item{'' if self.most == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Report:
    """`since` is when the first event that is known arrived, if that is later than what was asked for."""

    since: float
    until: float
    zone: str
    events: int
    matched: int
    undecided: int
    unreadable: int
    per_day: float
    days: list[DayCount]
    busiest: HourCount | None
    matches: list[Match]
    digest: DigestPreview
    warning: str | None

    def to_json(self, event: Callable[[Event], Mapping[str, Any]]) -> dict[str, Any]:
        """As the API answers; `event` says how an event is written."""
        busiest, digest = self.busiest, self.digest
        return {
            "since": moment(self.since),
            "until": moment(self.until),
            "events": self.events,
            "matched": self.matched,
            "undecided": self.undecided,
            "unreadable": self.unreadable,
            "per_day": self.per_day,
            "days": [{"day": str(each.day), "matched": each.matched} for each in self.days],
            "busiest": None
            if busiest is None
            else {"start": moment(busiest.start), "matched": busiest.matched},
            "matches": [{"arrived": moment(match.at), "event": event(match.event)} for match in self.matches],
            "digest": {
                "schedule": digest.schedule.to_json(),
                "sentence": digest.sentence(),
                "messages": digest.messages,
                "fewest": digest.fewest,
                "most": digest.most,
                "waiting": digest.waiting,
                "newest": [{"due": moment(each.due), "items": each.items} for each in digest.newest],
            },
            "warning": self.warning,
        }


def report(tally: Tally, since: float, until: float, schedule: Schedule) -> Report:
    """The report of what was counted between two times."""
    days = by_day(tally.minutes, since, until, schedule.zone)
    per_day = tally.matched / max(1.0, (until - since) / DAY)
    share = tally.matched / tally.events if tally.events else 0.0
    return Report(
        since,
        until,
        schedule.zone,
        tally.events,
        tally.matched,
        tally.undecided,
        tally.unreadable,
        per_day,
        days,
        busiest_hour(tally.minutes),
        tally.matches,
        preview_digest(tally.minutes, schedule, until),
        flood_warning(per_day, share),
    )


def by_day(minutes: Mapping[int, int], since: float, until: float, zone: str) -> list[DayCount]:
    """The matches of each day between two times, also of days without any."""
    local, counts = ZoneInfo(zone), Counter[date]()
    for minute, count in minutes.items():
        counts[datetime.fromtimestamp(minute * MINUTE, local).date()] += count
    first, last = (datetime.fromtimestamp(at, local).date() for at in (since, max(since, until)))
    first, last = min([first, *counts]), max([last, *counts])
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [DayCount(day, counts[day]) for day in days]


def busiest_hour(minutes: Mapping[int, int]) -> HourCount | None:
    """The full hour with the most matches, the first of several; None without matches."""
    counts = Counter[int]()
    for minute, count in minutes.items():
        counts[minute * MINUTE // HOUR] += count
    if not counts:
        return None
    hour = min(counts, key=lambda hour: (-counts[hour], hour))
    return HourCount(float(hour * HOUR), counts[hour])


def preview_digest(minutes: Mapping[int, int], schedule: Schedule, until: float) -> DigestPreview:
    """The messages that would have been sent until then."""
    arrivals = sorted(minutes)
    before = [0, *accumulate(minutes[minute] for minute in arrivals)]
    planned = plan(schedule, [float(minute * MINUTE) for minute in arrivals])
    messages = [
        PlannedMessage(message.due, before[message.last + 1] - before[message.first]) for message in planned
    ]
    sent = messages[: bisect_right(messages, until, key=lambda message: message.due)]
    items = [message.items for message in sent]
    return DigestPreview(
        schedule,
        len(sent),
        min(items, default=0),
        max(items, default=0),
        sum(message.items for message in messages[len(sent) :]),
        sent[-SHOWN_MESSAGES:],
    )
