"""Formats times, numbers and texts of subscriptions for people. Results that are markup are escaped already."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

_UNITS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))
_TOKENS = re.compile(
    r"""(?P<s>'(?:[^']|'')*'?|"(?:[^"]|"")*"?|<[^<>\s]+>)
      | (?P<v>\?\w+)
      | (?P<k>(?<![\w:.`])(?:SELECT|FROM|WHERE|SUCHTHAT|JOIN|USING|ON|AND|OR|NOT|IN|CIDR|BETWEEN|LIKE|ILIKE|CONTAINS|SEARCH|STEMMED|MATCHES
            |STARTS|ENDS|WITH|IGNORE|CASE|EXISTS|MISSING|IS|NULL|ISA|ANY|SATISFIES|VIA|AT|TRUE|FALSE|FILTER|PREFIX)(?![\w:.]))
      | (?P<n>(?<![\w.:])\d[\d.:TZ-]*(?:e[+-]?\d+)?[a-zA-Z]*)""",
    re.IGNORECASE | re.VERBOSE,
)


def span(seconds: float) -> str:
    """ "3 minutes", in the largest unit that fits."""
    seconds = abs(seconds)
    for size, unit in _UNITS:
        if seconds >= size * (2 if unit == "month" else 1):  # "30 days" says more than "1 month"
            count = int(seconds // size)
            return f"{count:,} {unit}{'s' * (count != 1)}"
    count = int(seconds)
    return f"{count} second{'s' * (count != 1)}"


def past(seconds: float) -> str:
    """ "last 10 days", "last 5 hours", "last hour"."""
    hours = max(1, round(seconds / 3_600))
    if hours >= 36:
        return f"last {hours / 24:.0f} days"
    return f"last {hours} hours" if hours > 1 else "last hour"


def relative(at: datetime, now: datetime) -> str:
    """ "3 minutes ago", "in 2 days"."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 5:
        return "just now" if seconds <= 0 else "in a moment"
    # A little more: what was given for 30 days ends "in 30 days", not in 29 and something.
    return f"in {span(seconds * 1.005)}" if seconds > 0 else f"{span(seconds)} ago"


def ago(given: datetime | str | None, otherwise: str = "never") -> Markup:
    """A relative time that carries the absolute one; the page's script keeps it up to date."""
    if given is None:
        return Markup(escape(otherwise))
    at = datetime.fromisoformat(given) if isinstance(given, str) else given
    words = relative(at, datetime.now(UTC))
    absolute = at.strftime("%-d %B %Y, %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp(at), absolute, words)


def clock_time(given: str) -> Markup:
    """ "10:06:50", for lists of moments that are close together; the date is its title. All times are UTC."""
    at = datetime.fromisoformat(given)
    return Markup('<time data-fixed datetime="{}" title="{}">{:%H:%M:%S}</time>').format(
        stamp(at), at.strftime("%-d %B %Y, %H:%M:%S UTC"), at
    )


def date(given: str) -> str:
    """ "16 November 2026, 10:06"; all times of the pages are UTC."""
    return datetime.fromisoformat(given).strftime("%-d %B %Y, %H:%M")


def stamp(at: datetime) -> str:
    """RFC 3339, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def figure(value: float | None) -> str:
    """A number in about three digits: "0.4", "12", "1,240", "1.2M"; a dash for None."""
    if value is None:
        return "–"
    if value >= 10_000_000:
        return f"{value / 1_000_000:,.1f}M"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if 0 < seconds < 0.001:
        return f"{seconds * 1_000_000:,.0f} µs"
    if seconds < 1:
        return f"{seconds * 1_000:,.0f} ms"
    return f"{seconds:,.1f} s" if seconds < 120 else span(seconds)


def size(count: float) -> str:
    """Bytes: "1.4 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:,.1f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


def coloured(text: str) -> Markup:
    """The text of a subscription with markup that highlights keywords, texts, numbers and variables."""
    parts, at = [], 0
    for found in _TOKENS.finditer(text):
        parts += [
            escape(text[at : found.start()]),
            Markup('<span class="{}">{}</span>').format(found.lastgroup, found[0]),
        ]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])
