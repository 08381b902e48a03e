"""What schemes send and cost, as a picture: a bar for each, on two scales."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from benchmarks.select_joins.trial import Tally
from tidings.errors import TidingsError

_COLOURS = {"Enum": "#6b7280", "Rel": "#7b4bb3", "Ref-J": "#e9a13b", "Ref-SJ": "#2f9e6e"}


def check(path: Path) -> None:
    """Whether a picture can be drawn there, before anything is measured for it."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise TidingsError(f"{path} is not the name of a picture; end it with .png or .svg")
    if find_spec("matplotlib") is None:
        raise TidingsError("drawing needs Matplotlib; install Tidings with the extra 'draw'")


def draw(tallies: Mapping[str, Tally], subscriptions: int, path: Path) -> None:
    """Writes the picture of what each scheme did for the same changes."""
    check(path)
    from matplotlib.figure import Figure

    names = list(tallies)[::-1]
    colours = [next(_COLOURS[kind] for kind in _COLOURS if name.startswith(kind)) for name in names]
    sides = {
        "bytes that leave the server for a change": [
            tallies[name].each(tallies[name].bytes) for name in names
        ],
        "µs of processing a change": [tallies[name].each(tallies[name].seconds) * 1e6 for name in names],
    }
    canvas = Figure(figsize=(11, 4.5), dpi=150)
    for axes, (label, values) in zip(canvas.subplots(1, 2, sharey=True), sides.items(), strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        bars = axes.barh(names, values, color=colours)
        axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=9)
        axes.set_xscale("log")
        axes.set_xlim(1, 10 * max(values))
        axes.set_xlabel(label)
    canvas.suptitle(
        f"Telling {subscriptions:,} subscriptions to a join of a change, by scheme",
        x=0.01, ha="left", fontsize=12.5, fontweight="bold",
    )  # fmt: skip
    canvas.tight_layout()
    canvas.savefig(path)
