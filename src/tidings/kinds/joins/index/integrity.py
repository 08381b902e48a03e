"""Refuses damaged arrays of join subscriptions, whose values would lead a compiled loop out of bounds.

The manifest has checked types and lengths (arrays/folders.py); here values are checked against each other. Every check
relies on those before it. Arrays that pass form a valid index, if perhaps of other subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, refuse_unless, within
from tidings.kinds.joins.rows.rows import OrderSpec
from tidings.kinds.joins.schema.shape import MAX_TABLES, JoinShape
from tidings.kinds.joins.schema.table import Table

Arrays = Mapping[str, np.ndarray]


def refuse_damaged_subscriptions(
    folder: Path, arrays: Arrays, shapes: Sequence[JoinShape], tables: Sequence[Table], count: int
) -> None:
    """An `IndexFileError` names the array that is wrong, or does not fit the others; `count` are subscribed."""
    refuse_unless(folder, _shapes(shapes, tables))
    refuse_unless(folder, _subscriptions(arrays, shapes, count))
    refuse_unless(folder, _text_bounds(arrays, shapes, tables))


def refuse_damaged_index(
    folder: Path,
    arrays: Arrays,
    orders: Sequence[OrderSpec],
    looked_at: Sequence[tuple[int, int]],
    tables: Sequence[Table],
    count: int,
) -> None:
    refuse_unless(folder, _orders(orders, looked_at, tables))
    refuse_unless(folder, _steps(arrays, len(orders)))
    refuse_unless(folder, _slots(arrays, tables))
    refuse_unless(folder, _sides(arrays, len(orders), tables))
    refuse_unless(folder, _trees(arrays, count))


def _shapes(shapes: Sequence[JoinShape], tables: Sequence[Table]) -> Iterator[tuple[str, bool]]:
    widths = {table.name: len(table.names) for table in tables}
    for shape in shapes:
        yield "shapes", 1 <= len(shape.tables) <= MAX_TABLES and all(name in widths for name in shape.tables)
        columns = [*shape.selections, *(ref for refs in shape.variables for ref in refs)]
        yield (
            "shapes",
            all(
                0 <= slot < len(shape.tables) and 0 <= column < widths[shape.tables[slot]]
                for slot, column in columns
            ),
        )


def _subscriptions(arrays: Arrays, shapes: Sequence[JoinShape], count: int) -> Iterator[tuple[str, bool]]:
    shape_of, first, bounds = arrays["shape_of"], arrays["first_bound"], arrays["bounds"]
    yield "records", len(arrays["records"]) == count
    yield "shape_of", len(shape_of) == count and within(shape_of, 0, len(shapes))
    widths = np.array([len(shape.selections) for shape in shapes], dtype=np.int64)
    fits = (first >= 0) & (first + (widths[shape_of] if count else 0) <= len(bounds))
    yield "first_bound", len(first) == count and bool(np.all(fits))
    start = arrays["text_first"]
    yield "text_first", ascends(start, len(arrays["text_bytes"]))
    yield "text_bytes", are_texts(arrays["text_bytes"], start)
    for name in ("low_text", "high_text"):
        yield "bounds", within(np.ascontiguousarray(bounds[name]), -1, len(start) - 1)
    yield "bounds", _spans_fit(bounds["first"], bounds["count"], len(arrays["options"]))


def _text_bounds(
    arrays: Arrays, shapes: Sequence[JoinShape], tables: Sequence[Table]
) -> Iterator[tuple[str, bool]]:
    """Only what is compared with texts has bounds that are texts."""
    types = {table.name: table.types for table in tables}
    for number, shape in enumerate(shapes):
        first = arrays["first_bound"][arrays["shape_of"] == number]
        for s, (slot, column) in enumerate(shape.selections):
            if types[shape.tables[slot]][column] != "text":
                bounds = arrays["bounds"][first + s]
                yield "bounds", bool(np.all((bounds["low_text"] == -1) & (bounds["high_text"] == -1)))


def _orders(
    orders: Sequence[OrderSpec], looked_at: Sequence[tuple[int, int]], tables: Sequence[Table]
) -> Iterator[tuple[str, bool]]:
    def is_column(table: int, column: int) -> bool:
        return 0 <= table < len(tables) and 0 <= column < len(tables[table].names)

    for table, key, column in orders:
        yield "orders", 0 <= table < len(tables) and all(is_column(table, column) for column in key)
        yield "orders", column == -1 or is_column(table, column)
    yield "looked_at", all(is_column(table, column) for table, column in looked_at)


def _steps(arrays: Arrays, orders: int) -> Iterator[tuple[str, bool]]:
    steps, equals = arrays["steps"], arrays["equals"]
    for name, low, high in (("slot", 0, MAX_TABLES), ("parent", 0, MAX_TABLES), ("order", -1, orders)):
        yield "steps", within(np.ascontiguousarray(steps[name]), low, high)
    yield "steps", _spans_fit(steps["first"], steps["count"], len(arrays["columns"]))
    yield "equals", len(equals) % 3 == 0 and within(equals, 0, 1 << 16)
    yield "equals", within(np.ascontiguousarray(equals[::3]), 0, MAX_TABLES)
    yield "steps", _spans_fit(steps["equal"], steps["equals"], len(equals) // 3)


def _slots(arrays: Arrays, tables: Sequence[Table]) -> Iterator[tuple[str, bool]]:
    slots, selections = arrays["slots"], arrays["selections"]
    yield "slots", within(np.ascontiguousarray(slots["table"]), 0, len(tables))
    widths = np.array([len(table.names) for table in tables], dtype=np.int64)[slots["table"]]
    yield "slots", bool(np.all((slots["column"] >= -1) & (slots["column"] < widths)))
    is_text = [
        column >= 0 and tables[table].types[column] == "text"
        for table, column in zip(slots["table"].tolist(), slots["column"].tolist(), strict=True)
    ]
    yield "slots", slots["is_text"].astype(np.bool_).tolist() == is_text
    yield "slots", _spans_fit(slots["first"], slots["count"], len(selections))
    yield "slots", bool(np.all((slots["base"] >= 0) & (slots["base"] <= slots["first"])))
    inside = (slots["primary"] >= slots["first"]) & (slots["primary"] < slots["first"] + slots["count"])
    yield "slots", bool(np.all((slots["primary"] == -1) | inside))
    slot_of = np.repeat(np.arange(len(slots)), slots["count"])
    at = np.arange(len(slot_of)) - np.repeat(np.cumsum(slots["count"]) - slots["count"], slots["count"])
    columns = selections[slots["first"][slot_of] + at]
    yield "selections", bool(np.all((columns >= 0) & (columns < widths[slot_of])))


def _sides(arrays: Arrays, orders: int, tables: Sequence[Table]) -> Iterator[tuple[str, bool]]:
    sides, steps, slots = arrays["sides"], arrays["steps"], arrays["slots"]
    first = arrays["table_first"]
    yield "table_first", len(first) == len(tables) + 1 and ascends(first, len(sides))
    yield "sides", bool(np.all(sides["table"] == np.repeat(np.arange(len(tables)), np.diff(first))))
    arity = sides["arity"].astype(np.int64)
    yield "sides", within(arity, 1, MAX_TABLES + 1)
    yield (
        "sides",
        _spans_fit(sides["slot"], arity, len(slots)) and _spans_fit(sides["step"], arity, len(steps)),
    )
    yield "sides", _spans_fit(sides["steps"], arity * arity, len(steps))
    yield "sides", bool(np.all((sides["own"] >= 0) & (sides["own"] < arity)))
    yield "sides", bool(np.all(slots["table"][sides["slot"] + sides["own"]] == sides["table"]))
    yield "sides", bool(np.all((sides["filter"] >= -1) & (sides["filter"] < arity) & (sides["filter"] != 0)))
    yield "sides", within(np.ascontiguousarray(sides["own_order"]), -1, orders)
    yield "sides", _spans_fit(sides["cluster"], sides["clusters"], len(arrays["clusters"]))
    yield "sides", _spans_fit(sides["loose"], sides["loose_count"], len(arrays["number"]))
    columns, table_widths = arrays["columns"], np.array([len(table.names) for table in tables])
    for side in sides:
        plans = steps[side["steps"] : side["steps"] + side["arity"] ** 2].reshape(side["arity"], -1)
        yield "steps", side["step"] == side["steps"] + side["own"] * side["arity"]
        for start, plan in enumerate(plans):
            yield (
                "steps",
                plan["slot"][0] == start and set(plan["slot"].tolist()) == set(range(side["arity"])),
            )
            yield "steps", bool(np.all(plan["parent"] < np.maximum(1, np.arange(len(plan)))))
            yield "steps", bool(np.all(plan["order"][1:] >= 0))
            for step in plan:
                table = slots["table"][side["slot"] + plan["slot"][step["parent"]]]
                own = slots["table"][side["slot"] + step["slot"]]
                used = columns[step["first"] : step["first"] + step["count"]]
                yield "columns", bool(np.all((used >= 0) & (used < table_widths[table])))
                for at, theirs, mine in (
                    arrays["equals"].reshape(-1, 3)[step["equal"] : step["equal"] + step["equals"]].tolist()
                ):
                    there = slots["table"][side["slot"] + plan["slot"][at]] if at < len(plan) else -1
                    yield "equals", there >= 0 and theirs < table_widths[there] and mine < table_widths[own]


def _trees(arrays: Arrays, count: int) -> Iterator[tuple[str, bool]]:
    clusters, nodes, numbers = arrays["clusters"], arrays["nodes"], arrays["number"]
    for name in ("c_low", "c_high", "a"):
        yield name, len(arrays[name]) == len(numbers)
    yield "number", within(numbers, -count, count)
    yield "numbers", within(arrays["numbers"], 0, count)
    leaves = clusters["leaves"]
    yield "clusters", bool(np.all((leaves > 0) & (leaves <= 1 << 40) & (leaves & (leaves - 1) == 0)))
    yield "clusters", _spans_fit(clusters["first"], clusters["count"], len(numbers))
    yield "clusters", within(np.ascontiguousarray(clusters["witness"]), 0, len(numbers))
    yield "clusters", _spans_fit(clusters["boundary"], leaves - 1, len(arrays["boundaries"]))
    yield "clusters", _spans_fit(clusters["node"], 3 * leaves, len(nodes))
    yield "nodes", _spans_fit(nodes["first"], nodes["count"], len(arrays["by_low"]))
    yield "by_high", len(arrays["by_high"]) == len(arrays["by_low"])
    for name in ("by_low", "by_high"):
        yield name, within(arrays[name], 0, len(numbers))
    # Each member is found at most once: the loops have room for that many.
    sides = arrays["sides"]
    for side in sides[sides["clusters"] > 0]:
        mine = clusters[side["cluster"] : side["cluster"] + side["clusters"]]
        yield "clusters", bool(np.all(np.diff(mine["anchor"]) > 0))
        yield "clusters", bool(np.all(mine["first"][1:] == mine["first"][:-1] + mine["count"][:-1]))


def _spans_fit(first: np.ndarray, count: np.ndarray, size: int) -> bool:
    first, count = first.astype(np.int64), count.astype(np.int64)
    return bool(np.all((first >= 0) & (count >= 0) & (first + count <= size)))
