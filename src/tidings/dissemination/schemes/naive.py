"""Defines what messages must achieve: slow, obvious, complete. The tests compare the schemes with it.

Computes a subscription's contents by plain loops over bags of rows: its joined rows, and the rows of each of its
semijoins. A change affects exactly the subscriptions that gain or lose rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from tidings.dissemination.schemes.filters import Subscription
from tidings.dissemination.schemes.signature import Semijoin
from tidings.kinds.joins.schema.order_keys import key_of
from tidings.kinds.joins.schema.table import Row, Table

Rows = Mapping[str, Sequence[Row]]


def selected(table: Table, subscription: Subscription, rows: Rows) -> list[Row]:
    """The rows of a table that the subscription's range on it holds."""
    slot = subscription.signature.tables.index(table.name)
    low, high = subscription.ranges[slot]
    column = subscription.signature.selections[slot]
    if column is None:
        return list(rows[table.name])
    return [row for row in rows[table.name] if low <= key_of(table.types[column], row[column]) <= high]


def semijoin(
    form: Semijoin, subscription: Subscription, tables: Mapping[str, Table], rows: Rows
) -> Counter[Row]:
    """σ R ⋉ σ S."""
    base, filtering = (selected(tables[side.table], subscription, rows) for side in form)
    values = {tuple(row[column] for column in form.filtering.join) for row in filtering}
    found = Counter[Row]()
    for row in base:
        value = tuple(row[column] for column in form.base.join)
        if None not in value and value in values:
            found[row] += 1
    return found


def rows_of_join(
    slot: int, subscription: Subscription, tables: Mapping[str, Table], rows: Rows
) -> Counter[Row]:
    """The rows of one table that occur in the join: what a longer semijoin is, Appendix F."""
    occurring = {joined[slot] for joined in join(subscription, tables, rows)}
    return Counter(row for row in rows[subscription.signature.tables[slot]] if row in occurring)


def join(subscription: Subscription, tables: Mapping[str, Table], rows: Rows) -> Counter[tuple[Row, ...]]:
    """σ R ⋈ σ S ⋈ …"""
    signature = subscription.signature
    found = Counter[tuple[Row, ...]]()
    for joined in product(*(selected(tables[name], subscription, rows) for name in signature.tables)):
        if all(
            None not in (left := tuple(joined[edge.left][column] for column in edge.left_columns))
            and left == tuple(joined[edge.right][column] for column in edge.right_columns)
            for edge in signature.edges
        ):
            found[joined] += 1
    return found
