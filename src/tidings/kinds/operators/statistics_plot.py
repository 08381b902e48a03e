"""Draws the statistics of operators as SVG or PNG, by the extension of the file.

Above: the time that each operator took and the time that was spared. Below: predicates by cost and selectivity; those
that are cheap and rarely hold, at the lower left, decide most for least. Colours are those of Okabe and Ito.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.kinds.operators.statistics import Statistics, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png")
DOTS_PER_INCH = 160
MAX_BARS, MAX_DOTS, MAX_LABELS = 12, 2_000, 20
_LONGEST = 44
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#B8A800",
    "#7F3C8D",
    "#00868B",
    "#8C564B",
)
_OTHER, _INK, _PALE = "#9A9A9A", "#222222", "#777777"
_WIDE = 8.4  # inches
_PLANE = (500.0, 280.0)  # about the size of the plane of dots, and of a letter in it, in points
_LETTER = 4.0


def draw(statistics: Statistics, output: str | Path) -> None:
    """Draws the statistics; a `TidingsError` if nothing was counted yet."""
    output = Path(output)
    if output.suffix.lower() not in FORMATS:
        raise TidingsError(f"a picture cannot be written to {str(output)!r}; name a file .svg or .png")
    if find_spec("matplotlib") is None:
        raise TidingsError("drawing needs Matplotlib; install Tidings with the extra 'draw'")
    if not statistics.evaluations + statistics.spared:
        raise TidingsError(
            "no operator was asked for, so there is nothing to draw; publish events to subscriptions with calls"
        )
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    bars = min(len(statistics.operators), MAX_BARS + 1)
    above = 0.5 + 0.3 * bars
    high = above + 4.6 + 1.0
    # Texts stay texts in SVG, and the same numbers give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tidings", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(_WIDE, high), dpi=DOTS_PER_INCH, layout="constrained")
        figure.suptitle(statistics.summary(), size=9.5, color=_INK, x=0.012, ha="left")
        upper, lower = figure.subplots(2, 1, height_ratios=(above, 4.6))
        colours = _Picture(statistics)
        colours.bars(upper)
        colours.dots(lower)
        figure.savefig(output, metadata={"Date": None} if output.suffix.lower() == ".svg" else None)


class _Picture:
    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.totals = sorted(
            statistics.operators, key=lambda totals: -(totals.seconds + totals.seconds_spared)
        )
        self.colours = dict(zip((totals.operator for totals in self.totals), _COLOURS, strict=False))

    def bars(self, axes: Axes) -> None:
        """Time spent and, beside it, time spared, by operator."""
        largest, rest = self.totals[:MAX_BARS], self.totals[MAX_BARS:]
        names = [totals.operator for totals in largest]
        spent, spared = [totals.seconds for totals in largest], [totals.seconds_spared for totals in largest]
        counts = [(totals.evaluations, totals.spared) for totals in largest]
        if rest:
            names.append(f"{len(rest):,} others")
            spent.append(sum(totals.seconds for totals in rest))
            spared.append(sum(totals.seconds_spared for totals in rest))
            counts.append((sum(totals.evaluations for totals in rest), sum(totals.spared for totals in rest)))
        colours = [self.colours.get(name, _OTHER) for name in names]
        unit, size = _unit(max(a + b for a, b in zip(spent, spared, strict=True)))
        ends = np.array(spent) / size
        axes.barh(names, ends, color=colours, height=0.68)
        axes.barh(names, np.array(spared) / size, left=ends, color=colours, height=0.68, alpha=0.22)
        whole = ends + np.array(spared) / size
        axes.set_xlim(0, max(float(whole.max()), 1e-9) * 1.25)
        for position, (end, (done, left)) in enumerate(zip(whole, counts, strict=True)):
            axes.annotate(
                f"{done:,} done, {left:,} spared",
                (end, position),
                xytext=(4, 0),
                textcoords="offset points",
                size=7,
                color=_PALE,
                va="center",
            )
        axes.invert_yaxis()
        _plain(axes, f"time spent (full colour) and spared (pale), in {unit}", "")
        axes.tick_params(axis="y", length=0)

    def dots(self, axes: Axes) -> None:
        """Each predicate at its cost and selectivity, as large as it was evaluated often."""
        table = self.statistics.table()
        asked = table.filter((table["evaluations"].to_numpy() + table["spared"].to_numpy()) > 0)
        asked = asked.slice(0, MAX_DOTS)
        cost = np.maximum(asked["cost"].to_numpy(), 1e-9)
        selectivity, evaluations = asked["selectivity"].to_numpy(), asked["evaluations"].to_numpy()
        many = min(1.0, 60 / max(len(cost), 1))
        size = 12 + max(30.0, 320 * many) * evaluations / max(int(evaluations.max(initial=0)), 1)
        colours = [self.colours.get(name, _OTHER) for name in asked["operator"].to_pylist()]
        never = evaluations == 0
        axes.scatter(
            cost,
            selectivity,
            s=size,
            c=["none" if unseen else colour for unseen, colour in zip(never, colours, strict=True)],
            edgecolors=[c if unseen else "white" for unseen, c in zip(never, colours, strict=True)],
            linewidths=max(0.8 * many, 0.3),
            alpha=0.85,
        )
        axes.set_xscale("log")
        axes.set_xlim(float(cost.min()) / 3, float(cost.max()) * 3)
        axes.set_ylim(-0.06, 1.06)
        _plain(axes, "cost of an evaluation", "how often the predicate holds")
        axes.xaxis.set_major_formatter(lambda seconds, _: duration(float(seconds)))
        axes.grid(color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(
            "predicates: larger dots are evaluated more often, hollow ones never were",
            size=8,
            color=_PALE,
            loc="left",
        )
        self._label(axes, asked["predicate"].to_pylist(), cost, selectivity, size)

    @staticmethod
    def _label(
        axes: Axes, texts: list[str], cost: np.ndarray, selectivity: np.ndarray, size: np.ndarray
    ) -> None:
        """Names predicates, the costliest first, where there is room; one name for those that lie on each other."""
        (left, right), (low, high) = np.log10(np.array(axes.get_xlim())), axes.get_ylim()
        xs = (np.log10(cost) - left) / (right - left) * _PLANE[0]
        ys = (selectivity - low) / (high - low) * _PLANE[1]
        spots: dict[tuple[int, int], list[int]] = {}
        for position, spot in enumerate(
            zip((xs / 5).round().tolist(), (ys / 5).round().tolist(), strict=True)
        ):
            spots.setdefault(spot, []).append(position)
        reach = np.sqrt(size) / 2
        # One dot for each spot; what is not labelled must not be covered either.
        taken = [
            (xs[i] - reach[i], ys[i] - reach[i], xs[i] + reach[i], ys[i] + reach[i])
            for i in (together[0] for together in spots.values())
        ]
        labels = 0
        for together in spots.values():
            first = together[0]
            text = texts[first] if len(texts[first]) <= _LONGEST else f"{texts[first][: _LONGEST - 1]}…"
            text += f"  and {len(together) - 1:,} more here" if len(together) > 1 else ""
            x, y, away, wide = xs[first], ys[first], reach[first] + 3, _LETTER * len(text)
            for side, dy in product((1, -1), (0.0, 9.0, -9.0)):
                begin = x + away if side > 0 else x - away - wide
                box = (begin, y + dy - 4, begin + wide, y + dy + 4)
                if 0 <= begin <= _PLANE[0] - wide and not any(_overlap(box, other) for other in taken):
                    taken.append(box)
                    axes.annotate(
                        text.replace("$", r"\$"),
                        (cost[first], selectivity[first]),
                        xytext=(side * away, dy),
                        textcoords="offset points",
                        ha="left" if side > 0 else "right",
                        va="center",
                        size=7,
                        color=_INK,
                    )
                    labels += 1
                    break
            if labels == MAX_LABELS:
                return


def _plain(axes: Axes, below: str, beside: str) -> None:
    axes.set_xlabel(below, size=8, color=_PALE)
    axes.set_ylabel(beside, size=8, color=_PALE)
    axes.tick_params(labelsize=8, colors=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#BBBBBB")


def _unit(seconds: float) -> tuple[str, float]:
    for unit, size in (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0), ("milliseconds", 1e-3)):
        if seconds >= 2 * size:
            return unit, size
    return "microseconds", 1e-6


def _overlap(box: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
