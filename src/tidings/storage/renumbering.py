"""Keeps the numbers of join subscriptions from one base of an index to the next.

Streams count the notifications of a subscription by its number, so a subscription with the same text in both bases must
keep its number, and no number may pass to another subscription. If other tables are declared, numbering starts anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidings.engine.engine import Engine
from tidings.kinds.joins.index.correlator import Correlator
from tidings.kinds.joins.kind import Joins, read_texts


def keep_numbers(old: Joins, engine: Engine) -> bool:
    """Renumbers the engine's join subscriptions: those in `old` keep their numbers, new ones follow. Consumes `old`.
    Returns False if the tables are others."""
    new = engine.joins
    if list(old.tables.values()) != list(new.tables.values()):
        return False
    if _has_same_numbers(new, old):
        new.numbering = old.numbering
        return True
    ids = _live(new)
    same = [id for id in ids if id in old and _is_same(id, old, new)]
    for id in set(_live(old)).difference(same):
        old.unsubscribe(id)
    engine.joins = old
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given when these were subscribed
        _add(engine, new, [id for id in ids if id not in old])
    for name in ("until", "sequence"):
        columns = [joins.subscriptions.records.all[name] for joins in (old, new)]
        for id in ids:
            columns[0][old.subscriptions.find(id)] = columns[1][new.subscriptions.find(id)]
    _copy_rows(old, new)
    return True


def _live(joins: Joins) -> list[str]:
    ids: list[str] = joins.subscriptions.id_column.filter(pa.array(joins.subscriptions.live)).to_pylist()
    return ids


def _has_same_numbers(new: Joins, old: Joins) -> bool:
    """Whether the new subscriptions have the old numbers already, because they were loaded from the old base."""
    ids = old.subscriptions.id_column
    return bool(new.subscriptions.id_column.slice(0, len(ids)).equals(ids)) and all(
        _is_same(id, old, new) for id in _live(old) if id in new
    )


def _is_same(id: str, old: Joins, new: Joins) -> bool:
    return old.source(id) == new.source(id)


def _add(engine: Engine, new: Joins, ids: Iterable[str]) -> None:
    tables: dict[str, list[pa.Table]] = {}
    for id in ids:
        text, row = new.source(id)
        if row is None:
            engine.subscribe(id, text)
        else:
            tables.setdefault(text, []).append(row)
    for text, rows in tables.items():
        engine.subscribe_table(text, pa.concat_tables(rows, promote_options="default"))


def _copy_rows(old: Joins, new: Joins) -> None:
    """Replaces the rows of `old` by those of `new`."""
    old.correlator = Correlator(old.subscriptions.tables, old.subscriptions, old.levels)
    old.levels.indexes(old.correlator.rows)  # first: rows get cells in the columns that it uses
    new_rows = new.correlator.rows
    for number, table in enumerate(old.tables.values()):
        texts = new_rows.contents.texts(np.array(new_rows.of(number), dtype=np.int64))
        old.correlator.rows.load(number, read_texts(table, texts), texts)
    old.correlator.rows.ledger.sequences = new_rows.ledger.sequences
