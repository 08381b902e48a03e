"""Draws a small network as SVG or PNG, by the extension of the file: nodes are boxes, columns in topological order.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish; the legend explains and counts them. An
edge with an expression is dashed, with the shortened expression beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.errors import TidingsError
from tidings.kinds.networks.drawing.excerpt import (
    ASIDE,
    AWAITS,
    PASSED,
    PUBLISHER,
    REACHED,
    REFUSES,
    Edge,
    EventCourse,
    Excerpt,
    excerpt,
    trace_event,
)
from tidings.kinds.networks.drawing.layout import Layout, Point, Size, layered
from tidings.kinds.networks.faults import NetworkError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tidings.kinds.networks.network import Network

FORMATS = (".svg", ".png")
DOTS_PER_INCH = 160
_NAME, _TEXT, _LABEL = 9.0, 7.0, 6.5  # sizes of letters
_LONGEST = {_NAME: 30, _TEXT: 38, _LABEL: 34}  # characters
_MARGIN = 16.0
_LINE = 20.0  # from one row of the legend to the next
_DASHES: tuple[float, tuple[float, float]] = (0, (3.5, 1.8))
_START, _END, _BETWEEN = "start", "end", "between"


class _Style(NamedTuple):
    fill: str
    ink: str
    says: str


_COURSE = {
    PUBLISHER: _Style("#F0E442", "#000000", "publisher"),
    REACHED: _Style("#009E73", "#FFFFFF", "reached"),
    REFUSES: _Style("#D55E00", "#FFFFFF", "reachable, but refuses the event"),
    AWAITS: _Style("#9AD0F0", "#000000", "valid, but not reachable"),
    ASIDE: _Style("#E8E8E8", "#444444", "neither"),
}
_PLACES = {
    _START: _Style("#F0E442", "#000000", "publisher: no edge leads to it"),
    _BETWEEN: _Style("#FFFFFF", "#000000", "intermediary"),
    _END: _Style("#9AD0F0", "#000000", "subscriber: no edge leaves it"),
}
_EDGES = {
    PASSED: _Style("#009E73", "#006B4F", "passed"),
    REFUSES: _Style("#D55E00", "#A34700", "refused the event"),
    ASIDE: _Style("#A0A0A0", "#666666", "not reached"),
}
_PLAIN = _Style("#777777", "#444444", "")


def draw(
    network: Network,
    output: str | Path,
    *,
    around: str | None = None,
    depth: int = 2,
    source: str | None = None,
    event: Mapping[str, Any] | None = None,
    title: str = "",
) -> Excerpt:
    """Draws a network of at most 200 nodes, or what is around one; with an event, its course from `source`."""
    output = Path(output)
    if output.suffix.lower() not in FORMATS:
        raise NetworkError(f"a picture cannot be written to {str(output)!r}; name a file .svg or .png")
    if find_spec("matplotlib") is None:
        raise TidingsError("drawing needs Matplotlib; install Tidings with the extra 'draw'")
    part = excerpt(network, around, depth)
    if not part.nodes:
        raise NetworkError("the network has no nodes, so there is nothing to draw; add some")
    if event is not None and source is None:
        raise NetworkError("an event is published at a node; name it as the source")
    course = trace_event(network, part, source, event) if event is not None and source is not None else None
    _Picture(part, course, around, title).save(output)
    return part


class _Picture:
    def __init__(self, part: Excerpt, course: EventCourse | None, around: str | None, title: str) -> None:
        self._part, self._course, self._around, self._title = part, course, around, title
        self._written: list[tuple[float, float, float, float]] = []  # where labels are
        self._texts = {
            name: (_short(name, _NAME), _short(where, _TEXT)) for name, where in part.nodes.items()
        }
        self._labels = {edge: _short(where, _LABEL) for edge, where in part.edges.items() if where}
        self._sizes = {name: self._size(*texts) for name, texts in self._texts.items()}
        widths = {edge: _width(label, _LABEL) for edge, label in self._labels.items()}
        self._layout: Layout = layered(list(part.nodes), list(part.edges), self._sizes, widths)

    def save(self, output: Path) -> None:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        low, high = self._extent()
        width = max(high[0] - low[0], 330.0, _width(self._title, _NAME) + 2 * _MARGIN)
        rows = self._legend_rows(width)
        head = 22.0 if self._title else 0.0
        height = high[1] - low[1] + head + _LINE * len(rows) + 8
        # Texts stay texts in SVG, and the same network gives the same file.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tidings", "font.family": "DejaVu Sans"}):
            figure = Figure(figsize=(width / 72, height / 72), dpi=DOTS_PER_INCH)
            axes = figure.add_axes((0, 0, 1, 1))
            axes.set_xlim(low[0], low[0] + width)
            axes.set_ylim(low[1] + height - head, low[1] - head)
            axes.axis("off")
            if self._title:
                axes.text(low[0] + _MARGIN, low[1] - head / 2 + 4, self._title, size=_NAME + 1, va="center")
            for edge in self._part.edges:
                self._edge(axes, edge)
            for name in self._part.nodes:
                self._node(axes, name)
            self._legend(axes, rows, (low[0] + _MARGIN, high[1] + _LINE / 2))
            figure.savefig(output, metadata={"Date": None} if output.suffix.lower() == ".svg" else None)

    # -- nodes

    @staticmethod
    def _size(name: str, where: str) -> Size:
        wide = max(_width(name, _NAME), _width(where, _TEXT))
        return wide + 16, 32.0 if where else 22.0

    def _style(self, name: str) -> _Style:
        if self._course is not None:
            return _COURSE[self._course.nodes[name]]
        return _PLACES[self._place(name)]

    def _place(self, name: str) -> str:
        if name in self._part.publishers:
            return _START
        return _END if name in self._part.subscribers else _BETWEEN

    def _node(self, axes: Axes, name: str) -> None:
        from matplotlib.patches import FancyBboxPatch

        (x, y), (wide, high) = self._layout.places[name], self._sizes[name]
        style = self._style(name)
        box = FancyBboxPatch(
            (x - wide / 2 + 4, y - high / 2 + 4),
            wide - 8,
            high - 8,
            boxstyle="round,pad=4",
            facecolor=style.fill,
            edgecolor="#333333",
            linewidth=2.0 if name == self._around else 0.8,
            zorder=3,
        )
        axes.add_patch(box)
        title, where = self._texts[name]
        lift = 6.0 if where else 0.0
        axes.text(x, y - lift, title, size=_NAME, color=style.ink, ha="center", va="center", zorder=4)
        if where:
            axes.text(x, y + 7, where, size=_TEXT, color=style.ink, ha="center", va="center", zorder=4)

    # -- edges

    def _edge(self, axes: Axes, edge: Edge) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path as Curve

        style = _EDGES[self._course.edges[edge]] if self._course is not None else _PLAIN
        points = self._curve(edge)
        codes = [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)]
        strong = self._course is not None and self._course.edges[edge] != ASIDE
        arrow = FancyArrowPatch(
            path=Curve(points, codes),
            arrowstyle="-|>",
            mutation_scale=8,
            color=style.fill,
            linewidth=1.7 if strong else 0.9,
            linestyle=_DASHES if edge in self._labels else "solid",
            zorder=2 if strong else 1,
        )
        axes.add_patch(arrow)
        if edge in self._labels:
            refused = self._course is not None and self._course.edges[edge] == REFUSES
            text = f"✕ {self._labels[edge]}" if refused else self._labels[edge]
            x, y = self._free_place(points, _width(text, _LABEL))
            axes.text(
                x,
                y,
                text,
                size=_LABEL,
                color=style.ink,
                ha="center",
                va="center",
                zorder=5,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.9},
            )

    def _free_place(self, points: list[Point], wide: float) -> Point:
        """A position for a label on the part of an edge that lies between its first two columns."""
        begin = max((points[at : at + 4] for at in (0, 3) if at + 4 <= len(points)), key=_reach)
        positions = [_on(begin, t) for t in (0.5, 0.35, 0.65, 0.2, 0.8, 0.5)]
        for x, y in positions:
            box = (x - wide / 2, y - _LABEL / 2, x + wide / 2, y + _LABEL / 2)
            if not any(_overlap(box, other_box) for other_box in self._written):
                break
        self._written.append(box)
        return x, y

    def _curve(self, edge: Edge) -> list[Point]:
        """The points of cubic curves, one after the other: level where an edge leaves, bends and arrives."""
        (xs, ys), (xt, yt) = (self._layout.places[name] for name in edge)
        (ws, hs), (wt, _) = (self._sizes[name] for name in edge)
        if edge[0] == edge[1]:
            top = ys - hs / 2
            return [(xs - 10, top), (xs - 22, top - 24), (xs + 22, top - 24), (xs + 10, top)]
        back = edge in self._layout.back
        # Edges there and back between two nodes do not lie on each other.
        down, side = (5.0, -1) if back else (0.0, 1)
        way = [(xs + side * ws / 2, ys), *self._layout.ways[edge], (xt - side * wt / 2, yt)]
        points = [(way[0][0], way[0][1] + down)]
        for (x0, y0), (x1, y1) in pairwise((x, y + down) for x, y in way):
            if abs(x0 - x1) < 0.5:  # a box as wide as its column
                continue
            middle = (x0 + x1) / 2
            points += [(middle, y0), (middle, y1), (x1, y1)]
        return points

    # -- around it

    def _extent(self) -> tuple[Point, Point]:
        corners = [
            (x + sign * self._sizes[name][0] / 2, y + sign * self._sizes[name][1] / 2)
            for name, (x, y) in self._layout.places.items()
            for sign in (-1, 1)
        ]
        corners += [point for edge in self._part.edges for point in self._curve(edge)]
        return (
            (min(x for x, _ in corners) - _MARGIN, min(y for _, y in corners) - _MARGIN),
            (max(x for x, _ in corners) + _MARGIN, max(y for _, y in corners) + _MARGIN),
        )

    def _legend_rows(self, width: float) -> list[list[tuple[str, _Style, str]]]:
        """The entries of the legend, in as many rows as needed."""
        if self._course is not None:
            nodes, styles = Counter(self._course.nodes.values()), _COURSE
        else:
            nodes, styles = Counter(self._place(name) for name in self._part.nodes), _PLACES
        entries = [
            ("box", styles[kind], f"{styles[kind].says} ({nodes[kind]})") for kind in styles if nodes[kind]
        ]
        if self._course is not None:
            edges = Counter(self._course.edges.values())
            entries += [("line", _EDGES[kind], _EDGES[kind].says) for kind in _EDGES if edges[kind]]
        if self._labels:
            entries.append(("dashes", _PLAIN, "edge with an expression"))
        rows: list[list[tuple[str, _Style, str]]] = [[]]
        used = 0.0
        for entry in entries:
            wide = 38 + _width(entry[2], _TEXT)
            if rows[-1] and used + wide > width - 2 * _MARGIN:
                rows.append([])
                used = 0.0
            rows[-1].append(entry)
            used += wide
        return rows

    def _legend(self, axes: Axes, rows: list[list[tuple[str, _Style, str]]], at: Point) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Rectangle

        for number, row in enumerate(rows):
            x, y = at[0], at[1] + number * _LINE
            for shape, style, says in row:
                if shape == "box":
                    axes.add_patch(
                        Rectangle(
                            (x, y - 5), 16, 10, facecolor=style.fill, edgecolor="#333333", linewidth=0.6
                        )
                    )
                else:
                    line = Line2D([x, x + 16], [y, y], color=style.fill, linewidth=1.7)
                    line.set_linestyle(_DASHES if shape == "dashes" else "solid")
                    axes.add_line(line)
                axes.text(x + 21, y, says, size=_TEXT, color="#222222", va="center")
                x += 38 + _width(says, _TEXT)


def _short(text: str | None, size: float) -> str:
    """A text on one line, cut where a reader has seen enough. Matplotlib would read $…$ as mathematics."""
    line = " ".join((text or "").split())
    most = _LONGEST[size]
    return (line if len(line) <= most else f"{line[: most - 1]}…").replace("$", r"\$")


@lru_cache(10_000)
def _width(text: str, size: float) -> float:
    """The width of a text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text:
        return 0.0
    return float(
        TextPath((0, 0), text, size=size, prop=FontProperties(family="DejaVu Sans")).get_extents().width
    )


def _on(curve: list[Point], t: float) -> Point:
    """A point of a cubic curve, t of the way."""
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return (
        sum(weight * x for weight, (x, _) in zip(weights, curve, strict=True)),
        sum(weight * y for weight, (_, y) in zip(weights, curve, strict=True)),
    )


def _reach(curve: list[Point]) -> tuple[bool, float]:
    """Whether a curve goes up or down, as none does within a column, and how far it goes to the side."""
    return curve[0][1] != curve[3][1], abs(curve[3][0] - curve[0][0])


def _overlap(box: tuple[float, float, float, float], other_box: tuple[float, float, float, float]) -> bool:
    return box[0] < other_box[2] and other_box[0] < box[2] and box[1] < other_box[3] and other_box[1] < box[3]
