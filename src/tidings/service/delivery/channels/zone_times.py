"""Moments of a time zone: when a day reaches a time, when an hour begins, when hours of quiet end.

A day reaches a time at the first moment whose local time is that or later: a time that daylight saving leaves out is the first
moment after the gap, and of a time that comes twice it is the first. Moments are seconds since 1970, times of a day are
minutes since midnight.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_HOUR = 3_600
_DAY = 86_400


@lru_cache(maxsize=10_000)
def reached(zone: ZoneInfo, day: date, minute: int) -> float:
    """The first moment whose local time is so many minutes after midnight of the day, or later."""
    wanted = datetime(day.year, day.month, day.day, minute // 60, minute % 60)
    earlier, later = sorted(wanted.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if _local(earlier, zone) == wanted:
        return earlier
    low, high = math.floor(earlier), math.ceil(later)  # the time does not exist: the gap ends between these
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _local(middle, zone) >= wanted else (middle, high)
    return float(high)


def next_reached(after: float, zone: ZoneInfo, minute: int, weekday: int | None = None) -> float:
    """The first moment after a moment at which a day, or a day of the week (Monday is 0), reaches a time."""
    day = _local(after, zone).date() - timedelta(1)
    while True:
        if weekday is None or day.weekday() == weekday:
            moment = reached(zone, day, minute)
            if moment > after:
                return moment
        day += timedelta(1)


def next_hour(after: float, zone: ZoneInfo) -> float:
    """The first moment after a moment whose local time is a full hour."""
    begin = math.floor(after)
    offsets = {_offset(begin + hours * _HOUR, zone) for hours in range(3)}
    while True:
        # The offset may change before the next full hour: each offset gives a moment, which is right if it holds there.
        points = (begin + _HOUR - (begin + offset) % _HOUR for offset in offsets)
        right = [point for point in points if (point + _offset(point, zone)) % _HOUR == 0]
        if right:
            return float(min(right))
        begin += _HOUR


def end_of_quiet(moment: float, zone: ZoneInfo, begin: int, end: int) -> float:
    """The moment, or if its local time is from `begin` to before `end`, the first one after it where it is not."""
    while _is_quiet(_local(moment, zone), begin, end):
        start = math.floor(moment)
        local = _local(start, zone)
        wait = (end * 60 - (local.hour * _HOUR + local.minute * 60 + local.second)) % _DAY
        low, high = start, start + wait
        if _offset(high, zone) == _offset(low, zone):
            return float(high)
        while high - low > 1:  # the clock is changed before the end: look again at the moment of the change
            middle = (low + high) // 2
            low, high = (low, middle) if _offset(middle, zone) != _offset(start, zone) else (middle, high)
        moment = float(high)
    return moment


def _is_quiet(local: datetime, begin: int, end: int) -> bool:
    minute = local.hour * 60 + local.minute
    return begin <= minute < end if begin < end else not end <= minute < begin


def _local(moment: float, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)


def _offset(moment: float, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
