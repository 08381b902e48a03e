"""Columns of labels in files: a column says by its name how the labels of a node or an edge are held against those of the event.

The column `overlap`, `subset` or `superset` is a match function of `labels.py` over the event's attribute `labels`;
`overlap:topics` is one over `topics`. A cell has labels with semicolons between them, in Parquet also a list of texts. An empty
cell accepts every event; a semicolon alone is the empty set of labels. What a column says becomes part of the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidings.errors import nearest
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.labels import MATCHES, labels_condition
from tidings.language.printer import condition_text

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMN = re.compile(rf"({'|'.join(MATCHES[1:])})(?::(.+))?")
_DEFAULT = "labels"


def label_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Those of these columns that have labels."""
    return tuple(name for name in names if _COLUMN.fullmatch(name))


def refuse_misspelled(names: Iterable[str], path: object) -> None:
    """A column such as `overlapp` would be left out as any other, and every event accepted."""
    for name in names:
        near = nearest(name.partition(":")[0].strip().casefold(), MATCHES[1:], likeness=0.8)
        if near is not None and not _COLUMN.fullmatch(name):
            raise NetworkError(
                f"{path} has a column {name!r}; a column of labels is called {near}, or {near}:topics if it asks for the attribute topics"
            )


def with_expressions(table: pa.Table, location: Callable[[int], str]) -> pa.Table:
    """A table whose labels are in the column `where`, joined with the expressions that are there."""
    import pyarrow as pa

    names = label_columns(table.column_names)
    if not names:
        return table
    columns = [table[name].to_pylist() for name in names]
    given = table["where"].to_pylist() if "where" in table.column_names else [None] * table.num_rows
    texts: dict[tuple[str, tuple[str, ...]], str | None] = {}
    where = []
    for row, expression in enumerate(given):
        parts = [expression] if expression and not expression.isspace() else []
        for name, column in zip(names, columns, strict=True):
            if (labels := _labels(column[row], name, row, location)) is None:
                continue
            if (name, labels) not in texts:
                texts[name, labels] = _text(name, labels)
            if (text := texts[name, labels]) is not None:
                parts.append(text)
        where.append(parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts) or None)
    kept = table.drop_columns([name for name in (*names, "where") if name in table.column_names])
    return kept.append_column("where", pa.array(where, pa.string()))


def _labels(cell: Any, name: str, row: int, location: Callable[[int], str]) -> tuple[str, ...] | None:
    """The labels of a cell; None if it has no cell."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    labels: Sequence[Any] = [label.strip() for label in cell.split(";")] if isinstance(cell, str) else cell
    if not all(isinstance(label, str) for label in labels):
        raise NetworkError(
            f"{location(row)}: the column {name!r} has {cell!r}; give labels with semicolons between them"
        )
    return tuple(label for label in labels if label)


def _text(name: str, labels: tuple[str, ...]) -> str | None:
    match, attribute = _COLUMN.fullmatch(name).groups()  # type: ignore[union-attr]
    condition = labels_condition(match, attribute or _DEFAULT, labels)
    return None if condition is None else condition_text(condition)
