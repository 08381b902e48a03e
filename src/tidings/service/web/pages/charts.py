"""Draws series of numbers as SVG, for pages with and without scripts. Drawings have classes and no style: the style
sheet has the colours. None in a series is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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


def chart(title: str, series: Mapping[str, Values], seconds: float, unit: str = "") -> Markup:
    """Lines over the last `seconds`, with axes. The title names the latest values, for screen readers."""
    top = nice(max([v for values in series.values() for v in values if v is not None], default=0.0))
    inner, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = []
    for step in range(5):
        y = _TOP + tall * (1 - step / 4)
        parts.append(
            Markup(
                '<path class="{}" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(
                "grid" if step else "base",
                _LEFT,
                y,
                _WIDTH - _RIGHT,
                _LEFT - 8,
                y + 4,
                figure(top * step / 4),
            )
        )
    for part in range(6):
        x = _LEFT + inner * part / 5
        left = seconds * (5 - part) / 5
        label = "now" if not left else f"−{left / 60:.3g} min" if seconds >= 120 else f"−{left:.0f} s"
        anchor = "end" if part == 5 else "start" if part == 0 else "middle"
        kind = "" if part in (0, 5) else "between"
        parts.append(
            Markup('<text class="{}" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                kind, x, _HEIGHT - 6, anchor, label
            )
        )
    for number, values in enumerate(series.values()):
        points = [
            None
            if value is None
            else (_LEFT + inner * i / max(1, len(values) - 1), _TOP + tall * (1 - value / top))
            for i, value in enumerate(values)
        ]
        second = " second" if number else ""
        parts.append(
            Markup('<path class="area{}" d="{}"/><path class="stroke{}" d="{}"/>').format(
                second, _area(points, _TOP + tall), second, _path(points)
            )
        )
    latest = ", ".join(f"{name} {figure(_last(values))}{unit}" for name, values in series.items())
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}: {} at last">{}</svg>'
    ).format(_WIDTH, _HEIGHT, title, latest, Markup("").join(parts))


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
