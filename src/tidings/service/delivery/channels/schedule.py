"""When the messages of a channel are due: at once, at most so many in a time, as a digest, not in quiet hours, not while muted.

A schedule reads no clock and no store. `next_due` is the moment of the next message, by what waits and what was sent; `plan` is
the definition for a whole history: each notification is in the first message that is due at its arrival or later.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from tidings.errors import TidingsError, did_you_mean
from tidings.service.delivery.channels.zone_times import end_of_quiet, next_hour, next_reached

DIGESTS = ("hourly", "daily", "weekly")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MOST_AT_MOST = 100
SHORTEST_PER, LONGEST_PER = 60.0, 31 * 86_400.0
DEFAULT_PER = 3_600.0
DEFAULT_AT = 8 * 60
_KEYS = ("digest", "at", "day", "zone", "at_most", "per", "quiet", "muted_until")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_LATEST = 253_370_764_800.0  # the year 9999


class ScheduleError(TidingsError):
    """A schedule cannot be used."""

    status = 422


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times of a day are minutes since midnight. Without anything, each message is due at once."""

    digest: str | None = None
    at: int = DEFAULT_AT  # of a daily or weekly digest; an hourly one comes at the full hour
    day: int = 0  # of a weekly digest, Monday is 0
    zone: str = "UTC"
    at_most: int | None = None  # messages in any window of `per` seconds
    per: float = DEFAULT_PER
    quiet: tuple[int, int] | None = None  # from, to
    muted_until: float | None = None

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Schedule:
        """The schedule that was written as JSON; ScheduleError names what is wrong. A null says the same as leaving it out."""
        if not isinstance(given, Mapping):
            raise ScheduleError(
                f'the schedule is {_shown(given)}; give an object such as {{"digest": "daily"}}'
            )
        for key in given:
            if key not in _KEYS:
                advice = did_you_mean(str(key), _KEYS, f"a schedule has {', '.join(_KEYS)}")
                raise ScheduleError(f"a schedule has no {_shown(key)}; {advice}")
        there = {key: value for key, value in given.items() if value is not None}
        _check_company(there)
        digest = there.get("digest")
        if digest is not None and digest not in DIGESTS:
            raise ScheduleError(f"the digest is {_shown(digest)}; give hourly, daily or weekly")
        return cls(
            digest=digest,
            at=_minutes(there["at"], "at") if "at" in there else DEFAULT_AT,
            day=_day(there["day"]) if "day" in there else 0,
            zone=_zone(there["zone"]) if "zone" in there else "UTC",
            at_most=_at_most(there["at_most"]) if "at_most" in there else None,
            per=_per(there["per"]) if "per" in there else DEFAULT_PER,
            quiet=_quiet(there["quiet"]) if "quiet" in there else None,
            muted_until=_moment(there["muted_until"]) if "muted_until" in there else None,
        )

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads, without what is not used."""
        written: dict[str, Any] = {}
        if self.digest is not None:
            written["digest"] = self.digest
            if self.digest != "hourly":
                written["at"] = _written(self.at)
            if self.digest == "weekly":
                written["day"] = DAYS[self.day]
        if self.zone != "UTC":
            written["zone"] = self.zone
        if self.at_most is not None:
            written |= {"at_most": self.at_most, "per": self.per}
        if self.quiet is not None:
            written["quiet"] = {"from": _written(self.quiet[0]), "to": _written(self.quiet[1])}
        if self.muted_until is not None:
            written["muted_until"] = (
                datetime.fromtimestamp(self.muted_until, UTC).isoformat().replace("+00:00", "Z")
            )
        return written


class Planned(NamedTuple):
    """A message of a history, with the arrivals `first` to `last`, counted from 0."""

    due: float
    first: int
    last: int


def next_due(schedule: Schedule, first_waiting: float, sent: Sequence[float] = ()) -> float:
    """When the next message is due, if the first notification that waits arrived then, and messages were sent at these
    times, in their order; of these only the last `at_most` count."""
    earliest = first_waiting if schedule.muted_until is None else max(first_waiting, schedule.muted_until)
    if schedule.at_most is not None and len(sent) >= schedule.at_most:
        earliest = max(earliest, sent[-schedule.at_most] + schedule.per)
    zone = ZoneInfo(schedule.zone)
    due = earliest if schedule.digest is None else _next_digest(schedule, zone, first_waiting, earliest)
    return due if schedule.quiet is None else end_of_quiet(due, zone, *schedule.quiet)


def allowed(schedule: Schedule, moment: float) -> float:
    """The moment, or the first one after it at which the channel is not muted and no quiet hours are: for a message that could
    not be sent when it was due."""
    earliest = moment if schedule.muted_until is None else max(moment, schedule.muted_until)
    if schedule.quiet is None:
        return earliest
    return end_of_quiet(earliest, ZoneInfo(schedule.zone), *schedule.quiet)


def plan(schedule: Schedule, arrivals: Sequence[float]) -> list[Planned]:
    """The messages of a whole history of arrivals, in their order, if each is sent when it is due."""
    planned: list[Planned] = []
    first = 0
    while first < len(arrivals):
        due = next_due(schedule, arrivals[first], [message.due for message in planned[-MOST_AT_MOST:]])
        end = bisect_right(arrivals, due, lo=first + 1)
        planned.append(Planned(due, first, end - 1))
        first = end
    return planned


def _next_digest(schedule: Schedule, zone: ZoneInfo, first_waiting: float, earliest: float) -> float:
    """The first time of the digest that is after the first waiting notification and not before `earliest`."""
    after = first_waiting if earliest <= first_waiting else math.nextafter(earliest, -math.inf)
    if schedule.digest == "hourly":
        return next_hour(after, zone)
    return next_reached(after, zone, schedule.at, schedule.day if schedule.digest == "weekly" else None)


def _check_company(given: Mapping[str, Any]) -> None:
    """Refuses what says nothing without something else: the user meant more than was written."""
    if "per" in given and "at_most" not in given:
        raise ScheduleError(
            "the schedule has 'per' without 'at_most'; say how many messages are allowed in that time"
        )
    if "at" in given and given.get("digest") not in ("daily", "weekly"):
        raise ScheduleError(
            'the schedule has \'at\', which is for a daily or weekly digest; add "digest": "daily"'
        )
    if "day" in given and given.get("digest") != "weekly":
        raise ScheduleError('the schedule has \'day\', which is for a weekly digest; add "digest": "weekly"')


def _minutes(given: Any, name: str) -> int:
    found = _TIME.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ScheduleError(f"the time {name!r} of the schedule is {_shown(given)}; write it as 08:00")
    return int(found[1]) * 60 + int(found[2])


def _written(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _day(given: Any) -> int:
    if not isinstance(given, str) or given.lower() not in DAYS:
        raise ScheduleError(f"the day of the schedule is {_shown(given)}; write a day such as monday")
    return DAYS.index(given.lower())


@cache
def zones() -> frozenset[str]:
    """The names of all time zones; the system's files are looked through once."""
    return frozenset(available_timezones())


