"""The arrays that the loops of joins work on.

Rows of all tables, by number:

    cells    one after another, a row's from row_cell[row] on: a column's order key, or the number of its text
    order    rows of a table by the values of its key columns, and those of equal values by one more column (or none)
    bucket   one order's rows of one key: `count` entries from `first` on, rising by value, with room for `room`
    key      a tuple of cells, by number, whatever columns it came from: so rows of two tables meet

What subscriptions of one shape share, and the index over them:

    slot     a table of the shape: its selections, and the one that its rows are ordered by
    step     how a search that began elsewhere comes to a slot: from which slot before, by which order
    side     a slot as the one whose table changes: where to find the subscriptions that are affected
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

NULL = -(2**63)
NONE = -1

ORDER = np.dtype(
    [
        ("table", "i4"),
        ("column", "i4"),  # by which entries are sorted; NONE: all have the value 0
        ("is_text", "i4"),
        ("first", "i4"),  # key columns
        ("count", "i4"),
    ],
    align=True,
)
ENTRY = np.dtype([("value", "i8"), ("row", "i4")], align=True)
BUCKET = np.dtype(
    [("first", "i8"), ("count", "i4"), ("room", "i4"), ("order", "i4"), ("key", "i4")], align=True
)
BOUND = np.dtype(
    [
        ("low", "i8"),
        ("high", "i8"),
        ("first", "i4"),  # options of IN
        ("count", "i4"),
        ("low_text", "i4"),  # numbers of texts, NONE where there is no bound
        ("high_text", "i4"),
        ("low_open", "?"),
        ("high_open", "?"),
        ("plain", "?"),  # low and high say all there is to say
    ],
    align=True,
)
SLOT = np.dtype(
    [
        ("table", "i4"),
        ("base", "i4"),  # the first selection of its shape
        ("first", "i4"),  # its own selections
        ("count", "i4"),
        ("primary", "i4"),  # the one that its orders are sorted by, or NONE
        ("column", "i4"),  # and its column
        ("is_text", "i4"),
    ],
    align=True,
)
STEP = np.dtype(
    [
        ("slot", "i4"),
        ("parent", "i4"),  # which step came before, in the sense of the key
        ("order", "i4"),
        ("first", "i4"),  # columns of the parent's table that make the key
        ("count", "i4"),
        (
            "equal",
            "i4",
        ),  # pairs of (step, its column, own column) that must be equal too: where joins make a cycle
        ("equals", "i4"),
    ],
    align=True,
)
SIDE = np.dtype(
    [
        ("table", "i4"),
        ("slot", "i4"),  # first of the shape's slots
        ("arity", "i4"),
        ("own", "i4"),  # which of them changes
        ("step", "i4"),  # first of the steps of a search from there, itself the first of `arity`
        ("steps", "i4"),  # first step of the searches from the shape's slots, `arity` for each
        ("filter", "i4"),  # the step whose rows choose among the subscriptions; NONE: all are chosen
        ("own_order", "i4"),  # own rows by the key of all, where there is one and there are others
        ("one_key", "?"),  # all tables are joined on the same columns
        ("simple", "?"),  # one or two tables, at most one selection in each: rectangles say it all
        ("acyclic", "?"),
        ("cluster", "i4"),
        ("clusters", "i4"),
        ("loose", "i4"),  # members that no cluster holds, because they are few
        ("loose_count", "i4"),
    ],
    align=True,
)
# What every delta looks at and writes lies together and is small: it is memory that a change of many waits for.
SUBSCRIPTION = np.dtype(
    [
        ("until", "f8"),
        ("sequence", "u4"),  # of its last notification
        (
            "told",
            "u4",
        ),  # the last event that affected it, by a clock that begins at 1; the name that index files have
    ]
)
DELTA = np.dtype([("number", "i4"), ("row", "i4"), ("event", "i4"), ("sequence", "u4")])  # ~row if it is lost

# What is counted beside the rows.
ENTRIES, BUCKETS, KEYS, KEY_VALUES, COUNTERS = range(5)


class RowArrays(NamedTuple):
    """Rows and their orders. `slots` and `directory` are hash tables of keys and of buckets: number + 1, 0 where free."""

    cells: Array
    row_cell: Array
    row_table: Array
    orders: Array
    key_columns: Array
    table_first: Array  # the orders of table t are order_numbers[table_first[t]] ..
    order_numbers: Array
    entries: Array
    buckets: Array
    directory: Array
    slots: Array
    key_first: Array
    key_values: Array
    text_key: Array
    text_first: Array
    text_bytes: Array
    used: Array


class IndexArrays(NamedTuple):
    """The subscriptions of one index, as trees have them. `number` is a subscription's own; ~number if its rectangle is
    not all there is to say. Orders are numbered as the index named them; `order_of` is their number in rows."""

    c_low: Array
    c_high: Array
    a: Array
    number: Array
    clusters: Array
    boundaries: Array
    nodes: Array
    by_low: Array
    by_high: Array
    slots: Array
    selections: Array  # columns of the shape's selections
    steps: Array
    columns: Array
    equals: Array
    sides: Array
    table_first: Array
    order_of: Array


class SubscriptionArrays(NamedTuple):
    """Subscriptions by number, and their ranges."""

    subscriptions: Array
    first_bound: Array
    bounds: Array
    options: Array


class SignedRow(NamedTuple):
    """A row that is inserted (sign 1) or deleted (-1), with its event and time."""

    row: int
    sign: int
    event: int
    time: float


class SearchArrays(NamedTuple):
    """Scratch of a search, by its steps, and of what it has found."""

    cursor: Array
    stop: Array
    high: Array
    chosen: Array
    forced: Array  # by slot: the only row that may be chosen there, -1: any
    fresh: Array  # one flag: the search has not begun
    any: Array  # one flag: one joined row is as good as all
    found: Array  # members that an index gave
    queue: Array  # rows that were reached, those of step d from begin[d] on
    begin: Array
    seen: Array  # by row: when it was last reached, by `clock`
    clock: Array
