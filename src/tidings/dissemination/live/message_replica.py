"""A subscriber's copy of a join's rows, maintained by messages of a scheme: a `Replica` that filters by itself.

It begins with a snapshot for each part, takes every record of its population, and accepts the messages that its ranges
accept. It holds the rows of its semijoins, which may be more than take part in the result: a scheme knows one condition for
each table, and one neighbour. `rows` and `result` apply all conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tidings.dissemination.live.membership import membership
from tidings.dissemination.live.records import MessageRecord
from tidings.dissemination.packet import WireError
from tidings.dissemination.schemes.filters import accepts
from tidings.dissemination.schemes.message import GAINED
from tidings.kinds.joins import naive
from tidings.kinds.joins.replica import JoinNotification, Replica
from tidings.kinds.joins.schema.table import Row, Table, by_name
from tidings.language.query import Query


class MessageReplica(Replica):
    """Give `apply` all records of the subscription's population, and snapshots of the subscription.

    >>> from tidings import Table
    >>> stocks = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
    >>> MessageReplica("SELECT * FROM stocks WHERE per > 50", [stocks]).population
    'stocks'
    """

    def __init__(self, query: str | Query, tables: Iterable[Table]) -> None:
        whole = by_name(tables)
        super().__init__(query, whole.values())
        self._member = membership(self._shape, whole)
        self._filter = self._member.subscription([(found.low, found.high) for found in self._ranges])
        self._whole, self._tables = whole, {**whole, **self._member.tables}
        self._heard: dict[str, int] = {}

    @property
    def population(self) -> str:
        """Whose records are for it."""
        return self._member.population

    def apply(self, arrived: JoinNotification | MessageRecord) -> bool:
        """Applies a record or a snapshot; False if it is a repetition, of others, or came before a snapshot that is
        needed."""
        if isinstance(arrived, MessageRecord):
            return arrived.population == self.population and self._apply_record(arrived)
        if arrived.verdict != "snapshot" or arrived.part is None:
            return False
        if self._subscription in (None, arrived.subscription):
            stream = (arrived.subscription, arrived.part)
            self._latest[stream] = max(self._latest.get(stream, 0), self._heard.get(arrived.part, 0))
        return super().apply(arrived)

    def _apply_record(self, record: MessageRecord) -> bool:
        self._heard[record.part] = max(record.sequence, self._heard.get(record.part, 0))
        if self._subscription is None:
            return False
        part = self._part(record.part)
        if part.missing or record.sequence <= part.sequence:
            return False
        if record.sequence > part.sequence + 1:
            part.missing = f"a gap: expected {part.sequence + 1}, got {record.sequence}"
            return False
        net: Counter[tuple[str, Row]] = Counter()
        try:
            for message in record.messages():
                if accepts(message, self._filter):
                    (image,) = message.rows
                    net[image.table, image.row] += 1 if message.sign == GAINED else -1
        except WireError as error:
            part.missing = f"{record.sequence} cannot be read: {error}"
            return False
        if any(part.rows[row] + count < 0 for row, count in net.items()):
            part.missing = f"{record.sequence} takes away a row that is not here"
            return False
        part.rows.update(net)
        for row in net:
            if not part.rows[row]:
                del part.rows[row]
        part.sequence = record.sequence
        return True

    def rows(self, table: str) -> list[dict[str, Any]]:
        super().rows(table)  # says so if there is no such table
        form = naive.semijoin(self._shape, self._ranges, self._current_rows())
        found = Counter({row: copies for (name, row), copies in form.items() if name == table})
        return [self._named(table, row) for row in found.elements()]

    def _current_rows(self) -> Mapping[str, Counter[Row]]:
        held: dict[str, Counter[Row]] = {name: Counter() for name in self._member.tables}
        for part in self._parts.values():
            for (name, row), copies in part.rows.items():
                held[name][row] += copies
        return self._member.merged(held)

    def _named(self, table: str, row: Row) -> dict[str, Any]:
        return dict(zip(self._whole[table].names, row, strict=True))
