"""A notification: which event matched which subscription, and the bindings of its variables.

A notification of a subscription over tables has the rows that were gained and lost, and its `sequence` in its `part`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

CHANGES = pa.list_(pa.struct([("table", pa.string()), ("change", pa.string()), ("row", pa.string())]))
BINDINGS = pa.map_(pa.string(), pa.string())
COST = ".cost"
"""How the name of a binding ends that is the cost of a path in a network: "exchange.cost". No variable has a dot."""
NOTIFICATION_SCHEMA = pa.schema(
    [
        ("subscription", pa.string()),
        ("source", pa.string()),
        ("event", pa.string()),
        ("verdict", pa.string()),
        ("bindings", BINDINGS),
        ("part", pa.string()),
        ("sequence", pa.int64()),
        ("changes", CHANGES),
        ("message", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row of a table, gained if `change` is "+" and lost if it is "-"."""

    table: str
    change: str
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """`verdict` is "match", "undecided" (the step budget ran out), "error" (the event is unreadable) or "snapshot".

    A snapshot has all rows of a part of a subscription over tables; `sequence` is that of the last change in it.
    """

    subscription: str | None
    source: str
    event: str
    verdict: str
    bindings: dict[str, str]
    message: str | None = None
    part: str | None = None
    sequence: int | None = None
    changes: tuple[RowChange, ...] = ()

    @property
    def cost(self) -> float | None:
        """The cost of the cheapest valid path, of a subscription at a node of a network that has costs."""
        return next((float(text) for name, text in self.bindings.items() if name.endswith(COST)), None)

    @classmethod
    def from_table(cls, table: pa.Table) -> Iterator[Notification]:
        """The notifications of a table, one by one."""
        for row in table.to_pylist():
            changes = tuple(
                RowChange(change["table"], change["change"], json.loads(change["row"]))
                for change in row["changes"] or ()
            )
            yield cls(**{**row, "bindings": dict(row["bindings"] or ()), "changes": changes})


def error_table(events: pa.Table, errors: Mapping[int, str]) -> pa.Table:
    """A notification without a subscription for every event, by its row, that could not be read."""
    rows = sorted(errors)
    names = {
        name: events[column].cast(pa.string()).take(pa.array(rows, pa.int64()))
        for name, column in (("source", "source"), ("event", "id"))
        if rows and column in events.column_names
    }
    verdicts = pa.array(["error"] * len(rows), pa.string())
    return to_table(
        {"verdict": verdicts, **names, "message": pa.array([errors[row] for row in rows], pa.string())}
    )


def to_table(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Notifications of these columns; the others are null."""
    count = len(next(iter(columns.values())))
    filled = {field.name: pa.nulls(count, field.type) for field in NOTIFICATION_SCHEMA}
    return pa.table({**filled, **columns}, schema=NOTIFICATION_SCHEMA)
