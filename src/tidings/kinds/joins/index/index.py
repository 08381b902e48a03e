"""The immutable index of join subscriptions: finds those that a changed row may affect. Select-joins, 3.1 and C.

A subscription is a rectangle for each of its tables: the range on the table that changes, and the range on a table
that it joins. Where a table has several selections, the narrowest one is indexed and the others are verified
afterwards (Appendix C leaves the choice open).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidings.kinds.joins.index import storage
from tidings.kinds.joins.index.integrity import refuse_damaged_index
from tidings.kinds.joins.index.search_plan import SearchStep, plan
from tidings.kinds.joins.index.stabbing import ClusterTrees, build_trees
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kernels.clusters import CLUSTER, NODE, RANGE
from tidings.kinds.joins.kernels.layout import NONE, SIDE, SLOT, STEP, IndexArrays
from tidings.kinds.joins.rows.rows import OrderSpec, Rows
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST
from tidings.kinds.joins.schema.shape import JoinShape
from tidings.kinds.joins.schema.table import Table

FEW = 64  # members of a side that are scanned instead of indexed by a tree
_SAMPLE = 256


@dataclass(frozen=True)
class JoinIndex:
    """`arrays` hold all shapes. They need these `orders` of the rows, numbered as in the arrays, and cells of the columns
    `looked_at`, as (table, column)."""

    arrays: dict[str, np.ndarray]
    orders: list[OrderSpec]
    looked_at: list[tuple[int, int]]
    numbers: np.ndarray
    indexed_sides: dict[JoinShape, list[IndexedSide]] = field(default_factory=dict)
    _prepared: list[Any] = field(default_factory=list, repr=False)  # the last rows, and the arrays for them

    @classmethod
    def build(
        cls, subscriptions: Subscriptions, numbers: np.ndarray, *, few: int | None = None, room: int = 0
    ) -> JoinIndex:
        """Indexes the live ones of some subscriptions. A shape with fewer than `few` (FEW) gets a list with `room` for
        more instead of a tree."""
        numbers = numbers[subscriptions.are_live(numbers)]
        shapes = subscriptions.shape_of.all[numbers]
        order = np.argsort(shapes, kind="stable")
        builder = _IndexBuilder(subscriptions, FEW if few is None else few, room)
        bounds = np.flatnonzero(np.diff(shapes[order])) + 1
        for group in np.split(numbers[order], bounds):
            if len(group):
                builder.add(subscriptions.shapes[subscriptions.shape_of.all[group[0]]], group)
        return cls(
            storage.read_only(builder.arrays()),
            list(builder.orders),
            sorted(builder.looked_at),
            numbers,
            builder.indexed_sides(),
        )

    def save(self, folder: Path) -> None:
        facts = {"orders": self.orders, "looked_at": self.looked_at}
        storage.save(folder, {**self.arrays, "numbers": self.numbers}, facts)

    @classmethod
    def load(cls, folder: Path, tables: Sequence[Table], count: int) -> JoinIndex:
        """Maps an index over `count` subscriptions; refuses a damaged one."""
        arrays, facts = storage.load(folder)
        orders = [(table, tuple(key), column) for table, key, column in facts["orders"]]
        looked_at = [(table, column) for table, column in facts["looked_at"]]
        refuse_damaged_index(folder, arrays, orders, looked_at, tables, count)
        numbers = arrays.pop("numbers")
        return cls(arrays, orders, looked_at, numbers)

    @cached_property
    def largest(self) -> int:
        """The most members that one change can affect through one side."""
        sides = self.arrays["sides"]
        before = np.concatenate([[0], np.cumsum(self.arrays["clusters"]["count"])])
        in_clusters = before[sides["cluster"] + sides["clusters"]] - before[sides["cluster"]]
        return int((sides["loose_count"] + in_clusters).max(initial=0))

    def for_rows(self, rows: Rows) -> IndexArrays:
        """The arrays for the loops, with the orders that rows have."""
        if not self._prepared or self._prepared[0] is not rows:
            for table, column in self.looked_at:
                rows.look_at(table, {column})
            order_of = np.array([rows.order(spec) for spec in self.orders], dtype=np.int32)
            self._prepared[:] = rows, IndexArrays(**self.arrays, order_of=order_of)
        return self._prepared[1]


class IndexedSide(NamedTuple):
    """A side of a shape, and the selections whose ranges its members are indexed by (c and a)."""

    side: int
    c: int
    a: int


class _IndexBuilder:
    def __init__(self, subscriptions: Subscriptions, few: int, room: int) -> None:
        self.subscriptions, self.few, self.room = subscriptions, few, room
        self.ranges: list[tuple[JoinShape, int, int]] = []  # of each side: its shape and selections
        self.orders: dict[OrderSpec, int] = {}
        self.looked_at: set[tuple[int, int]] = set()
        self.slots: list[tuple[int, ...]] = []
        self.selections: list[int] = []
        self.steps: list[tuple[int, ...]] = []
        self.columns: list[int] = []
        self.equals: list[tuple[int, int, int]] = []
        self.sides: list[dict[str, int]] = []
        self.trees: list[ClusterTrees] = []
        self.numbers: list[np.ndarray] = []
        self.sizes = dict.fromkeys(("members", "clusters", "boundaries", "nodes", "listed"), 0)

    def add(self, shape: JoinShape, numbers: np.ndarray) -> None:
        tables = [self.subscriptions.table_numbers[name] for name in shape.tables]
        bounds = self.subscriptions.bounds_of(numbers, len(shape.selections))
        full = ~(bounds["low"] > bounds["high"]).any(axis=1)  # an empty range never matches
        numbers, bounds = numbers[full], bounds[full]
        if not len(numbers):
            return
        for slot, column in (*shape.selections, *(ref for refs in shape.variables for ref in refs)):
            self.looked_at.add((tables[slot], column))
        breadth = [_breadth(bounds[:, s]) for s in range(len(shape.selections))]
        primary = [_narrowest(shape, slot, breadth) for slot in range(len(tables))]
        first_slot, first_step = len(self.slots), len(self.steps)
        types = self.subscriptions.selection_types(shape)
        base = len(self.selections)
        self.selections += [column for _, column in shape.selections]
        for slot, table in enumerate(tables):
            own = [s for s, (at, _) in enumerate(shape.selections) if at == slot]
            chosen = primary[slot]
            column, is_text = (
                (NONE, 0) if chosen == NONE else (shape.selections[chosen][1], types[chosen] == "text")
            )
            self.slots.append(
                (table, base, base + own[0] if own else base, len(own), NONE if chosen == NONE else base + chosen,
                 column, is_text)
            )  # fmt: skip
        plans = [plan(shape, slot) for slot in range(len(tables))]
        for steps in plans:
            for step in steps:
                self._add_step(step, tables[step.slot], self.slots[first_slot + step.slot][5])
        is_plain = bounds["plain"].all(axis=1)
        is_simple = len(tables) <= 2 and len(shape.selections) == len({slot for slot, _ in shape.selections})
        for slot, steps in enumerate(plans):
            near = [at for at, step in enumerate(steps) if at and step.parent == 0]
            chosen = min(near, key=lambda at: _breadth_of(primary[steps[at].slot], breadth), default=NONE)
            own_order = NONE
            if shape.one_key and len(tables) > 1:
                key = tuple(column for refs in shape.variables for at, column in refs if at == slot)
                own_order = self._order((tables[slot], key, self.slots[first_slot + slot][5]))
            side = {
                "table": tables[slot],
                "slot": first_slot,
                "arity": len(tables),
                "own": slot,
                "step": first_step + slot * len(tables),
                "steps": first_step,
                "filter": chosen,
                "own_order": own_order,
                "one_key": shape.one_key,
                "simple": shape.one_key and is_simple,
                "acyclic": not any(step.equals for steps in plans for step in steps),
            }
            c = NONE if chosen == NONE else primary[steps[chosen].slot]
            self.ranges.append((shape, c, primary[slot]))
            signed = np.where(is_plain, numbers, ~numbers).astype(np.int32)
            self._add_members(side, signed, _ranges(bounds, c), _ranges(bounds, primary[slot]))

    def _order(self, spec: OrderSpec) -> int:
        return self.orders.setdefault(spec, len(self.orders))

    def _add_step(self, step: SearchStep, table: int, column: int) -> None:
        order = self._order((table, step.key, column)) if step.key else NONE
        self.steps.append(
            (step.slot, step.parent, order, len(self.columns), len(step.from_columns), len(self.equals),
             len(step.equals))
        )  # fmt: skip
        self.columns += step.from_columns
        self.equals += step.equals

    def _add_members(self, side: dict[str, int], numbers: np.ndarray, c: np.ndarray, a: np.ndarray) -> None:
        sizes = self.sizes
        side |= {"cluster": sizes["clusters"], "clusters": 0, "loose": sizes["members"], "loose_count": 0}
        c_low, c_high = (np.ascontiguousarray(c[end]) for end in ("low", "high"))
        if len(numbers) < self.few:
            side["loose_count"] = len(numbers)
            c_low, c_high, a, numbers = (
                np.concatenate([column, np.zeros(self.room, dtype=column.dtype)])
                for column in (c_low, c_high, a, numbers)
            )
            nothing = np.empty(0, dtype=np.int32)
            trees = ClusterTrees(
                c_low,
                c_high,
                a,
                np.empty(0, CLUSTER),
                np.empty(0, np.int64),
                np.empty(0, NODE),
                nothing,
                nothing,
            )
        else:
            trees, order = build_trees(c_low, c_high, a)
            numbers = numbers[order]
            side["clusters"] = len(trees.clusters)
            trees.clusters["first"] += sizes["members"]
            trees.clusters["witness"] += sizes["members"]
            trees.clusters["boundary"] += sizes["boundaries"]
            trees.clusters["node"] += sizes["nodes"]
            trees.nodes["first"] += sizes["listed"]
            np.add(trees.by_low, sizes["members"], out=trees.by_low, casting="unsafe")
            np.add(trees.by_high, sizes["members"], out=trees.by_high, casting="unsafe")
        self.sides.append(side)
        self.trees.append(trees)
        self.numbers.append(numbers)
        for name, more in zip(sizes, (len(numbers), *map(len, trees[3:7])), strict=True):
            sizes[name] += more

    def _by_table(self) -> np.ndarray:
        return np.argsort(np.array([side["table"] for side in self.sides], dtype=np.int64), kind="stable")

    def indexed_sides(self) -> dict[JoinShape, list[IndexedSide]]:
        found: dict[JoinShape, list[IndexedSide]] = {}
        for side, at in enumerate(self._by_table().tolist()):
            shape, c, a = self.ranges[at]
            found.setdefault(shape, []).append(IndexedSide(side, c, a))
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        sides = np.zeros(len(self.sides), dtype=SIDE)
        for at, side in enumerate(self.sides):
            for name, value in side.items():
                sides[at][name] = value
        sides = sides[self._by_table()]
        tables = np.arange(len(self.subscriptions.tables) + 1)
        together = {
            name: _joined((getattr(trees, name) for trees in self.trees), kind)
            for name, kind in (
                ("c_low", np.dtype(np.int64)),
                ("c_high", np.dtype(np.int64)),
                ("a", RANGE),
                ("clusters", CLUSTER),
                ("boundaries", np.dtype(np.int64)),
                ("nodes", NODE),
                ("by_low", np.dtype(np.int32)),
                ("by_high", np.dtype(np.int32)),
            )
        }
        return {
            **together,
            "number": _joined(self.numbers, np.dtype(np.int32)),
            "slots": np.array(self.slots, dtype=SLOT),
            "selections": np.array(self.selections, dtype=np.int32),
            "steps": np.array(self.steps, dtype=STEP),
            "columns": np.array(self.columns, dtype=np.int32),
            "equals": np.array(self.equals, dtype=np.int32).reshape(-1),
            "sides": sides,
            "table_first": np.searchsorted(sides["table"], tables).astype(np.int32),
        }


def _joined(parts: Iterator[np.ndarray] | Sequence[np.ndarray], kind: np.dtype) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=kind), *parts])


def _ranges(bounds: np.ndarray, selection: int) -> np.ndarray:
    """The ranges of a selection; NONE holds everything."""
    found = np.empty(len(bounds), dtype=RANGE)
    found["low"] = LOWEST if selection == NONE else bounds["low"][:, selection]
    found["high"] = HIGHEST if selection == NONE else bounds["high"][:, selection]
    return found


def _breadth(bounds: np.ndarray) -> float:
    """The share of ranges that hold the middle of another one: the lower, the more selective is the column."""
    group = bounds[:: max(1, len(bounds) // _SAMPLE)]
    middle = group["low"] // 2 + group["high"] // 2
    return float(((group["low"] <= middle[:, None]) & (middle[:, None] <= group["high"])).mean())


def _breadth_of(selection: int, breadth: Sequence[float]) -> float:
    return 1.0 if selection == NONE else breadth[selection]


def _narrowest(shape: JoinShape, slot: int, breadth: Sequence[float]) -> int:
    own = [s for s, (at, _) in enumerate(shape.selections) if at == slot]
    return min(own, key=lambda s: breadth[s], default=NONE)
