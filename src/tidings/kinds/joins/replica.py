"""A subscriber's copy of a join's rows, maintained by notifications alone.

Each part (one, or many in a cluster) begins with its snapshot; from there on every sequence number is applied once.
Earlier and repeated notifications are ignored; after a gap the copy is `missing` until a snapshot arrives that is as new
as every notification so far. While nothing is missing, the joined rows are the query's result. A payload that was left
out of a row is that of the row with the same key (`payload_once.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidings.errors import EventError
from tidings.kinds.joins import naive
from tidings.kinds.joins.payload_once import is_short, payload_columns
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Row, Table, TableError, by_name
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.model.notification import RowChange


class JoinNotification(Protocol):
    """A notification of a subscription over tables: `tidings.Notification`, or what a client of the service yields."""

    @property
    def subscription(self) -> str | None: ...
    @property
    def verdict(self) -> str: ...
    @property
    def part(self) -> str | None: ...
    @property
    def sequence(self) -> int | None: ...
    @property
    def changes(self) -> Sequence[RowChange]: ...


@dataclass(slots=True)
class _Part:
    rows: naive.Form = field(default_factory=Counter)
    sequence: int = 0
    missing: str | None = "no snapshot yet"
    by_key: dict[tuple[str, Row], Row] = field(default_factory=dict)
    """The rows of tables with a payload and a key."""


class Replica:
    """The rows of one join subscription; give `apply` all its notifications, the snapshot among them. Whose snapshot
    comes first is the subscription: notifications of others are ignored.

    >>> from tidings import Table
    >>> stocks = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
    >>> Replica("SELECT * FROM stocks WHERE per > 50", [stocks]).missing
    'no snapshot yet'
    """

    def __init__(self, query: str | Query, tables: Iterable[Table]) -> None:
        self._tables = by_name(tables)
        self._shape, self._ranges = read(parse(query) if isinstance(query, str) else query, self._tables)
        self._parts: dict[str, _Part] = {}
        self._subscription: str | None = None
        self._latest: dict[tuple[str | None, str], int] = {}
        """The highest sequence number that arrived for a subscription and a part, applied or not."""

    @property
    def missing(self) -> str | None:
        """Why the copy is incomplete and needs a snapshot; None if it is complete."""
        if not self._parts:
            return "no snapshot yet"
        for name, part in self._parts.items():
            if part.missing:
                return f"{part.missing} (part {name})" if len(self._parts) > 1 else part.missing
        return None

    def apply(self, notification: JoinNotification) -> bool:
        """Applies a notification; False if it is a repetition, or came before a snapshot that is needed."""
        if notification.part is None or notification.sequence is None:
            return False
        if self._subscription not in (None, notification.subscription):
            return False
        number, stream = notification.sequence, (notification.subscription, notification.part)
        self._latest[stream] = max(number, self._latest.get(stream, 0))
        if notification.verdict == "snapshot":
            self._subscription = notification.subscription
            return self._start(self._part(notification.part), notification, self._latest[stream])
        if self._subscription is None:
            return False
        part = self._part(notification.part)
        if part.missing or number <= part.sequence:
            return False
        if number > part.sequence + 1:
            part.missing = f"a gap: expected {part.sequence + 1}, got {number}"
            return False
        return self._change(part, notification)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table that take part in the result, each as often as it is there."""
        if table not in self._shape.tables:
            tables = ", ".join(self._shape.tables)
            raise TableError(f"the subscription has no table {table!r}; its tables are {tables}")
        return [self._named(table, row) for row in self._current_rows()[table].elements()]

    def result(self) -> list[dict[str, dict[str, Any]]]:
        """The joined rows: for each the rows of its tables, by their names."""
        joined = naive.result(self._shape, self._ranges, self._current_rows())
        return [
            {name: self._named(name, row) for name, row in zip(self._shape.tables, rows, strict=True)}
            for rows in joined.elements()
        ]

    def _part(self, name: str) -> _Part:
        if name not in self._parts:
            # All parts are needed, also those without a notification. Another number of parts is another stream.
            total = int(name.partition("/")[2])
            self._parts = {f"{bucket}/{total}": _Part() for bucket in range(total)}
        return self._parts[name]

    def _start(self, part: _Part, snapshot: JoinNotification, latest: int) -> bool:
        number = snapshot.sequence or 0
        if not part.missing and number <= part.sequence:
            return False
        if number < latest:
            part.missing = f"a snapshot of {number} came, but {latest} was heard of"
            return False
        part.rows, part.sequence, part.missing, part.by_key = Counter(), number, None, {}
        return self._change(part, snapshot)

    def _change(self, part: _Part, notification: JoinNotification) -> bool:
        gained: naive.Form = Counter()
        lost: naive.Form = Counter()
        try:
            for change in notification.changes:
                (gained if change.change == "+" else lost)[change.table, self._row(part, change)] += 1
        except (EventError, KeyError) as error:
            part.missing = f"{notification.sequence} cannot be read: {error}"
            return False
        if any(part.rows[row] + gained[row] < copies for row, copies in lost.items()):
            part.missing = f"{notification.sequence} takes away a row that is not here"
            return False
        part.rows.update(gained)
        part.rows.subtract(lost)
        for row in lost:
            if not part.rows[row]:
                del part.rows[row]
        for found, keep in ((lost, False), (gained, True)):
            for name, row in found:
                if payload_columns(self._tables[name]):
                    key = name, self._tables[name].key_of(row)
                    if keep:
                        part.by_key[key] = row
                    elif part.by_key.get(key) == row:
                        del part.by_key[key]
        part.sequence = notification.sequence or 0
        return True

    def _row(self, part: _Part, change: RowChange) -> Row:
        """The row of a change, with its payload."""
        table = self._tables[change.table]
        row = table.read(change.row)
        if not is_short(table, change.row):
            return row
        held = part.by_key.get((table.name, table.key_of(row)))
        if held is None:
            raise EventError(f"the payload of {table.text(row)} is not here")
        left_out = payload_columns(table)
        return tuple(
            theirs if name in left_out else own
            for name, own, theirs in zip(table.names, row, held, strict=True)
        )

    def _current_rows(self) -> Mapping[str, Counter[Row]]:
        held: dict[str, Counter[Row]] = {name: Counter() for name in self._shape.tables}
        for part in self._parts.values():
            for (name, row), copies in part.rows.items():
                held[name][row] += copies
        return held

    def _named(self, table: str, row: Row) -> dict[str, Any]:
        return dict(zip(self._tables[table].names, row, strict=True))
