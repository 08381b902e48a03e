"""Searches joined rows, from one row of a slot to rows of all others, for tables that are not all joined on the
same columns.

A search goes through the steps of a plan, each of which looks up the rows that fit the row chosen at its parent. If
the joins are a tree, a step without rows rules out its parent's row and nothing in between, so that nothing is tried
twice for the same parent.
"""

from __future__ import annotations

from typing import Any

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.joins.kernels.clusters import HIGHEST
from tidings.kinds.joins.kernels.layout import (
    NONE,
    NULL,
    IndexArrays,
    RowArrays,
    SearchArrays,
    SubscriptionArrays,
)
from tidings.kinds.joins.kernels.rows import find_bucket, find_key, first_from, selected


@compiled
def enter(
    rows: RowArrays,
    subs: SubscriptionArrays,
    index: IndexArrays,
    step: Any,
    slot: Any,
    first_bound: int,
    parent_row: int,
    search: SearchArrays,
    depth: int,
) -> None:
    """Where the rows are that fit the parent's and the slot's first selection: search.cursor up to search.stop."""
    search.cursor[depth] = 0
    search.stop[depth] = 0
    key = find_key(rows, parent_row, index.columns, step["first"], step["count"])
    if key < 0:
        return
    bucket = find_bucket(rows, index.order_of[step["order"]], key)
    if bucket < 0:
        return
    first = rows.buckets[bucket]["first"]
    stop = first + rows.buckets[bucket]["count"]
    search.high[depth] = HIGHEST
    if slot["primary"] != NONE:
        bound = subs.bounds[first_bound + slot["primary"] - slot["base"]]
        first = first_from(rows, bucket, bound["low"])
        search.high[depth] = bound["high"]
    search.cursor[depth] = first
    search.stop[depth] = stop


@inlined
def _fits(rows: RowArrays, index: IndexArrays, step: Any, row: int, search: SearchArrays) -> bool:
    """Whether a row is equal to those chosen before where joins make a cycle."""
    for e in range(step["equal"], step["equal"] + step["equals"]):
        other = search.chosen[index.equals[3 * e]]
        theirs = rows.cells[rows.row_cell[other] + index.equals[3 * e + 1]]
        if theirs == NULL or theirs != rows.cells[rows.row_cell[row] + index.equals[3 * e + 2]]:
            return False
    return True


@compiled
def next_row(
    rows: RowArrays,
    subs: SubscriptionArrays,
    index: IndexArrays,
    step: Any,
    slot: Any,
    first_bound: int,
    search: SearchArrays,
    depth: int,
) -> int:
    """The next row at a depth, or -1."""
    while search.cursor[depth] < search.stop[depth]:
        entry = rows.entries[search.cursor[depth]]
        search.cursor[depth] += 1
        if entry["value"] > search.high[depth]:
            search.stop[depth] = 0
            return -1
        if _fits(rows, index, step, entry["row"], search) and selected(
            rows, subs, index, slot, first_bound, entry["row"]
        ):
            return entry["row"]
    return -1


@compiled
def next_result(
    rows: RowArrays,
    subs: SubscriptionArrays,
    index: IndexArrays,
    side: Any,
    steps: int,
    first_bound: int,
    depth: int,
    search: SearchArrays,
) -> bool:
    """The next joined row of a search, in search.chosen; it goes on at `depth`, 1 at first and `arity` - 1 to get another.

    False when there are no more. Rows of search.forced, where not -1, are the only ones of their slots.
    """
    arity, acyclic = side["arity"], side["acyclic"]
    entering = depth == 1 and search.fresh[0]
    search.fresh[0] = False
    if arity == 1:
        return entering
    while True:
        step = index.steps[steps + depth]
        slot = index.slots[side["slot"] + step["slot"]]
        forced = search.forced[step["slot"]]
        if entering:
            parent = search.chosen[step["parent"]]
            if forced >= 0:
                order = rows.orders[index.order_of[step["order"]]]
                theirs = find_key(rows, parent, index.columns, step["first"], step["count"])
                own = find_key(rows, forced, rows.key_columns, order["first"], order["count"])
                search.cursor[depth] = 0
                search.stop[depth] = 1 if theirs >= 0 and theirs == own else 0
            else:
                enter(rows, subs, index, step, slot, first_bound, parent, search, depth)
        if forced >= 0:
            row = forced if search.cursor[depth] < search.stop[depth] else -1
            search.cursor[depth] += 1
            if row >= 0 and not _fits(rows, index, step, row, search):
                row = -1
        else:
            row = next_row(rows, subs, index, step, slot, first_bound, search, depth)
        if row >= 0:
            search.chosen[depth] = row
            if depth == arity - 1:
                return True
            depth += 1
            entering = True
        else:
            depth = step["parent"] if acyclic and search.any[0] else depth - 1
            if depth == 0:
                return False
            entering = False


@inlined
def exists(
    rows: RowArrays,
    subs: SubscriptionArrays,
    index: IndexArrays,
    side: Any,
    steps: int,
    first_bound: int,
    row: int,
    search: SearchArrays,
) -> bool:
    """Whether a row takes part in any joined row."""
    search.chosen[0] = row
    search.fresh[0] = True
    search.any[0] = True
    return next_result(rows, subs, index, side, steps, first_bound, 1, search)
