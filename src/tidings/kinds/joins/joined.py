"""Assembles joined rows from the rows that the compiled loops write one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.kinds.joins.deltas import Deltas


def joined(deltas: Deltas, arity: np.ndarray) -> Deltas:
    """Each run of `arity` entries of a subscription as one: a joined row, its rows by the names of their tables."""
    first = _runs(arity.tolist())
    names, contents = deltas.tables.to_pylist(), deltas.texts.to_pylist()
    table, row = deltas.table.tolist(), deltas.row.tolist()
    kinds: dict[str, int] = {}
    texts, kind = list[str](), list[int]()
    for begin, count in zip(first, arity[first].tolist(), strict=True):
        rows = [(names[table[number]], contents[number]) for number in row[begin : begin + count]]
        texts.append("{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in rows) + "}")
        kind.append(kinds.setdefault(" JOIN ".join(name for name, _ in rows), len(kinds)))
    return replace(
        deltas,
        event=deltas.event[first],
        number=deltas.number[first],
        sequence=deltas.sequence[first],
        sign=deltas.sign[first],
        row=np.arange(len(first), dtype=np.int32),
        texts=pa.array(texts, pa.large_string()),
        table=np.array(kind, dtype=np.int32),
        tables=pa.array(list(kinds), pa.string()),
    )


def _runs(arity: Sequence[int]) -> list[int]:
    """The starts of consecutive runs; `arity` at the start of a run is its length."""
    found, at = list[int](), 0
    while at < len(arity):
        found.append(at)
        at += arity[at]
    return found
