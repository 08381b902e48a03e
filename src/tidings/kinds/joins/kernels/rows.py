"""Puts rows into their orders, takes them out, and looks them up by key, by value and by selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.joins.kernels.layout import (
    BUCKETS,
    ENTRIES,
    KEY_VALUES,
    KEYS,
    NONE,
    NULL,
    IndexArrays,
    RowArrays,
    SubscriptionArrays,
)

Array = np.ndarray

_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # as a signed number
_FIRST_ROOM = 4


@inlined
def mixed(h: int, value: int) -> int:
    h = (h ^ value) * _MIX
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@inlined
def hash_of_bucket(order: int, key: int) -> int:
    return mixed(mixed(order, key), 0)


@compiled
def find_key(rows: RowArrays, row: int, columns: Array, first: int, count: int) -> int:
    """The number of the key that a row has in some columns; -1 if one is NULL, or no row has had it yet."""
    at, h = rows.row_cell[row], count
    for i in range(first, first + count):
        cell = rows.cells[at + columns[i]]
        if cell == NULL:
            return -1
        h = mixed(h, cell)
    mask = len(rows.slots) - 1
    slot = h & mask
    while rows.slots[slot]:
        key = rows.slots[slot] - 1
        start = rows.key_first[key]
        if rows.key_first[key + 1] - start == count:
            same = True
            for i in range(count):
                if rows.key_values[start + i] != rows.cells[at + columns[first + i]]:
                    same = False
                    break
            if same:
                return key
        slot = (slot + 1) & mask
    return -1


@compiled
def _number_key(rows: RowArrays, row: int, columns: Array, first: int, count: int) -> int:
    """Like `find_key`, but a key that is new gets a number."""
    key = find_key(rows, row, columns, first, count)
    if key >= 0:
        return key
    at, h = rows.row_cell[row], count
    for i in range(first, first + count):
        cell = rows.cells[at + columns[i]]
        if cell == NULL:
            return -1
        h = mixed(h, cell)
    mask = len(rows.slots) - 1
    slot = h & mask
    while rows.slots[slot]:
        slot = (slot + 1) & mask
    key, start = rows.used[KEYS], rows.used[KEY_VALUES]
    for i in range(count):
        rows.key_values[start + i] = rows.cells[at + columns[first + i]]
    rows.key_first[key + 1] = start + count
    rows.slots[slot] = key + 1
    rows.used[KEYS] += 1
    rows.used[KEY_VALUES] += count
    return key


@compiled
def find_bucket(rows: RowArrays, order: int, key: int) -> int:
    """The bucket of one order's rows with a key, or -1."""
    mask = len(rows.directory) - 1
    slot = hash_of_bucket(order, key) & mask
    while rows.directory[slot]:
        bucket = rows.directory[slot] - 1
        if rows.buckets[bucket]["key"] == key and rows.buckets[bucket]["order"] == order:
            return bucket
        slot = (slot + 1) & mask
    return -1


@compiled
def _make_bucket(rows: RowArrays, order: int, key: int) -> int:
    mask = len(rows.directory) - 1
    slot = hash_of_bucket(order, key) & mask
    while rows.directory[slot]:
        slot = (slot + 1) & mask
    bucket = rows.used[BUCKETS]
    rows.directory[slot] = bucket + 1
    rows.used[BUCKETS] += 1
    rows.buckets[bucket]["order"] = order
    rows.buckets[bucket]["key"] = key
    rows.buckets[bucket]["count"] = 0
    rows.buckets[bucket]["room"] = 0
    return bucket


@inlined
def value_in(rows: RowArrays, order: Any, row: int) -> int:
    """What a row is sorted by in an order."""
    column = order["column"]
    if column == NONE:
        return 0
    cell = rows.cells[rows.row_cell[row] + column]
    if order["is_text"] and cell != NULL:
        return rows.text_key[cell]
    return cell


@inlined
def first_from(rows: RowArrays, bucket: int, value: int) -> int:
    """The position of the first entry of a bucket that is not below a value."""
    low = rows.buckets[bucket]["first"]
    high = low + rows.buckets[bucket]["count"]
    while low < high:
        middle = (low + high) >> 1
        if rows.entries[middle]["value"] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def has_room(rows: RowArrays, row: int) -> bool:
    """Whether a row can be put in without growing anything."""
    table = rows.row_table[row]
    first, last = rows.table_first[table], rows.table_first[table + 1]
    needed, values = 0, 0
    for i in range(first, last):
        number = rows.order_numbers[i]
        order = rows.orders[number]
        values += order["count"]
        key = find_key(rows, row, rows.key_columns, order["first"], order["count"])
        bucket = find_bucket(rows, number, key) if key >= 0 else -1
        if bucket < 0:
            needed += _FIRST_ROOM
        elif rows.buckets[bucket]["count"] == rows.buckets[bucket]["room"]:
            needed += 2 * rows.buckets[bucket]["room"]
    orders = last - first
    return (
        rows.used[ENTRIES] + needed <= len(rows.entries)
        and rows.used[BUCKETS] + orders <= len(rows.buckets)
        and rows.used[KEYS] + orders < len(rows.key_first)
        and rows.used[KEY_VALUES] + values <= len(rows.key_values)
    )


