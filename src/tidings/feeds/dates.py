"""Reads the dates of feeds, in RFC 822, ISO 8601 and their common misspellings, and converts them to UTC.

A date without a zone is UTC, a day or month or year without a time begins at midnight.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_ISO = re.compile(
    r"""(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?
        (?:[Tt\s]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?
        \s*(?:([Zz]|UTC|GMT)|([+-])(\d\d):?(\d\d)?)?""",
    re.VERBOSE | re.ASCII,
)


def utc(text: str) -> str | None:
    """`text` as an xsd:dateTime in UTC, such as "2003-06-03T14:39:21Z"; None if it is no date."""
    text = text.strip()
    moment = _iso(text) if text[:4].isdecimal() else _rfc822(text)
    return None if moment is None else _written(moment)


def _written(moment: datetime) -> str:
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{fraction}Z"


def _iso(text: str) -> datetime | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, zone_hours, zone_minutes = found.groups()
    offset = int(zone_hours or 0) * 60 + int(zone_minutes or 0)
    try:
        whole = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), min(int(second or 0), 59),
            int((fraction or "0")[:6].ljust(6, "0")), tzinfo=UTC,
        )  # fmt: skip
        return datetime.fromtimestamp(whole.timestamp() + (offset * 60 if sign == "-" else -offset * 60), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _rfc822(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
