"""Draws the results of a scenario: bars for each scheme, or a curve for each over the values of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.dissemination.simulator.results import EventResult, Result
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_OF_CHANGES = {
    "traffic": "traffic of a change, bytes × links",
    "hops": "packets between nodes for a change",
    "server_stress": "bytes that the server sends for a change",
    "latency_hops": "links to a subscriber's node",
}
_OF_EVENTS = {
    "traffic": "traffic of an event, bytes × links",
    "hops": "packets between nodes for an event",
    "filters": "filters in the forwarding table of a node",
    "registrations": "updates of tables for a subscription",
}
_LINEAR = ("latency_hops", "registrations")


def check(path: Path) -> None:
    """Whether a picture can be drawn there, before anything is simulated for it."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise TidingsError(f"{path} is not the name of a picture; end it with .png or .svg")
    if find_spec("matplotlib") is None:
        raise TidingsError("drawing needs Matplotlib; install Tidings with the extra 'draw'")


def draw(results: Sequence[Result], title: str, swept: str | None, path: Path) -> None:
    check(path)
    from matplotlib.figure import Figure

    sides = _OF_EVENTS if isinstance(results[0], EventResult) else _OF_CHANGES
    schemes = list(dict.fromkeys(result.scheme for result in results))
    canvas = Figure(figsize=(12, 7), dpi=150)
    for axes, (name, label) in zip(canvas.subplots(2, 2).ravel(), sides.items(), strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        for scheme in schemes:
            own = [result for result in results if result.scheme == scheme]
            values = [getattr(result, name) for result in own]
            if swept is None:
                bars = axes.barh([scheme], values)
                axes.bar_label(bars, [plain(value) for value in values], padding=3, fontsize=8)
            else:
                axes.plot([_swept(result.value) for result in own], values, marker="o", label=scheme)
        scale = axes.set_xscale if swept is None else axes.set_yscale
        if name not in _LINEAR and any(getattr(result, name) > 0 for result in results):
            scale("symlog" if swept is None else "log")
        _label(axes.xaxis if swept is None else axes.yaxis)
        (axes.set_xlabel if swept is None else axes.set_ylabel)(label)
        if swept is None:
            axes.margins(x=0.16)  # the numbers stand beside the bars
            axes.invert_yaxis()
        else:
            axes.set_xlabel(swept)
    if swept is not None:
        canvas.axes[0].legend(frameon=False, fontsize=8)
    canvas.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    canvas.tight_layout()
    canvas.savefig(path)


def plain(value: float) -> str:
    """A number as people write it: 12,000; 34; 5.6; 0.07."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def short(value: float) -> str:
    """The same in little room: 10k, 2.5M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10_000 and value >= size:
            return f"{value / size:.3g}{unit}"
    return plain(value)


def _swept(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _label(axis: Axis) -> None:
    """Labels an axis with short numbers. A logarithmic one that spans little has them between the powers of ten, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    if axis.get_scale() == "log" and high < 100 * low:
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_tick_params(which="both", labelsize=8)
