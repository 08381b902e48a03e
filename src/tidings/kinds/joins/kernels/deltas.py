"""Computes the rows that each subscription gains and loses by a change. Select-joins, 3.1, for any number of tables.

An inserted row is looked at before it is put in, a deleted row after it was taken out. So both are the same search
(which subscriptions does this row affect, among the other rows?) and differ only in the sign of the result. The cost
is that of the rows it reports and of a few nodes of a tree for each cluster, where every table is joined on the same
columns and has one range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.joins.kernels.clusters import HIGHEST, collect
from tidings.kinds.joins.kernels.layout import (
    NONE,
    NULL,
    IndexArrays,
    RowArrays,
    SearchArrays,
    SignedRow,
    SubscriptionArrays,
)
from tidings.kinds.joins.kernels.rows import (
    find_bucket,
    find_key,
    first_from,
    has_room,
    put_into_all,
    selected,
    take_out,
    value_in,
)
from tidings.kinds.joins.kernels.search import enter, exists, next_result, next_row

Array = np.ndarray

# Why a run stops before its end.
DONE, ROWS_ARE_FULL, DELTAS_ARE_FULL = 0, 1, 2
_FULL = -1
HALF = 2**62
_LONG = 8  # values for each anchor, from which on anchors are looked up instead of met on the way


@compiled
def apply(
    row: Array,
    sign: Array,
    event: Array,
    clock: int,
    time: Array,
    rows: RowArrays,
    indexes: tuple[IndexArrays, IndexArrays, IndexArrays],
    subs: SubscriptionArrays,
    search: SearchArrays,
    deltas: Array,
    written: Array,
    joined: bool,
) -> int:
    """Applies row changes from written[0] on, which is where it stops; written[1] is how many deltas there are. They
    are rows of tables, or (`joined`) the rows of each joined row."""
    base, middle, fresh = indexes
    count = written[1]
    for i in range(written[0], len(row)):
        written[0] = i
        if sign[i] > 0:
            if not has_room(rows, row[i]):
                return ROWS_ARE_FULL
        else:
            take_out(rows, row[i])
        change = SignedRow(row[i], sign[i], event[i], time[i])
        at = _affected(change, rows, base, subs, search, deltas, count, joined)
        if at != _FULL:
            at = _affected(change, rows, middle, subs, search, deltas, at, joined)
        if at != _FULL:
            at = _affected(change, rows, fresh, subs, search, deltas, at, joined)
        if at == _FULL:
            return DELTAS_ARE_FULL
        for d in range(count, at):
            number = deltas[d]["number"]
            if subs.subscriptions[number]["told"] != clock + event[i]:
                subs.subscriptions[number]["told"] = clock + event[i]
                subs.subscriptions[number]["sequence"] += 1
            deltas[d]["sequence"] = subs.subscriptions[number]["sequence"]
        count = at
        written[1] = count
        if sign[i] > 0:
            put_into_all(rows, row[i])
    written[0] = len(row)
    return DONE


@compiled
def _affected(
    change: SignedRow,
    rows: RowArrays,
    index: IndexArrays,
    subs: SubscriptionArrays,
    search: SearchArrays,
    deltas: Array,
    at: int,
    joined: bool,
) -> int:
    """Writes the deltas of one row for all subscriptions of an index, from `at` on; where they end, or _FULL."""
    table = rows.row_table[change.row]
    for s in range(index.table_first[table], index.table_first[table + 1]):
        side = index.sides[s]
        found, before, after, has_after = _candidates(change.row, rows, index, side, search)
        for f in range(found):
            member, may_be_alone = search.found[f], True
            if member < 0:
                member, may_be_alone = ~member, False
            number, plain = index.number[member], True
            if number < 0:
                number, plain = ~number, False
            subscription = subs.subscriptions[number]
            if subscription["until"] < change.time:
                continue
            first_bound = subs.first_bound[number]
            if joined:
                at = _joined_rows(change, number, rows, index, side, subs, first_bound, search, deltas, at)
            elif side["one_key"]:
                exact = side["simple"] and plain
                alone = may_be_alone and (
                    index.a[member]["low"] > before and (not has_after or index.a[member]["high"] < after)
                )
                if exact and not alone:  # by far the most frequent: a call would cost more than it does
                    at = _write(deltas, at, change, number, change.row)
                else:
                    at = _one_key(
                        change, number, exact, alone, rows, index, side, subs, first_bound, search, deltas, at
                    )
            else:
                at = _tree(change, number, rows, index, side, subs, first_bound, search, deltas, at)
            if at == _FULL:
                return _FULL
    return at


@compiled
def _candidates(
    row: int, rows: RowArrays, index: IndexArrays, side: Any, search: SearchArrays
) -> tuple[int, int, int, bool]:
    """Members whose ranges hold the row and some row that it joins with, in search.found; and between which values
    the row comes among those of its own table with its key."""
    a = value_in(rows, index.slots[side["slot"] + side["own"]], row)
    before, after, has_after = NULL, 0, False
    bucket = -1
    if side["filter"] != NONE:
        step = index.steps[side["step"] + side["filter"]]
        key = find_key(rows, row, index.columns, step["first"], step["count"])
        bucket = find_bucket(rows, index.order_of[step["order"]], key) if key >= 0 else -1
        if bucket < 0 or rows.buckets[bucket]["count"] == 0:
            return 0, before, after, has_after
    if side["own_order"] != NONE:
        order = index.order_of[side["own_order"]]
        step = rows.orders[order]
        key = find_key(rows, row, rows.key_columns, step["first"], step["count"])
        own = find_bucket(rows, order, key) if key >= 0 else -1
        if own >= 0:
            entry = first_from(rows, own, a)
            first = rows.buckets[own]["first"]
            if entry < first + rows.buckets[own]["count"]:
                after, has_after = rows.entries[entry]["value"], True
            if entry > first:
                before = rows.entries[entry - 1]["value"]
    gap = after - before if has_after and before > -HALF and after < HALF else -1
    found = 0
    for m in range(side["loose"], side["loose"] + side["loose_count"]):
        if a < index.a[m]["low"] or a > index.a[m]["high"]:
            continue
        if bucket >= 0:
            entry = first_from(rows, bucket, index.c_low[m])
            stop = rows.buckets[bucket]["first"] + rows.buckets[bucket]["count"]
            if entry == stop or rows.entries[entry]["value"] > index.c_high[m]:
                continue
        search.found[found] = m
        found += 1
    if side["clusters"]:
        if bucket < 0:  # no other table: all ranges of c hold 0
            for k in range(side["cluster"], side["cluster"] + side["clusters"]):
                found = collect(index, k, 0, 0, False, a, found, search.found)
        else:
            first = rows.buckets[bucket]["first"]
            stop = first + rows.buckets[bucket]["count"]
            entry, is_long = first, stop - first > _LONG * side["clusters"]
            for k in range(side["cluster"], side["cluster"] + side["clusters"]):
                anchor = index.clusters[k]["anchor"]
                if is_long:
                    entry = first_from(rows, bucket, anchor)
                while entry < stop and rows.entries[entry]["value"] < anchor:
                    entry += 1
                has_high = entry < stop
                high = rows.entries[entry]["value"] if has_high else 0
                low = NULL
                if has_high and high == anchor:
                    low = anchor
                elif entry > first:
                    low = rows.entries[entry - 1]["value"]
                if index.clusters[k]["min_low"] <= low or (
                    has_high and index.clusters[k]["max_high"] >= high
                ):
                    begin = found
                    found = collect(index, k, low, high, has_high, a, found, search.found)
                    if (
                        0 <= gap <= index.clusters[k]["narrowest"]
                    ):  # every range holds a neighbour's value too
                        for f in range(begin, found):
                            search.found[f] = ~search.found[f]
    return found, before, after, has_after


@inlined
def _write(deltas: Array, at: int, change: SignedRow, number: int, row: int) -> int:
    if at == _FULL or at == len(deltas):
        return _FULL
    deltas[at]["event"] = change.event
    deltas[at]["number"] = number
    deltas[at]["row"] = row if change.sign > 0 else ~row
    return at + 1


@compiled
def _one_key(
    change: SignedRow,
    number: int,
    exact: bool,
    alone: bool,
    rows: RowArrays,
    index: IndexArrays,
    side: Any,
    subs: SubscriptionArrays,
    first_bound: int,
    search: SearchArrays,
    deltas: Array,
    at: int,
) -> int:
    """All tables are joined on the same columns: the row brings all rows of the others with it, if none of its own
    table has held them there before."""
    row = change.row
    if not exact:
        slot = index.slots[side["slot"] + side["own"]]
        if not selected(rows, subs, index, slot, first_bound, row):
            return at
        if not exists(rows, subs, index, side, side["step"], first_bound, row, search):
            return at
        alone = side["arity"] > 1 and _is_alone(row, rows, index, side, slot, subs, first_bound)
    at = _write(deltas, at, change, number, row)
    if alone:
        search.chosen[0] = row
        for depth in range(1, side["arity"]):
            step = index.steps[side["step"] + depth]
            slot = index.slots[side["slot"] + step["slot"]]
            enter(rows, subs, index, step, slot, first_bound, row, search, depth)
            while True:
                other = next_row(rows, subs, index, step, slot, first_bound, search, depth)
                if other < 0:
                    break
                at = _write(deltas, at, change, number, other)
    return at


@compiled
def _joined_rows(
    change: SignedRow,
    number: int,
    rows: RowArrays,
    index: IndexArrays,
    side: Any,
    subs: SubscriptionArrays,
    first_bound: int,
    search: SearchArrays,
    deltas: Array,
    at: int,
) -> int:
    """Every joined row that a row is in, as its rows in the order of the slots."""
    row = change.row
    slot = index.slots[side["slot"] + side["own"]]
    if not selected(rows, subs, index, slot, first_bound, row):
        return at
    search.chosen[0] = row
    search.fresh[0] = True
    search.any[0] = False
    arity, depth = side["arity"], 1
    while at != _FULL and next_result(rows, subs, index, side, side["step"], first_bound, depth, search):
        if at + arity > len(deltas):
            return _FULL
        for d in range(arity):
            slot_number = index.steps[side["step"] + d]["slot"]
            _write(deltas, at + slot_number, change, number, search.chosen[d])
        at += arity
        depth = arity - 1
    return at


@inlined
def _is_alone(
    row: int,
    rows: RowArrays,
    index: IndexArrays,
    side: Any,
    slot: Any,
    subs: SubscriptionArrays,
    first_bound: int,
) -> bool:
    """Whether no other row of its table has the row's key and passes the selections."""
    number = index.order_of[side["own_order"]]
    order = rows.orders[number]
    key = find_key(rows, row, rows.key_columns, order["first"], order["count"])
    bucket = find_bucket(rows, number, key) if key >= 0 else -1
    if bucket < 0:
        return True
    entry = rows.buckets[bucket]["first"]
    stop, high = entry + rows.buckets[bucket]["count"], HIGHEST
    if slot["primary"] != NONE:
        bound = subs.bounds[first_bound + slot["primary"] - slot["base"]]
        entry, high = first_from(rows, bucket, bound["low"]), bound["high"]
    while entry < stop and rows.entries[entry]["value"] <= high:
        if selected(rows, subs, index, slot, first_bound, rows.entries[entry]["row"]):
            return False
        entry += 1
    return True


