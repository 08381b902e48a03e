"""Leaves payload columns out of notifications where the subscriber has them already. Select-joins, Appendix I.

    products(id, rating, photo), payload photo:   + {id 1, rating 8}   - {id 1, rating 7}

The paper joins the facts of a table with a second table of its payload, by the key; a semijoin does not report a payload
row that stays in the result. This is the same without the second table: a lost row never has its payload, and a row that
replaces one of the same key and payload has none either. A `Replica` fills it in from the row that it holds. A row is
either whole or has none of its payload columns. Tables without a key are left as they are: nothing else
identifies their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tidings.errors import TidingsError
from tidings.kinds.joins.changes.row_images import canonical
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.kind import read_texts
from tidings.kinds.joins.schema.table import Table
from tidings.model.notification import RowChange

Payload = Literal["always", "once"]
PAYLOAD: tuple[Payload, ...] = ("always", "once")


def wants_once(payload: str, joined: bool = False) -> bool:
    """Whether payload columns are sent once; an error if the word is none of `PAYLOAD`."""
    if payload not in PAYLOAD:
        raise TidingsError(f"payload is {payload!r}; give 'always' for whole rows, or 'once'")
    if joined and payload == "once":
        raise TidingsError("joined rows are whole; leave out joined=True, or payload='once'")
    return payload == "once"


def payload_columns(table: Table) -> tuple[str, ...]:
    """The columns that may be left out of a row of the table."""
    return tuple(name for name in table.payload if name not in table.key) if table.key else ()


def is_short(table: Table, row: Mapping[str, Any]) -> bool:
    """Whether the payload was left out of a row."""
    names = payload_columns(table)
    return bool(names) and not any(name in row for name in names)


def once(changes: Sequence[RowChange], tables: Mapping[str, Table]) -> tuple[RowChange, ...]:
    """The changes of one notification without the payload that its subscriber has: the definition."""
    lost = [(change.table, change.row) for change in changes if change.change == "-"]

    def is_known(change: RowChange) -> bool:
        table = tables[change.table]
        names = (*table.key, *payload_columns(table))
        return change.change == "-" or any(
            name == change.table and all(row.get(column) == change.row.get(column) for column in names)
            for name, row in lost
        )

    return tuple(
        replace(change, row=_facts(tables[change.table], change.row)) if is_known(change) else change
        for change in changes
    )


def _facts(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    left_out = payload_columns(table)
    return {name: value for name, value in row.items() if name not in left_out}


def deltas_once(deltas: Deltas, tables: Sequence[Table]) -> Deltas:
    """The same for the deltas of many subscriptions, in columns. `tables` are those that the deltas number."""
    count = len(deltas.texts)
    payload = np.full(count, -1, dtype=np.int64)  # of a row: the number of its key with its payload
    short = np.arange(count, dtype=np.int64)  # of a row: which text it has without its payload
    texts, table_of = [deltas.texts.cast(pa.large_string())], [deltas.table]
    numbered, room = 0, count
    for number, table in enumerate(tables):
        rows = np.flatnonzero(deltas.table == number)
        if not payload_columns(table) or not len(rows):
            continue
        facts, parts = _parts(table, deltas.texts.take(pa.array(rows)))
        payload[rows] = numbered + parts.indices.to_numpy()
        numbered += len(parts.dictionary)
        short[rows] = room + np.arange(len(rows))
        room += len(rows)
        texts.append(facts)
        table_of.append(deltas.table[rows])
    if not numbered:
        return deltas
    row = np.where(_is_known(deltas, payload[deltas.row]), short[deltas.row], deltas.row)
    is_used = np.zeros(room, dtype=np.bool_)
    is_used[row] = True
    return replace(
        deltas,
        row=(np.cumsum(is_used, dtype=np.int32) - 1)[row],
        texts=pa.concat_arrays(texts).filter(pa.array(is_used)),
        table=np.concatenate(table_of)[is_used],
    )


def _parts(table: Table, texts: pa.Array) -> tuple[pa.Array, pa.DictionaryArray]:
    """Of rows the texts without the payload, and key and payload together as a number each."""
    columns = dict(zip(table.names, read_texts(table, texts.cast(pa.string())), strict=True))
    left_out = payload_columns(table)
    facts = [name for name in table.names if name not in left_out]
    pair = [*table.key, *left_out]
    found = [
        canonical(
            Table("part", {name: table.columns[name] for name in names}), [columns[name] for name in names]
        )
        for names in (facts, pair)
    ]
    return found[0].cast(pa.large_string()), found[1].dictionary_encode()


def _is_known(deltas: Deltas, payload: np.ndarray) -> np.ndarray:
    """Of entries: whether the subscriber has the payload of the row, or needs it no more."""
    is_lost = (deltas.sign < 0) & (payload >= 0)
    room = int(deltas.number.max(initial=0)) + 1
    _, notification = np.unique(deltas.event * room + deltas.number, return_inverse=True)
    entry = notification * (int(payload.max(initial=0)) + 1) + payload
    is_gained = (deltas.sign > 0) & (payload >= 0)
    return np.asarray(is_lost | (is_gained & np.isin(entry, entry[is_lost])))