def _zone(given: Any) -> str:
    if not isinstance(given, str) or given not in zones():
        advice = did_you_mean(str(given), zones(), "write a name such as Europe/Vienna")
        raise ScheduleError(f"the time zone {_shown(given)} is not known; {advice}")
    return given


def _at_most(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_AT_MOST:
        raise ScheduleError(
            f"'at_most' is {_shown(given)}; give a number of messages from 1 to {MOST_AT_MOST}"
        )
    return given


def _per(given: Any) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not SHORTEST_PER <= given <= LONGEST_PER:
        raise ScheduleError(
            f"'per' is {_shown(given)}; give seconds from {SHORTEST_PER:g} to {LONGEST_PER:.0f}, such as 3600 for an hour"
        )
    return float(given)


def _quiet(given: Any) -> tuple[int, int]:
    if not isinstance(given, Mapping) or set(given) != {"from", "to"}:
        raise ScheduleError(f'quiet hours are {_shown(given)}; write {{"from": "22:00", "to": "07:00"}}')
    begin, end = _minutes(given["from"], "from"), _minutes(given["to"], "to")
    if begin == end:
        raise ScheduleError(
            f"quiet hours from {_written(begin)} to {_written(end)} have no end; give two times that differ"
        )
    return begin, end


def _moment(given: Any) -> float:
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else None
        moment = None if at is None or at.tzinfo is None else at.timestamp()
    except (ValueError, OverflowError):
        moment = None
    if moment is None or not 0 <= moment < _LATEST:
        raise ScheduleError(
            f"'muted_until' is {_shown(given)}; write a time with its zone, such as 2026-08-01T09:00:00Z"
        )
    return moment


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}…"