@compiled
def _tree(
    change: SignedRow,
    number: int,
    rows: RowArrays,
    index: IndexArrays,
    side: Any,
    subs: SubscriptionArrays,
    first_bound: int,
    search: SearchArrays,
    deltas: Array,
    at: int,
) -> int:
    """Tables joined on different columns: rows that are reached from the row and took part in nothing without it."""
    row = change.row
    slot = index.slots[side["slot"] + side["own"]]
    if not selected(rows, subs, index, slot, first_bound, row):
        return at
    if not exists(rows, subs, index, side, side["step"], first_bound, row, search):
        return at
    at = _write(deltas, at, change, number, row)
    arity, end = side["arity"], 1
    search.clock[0] += 1
    search.queue[0] = row
    search.begin[0] = 0
    search.begin[1] = 1
    for depth in range(1, arity):
        step = index.steps[side["step"] + depth]
        slot = index.slots[side["slot"] + step["slot"]]
        steps = side["steps"] + step["slot"] * arity
        parent = step["parent"]
        for q in range(search.begin[parent], search.begin[parent + 1]):
            enter(rows, subs, index, step, slot, first_bound, search.queue[q], search, arity)
            while search.cursor[arity] < search.stop[arity]:
                entry = rows.entries[search.cursor[arity]]
                search.cursor[arity] += 1
                other = entry["row"]
                if entry["value"] > search.high[arity]:
                    break
                if search.seen[other] == search.clock[0]:
                    continue
                search.seen[other] = search.clock[0]
                if not selected(rows, subs, index, slot, first_bound, other):
                    continue
                search.forced[step["slot"]] = other
                takes_part = exists(rows, subs, index, side, side["step"], first_bound, row, search)
                search.forced[step["slot"]] = -1
                if not takes_part:
                    continue
                is_new = not exists(rows, subs, index, side, steps, first_bound, other, search)
                if is_new:
                    at = _write(deltas, at, change, number, other)
                # What hangs on a row of a tree that took part before did so too.
                if is_new or not side["acyclic"]:
                    search.queue[end] = other
                    end += 1
        search.begin[depth + 1] = end
    return at


@compiled
def taking_part(
    candidates: Array,
    rows: RowArrays,
    index: IndexArrays,
    subs: SubscriptionArrays,
    number: int,
    search: SearchArrays,
    out: Array,
) -> int:
    """The candidates that take part in a subscription, the only one of an index."""
    count = 0
    first_bound = subs.first_bound[number]
    for row in candidates:
        table = rows.row_table[row]
        for s in range(index.table_first[table], index.table_first[table + 1]):
            side = index.sides[s]
            slot = index.slots[side["slot"] + side["own"]]
            if selected(rows, subs, index, slot, first_bound, row) and exists(
                rows, subs, index, side, side["step"], first_bound, row, search
            ):
                out[count] = row
                count += 1
    return count
