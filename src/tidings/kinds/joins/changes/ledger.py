"""The ledger knows the current rows by key and turns each change into steps: rows that come and rows that go.

A row of a table without a key is identified by its whole content, and its copies are counted. The caller decides what
the ledger keeps of a row: its number here, its text in a Spark job. A change that cannot be applied is an error and has
no steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tidings.kinds.joins.changes.changes import DELETE, INSERT, UPDATE, Changes
from tidings.kinds.joins.changes.sequences import Sequences
from tidings.kinds.joins.schema.table import Table

Kept = TypeVar("Kept")


class RowStep(NamedTuple, Generic[Kept]):
    """A row of a table comes (sign 1) or goes (-1) by an event."""

    event: int
    table: int
    row: Kept
    sign: int


class Ledger(Generic[Kept]):
    """`steps` applies changes to the known rows. `same` says whether two rows are equal in every column."""

    def __init__(self, tables: Sequence[Table], same: Callable[[Kept, Kept], bool]) -> None:
        self.tables, self._same = tables, same
        self.known: list[dict[Hashable, list[Kept]]] = [{} for _ in tables]
        self.sequences = Sequences()

    def rows(self, table: int) -> list[Kept]:
        """All rows of a table."""
        return [row for rows in self.known[table].values() for row in rows]

    def steps(
        self,
        changes: Changes,
        names: Sequence[Sequence[Hashable]],
        rows: Sequence[Sequence[Kept]],
        errors: dict[int, str],
    ) -> Iterator[RowStep[Kept]]:
        """The rows that come and go. For each image, by table, `names` has its key and `rows` what to keep of it."""
        admitted = self.sequences.admit_all(changes.source, changes.sequence, changes.ties).tolist()
        columns = (changes.event, changes.table, changes.op, changes.new, changes.old, changes.sequence)
        for is_admitted, event, table, op, new, old, sequence in zip(
            admitted, *(column.tolist() for column in columns), strict=True
        ):
            try:
                if not is_admitted:
                    raise _Refused(
                        f"the change has sequence {sequence}, which its source has passed; "
                        "it came again or late and is ignored"
                    )
                if op == INSERT:
                    yield self._insert(event, table, names[table][new], rows[table][new])
                elif op == DELETE:
                    yield RowStep(event, table, self._take(table, names[table][old], "delete"), -1)
                elif op == UPDATE:
                    name = names[table][new]
                    old_name = name if old < 0 else names[table][old]
                    yield from self._update(event, table, name, rows[table][new], old_name)
                else:
                    gone = self.rows(table)
                    self.known[table].clear()
                    yield from (RowStep(event, table, row, -1) for row in gone)
            except _Refused as refused:
                errors[event] = str(refused)

    def _insert(self, event: int, table: int, name: Hashable, row: Kept) -> RowStep[Kept]:
        rows = self.known[table].setdefault(name, [])
        if rows and self.tables[table].key:
            raise _Refused(
                f"a row of table '{self.tables[table].name}' with this key is there; update it, or delete it first"
            )
        rows.append(row)
        return RowStep(event, table, row, 1)

    def _update(
        self, event: int, table: int, name: Hashable, row: Kept, old_name: Hashable
    ) -> tuple[RowStep[Kept], ...]:
        known = self.known[table]
        if name != old_name and self.tables[table].key and known.get(name):
            raise _Refused(
                f"the update would give a row of table '{self.tables[table].name}' the key of another; delete that first"
            )
        old = self._take(table, old_name, "update")
        if self._same(old, row):  # nothing changes
            known.setdefault(name, []).append(old)
            return ()
        known.setdefault(name, []).append(row)
        return RowStep(event, table, row, 1), RowStep(event, table, old, -1)

    def _take(self, table: int, name: Hashable, purpose: str) -> Kept:
        rows = self.known[table].get(name)
        if not rows:
            raise _Refused(
                f"table '{self.tables[table].name}' has no such row to {purpose}; look at its key, or insert it first"
            )
        row = rows.pop()
        if not rows:
            del self.known[table][name]
        return row


class _Refused(Exception):
    """The change cannot be applied; the text is the error message."""
