"""How a scheme sees a subscription: its signature, one range for each table, and its semijoins. Select-joins, 4, Appendices C, I.

All of it follows from the subscription and the tables alone, so a server and a subscriber come to the same without
speaking. Of several conditions on a table the scheme works by one column, the first that is no text and, if possible, no
boolean; each table is filtered by its first neighbour. Both are choices of cost only: a subscriber joins what it gets,
and applies its other conditions itself. A subscription to one table with a key and a payload is a join of its two parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tidings.dissemination.payload import Payloads
from tidings.dissemination.schemes.filters import Subscription
from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.signature import Semijoin, Signature, signature_of
from tidings.kinds.joins.index.partition import partition_of
from tidings.kinds.joins.schema.shape import JoinShape
from tidings.kinds.joins.schema.table import Row, Table, by_name


class Membership(NamedTuple):
    """What all subscriptions of one shape have in common."""

    population: str
    """Names the subscriptions whose messages are made together."""
    tables: Mapping[str, Table]
    """Those that messages have rows of."""
    parts: Payloads | None
    """How the table of the shape is split into them, if it is."""
    signature: Signature
    semijoins: tuple[Semijoin, ...]
    selections: tuple[int | None, ...]
    """Which of the shape's selections is the range on each table, or None."""

    def subscription(self, ends: Sequence[tuple[int, int]], number: int = 0) -> Subscription:
        """A subscription of the shape as filters know it; `ends` has low and high of each selection."""
        ranges = tuple((0, 0) if at is None else ends[at] for at in self.selections)
        return Subscription(number, self.signature, ranges, self.semijoins)

    def ranges(self, bounds: np.ndarray) -> list[tuple[Longs, Longs]]:
        """The ranges of many: `bounds` has a row for each, and a column for each selection of the shape."""
        everything = np.zeros(len(bounds), dtype=np.int64)
        return [
            (everything, everything) if at is None else (bounds["low"][:, at], bounds["high"][:, at])
            for at in self.selections
        ]

    def merged(self, rows: Mapping[str, Counter[Row]]) -> Mapping[str, Counter[Row]]:
        """Rows of the tables that messages are of as rows of the shape's tables."""
        if self.parts is None:
            return rows
        split = self.parts.split(self.signature.tables[0])
        assert split is not None
        payloads = {split.payload.key_of(row): row for row in rows[split.payload.name]}
        found: Counter[Row] = Counter()
        for facts, copies in rows[split.facts.name].items():
            if (payload := payloads.get(split.facts.key_of(facts))) is not None:
                found[split.merged(facts, payload)] = copies
        return {split.whole.name: found}


def membership(shape: JoinShape, tables: Mapping[str, Table]) -> Membership:
    """The membership of a shape over tables."""
    return _membership(shape, tuple(tables[name] for name in shape.tables))


@lru_cache(1_024)
def _membership(shape: JoinShape, whole: tuple[Table, ...]) -> Membership:
    population = partition_of(shape, by_name(whole), 1).name
    parts = parts_of(whole[0]) if len(whole) == 1 else None
    seen = shape if parts is None else _split_shape(shape, parts)
    tables = whole if parts is None else tuple(parts.tables)

    def best(slot: int, columns: tuple[int, ...]) -> int | None:
        types = tables[slot].types
        ordered = [column for column in columns if types[column] != "text"]
        return min(ordered, key=lambda column: (types[column] == "boolean", column), default=None)

    signature = signature_of(seen, best)
    semijoins = tuple(next(signature.semijoins(table.name)) for table in tables) if len(tables) > 1 else ()
    selections = tuple(
        None if column is None else seen.selections.index((slot, column))
        for slot, column in enumerate(signature.selections)
    )
    return Membership(population, by_name(tables), parts, signature, semijoins, selections)


@lru_cache(1_024)
def parts_of(table: Table) -> Payloads | None:
    """How a table is split for subscriptions to it alone; None if it has no key or no payload beside it."""
    if not table.key or not set(table.payload) - set(table.key) or set(table.payload) & set(table.key):
        return None
    return Payloads([table])


def _split_shape(shape: JoinShape, parts: Payloads) -> JoinShape:
    """The join of facts and payload that stands for a shape of one table; its selections keep their order."""
    split = parts.split(shape.tables[0])
    assert split is not None
    variables = tuple(
        ((0, split.facts.names.index(own)), (1, split.payload.names.index(other)))
        for own, other in zip(split.whole.key, split.payload.key, strict=True)
    )
    selections = tuple(
        (0, split.facts.names.index(split.whole.names[column])) for _, column in shape.selections
    )
    return JoinShape((split.facts.name, split.payload.name), variables, selections)
