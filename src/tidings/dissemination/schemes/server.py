"""The server of the schemes holds rows, and subscriptions in groups of one semijoin form, and applies changes in steps.

A change is one or two steps, each an inserted or a deleted row: an update inserts the new row, then deletes the old
one. A step is processed while the row is *not* there, before its insertion or after its deletion; so a delete affects
the same subscriptions as an insert, and every scheme is written once for both. Select-joins, 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tidings.dissemination.schemes.filters import Subscription
from tidings.dissemination.schemes.message import GAINED, LOST, Image, Longs
from tidings.dissemination.schemes.ordered_rows import OrderedRows
from tidings.dissemination.schemes.pairs import RangePairs
from tidings.dissemination.schemes.population import Population
from tidings.dissemination.schemes.signature import Semijoin, Side, Signature
from tidings.dissemination.schemes.sizes import size_of_all
from tidings.errors import EventError, SubscriptionError
from tidings.kinds.joins.schema.order_keys import key_of
from tidings.kinds.joins.schema.table import Row, Table, by_name


class Change(NamedTuple):
    """An insert has a new row, a delete an old one, an update both; rows as `Table.read` gives them."""

    table: str
    new: Row | None = None
    old: Row | None = None


class Step(NamedTuple):
    image: Image
    sign: str


class Server:
    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = by_name(tables)
        self.populations: list[Population] = []
        self.groups: dict[Semijoin, RangePairs] = {}
        self.gone: set[int] = set()
        """The numbers of subscriptions that were there."""
        self._known: dict[tuple[Signature, tuple[Semijoin, ...]], Population] = {}
        self._images: dict[str, dict[Row, list[Image]]] = {name: {} for name in self.tables}
        self._orders: dict[Side, OrderedRows] = {}
        self._count = 0

    def subscribe(
        self,
        signature: Signature,
        ranges: Sequence[tuple[Longs, Longs]],
        semijoins: Sequence[Semijoin] | None = None,
    ) -> range:
        """Subscriptions of one signature: `ranges` has low and high ends, in order keys, for each of its tables; where
        they look at no column, all rows are at 0.

        `semijoins` is the decomposition, one for each table (`decomposition.py` finds the cheapest); tables that have
        one neighbour only, as in every binary join, leave no choice. Returns the numbers of the subscriptions.
        """
        chosen = tuple(semijoins) if semijoins is not None else _only_choice(signature)
        for table, column in zip(signature.tables, signature.selections, strict=True):
            self._check(table, column)
        bounds = [(np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)) for low, high in ranges]
        numbers = np.arange(self._count, self._count + len(bounds[0][0]), dtype=np.int64)
        if not len(numbers):
            return range(self._count, self._count)
        self._count += len(numbers)
        if (signature, chosen) not in self._known:
            self._known[signature, chosen] = Population(signature, chosen)
            self.populations.append(self._known[signature, chosen])
        self._known[signature, chosen].add(numbers, bounds)
        for form in chosen:
            base, filtering = (bounds[signature.tables.index(side.table)] for side in form)
            self.groups.setdefault(form, RangePairs()).add(numbers, base, filtering)
        for edge in signature.edges:
            for slot, join in ((edge.left, edge.left_columns), (edge.right, edge.right_columns)):
                self.rows(Side(signature.tables[slot], join, signature.selections[slot]))
        return range(self._count - len(numbers), self._count)

    @property
    def count(self) -> int:
        """How many subscriptions there were, those that are gone among them."""
        return self._count

    def unsubscribe(self, number: int) -> None:
        if not 0 <= number < self._count or number in self.gone:
            raise SubscriptionError(f"there is no subscription {number}; numbers come from subscribe")
        self.gone.add(number)
        for group in self.groups.values():
            group.remove(number)

    def build(self) -> None:
        """Builds what the next change would build: the index of every group that is new or has grown."""
        for group in self.groups.values():
            group.build()

    def emptied(self) -> Server:
        """A server of the same subscriptions, which both share, without rows. Rows may be loaded into it, and changed."""
        other = Server(self.tables.values())
        other.populations, other.groups, other.gone = self.populations, self.groups, self.gone
        other._known, other._count = self._known, self._count
        other._orders = {side: OrderedRows(side) for side in self._orders}
        return other

    def subscription(self, number: int) -> Subscription:
        """The subscription as its subscriber, or a node of the network, knows it: enough for every filter."""
        for population in self.populations:
            if (ranges := population.ranges(number)) is not None:
                return Subscription(number, population.signature, ranges, population.semijoins)
        raise SubscriptionError(f"there is no subscription {number}; numbers come from subscribe")

    def steps(self, change: Change) -> Iterator[Step]:
        """Applies the change; yields each step while its row is not there."""
        if change.table not in self.tables:
            raise EventError(f"there is no table '{change.table}'; the tables are {', '.join(self.tables)}")
        if change.old is not None and change.old not in self._images[change.table]:
            text = self.tables[change.table].text(change.old)
            raise EventError(f"table '{change.table}' has no row {text}; delete or update one that is there")
        if change.new is not None:
            image = self.image(change.table, change.new)
            yield Step(image, GAINED)
            self._put(image)
        if change.old is not None:
            yield Step(self._take(change.table, change.old), LOST)

    def load(self, table: str, rows: Iterable[Row]) -> None:
        """Loads the initial rows, without messages."""
        for row in rows:
            self._put(self.image(table, row))

    def rows(self, side: Side) -> OrderedRows:
        """The rows of a side of a join, which are kept sorted from the first call on."""
        if side not in self._orders:
            order = self._orders[side] = OrderedRows(side)
            for images in self._images[side.table].values():
                for image in images:
                    order.put(image)
        return self._orders[side]

    def image(self, table: str, row: Row) -> Image:
        if table not in self.tables:
            raise EventError(f"there is no table '{table}'; the tables are {', '.join(self.tables)}")
        types = self.tables[table].types
        try:
            keys = tuple(key_of(kind, value) for kind, value in zip(types, row, strict=True))
        except (TypeError, ValueError, AttributeError):
            raise EventError(
                f"{row!r} is no row of table '{table}'; give a tuple of its columns, as Table.read does"
            ) from None
        return Image(table, row, keys, size_of_all(row))

    def contents(self) -> Mapping[str, list[Row]]:
        """The rows of every table, copies and all."""
        return {
            table: [image.row for images in rows.values() for image in images]
            for table, rows in self._images.items()
        }

    def _check(self, name: str, column: int | None) -> None:
        if name not in self.tables:
            raise SubscriptionError(f"there is no table '{name}'; the tables are {', '.join(self.tables)}")
        table = self.tables[name]
        if column is not None and table.types[column] == "text":
            raise SubscriptionError(
                f"ranges look at {name}.{table.names[column]}, a text, whose order keys are cut; "
                "let them look at another column and leave texts to the subscriber, as attributes.relax does"
            )

    def _put(self, image: Image) -> None:
        self._images[image.table].setdefault(image.row, []).append(image)
        for side, order in self._orders.items():
            if side.table == image.table:
                order.put(image)

    def _take(self, table: str, row: Row) -> Image:
        copies = self._images[table][row]
        image = copies.pop()
        if not copies:
            del self._images[table][row]
        for side, order in self._orders.items():
            if side.table == table:
                order.take(image)
        return image


def _only_choice(signature: Signature) -> tuple[Semijoin, ...]:
    if len(signature.tables) == 1:
        return ()
    choices = [tuple(signature.semijoins(table)) for table in signature.tables]
    for table, found in zip(signature.tables, choices, strict=True):
        if len(found) != 1:
            raise SubscriptionError(
                f"table '{table}' of {signature} has {len(found)} neighbours; give the semijoin chosen for each table"
            )
    return tuple(found[0] for found in choices)
