"""Chooses the one selection attribute of each table that schemes use, when its subscriptions have several.

Select-joins, Appendix C, proposes to use one attribute and let subscribers apply the rest, and leaves the choice open.
Here the attribute is chosen whose ranges hold the fewest rows. The audience of a message is proportional to the share of
pairs of a row and a range in which the range holds the row; it is measured on samples of both, because the selectivity
of a condition depends on where its ranges lie among the rows, not on their lengths. An IN counts with everything between
its ends, because it is filtered so. Texts are excluded: their order keys are truncated, so neighbours may be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.signature import Signature, signature_of
from tidings.kinds.joins.schema.order_keys import key_of
from tidings.kinds.joins.schema.ranges import Range, admits
from tidings.kinds.joins.schema.shape import JoinShape, read
from tidings.kinds.joins.schema.table import Row, Table
from tidings.language.parser import parse

SAMPLE = 1_000  # rows, and ranges: of a million pairs a share is known to a tenth of a percent


def held_share(keys: Longs, low: Longs, high: Longs) -> float:
    """The share of pairs of a row and a range in which the range holds the row's key."""
    rising = np.sort(keys)
    held = rising.searchsorted(high, "right") - rising.searchsorted(low)
    return float(np.maximum(held, 0).sum() / max(1, len(keys) * len(low)))


def choose(
    table: Table,
    columns: Sequence[int],
    rows: Sequence[Row],
    ranges: Mapping[int, npt.NDArray[np.int64]],
    rng: np.random.Generator,
) -> int | None:
    """The column whose ranges hold the fewest rows; None if there are only texts. `ranges` has low and high ends of each
    column's ranges, a line for each."""
    candidates = [column for column in columns if table.types[column] != "text"]
    drawn = [rows[index] for index in rng.permutation(len(rows))[:SAMPLE]]
    shares = {}
    for column in candidates:
        keys = np.array([key_of(table.types[column], row[column]) for row in drawn], dtype=np.int64)
        sample = ranges[column][rng.permutation(len(ranges[column]))[:SAMPLE]]
        shares[column] = held_share(keys, sample[:, 0], sample[:, 1])
    return min(candidates, key=lambda column: (shares[column], column), default=None)


class Relaxed(NamedTuple):
    """Subscriptions of one shape in the form that schemes need, and the conditions that subscribers apply."""

    signature: Signature
    ranges: list[tuple[Longs, Longs]]
    left: list[Callable[[str, Row], bool]]
    """For each subscription whether a row is in all its ranges; the scheme uses one for each table."""


def read_join(text: str, tables: Mapping[str, Table]) -> tuple[JoinShape, tuple[Range, ...]]:
    """The shape of a subscription over tables, and its ranges: what `relax` takes."""
    return read(parse(text), tables)


def relax(
    shape: JoinShape,
    subscriptions: Sequence[Sequence[Range]],
    tables: Mapping[str, Table],
    rows: Mapping[str, Sequence[Row]],
    rng: np.random.Generator,
) -> Relaxed:
    """Chooses an attribute for each table; `rows` are those that are there, or some like those that will come."""
    ends = np.array(
        [[(found.low, found.high) for found in ranges] for ranges in subscriptions], dtype=np.int64
    )
    ends = ends.reshape(len(subscriptions), len(shape.selections), 2)

    def best(slot: int, columns: tuple[int, ...]) -> int | None:
        of_column = {column: ends[:, shape.selections.index((slot, column))] for column in columns}
        name = shape.tables[slot]
        return choose(tables[name], columns, rows[name], of_column, rng)

    signature = signature_of(shape, best)
    everything = np.zeros(len(subscriptions), dtype=np.int64)  # without an attribute, all rows are at 0
    chosen = []
    for slot, column in enumerate(signature.selections):
        if column is None:
            chosen.append((everything, everything))
        else:
            of_slot = ends[:, shape.selections.index((slot, column))]
            chosen.append((of_slot[:, 0].copy(), of_slot[:, 1].copy()))
    return Relaxed(signature, chosen, [_admitting(shape, ranges) for ranges in subscriptions])


def _admitting(shape: JoinShape, ranges: Sequence[Range]) -> Callable[[str, Row], bool]:
    wanted = [(shape.tables[slot], column) for slot, column in shape.selections]

    def admitted(table: str, row: Row) -> bool:
        return all(
            admits(found, row[column])
            for (name, column), found in zip(wanted, ranges, strict=True)
            if name == table
        )

    return admitted
