"""Moves bulky payload columns to a table of their own, joined back by the key. Select-joins, Appendix I.

    products(id, rating, photo), payload photo   =>   products(id, rating) ⋈ products_payload(products_id, photo)

A subscription that selects by rating becomes a join, so a photo is sent to a subscriber once, however often the rating
changes within its range: the semijoin of the payload table has it already. Tables without a key are not split, because
nothing else identifies their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tidings.dissemination.schemes.server import Change
from tidings.kinds.joins.schema.table import Row, Table, TableError
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Attribute, JoinedTable, Query
from tidings.model.event import Event


class Split(NamedTuple):
    """A table and its two parts: the facts, and the payload with the key."""

    whole: Table
    facts: Table
    payload: Table

    def parts(self, row: Row) -> tuple[Row, Row]:
        """A row of the whole as a row of each part."""
        of = dict(zip(self.whole.names, row, strict=True))
        key = tuple(of[name] for name in self.whole.key)
        return (
            tuple(of[name] for name in self.facts.names),
            (*key, *(of[name] for name in self.whole.payload)),
        )

    def merged(self, facts: Row, payload: Row) -> Row:
        """The row of the whole table that two joined rows represent."""
        of = dict(zip(self.facts.names, facts, strict=True))
        of |= dict(zip(self.payload.names, payload, strict=True))
        return tuple(of[name] for name in self.whole.names)

    def facts_given(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The members of a user's row that are not payload; unknown names too, so that they are reported."""
        return {name: value for name, value in row.items() if name not in self.whole.payload}

    def payload_given(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The payload and the key of a user's row, by the payload table's names."""
        named = dict(zip(self.whole.key, self.payload.key, strict=True))
        named |= {name: name for name in self.whole.payload}
        return {named[name]: value for name, value in row.items() if name in named}


class Payloads:
    """Tables with their payload columns split off; queries and changes rewritten to fit."""

    def __init__(self, tables: Iterable[Table]) -> None:
        given = list(tables)
        self._splits = {table.name: _split(table) for table in given if table.payload and table.key}
        names = {table.name for table in given}
        for split in self._splits.values():
            if split.payload.name in names:
                raise TableError(
                    f"the payload of '{split.whole.name}' goes to a table '{split.payload.name}', which is there; "
                    "give that one another name"
                )
        self.tables: list[Table] = []
        """The tables to declare instead of those given."""
        for table in given:
            split_off = self._splits.get(table.name)
            self.tables.extend((split_off.facts, split_off.payload) if split_off else (table,))

    def split(self, table: str) -> Split | None:
        """The parts of a table; None if it was not split."""
        return self._splits.get(table)

    def query(self, query: Query) -> Query:
        """The same query over the split tables: each is joined with its payload by the key."""
        named = [query.stream, *(table.name for table in query.joined)]
        joined = []
        for split in (self._splits[name] for name in named if name in self._splits):
            pairs = zip(split.whole.key, split.payload.key, strict=True)
            on = tuple(
                (Attribute(f"{split.whole.name}.{own}"), Attribute(f"{split.payload.name}.{other}"))
                for own, other in pairs
            )
            joined.append(JoinedTable(split.payload.name, on=on))
        return replace(query, joined=(*query.joined, *joined))

    def text(self, text: str) -> str:
        """The same as `query`, from text to text."""
        return to_text(self.query(parse(text)))

    def changes(self, change: Change) -> list[Change]:
        """A change of the whole as changes of its parts, without those that change nothing.

        The payload is inserted before the facts and deleted after them, so that a row is reported once, with its payload.
        """
        split = self._splits.get(change.table)
        if split is None:
            return [change]
        new, old = (split.parts(row) if row is not None else (None, None) for row in (change.new, change.old))
        facts = Change(split.facts.name, new[0], old[0])
        payload = Change(split.payload.name, new[1], old[1])
        same_key = (
            change.new is not None
            and change.old is not None
            and split.whole.key_of(change.new) == split.whole.key_of(change.old)
        )
        if same_key:
            return [part for part in (payload, facts) if part.new != part.old]
        found = [payload._replace(old=None), facts, payload._replace(new=None)]
        return [part for part in found if part.new is not None or part.old is not None]

    def events(self, event: Event) -> list[Event]:
        """An event of `Event.insert`, `update` or `delete` as events of the parts; any other event as it is.

        Those of a payload table have a source of their own, so that the numbers of changes go on for each. EventError
        says what is wrong with a row, before any part of it is applied.
        """
        split = self._splits.get(event.attributes.get("table", "")) if event.type in _CHANGES else None
        if split is None:
            return [event]
        given = event.attributes
        split.whole.read(given["row"])
        facts: dict[str, Any] = {"table": split.facts.name}
        payload: dict[str, Any] = {"table": split.payload.name}
        for name in ("row", "before"):
            if name in given:
                facts[name] = split.facts_given(given[name])
                payload[name] = split.payload_given(given[name])
        rest = {name: value for name, value in given.items() if name == "sequence"}
        parts = [
            replace(event, source=f"{event.source}/payload", attributes=payload | rest),
            replace(event, attributes=facts | rest),
        ]
        if event.type == "tidings.delete":
            parts.reverse()
        # A payload that stays as it was is not even read.
        return parts[1:] if payload.get("before", _NEVER) == payload.get("row") else parts


_CHANGES = ("tidings.insert", "tidings.update", "tidings.delete")
_NEVER = object()


def _split(table: Table) -> Split:
    facts = {name: kind for name, kind in table.columns.items() if name not in table.payload}
    key = {f"{table.name}_{name}": table.columns[name] for name in table.key}
    taken = {name: table.columns[name] for name in table.payload}
    for name in key:
        if name in taken:
            raise TableError(f"the payload of '{table.name}' has a column '{name}'; give it another name")
    if set(table.key) & set(table.payload):
        raise TableError(f"table '{table.name}' has a column in both its key and its payload; take one out")
    return Split(
        table,
        Table(table.name, facts, table.key),
        Table(f"{table.name}_payload", key | taken, list(key), list(taken)),
    )
