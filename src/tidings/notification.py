"""What a subscriber gets: which event answered which subscription, and what its variables were bound to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

NOTIFICATION_SCHEMA = pa.schema(
    [
        ("subscription", pa.string()),
        ("source", pa.string()),
        ("event", pa.string()),
        ("verdict", pa.string()),
        ("bindings", pa.map_(pa.string(), pa.string())),
        ("message", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Notification:
    """`verdict` is "match", "undecided" (the step budget ran out) or "error" (the event is unreadable)."""

    subscription: str | None
    source: str
    event: str
    verdict: str
    bindings: dict[str, str]
    message: str | None = None


def from_table(table: pa.Table) -> Iterator[Notification]:
    for row in table.to_pylist():
        yield Notification(**{**row, "bindings": dict(row["bindings"] or ())})
