"""A figure as a picture: lines that can be told apart without colour, what it shows as its title."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.measure import Figure

_STYLE = {
    "Tidings": ("#0b5fa5", "o", "-"),
    "counting (G-ToPSS)": ("#d1495b", "s", "-"),
    "as variables (OPS)": ("#e9a13b", "^", "-"),
    "one by one": ("#6b7280", "D", "-"),
    "SPARQL, one query each": ("#2f9e6e", "v", "-"),
    "interval / k-index": ("#d1495b", "s", "-"),
    "auto": ("#0b5fa5", "o", "-"),
    "Figure 6": ("#7b4bb3", "P", "-"),
    "Figure 8, SCC skipping": ("#2f9e6e", "v", "-"),
    "BFS": ("#e9a13b", "^", "-"),
    "BFS at 20 µs an expression": ("#e9a13b", "^", "--"),
    "index first": ("#d1495b", "s", "-"),
    "naive": ("#6b7280", "D", "-"),
    "cost alone": ("#111827", "x", "--"),
    "cost / (1 - selectivity)": ("#7b4bb3", "P", "-"),
    "Sequential": ("#e9a13b", "^", "-"),
    "Sub-Order": ("#d1495b", "s", "-"),
    "Adaptive": ("#0b5fa5", "o", "-"),
    "hindsight": ("#2f9e6e", "v", "--"),
    "Enum-J": ("#111827", "x", "-"),
    "Enum-SJ": ("#6b7280", "D", "-"),
    "Ref-J": ("#e9a13b", "^", "--"),
    "Ref-J+": ("#e9a13b", "^", "-"),
    "Rel-Sel": ("#7b4bb3", "P", "-"),
    "Ref-SJ-Sub": ("#d1495b", "s", "-"),
    "Ref-SJ-Tup": ("#d1495b", "s", "--"),
    "Ref-SJ-Clu": ("#2f9e6e", "v", "--"),
    "Ref-SJ-Clu+": ("#2f9e6e", "v", "-"),
    "exact deltas": ("#0b5fa5", "o", "-"),
    "Ref-J+, CN*": ("#e9a13b", "^", ":"),
    "Ref-SJ-Clu+, CN*": ("#2f9e6e", "v", ":"),
    "traffic": ("#0b5fa5", "o", "-"),
    "overlay and last hop": ("#0b5fa5", "o", "-"),
    "last hop": ("#e9a13b", "^", "-"),
    "sent by the server": ("#0b5fa5", "o", "-"),
    "delivered to subscribers": ("#e9a13b", "^", "-"),
    "of these, rows of S": ("#2f9e6e", "v", "-"),
    "RSS cluster": ("#d1495b", "s", "-"),
    "RSS cluster, containment": ("#e9a13b", "^", "-"),
    "RSS cluster, merging": ("#d1495b", "s", "-"),
    "RSS cluster, no index": ("#6b7280", "D", "-"),
    "Tidings, containment": ("#2f9e6e", "v", "-"),
    "Tidings, merging": ("#0b5fa5", "o", "-"),
    "RSS cluster, merging, 2 back-ends": ("#d1495b", "s", "--"),
    "RSS cluster, merging, 4 back-ends": ("#d1495b", "s", "-"),
    "Tidings, merging, 2 back-ends": ("#0b5fa5", "o", "--"),
    "Tidings, merging, 4 back-ends": ("#0b5fa5", "o", "-"),
    "Tidings, merging by a sample": ("#0b5fa5", "o", "--"),
    "Tidings, merging by a sample, apart": ("#2f9e6e", "v", "--"),
    "replicate": ("#6b7280", "D", "-"),
    "split": ("#e9a13b", "^", "-"),
    "contain": ("#0b5fa5", "o", "-"),
    "contain, apart": ("#0b5fa5", "o", "--"),
    "contain, 70 % merged": ("#2f9e6e", "v", "-"),
}
_PUBLISHED = {"RSS cluster": "#0b5fa5", "G-ToPSS": "#d1495b"}
_PUBLISHED = {name: style[0] for name, style in _STYLE.items()} | _PUBLISHED
_FEW_DECADES = 200  # below this ratio of its ends a scale has too few powers of ten
_MOST_INSIDE = 6  # a longer legend stands beside the picture
_OTHERS = (("#7b4bb3", "P", "-"), ("#2f9e6e", "v", "--"), ("#6b7280", "D", "--"))


def draw(figure: Figure, path: Path) -> None:
    """Writes the PNG of `figure`: lines over numbers, bars over names."""
    with pyplot.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        is_bars = isinstance(figure.x[0], str)
        crowded = len(figure.series) + len(figure.published_series) > _MOST_INSIDE
        canvas, axes = pyplot.subplots(figsize=(12 if is_bars else 10.5 if crowded else 8, 5), dpi=150)
        (_draw_bars if is_bars else _draw_lines)(figure, axes)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        axes.set_xlabel(figure.x_label)
        axes.set_ylabel(figure.y_label)
        axes.set_title(figure.title, loc="left", fontsize=12.5, fontweight="bold", pad=14)
        axes.grid(axis="y", alpha=0.25)
        axes.legend(frameon=False, **({"loc": "upper left", "bbox_to_anchor": (1, 1)} if crowded else {}))
        canvas.text(0.01, 0.01, f"1 = {figure.reference}", fontsize=8.5, color="#4b5563")
        canvas.tight_layout(rect=(0, 0.03, 1, 1))
        canvas.savefig(path)
        pyplot.close(canvas)


def _draw_lines(figure: Figure, axes: Axes) -> None:
    others = iter(_OTHERS)
    for name, values in figure.series.items():
        colour, marker, line = _STYLE.get(name) or next(others)
        axes.plot(figure.x, values, color=colour, marker=marker, linestyle=line, linewidth=2, label=name)
        if name in figure.spread:
            axes.fill_between(figure.x, *zip(*figure.spread[name], strict=True), color=colour, alpha=0.15)
    for name, published in figure.published_series.items():
        points = [(x, y) for x, y in zip(figure.x, published, strict=True) if y is not None]
        axes.plot(
            *zip(*points, strict=True),
            "*",
            color=_PUBLISHED[name],
            markersize=14,
            label=f"{name}, as published",
        )
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < _FEW_DECADES * low:
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        axes.set_ylim(bottom=0)
    axes.set_xticks(figure.x, minor=False)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _draw_bars(figure: Figure, axes: Axes) -> None:
    """The series of a name side by side, each with its number above it."""
    width = 0.8 / len(figure.series)
    for position, (name, values) in enumerate(figure.series.items()):
        left = [x + (position + 0.5) * width - 0.4 for x in range(len(figure.x))]
        bars = axes.bar(left, values, width, color=_STYLE[name][0], label=name)
        axes.bar_label(
            bars, [_short(float(f"{value:.3g}")) if value else "" for value in values], padding=2, fontsize=8
        )
    if figure.log_y:
        axes.set_yscale("log")
        axes.set_ylim(top=20 * max(max(values) for values in figure.series.values()))
    axes.set_xticks(range(len(figure.x)), figure.x, fontsize=9)
    axes.minorticks_off()


def _short(value: float) -> str:
    """1000000 as 1M, 30000 as 30K, 0.5 as 0.5."""
    for size, letter in ((1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
