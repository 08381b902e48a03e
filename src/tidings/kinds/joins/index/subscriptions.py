"""Stores join subscriptions by number: their ids, shapes and ranges, until when each is valid, and its last sequence.

A number is given once and never reused, so data that is kept by number outlives every index. A subscription does not
change; it only ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidings.arrays.growing import Growing
from tidings.errors import SubscriptionError
from tidings.kinds.joins.kernels.layout import BOUND, NONE, SUBSCRIPTION, SubscriptionArrays
from tidings.kinds.joins.rows.texts import Texts
from tidings.kinds.joins.schema.shape import JoinShape, Range
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.joins.schema.templates import FilledRanges

ALWAYS = np.inf
ENDED = -np.inf


class Subscriptions:
    """Grows by `add` and `add_many`; `end` marks one as gone."""

    def __init__(self, tables: Sequence[Table], texts: Texts) -> None:
        self.tables, self.texts = tables, texts
        self.table_numbers = {table.name: number for number, table in enumerate(tables)}
        self.shapes: list[JoinShape] = []
        self._shape_numbers: dict[JoinShape, int] = {}
        self._id_first, self._id_bytes = Growing(np.int32, [0]), Growing(np.uint8)
        self._numbers: dict[str, int] = {}
        self.records, self.shape_of = Growing(SUBSCRIPTION), Growing(np.int32)
        self.first_bound = Growing(np.int64)
        self.bounds, self.options = Growing(BOUND), Growing(np.int64)
        self.ended = 0  # how many, replaced ones among them
        self._clock = 1

    def __len__(self) -> int:
        return len(self.records)

    def find(self, id: str) -> int:
        """The number of the live subscription with this id, or -1."""
        number = self._numbers.get(id, -1)
        return number if number >= 0 and self.records.all["until"][number] != ENDED else -1

    def add(self, id: str, shape: JoinShape, ranges: Sequence[Range], until: float = ALWAYS) -> int:
        types = self.selection_types(shape)
        records = [self._record(found, kind) for found, kind in zip(ranges, types, strict=True)]
        bounds = np.array(records, dtype=BOUND).reshape(1, len(records))
        return int(self.add_many([id], shape, bounds, np.array([until]))[0])

    def add_many(
        self, ids: Sequence[str], shape: JoinShape, bounds: np.ndarray, until: np.ndarray
    ) -> np.ndarray:
        """Subscriptions of one shape, with a row of `bounds` for each; those with the same ids end."""
        first, count = len(self), len(ids)
        for id in ids:
            if (before := self.find(id)) >= 0:
                self.end(before)
        self._add_ids(ids)
        numbers = np.arange(first, first + count)
        self._numbers.update(zip(ids, numbers.tolist(), strict=True))
        self.shape_of.extend(np.full(count, self.number_shape(shape), dtype=np.int32))
        records = np.zeros(count, dtype=SUBSCRIPTION)
        records["until"] = until
        self.records.extend(records)
        self.first_bound.extend(len(self.bounds) + bounds.shape[1] * np.arange(count))
        self.bounds.extend(bounds.reshape(-1))
        return numbers

    def clock(self, events: int) -> int:
        """Reserves a moment for each of so many events; returns the one before the first."""
        if self._clock + events >= 1 << 32:
            self.records.all["told"], self._clock = 0, 1
        before, self._clock = self._clock, self._clock + events
        return before

    def end(self, number: int) -> None:
        self.ended += 1
        self.records.all["until"][number] = ENDED

    def number_shape(self, shape: JoinShape) -> int:
        number = self._shape_numbers.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        return number

    def selection_types(self, shape: JoinShape) -> list[str]:
        return [
            self.tables[self.table_numbers[shape.tables[slot]]].types[column]
            for slot, column in shape.selections
        ]

    def bounds_of(self, numbers: np.ndarray, width: int) -> np.ndarray:
        """The bounds of subscriptions of one shape: a row for each, a column for each selection."""
        return self.bounds.all[self.first_bound.all[numbers][:, None] + np.arange(width)]

    @property
    def id_column(self) -> pa.Array:
        """The ids by number, without a copy."""
        buffers = [None, pa.py_buffer(self._id_first.all), pa.py_buffer(self._id_bytes.all)]
        return pa.Array.from_buffers(pa.string(), len(self), buffers)

    def _add_ids(self, ids: Sequence[str]) -> None:
        end, lengths = int(self._id_first.all[-1]), [len(id.encode()) for id in ids]
        ends = end + np.cumsum(lengths, dtype=np.int64)
        if len(ids) and ends[-1] >= 1 << 31:
            raise SubscriptionError("the ids of all subscriptions together are over 2 GB; give shorter ones")
        self._id_first.extend(ends)
        self._id_bytes.extend(np.frombuffer("".join(ids).encode(), dtype=np.uint8))

    def arrays(self) -> SubscriptionArrays:
        return SubscriptionArrays(self.records.all, self.first_bound.all, self.bounds.all, self.options.all)

    @property
    def live(self) -> np.ndarray:
        """A flag for each subscription: whether it has not ended."""
        return self.are_live(slice(None))

    def are_live(self, numbers: np.ndarray | slice) -> np.ndarray:
        return self.records.all["until"][numbers] != ENDED

    def bounds_of_columns(self, shape: JoinShape, filled: Sequence[FilledRanges]) -> np.ndarray:
        """The bounds for `add_many`, from the filled selections of a template."""
        count = len(filled[0].low) if filled else 0
        bounds = np.zeros((count, len(filled)), dtype=BOUND)
        for s, (selection, kind) in enumerate(zip(filled, self.selection_types(shape), strict=True)):
            if selection.ranges is not None:
                bounds[:, s] = np.array(
                    [self._record(found, kind) for found in selection.ranges], dtype=BOUND
                )
                continue
            bounds["low"][:, s], bounds["high"][:, s] = selection.low, selection.high
            bounds["low_text"][:, s] = bounds["high_text"][:, s] = NONE
            bounds["plain"][:, s] = True
        return bounds

    def freeze(self) -> dict[str, np.ndarray]:
        return {
            "records": self.records.all,
            "first_bound": self.first_bound.all,
            "shape_of": self.shape_of.all,
            "bounds": self.bounds.all,
            "options": self.options.all,
        }

    def thaw(self, arrays: Mapping[str, np.ndarray], shapes: Iterable[JoinShape], ids: Sequence[str]) -> None:
        """Loads what `freeze` gave into an empty object."""
        for shape in shapes:
            self.number_shape(shape)
        self.records, self.shape_of = (
            Growing(SUBSCRIPTION, arrays["records"]),
            Growing(np.int32, arrays["shape_of"]),
        )
        self.bounds, self.options = (
            Growing(BOUND, arrays["bounds"]),
            Growing(np.int64, arrays["options"]),
        )
        self.first_bound = Growing(np.int64, arrays["first_bound"])
        self._add_ids(ids)
        self._numbers = dict(zip(ids, range(len(ids)), strict=True))
        self.records.all["told"] = 0

    def _record(self, found: Range, kind: str) -> tuple[int | bool, ...]:
        """A range as the loops read it; options and texts by number."""
        options: Sequence[int] = found.options  # type: ignore[assignment]
        low_text, high_text = NONE, NONE
        if kind == "text":
            options = sorted(self.texts.number([str(option) for option in found.options]))
            low_text, high_text = (
                NONE if text is None else self.texts.number([text])[0]
                for text in (found.low_text, found.high_text)
            )
        first = len(self.options)
        self.options.extend(np.array(options, dtype=np.int64))
        is_plain = kind != "text" and not options
        return (
            found.low, found.high, first, len(options), low_text, high_text, found.low_open, found.high_open, is_plain
        )  # fmt: skip
