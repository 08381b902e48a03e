"""Computes a layered layout: columns in topological order from left to right, few crossings, short and straight edges.

Edges of cycles that run against the order are laid out as if they ran with it. An edge over several columns has a bend
in each of them, ordered among the nodes there (Sugiyama, Tagawa and Toda 1981); edges go up and down only between
columns, so that none lies behind a box.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
Size = tuple[float, float]
Point = tuple[float, float]
_Bend = tuple[str, str, int]  # on an edge, the how-many-th
_Item = str | _Bend
_SWEEPS = 12
_BETWEEN = 14.0  # points between two boxes of a column
_BEND = 6.0  # the height of a bend
_ROOM = 44.0  # between two columns


@dataclass(frozen=True, slots=True)
class Layout:
    """The middle of each node's box, and the way of each edge: the points where it enters or leaves a column.

    `back` are the edges against the order.
    """

    places: dict[str, Point]
    ways: dict[Edge, list[Point]]
    back: frozenset[Edge]


def layered(
    nodes: Sequence[str], edges: Sequence[Edge], sizes: Mapping[str, Size], labels: Mapping[Edge, float]
) -> Layout:
    """`sizes` are those of the nodes' boxes, `labels` the widths of the edges' labels, all in points."""
    back = _against(nodes, edges)
    ends = {edge: edge[::-1] if edge in back else edge for edge in edges if edge[0] != edge[1]}
    layer = _layers(nodes, list(ends.values()))
    columns, pieces, bends = _columns(nodes, ends, layer)
    _order(columns, pieces)
    height = {
        item: sizes[item][1] if isinstance(item, str) else _BEND for column in columns for item in column
    }
    y = _heights(columns, pieces, height)
    sides = _sides(columns, sizes, {ends[edge]: wide for edge, wide in labels.items() if edge in ends}, layer)
    ways = {}
    for edge, (left, right) in ends.items():
        way = [(sides[layer[left]][1], y[left])]
        for bend in bends[edge]:
            way += [(side, y[bend]) for side in sides[layer[left] + bend[2]]]
        way.append((sides[layer[right]][0], y[right]))
        ways[edge] = way[::-1] if edge in back else way
    middles = [(left + right) / 2 for left, right in sides]
    return Layout({name: (middles[layer[name]], y[name]) for name in nodes}, ways, frozenset(back))


def _against(nodes: Sequence[str], edges: Sequence[Edge]) -> set[Edge]:
    """The edges that lead back to where a depth-first search is just under way, and those from a node to itself."""
    children: dict[str, list[str]] = {name: [] for name in nodes}
    entered = {target for source, target in edges if source != target}
    for source, target in edges:
        children[source].append(target)
    back: set[Edge] = set()
    state: dict[str, bool] = {}  # whether it is still under way
    for start in sorted(nodes, key=lambda name: name in entered):
        if start in state:
            continue
        state[start] = True
        way = [(start, iter(children[start]))]
        while way:
            here, rest = way[-1]
            child = next(rest, None)
            if child is None:
                state[here] = False
                way.pop()
            elif child not in state:
                state[child] = True
                way.append((child, iter(children[child])))
            elif state[child]:
                back.add((here, child))
    return back


def _layers(nodes: Sequence[str], forward: Sequence[Edge]) -> dict[str, int]:
    """The column of each node: behind all that lead to it."""
    waiting = dict.fromkeys(nodes, 0)
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in forward:
        waiting[target] += 1
        children[source].append(target)
    layer = dict.fromkeys(nodes, 0)
    ready = deque(name for name in nodes if not waiting[name])
    while ready:
        here = ready.popleft()
        for child in children[here]:
            layer[child] = max(layer[child], layer[here] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return layer


def _columns(
    nodes: Sequence[str], ends: Mapping[Edge, Edge], layer: Mapping[str, int]
) -> tuple[list[list[_Item]], list[tuple[_Item, _Item]], dict[Edge, list[_Bend]]]:
    """Nodes and bends by column, the pieces of edges between neighbouring columns, and the bends of each edge.

    `ends` are the left and the right node of each edge.
    """
    columns: list[list[_Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in nodes:
        columns[layer[name]].append(name)
    pieces: list[tuple[_Item, _Item]] = []
    bends: dict[Edge, list[_Bend]] = {}
    for edge, (left, right) in ends.items():
        bends[edge] = [(*edge, k) for k in range(1, layer[right] - layer[left])]
        for bend in bends[edge]:
            columns[layer[left] + bend[2]].append(bend)
        pieces += pairwise([left, *bends[edge], right])
    return columns, pieces, bends


def _order(columns: list[list[_Item]], pieces: Sequence[tuple[_Item, _Item]]) -> None:
    """Each item between its neighbours, seen from the left and from the right in turn."""
    left, right = _neighbours(columns, pieces)
    for sweep in range(_SWEEPS):
        aside = right if sweep % 2 else left
        for column in columns[::-1] if sweep % 2 else columns:
            rank = {item: position for other in columns for position, item in enumerate(other)}
            middle = {
                item: sum(rank[neighbour] for neighbour in aside[item]) / len(aside[item])
                if aside[item]
                else rank[item]
                for item in column
            }
            column.sort(key=middle.__getitem__)


def _neighbours(
    columns: list[list[_Item]], pieces: Sequence[tuple[_Item, _Item]]
) -> tuple[dict[_Item, list[_Item]], dict[_Item, list[_Item]]]:
    left: dict[_Item, list[_Item]] = {item: [] for column in columns for item in column}
    right: dict[_Item, list[_Item]] = {item: [] for item in left}
    for a, b in pieces:
        right[a].append(b)
        left[b].append(a)
    return left, right


def _heights(
    columns: list[list[_Item]], pieces: Sequence[tuple[_Item, _Item]], height: Mapping[_Item, float]
) -> dict[_Item, float]:
    """The vertical position of each item: near its neighbours, in the order of its column, without overlaps."""
    left, right = _neighbours(columns, pieces)
    y: dict[_Item, float] = {}
    for column in columns:
        offsets = _offsets(column, height)
        for item, offset in zip(column, offsets, strict=True):
            y[item] = offset - offsets[-1] / 2
    for sweep in range(_SWEEPS):
        for column in columns[::-1] if sweep % 2 else columns:
            wanted = []
            for item in column:
                # A bend follows both sides at once, so that long edges become straight.
                both = left[item] + right[item]
                near = both if not isinstance(item, str) else (right if sweep % 2 else left)[item] or both
                wanted.append(sum(y[neighbour] for neighbour in near) / len(near) if near else y[item])
            offsets = _offsets(column, height)
            fitted = _ascending([want - offset for want, offset in zip(wanted, offsets, strict=True)])
            for item, base, offset in zip(column, fitted, offsets, strict=True):
                y[item] = base + offset
    return y


def _offsets(column: list[_Item], height: Mapping[_Item, float]) -> list[float]:
    """The least distance of each item from the first one."""
    offsets = [0.0]
    for above, below in pairwise(column):
        offsets.append(offsets[-1] + (height[above] + height[below]) / 2 + _BETWEEN)
    return offsets


def _ascending(wanted: list[float]) -> list[float]:
    """The ascending numbers nearest to those wanted: neighbours in the wrong order share their mean."""
    blocks: list[list[float]] = []  # sum, count
    for value in wanted:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    return [total / count for total, count in blocks for _ in range(int(count))]


def _sides(
    columns: list[list[_Item]],
    sizes: Mapping[str, Size],
    labels: Mapping[Edge, float],
    layer: Mapping[str, int],
) -> list[tuple[float, float]]:
    """Left and right of each column; between two there is room for the labels of the edges that begin there."""
    room = [_ROOM] * len(columns)
    for (left, _), wide in labels.items():
        room[layer[left]] = max(room[layer[left]], wide + _ROOM)
    sides: list[tuple[float, float]] = []
    at = 0.0
    for column, free in zip(columns, room, strict=True):
        wide = max((sizes[item][0] for item in column if isinstance(item, str)), default=0.0)
        sides.append((at, at + wide))
        at += wide + free
    return sides