@compiled
def put_in(rows: RowArrays, row: int, number: int) -> None:
    """Puts a row into one order; there is room."""
    order = rows.orders[number]
    key = _number_key(rows, row, rows.key_columns, order["first"], order["count"])
    if key < 0:
        return
    at = find_bucket(rows, number, key)
    if at < 0:
        at = _make_bucket(rows, number, key)
    count = rows.buckets[at]["count"]
    if count == rows.buckets[at]["room"]:
        room = 2 * count if count else _FIRST_ROOM
        old, new = rows.buckets[at]["first"], rows.used[ENTRIES]
        for i in range(count):
            rows.entries[new + i]["value"] = rows.entries[old + i]["value"]
            rows.entries[new + i]["row"] = rows.entries[old + i]["row"]
        rows.buckets[at]["first"] = new
        rows.buckets[at]["room"] = room
        rows.used[ENTRIES] += room
    value = value_in(rows, order, row)
    entry = first_from(rows, at, value)
    i = rows.buckets[at]["first"] + count
    while i > entry:
        rows.entries[i]["value"] = rows.entries[i - 1]["value"]
        rows.entries[i]["row"] = rows.entries[i - 1]["row"]
        i -= 1
    rows.entries[entry]["value"] = value
    rows.entries[entry]["row"] = row
    rows.buckets[at]["count"] = count + 1


@compiled
def put_into_all(rows: RowArrays, row: int) -> None:
    table = rows.row_table[row]
    for i in range(rows.table_first[table], rows.table_first[table + 1]):
        put_in(rows, row, rows.order_numbers[i])


@compiled
def put_many(rows: RowArrays, added: Array, done: int, order: int) -> int:
    """Puts rows into an order, or into all (NONE), from `done` on; how far it came before there was no room."""
    while done < len(added) and has_room(rows, added[done]):
        if order == NONE:
            put_into_all(rows, added[done])
        else:
            put_in(rows, added[done], order)
        done += 1
    return done


@compiled
def take_out(rows: RowArrays, row: int) -> None:
    """Takes a row out of all orders; nothing happens where it is not in."""
    table = rows.row_table[row]
    for i in range(rows.table_first[table], rows.table_first[table + 1]):
        number = rows.order_numbers[i]
        order = rows.orders[number]
        key = find_key(rows, row, rows.key_columns, order["first"], order["count"])
        at = find_bucket(rows, number, key) if key >= 0 else -1
        if at < 0:
            continue
        value, stop = value_in(rows, order, row), rows.buckets[at]["first"] + rows.buckets[at]["count"]
        entry = first_from(rows, at, value)
        while entry < stop and rows.entries[entry]["row"] != row:
            entry = entry + 1 if rows.entries[entry]["value"] == value else stop
        if entry >= stop:
            continue
        for j in range(entry, stop - 1):
            rows.entries[j]["value"] = rows.entries[j + 1]["value"]
            rows.entries[j]["row"] = rows.entries[j + 1]["row"]
        rows.buckets[at]["count"] -= 1


@compiled
def _compare_texts(rows: RowArrays, text: int, other_text: int) -> int:
    """Below, at or above zero, as one text is below, equal to or above another."""
    if text == other_text:
        return 0
    a, b = rows.text_first[text], rows.text_first[other_text]
    while a < rows.text_first[text + 1] and b < rows.text_first[other_text + 1]:
        if rows.text_bytes[a] != rows.text_bytes[b]:
            return -1 if rows.text_bytes[a] < rows.text_bytes[b] else 1
        a += 1
        b += 1
    return 1 if a < rows.text_first[text + 1] else -1


@compiled
def admits(rows: RowArrays, bound: Any, options: Array, cell: int) -> bool:
    """Whether a selection lets a cell through."""
    if cell == NULL:
        return False
    if bound["count"]:
        low, high = bound["first"], bound["first"] + bound["count"]
        while low < high:
            middle = (low + high) >> 1
            if options[middle] < cell:
                low = middle + 1
            else:
                high = middle
        return low < bound["first"] + bound["count"] and options[low] == cell
    if bound["plain"]:
        return bound["low"] <= cell <= bound["high"]
    if bound["low_text"] != NONE:
        order = _compare_texts(rows, cell, bound["low_text"])
        if order < 0 or (order == 0 and bound["low_open"]):
            return False
    if bound["high_text"] != NONE:
        order = _compare_texts(rows, cell, bound["high_text"])
        if order > 0 or (order == 0 and bound["high_open"]):
            return False
    return True


@compiled
def selected(
    rows: RowArrays, subs: SubscriptionArrays, index: IndexArrays, slot: Any, first_bound: int, row: int
) -> bool:
    """Whether all selections of a slot let a row through."""
    cell = rows.row_cell[row]
    for s in range(slot["first"], slot["first"] + slot["count"]):
        bound = subs.bounds[first_bound + s - slot["base"]]
        if not admits(rows, bound, subs.options, rows.cells[cell + index.selections[s]]):
            return False
    return True
