"""Draws series of numbers as SVG, for pages with and without scripts. Drawings have classes and no style: the style
sheet has the colours. None in a series is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from markupsafe import Markup

from tidings.service.web.pages.wording import figure

Values = Sequence[float | None]
_WIDTH, _HEIGHT = 720, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 12, 28


def spark(values: Values) -> Markup:
    """A line without axes, hidden from screen readers: the figure beside it says the same."""
    top = max([value for value in values if value is not None], default=0.0) or 1.0
    points = [
        None if value is None else (100.0 * i / max(1, len(values) - 1), 29.0 - 27.0 * value / top)
        for i, value in enumerate(values)
    ]
    return Markup(
        '<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<path class="base" d="M0 29.500H100"/><path class="area" d="{}"/><path class="stroke" d="{}"/></svg>'
    ).format(_area(points, 29.5), _path(points))


def chart(
    title: str, series: Mapping[str, Values], seconds: float, unit: str = "", *, start: float = 0.0
) -> Markup:
    """Lines over the last `seconds`, since `start`, with axes, and the values of each moment where the pointer is. The title
    names the latest values, for screen readers. Rare peaks are cut off, and a sentence below says so."""
    top, peak = scale(series)
    drawn = [
        _axes(top, seconds),
        *(_line(values, top, number) for number, values in enumerate(series.values())),
    ]
    drawn += [_moments(series, start, seconds, unit)]
    latest = ", ".join(f"{name} {figure(_last(values))}{unit}" for name, values in series.items())
    svg = Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}: {} at last">{}</svg>'
    ).format(_WIDTH, _HEIGHT, title, latest, Markup("").join(drawn))
    if peak is None:
        return svg
    said = '<p class="soft small">Peaks above {}{} are cut off; the highest is {}{}.</p>'
    return svg + Markup(said).format(figure(top), unit, figure(peak), unit)


def day_bars(title: str, days: Sequence[tuple[str, int]]) -> Markup:
    """A bar for each day (2026-11-16), with its number where the pointer is. Every week is named below, or fewer if there are many."""
    top = max(4.0, nice(max((count for _, count in days), default=0)))
    wide = (_WIDTH - _LEFT - _RIGHT) / max(1, len(days))
    tall, floor, named = _HEIGHT - _TOP - _BOTTOM, _HEIGHT - _BOTTOM, max(1, math.ceil(len(days) / 8))
    parts = [_levels(top)]
    named_days = [(date.fromisoformat(day), count) for day, count in days]
    for column, (day, count) in enumerate(named_days):
        x, high = _LEFT + wide * column, tall * count / top
        if count:
            bar = '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1.5"/>'
            parts.append(
                Markup(bar).format(x + 0.1 * wide, floor - max(1.0, high), 0.8 * wide, max(1.0, high))
            )
        if column % named == 0:
            label = '<text x="{:.1f}" y="{}" text-anchor="middle">{:%-d %b}</text>'
            parts.append(Markup(label).format(x + wide / 2, _HEIGHT - 6, day))
    for column, (day, count) in enumerate(named_days):  # above all bars
        parts.append(_strip(column, len(days), f"{day:%a %-d %b}: {count:,}"))
    total = sum(count for _, count in days)
    svg = '<svg class="chart days" viewBox="0 0 {} {}" role="img" aria-label="{}: {:,} in {} days, at most {:,} in one">{}</svg>'
    most = max((count for _, count in days), default=0)
    return Markup(svg).format(_WIDTH, _HEIGHT, title, total, len(days), most, Markup("").join(parts))


def scale(series: Mapping[str, Values]) -> tuple[float, float | None]:
    """The end of the axis, and the highest value if it is cut off: if it is more than three times as high as 95% of
    the values, which would all lie at the bottom otherwise."""
    values = sorted(value for values in series.values() for value in values if value is not None)
    if not values:
        return 1.0, None
    usual = values[math.ceil(0.95 * len(values)) - 1]
    return (nice(usual), values[-1]) if 0 < 3 * usual < values[-1] else (nice(values[-1]), None)


def moments(start: float, seconds: float, count: int) -> list[str]:
    """The time of day at which each of `count` values begins, in UTC."""
    form = "%H:%M:%S" if seconds <= 3_600 * 0.5 else "%H:%M"
    return [
        datetime.fromtimestamp(start + seconds * column / max(1, count), UTC).strftime(form)
        for column in range(count)
    ]


def _levels(top: float) -> Markup:
    """The lines across, with the values that they stand for."""
    tall, parts = _HEIGHT - _TOP - _BOTTOM, []
    for step in range(5):
        y = _TOP + tall * (1 - step / 4)
        line = '<path class="{}" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
        kind, value = "grid" if step else "base", figure(top * step / 4)
        parts.append(Markup(line).format(kind, _LEFT, y, _WIDTH - _RIGHT, _LEFT - 8, y + 4, value))
    return Markup("").join(parts)


def _axes(top: float, seconds: float) -> Markup:
    inner = _WIDTH - _LEFT - _RIGHT
    parts = [_levels(top)]
    for part in range(6):
        x = _LEFT + inner * part / 5
        anchor = "end" if part == 5 else "start" if part == 0 else "middle"
        kind = "" if part in (0, 5) else "between"
        label = '<text class="{}" x="{:.1f}" y="{}" text-anchor="{}">{}</text>'
        parts.append(
            Markup(label).format(kind, x, _HEIGHT - 6, anchor, _before(seconds * (5 - part) / 5, seconds))
        )
    return Markup("").join(parts)


def _before(left: float, seconds: float) -> str:
    if not left:
        return "now"
    size, unit = (3_600, "h") if seconds >= 7_200 else (60, "min") if seconds >= 120 else (1, "s")
    return f"−{left / size:.3g} {unit}"


def _line(values: Values, top: float, number: int) -> Markup:
    inner, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    points = [
        None
        if value is None
        else (_LEFT + inner * i / max(1, len(values) - 1), _TOP + tall * (1 - min(value / top, 1.0)))
        for i, value in enumerate(values)
    ]
    second = " second" if number else ""
    return Markup('<path class="area{}" d="{}"/><path class="stroke{}" d="{}"/>').format(
        second, _area(points, _TOP + tall), second, _path(points)
    )


def _moments(series: Mapping[str, Values], start: float, seconds: float, unit: str) -> Markup:
    """For each moment a strip that shows its values while the pointer is on it."""
    count = max(map(len, series.values()), default=0)
    parts = []
    for column, moment in enumerate(moments(start, seconds, count)):
        values = ", ".join(
            f"{name} {figure(values[column])}{unit if values[column] is not None else ''}"
            for name, values in series.items()
        )
        parts.append(_strip(column, count, f"{moment} UTC: {values}"))
    return Markup("").join(parts)


def _strip(column: int, count: int, words: str) -> Markup:
    """One of `count` strips, which shows words while the pointer is on it."""
    strip = (
        '<g class="moment"><rect x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>'
        '<text x="{:.1f}" y="{}" text-anchor="{}">{}</text></g>'
    )
    wide = (_WIDTH - _LEFT - _RIGHT) / max(1, count)
    x, left = _LEFT + wide * column, column < count / 2
    aside, anchor = (x + wide + 4, "start") if left else (x - 4, "end")
    return Markup(strip).format(x, _TOP, wide, _HEIGHT - _TOP - _BOTTOM, aside, _TOP + 14, anchor, words)


def nice(top: float) -> float:
    """The next larger number that suits an axis; a quarter of it does too."""
    if not 0 < top < math.inf:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(top))
    return scale * next(step for step in (1, 2, 4, 8, 10) if step * scale >= top * 0.999)


def _last(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    return "".join(
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (run if len(run) > 1 else [run[0], run[0]]))
        for run in _runs(points)
    )


def _area(points: Sequence[tuple[float, float] | None], floor: float) -> str:
    return "".join(
        f"M{run[0][0]:.1f} {floor:.1f}L"
        + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
        + f"L{run[-1][0]:.1f} {floor:.1f}Z"
        for run in _runs(points)
    )
