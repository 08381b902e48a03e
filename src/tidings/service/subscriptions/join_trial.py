"""Tries a subscription over tables: what the last changes of rows would have given it, and which rows it would have now.

What a change gives depends on all rows, most of which came earlier. So the tables get the rows that they have now, without what
the last changes did to them; then these changes are replayed. The rows before an update or a delete that names
only a key are not known: then the row of now stands for it, or none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tidings.engine.engine import Engine
from tidings.kinds.joins.changes.changes import DELETE, INSERT, UPDATE, Changes, read_changes
from tidings.kinds.joins.schema.table import Table, plain
from tidings.model.event import Event, to_table
from tidings.model.notification import Notification, RowChange

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The rows of tables, by name."""

_THIS = "this"


class Replayed(NamedTuple):
    """The changes that are matches, oldest first, each with its event; and the rows of the result after the last one."""

    matches: list[tuple[Event, Notification]]
    rows: tuple[RowChange, ...]


def replay(engine: Engine, text: str, events: Sequence[Event], present: Rows) -> Replayed:
    """Tries a text on events, oldest first. `present` are the rows after them."""
    trial = engine.without_subscriptions()
    trial.subscribe(_THIS, text)
    tables = list(trial.joins.tables.values())
    if events:
        changes = read_changes(to_table(events), tables)
        before = [
            row
            for number, table in enumerate(tables)
            for row in _rows_before(table, number, changes, present)
        ]
    else:
        before = [Event.insert(name, row) for name, rows in present.items() for row in rows]
    if before:
        trial.publish_many(before)
    by_name = {(event.source, event.id): event for event in events}
    found = Notification.from_table(trial.publish_many(events)) if events else iter(())
    matches = [
        (by_name[notification.source, notification.event], notification)
        for notification in found
        if notification.verdict == "match"
    ]
    return Replayed(matches, trial.snapshot(_THIS).changes)


def _rows_before(table: Table, number: int, changes: Changes, present: Rows) -> Iterator[Event]:
    """Inserts of the rows that a table had before the changes."""
    texts = changes.images[number].texts.to_pylist()
    mine = [
        (op, *(None if image < 0 else texts[image] for image in (new, old)))
        for place, op, new, old in zip(
            *(column.tolist() for column in (changes.table, changes.op, changes.new, changes.old)),
            strict=True,
        )
        if place == number
    ]
    rows = [_canonical(table, row) for row in present.get(table.name, ())]
    found = _undone_by_key(table, mine, rows) if table.key else _undone(mine, rows)
    return (Event.insert(table.name, json.loads(row)) for row in found)


def _undone(changes: Iterable[tuple[int, str | None, str | None]], rows: Iterable[str]) -> Iterable[str]:
    """Of a table without a key, whose rows are counted."""
    counts = Counter(rows)
    for op, new, old in changes:
        if op in (INSERT, UPDATE) and new is not None:
            counts[new] -= 1
        if op in (DELETE, UPDATE) and old is not None:
            counts[old] += 1
    return counts.elements()


def _undone_by_key(
    table: Table, changes: Iterable[tuple[int, str | None, str | None]], rows: Iterable[str]
) -> Iterable[str]:
    """Of a table with a key: the first change of a key says what was there before it."""

    def key_of(row: str) -> str:
        values = json.loads(row)
        return json.dumps([values[name] for name in table.key])

    before: dict[str, str | None] = {key_of(row): row for row in rows}
    touched: set[str] = set()
    for op, new, old in changes:
        for row in (old, new):
            if row is None or key_of(row) in touched:
                continue
            key = key_of(row)
            touched.add(key)
            if op == INSERT or (op == UPDATE and row is new and old is not None):
                before[key] = None
            elif row is old and _is_whole(table, row):
                before[key] = row
            else:
                before.setdefault(key, row if row is new else None)
    return (row for row in before.values() if row is not None)


def _is_whole(table: Table, row: str) -> bool:
    """Whether a row has more than its key."""
    values = json.loads(row)
    return len(table.key) == len(table.names) or any(
        values[name] is not None for name in table.names if name not in table.key
    )


def _canonical(table: Table, row: Mapping[str, Any]) -> str:
    return table.text(table.read({name: plain(value) for name, value in row.items()}))
