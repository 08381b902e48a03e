"""Draws a small network, or the part around one of its nodes, as SVG: boxes in columns from publishers to subscribers.

The places are those of `tidings network draw`. The drawing has classes and no style; the lists beside it say the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup

from tidings.kinds.networks.drawing.excerpt import Excerpt
from tidings.kinds.networks.drawing.layout import Edge, Layout, Size, layered

_LETTER = 7.0  # wide, on average
_LONGEST = 26  # letters of a name, a condition or a label
_MARGIN = 12.0
_ONE_LINE, _TWO_LINES = 28.0, 44.0


def draw_network(part: Excerpt, label: str) -> Markup:
    """The drawing, named `label` for screen readers."""
    sizes = {name: _size(name, where) for name, where in part.nodes.items()}
    labels = {edge: len(_short(where)) * _LETTER for edge, where in part.edges.items() if where}
    layout = layered(list(part.nodes), list(part.edges), sizes, labels)
    tops = [y - sizes[name][1] / 2 for name, (_, y) in layout.places.items()]
    ends = [y + sizes[name][1] / 2 for name, (_, y) in layout.places.items()]
    points = [point for way in layout.ways.values() for point in way]
    top = min([*tops, *(y for _, y in points)], default=0.0) - _MARGIN
    end = max([*ends, *(y for _, y in points)], default=0.0) + _MARGIN
    right = max((x + sizes[name][0] / 2 for name, (x, _) in layout.places.items()), default=0.0) + _MARGIN
    drawn = [_edge(edge, where, layout, sizes) for edge, where in part.edges.items() if edge in layout.ways]
    drawn += [_node(name, where, layout, sizes[name]) for name, where in part.nodes.items()]
    wide, high = right + _MARGIN, end - top
    return Markup(
        '<svg class="network" width="{:.0f}" height="{:.0f}" viewBox="{:.0f} {:.0f} {:.0f} {:.0f}" role="img" aria-label="{}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="head" d="M0 0L8 4L0 8Z"/></marker></defs>{}</svg>'
    ).format(wide, high, -_MARGIN, top, wide, high, label, Markup("").join(drawn))


def _size(name: str, where: str | None) -> Size:
    letters = max(len(_short(name)), len(_short(where)))
    return letters * _LETTER + 20.0, _TWO_LINES if where else _ONE_LINE


def _node(name: str, where: str | None, layout: Layout, size: Size) -> Markup:
    (x, y), (wide, high) = layout.places[name], size
    box = Markup('<rect class="node" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="6"/>').format(
        x - wide / 2, y - high / 2, wide, high
    )
    line = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>')
    if not where:
        return box + line.format("name", x, y + 4, _short(name))
    return box + line.format("name", x, y - 4, _short(name)) + line.format("", x, y + 13, _short(where))


def _edge(edge: Edge, where: str | None, layout: Layout, sizes: Mapping[str, Size]) -> Markup:
    way = layout.ways[edge]
    # From box to box: a box may be narrower than its column, at whose sides the way begins and ends.
    begin, end = (
        (x + math.copysign(sizes[name][0] / 2, side - x), y)
        for name, (side, _) in zip(edge, (way[0], way[-1]), strict=True)
        for x, y in [layout.places[name]]
    )
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in [begin, *way, end])
    drawn = Markup('<path class="edge{}" d="{}" marker-end="url(#arrow)"/>').format(
        " back" if edge in layout.back else "", path
    )
    if not where:
        return drawn
    (x0, y0), (x1, y1) = way[0], way[1]
    return drawn + Markup('<text class="label" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>').format(
        (x0 + x1) / 2, (y0 + y1) / 2 - 3, _short(where)
    )


def _short(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
