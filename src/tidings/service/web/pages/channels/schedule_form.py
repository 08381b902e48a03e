"""A schedule as the fields of a form, and in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidings.service.delivery.channels.schedule import DAYS, Schedule

PERIODS = {"3600": "an hour", "86400": "a day", "604800": "a week"}
_PERIODS = {float(seconds): words for seconds, words in PERIODS.items()}
EMPTY = {
    "often": "",
    "at": "08:00",
    "day": "monday",
    "zone": "",
    "at_most": "",
    "per": "3600",
    "quiet_from": "",
    "quiet_to": "",
}


def fields_of(schedule: Schedule) -> dict[str, str]:
    """The values of the form for a schedule."""
    written = schedule.to_json()
    quiet = written.get("quiet", {})
    return {
        "often": schedule.digest or "",
        "at": written.get("at", EMPTY["at"]),
        "day": DAYS[schedule.day],
        "zone": schedule.zone,
        "at_most": "" if schedule.at_most is None else str(schedule.at_most),
        "per": f"{schedule.per:g}",
        "quiet_from": quiet.get("from", ""),
        "quiet_to": quiet.get("to", ""),
    }


def schedule_from(field: Callable[[str], str]) -> dict[str, Any]:
    """The JSON of the schedule that a form has; what it says is checked where it is read."""
    often = field("often")
    given: dict[str, Any] = {"zone": field("zone") or None, "digest": often or None}
    if often in ("daily", "weekly"):
        given["at"] = field("at") or None
    if often == "weekly":
        given["day"] = field("day") or None
    if at_most := field("at_most"):
        given |= {"at_most": _number(at_most), "per": _number(field("per"))}
    if field("quiet_from") or field("quiet_to"):
        given["quiet"] = {"from": field("quiet_from"), "to": field("quiet_to")}
    return given


def in_words(schedule: Schedule) -> str:
    """How often messages come, in a sentence without its full stop."""
    written = schedule.to_json()
    zone = f" ({schedule.zone})"
    if schedule.digest == "hourly":
        words = "every hour, together"
    elif schedule.digest == "daily":
        words = f"every day at {written['at']}{zone}, together"
    elif schedule.digest == "weekly":
        words = f"every {DAYS[schedule.day].capitalize()} at {written['at']}{zone}, together"
    else:
        words = "at once"
    if schedule.at_most is not None:
        period = _PERIODS.get(schedule.per, f"{schedule.per:g} seconds")
        words += f"; at most {schedule.at_most} message{'s' * (schedule.at_most != 1)} in {period}"
    if schedule.quiet is not None:
        words += f"; none from {written['quiet']['from']} to {written['quiet']['to']}{zone}"
    return words


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text
