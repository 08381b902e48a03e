"""The deltas of a batch of changes in columns: each is a row that a subscription gained or lost.

A row and an id are stored once, however many deltas name them: the columns hold numbers into dictionaries.
`notifications` makes a notification for each event and subscription.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidings.model.notification import CHANGES, NOTIFICATION_SCHEMA, error_table, to_table

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
    snapshots: list[JoinSnapshot] = field(default_factory=list)

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

    def notifications(self, events: pa.Table, part: str = ONE_PART) -> pa.Table:
        """One for each event and subscription, in the order of events; then errors and snapshots."""
        found = self.in_dictionaries(events, part)
        return pa.concat_tables([found.cast(NOTIFICATION_SCHEMA), self.answers(events, part)])

    def in_dictionaries(self, events: pa.Table, part: str = ONE_PART) -> pa.Table:
        """As `notifications`, without errors and snapshots: a text that many have stands once. To build and to write
        these columns to Parquet, which reads back as plain texts, takes a quarter of the time."""
        order, first = self._grouped()
        begin = order[first]
        ids, number = _named(self.number[begin], self.ids)
        entries = np.append(first, len(order))
        none = np.zeros(len(first), dtype=np.int8)
        event = self.event[begin].astype(np.int32)
        columns = {
            "subscription": _dictionary(number, ids),
            **{name: _dictionary(event, texts) for name, texts in _names(events).items()},
            "verdict": _dictionary(none, pa.array(["match"])),
            "part": _dictionary(none, pa.array([part])),
            "sequence": pa.array(self.sequence[begin]),
            "changes": pa.ListArray.from_arrays(pa.array(entries, pa.int32()), self._changes(order)),
        }
        return pa.table(
            {
                field.name: columns.get(field.name, pa.nulls(len(first), field.type))
                for field in NOTIFICATION_SCHEMA
            }
        )

    def answers(self, events: pa.Table, part: str = ONE_PART) -> pa.Table:
        """What events get besides deltas: errors, and the snapshots that they request."""
        return pa.concat_tables([self._errors(events), *self._snapshots(events, part)])

    def _grouped(self) -> tuple[np.ndarray, np.ndarray]:
        """The entries of each event and subscription side by side, and where those of the next begin."""
        order = np.arange(len(self))
        begins = np.ones(len(self), dtype=np.bool_)
        begins[1:] = (self.event[1:] != self.event[:-1]) | (self.number[1:] != self.number[:-1])
        first = np.flatnonzero(begins)
        if len(first) == self._count():
            return order, first
        # The rows that an update brings and those that it takes away are apart.
        runs = np.lexsort((self.number[first], self.event[first]))
        length = np.diff(np.append(first, len(self)))[runs]
        start = np.cumsum(length) - length
        order = np.repeat(first[runs] - start, length) + order
        event, number = self.event[order[start]], self.number[order[start]]
        anew = np.ones(len(start), dtype=np.bool_)
        anew[1:] = (event[1:] != event[:-1]) | (number[1:] != number[:-1])
        return order, start[anew]

    def _count(self) -> int:
        """How many notifications there are: sequence numbers have no gaps."""
        room = int(self.number.max(initial=-1)) + 1
        last, before = np.zeros(room, dtype=np.int64), np.ones(room, dtype=np.int64)
        last[self.number] = self.sequence
        before[self.number[::-1]] = self.sequence[::-1]
        return int((last - before + 1).sum())

    def _changes(self, order: np.ndarray) -> pa.StructArray:
        row = self.row[order]
        sign = (self.sign[order] > 0).astype(np.int8)
        return pa.StructArray.from_arrays(
            [
                _dictionary(self.table[row], self.tables),
                _dictionary(sign, pa.array(["-", "+"])),
                _dictionary(row, self.texts.cast(pa.string())),
            ],
            ["table", "change", "row"],
        )

    def _envelope(self, events: pa.Table, rows: np.ndarray) -> dict[str, pa.Array]:
        return {name: texts.take(pa.array(rows)) for name, texts in _names(events).items()}

    def _errors(self, events: pa.Table) -> pa.Table:
        names = {"id": "event", "source": "source"}
        found = _names(events)
        return error_table(
            pa.table({name: found[names[name]] for name in names if names[name] in found}), self.errors
        )

    def _snapshots(self, events: pa.Table, part: str) -> list[pa.Table]:
        return [
            to_table(
                {
                    **self._envelope(events, np.array([snapshot.event])),
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


def _dictionary(positions: np.ndarray, texts: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(positions), texts)


def _named(numbers: np.ndarray, ids: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """The ids that occur, and where each entry finds its own: a file need not have those of all subscriptions."""
    named = np.zeros(len(ids), dtype=np.bool_)
    named[numbers] = True
    numbers_kept = np.cumsum(named, dtype=np.int32) - 1
    return ids.filter(pa.array(named)), numbers_kept[numbers]


def _names(events: pa.Table) -> dict[str, pa.Array]:
    """What notifications call the events, and their sources."""
    return {
        name: events[column].combine_chunks().cast(pa.string()).fill_null("")
        for name, column in (("event", "id"), ("source", "source"))
        if column in events.column_names
    }


@dataclass(frozen=True)
class JoinSnapshot:
    """All rows of a subscription, as (table, canonical JSON), after the change that was notified as `sequence`."""

    event: int
    subscription: str
    sequence: int
    rows: list[tuple[str, str]]
