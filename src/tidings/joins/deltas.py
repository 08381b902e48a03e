"""What a batch of changes did to subscriptions: for each a row that it gained or lost, in columns.

A row and an id stand once, however many deltas name them: the columns hold numbers into dictionaries. `notifications`
spells them out, one for each event and subscription.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.notification import CHANGES, to_table

ONE_PART = "0/1"


@dataclass(frozen=True)
class Deltas:
    """Entries are in the order of events; `errors` and `snapshots` are by the event's row in its batch."""

    event: np.ndarray  # the row in the batch of events
    number: np.ndarray  # the subscription
    sequence: np.ndarray
    sign: np.ndarray  # 1: gained, -1: lost
    row: np.ndarray  # which of `texts`
    ids: pa.Array  # of subscriptions, by number
    texts: pa.Array  # of rows: canonical JSON
    table: np.ndarray  # of rows: which of `tables`
    tables: pa.Array
    errors: dict[int, str] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.event)

    def table_of_deltas(self) -> pa.Table:
        """All entries: event, subscription, sequence, change, table, row; texts in dictionaries."""
        signs = pa.DictionaryArray.from_arrays(pa.array((self.sign > 0).astype(np.int8)), ["-", "+"])
        return pa.table(
            {
                "event": self.event,
                "subscription": pa.DictionaryArray.from_arrays(pa.array(self.number), self.ids),
                "sequence": self.sequence,
                "change": signs,
                "table": pa.DictionaryArray.from_arrays(pa.array(self.table[self.row]), self.tables),
                "row": pa.DictionaryArray.from_arrays(pa.array(self.row), self.texts),
            }
        )

    def joined(self, arity: np.ndarray) -> Deltas:
        """Each run of `arity` rows of a subscription as one joined row: its rows by the names of their tables."""
        first = _firsts(arity)
        texts: list[str | None] = [None] * len(first)
        names = list[str]()
        width = arity[first]
        for count in np.unique(width).tolist():
            mine = np.flatnonzero(width == count)
            pieces: list[pa.Array | str] = []
            for place in range(count):
                row = self.row[first[mine] + place]
                name = self.tables.take(pa.array(self.table[row])).cast(pa.large_string())
                pieces += ["," if place else "{", '"', name, '":', self.texts.take(pa.array(row))]
            written = pc.binary_join_element_wise(*pieces, "}", "")
            for at, text in zip(mine.tolist(), written.to_pylist(), strict=True):
                texts[at] = text
        names = [" JOIN ".join(json.loads(text)) for text in texts]  # type: ignore[arg-type]
        tables = pa.array(sorted(set(names)), pa.string())
        return replace(
            self,
            event=self.event[first],
            number=self.number[first],
            sequence=self.sequence[first],
            sign=self.sign[first],
            row=np.arange(len(first), dtype=np.int32),
            texts=pa.array(texts, pa.large_string()),
            table=pc.index_in(pa.array(names, pa.string()), tables).to_numpy(zero_copy_only=False),
            tables=tables,
        )

    def notifications(self, events: pa.Table, part: str = ONE_PART) -> pa.Table:
        """One for each event and subscription, in the order of events; then errors and snapshots."""
        # The rows that an update brings and those that it takes away are apart.
        order = np.lexsort((self.number, self.event)) if len(self) else np.empty(0, dtype=np.int64)
        event, number = self.event[order], self.number[order]
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (event[1:] != event[:-1]) | (number[1:] != number[:-1])
        first = np.flatnonzero(begins)
        told = self._told(events, event[first])
        told |= {
            "subscription": self.ids.take(pa.array(number[first])),
            "verdict": pa.repeat("match", len(first)),
            "part": pa.repeat(part, len(first)),
            "sequence": self.sequence[order[first]],
            "changes": self._changes(order, np.append(first, len(order))),
        }
        return pa.concat_tables([to_table(told), self._errors(events), *self._answers(events, part)])

    def _told(self, events: pa.Table, rows: np.ndarray) -> dict[str, pa.Array]:
        taken = pa.array(rows)
        return {
            name: events[column].combine_chunks().cast(pa.string()).take(taken).fill_null("")
            for name, column in (("event", "id"), ("source", "source"))
            if column in events.column_names
        }

    def _changes(self, order: np.ndarray, first: np.ndarray) -> pa.Array:
        row = self.row[order]
        values = pa.StructArray.from_arrays(
            [
                self.tables.take(pa.array(self.table[row])),
                pa.array(["-", "+"]).take(pa.array((self.sign[order] > 0).astype(np.int8))),
                self.texts.take(pa.array(row)).cast(pa.string()),
            ],
            fields=list(CHANGES.value_type),
        )
        return pa.ListArray.from_arrays(pa.array(first, pa.int32()), values)

    def _errors(self, events: pa.Table) -> pa.Table:
        rows = np.array(list(self.errors), dtype=np.int64)
        return to_table(
            {
                **self._told(events, rows),
                "verdict": pa.repeat("error", len(rows)),
                "message": pa.array(self.errors.values(), pa.string()),
            }
        )

    def _answers(self, events: pa.Table, part: str) -> list[pa.Table]:
        return [
            to_table(
                {
                    **self._told(events, np.array([snapshot.event])),
                    "subscription": pa.array([snapshot.subscription]),
                    "verdict": pa.array(["snapshot"]),
                    "part": pa.array([part]),
                    "sequence": pa.array([snapshot.sequence]),
                    "changes": pa.array(
                        [[{"table": table, "change": "+", "row": row} for table, row in snapshot.rows]],
                        CHANGES,
                    ),
                }
            )
            for snapshot in self.snapshots
        ]


def _firsts(arity: np.ndarray) -> np.ndarray:
    """Where runs begin that are as long as their entries say."""
    found, at = [], 0
    widths = arity.tolist()
    while at < len(widths):
        found.append(at)
        at += widths[at]
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class Snapshot:
    """All rows of a subscription, as (table, canonical JSON), after the change that was told as `sequence`."""

    event: int
    subscription: str
    sequence: int
    rows: list[tuple[str, str]]
