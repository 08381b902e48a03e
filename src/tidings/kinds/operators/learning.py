"""What engines have learnt of their operators: a table of counts by the texts of predicates and evaluations.

Numbers of predicates belong to one engine, texts are the same in all: the tables of many workers are added, and an
engine learns the sum. In `hits` and `trials` older evaluations count less; they are as of the end of the table's
`events`. So tables of parallel workers are `merged`, and a table is aged before a later one is added by `then`; neither
counts anything twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tidings.errors import IndexFileError
from tidings.kinds.operators.kernels.choosing import COST_WEIGHT, OPERATOR_MEMORY
from tidings.kinds.operators.kernels.layout import Learnt
from tidings.kinds.operators.kernels.opening import HALF_LIFE
from tidings.kinds.operators.predicates import Predicates

_AGEING = ("hits", "trials")
_OF_PREDICATES = (*_AGEING, "wanted", "told", "held")
_OF_EVALUATIONS = ("calls", "seconds", "failures")  # seconds: of all calls together
COUNTS = (*_OF_PREDICATES, *_OF_EVALUATIONS)
# A predicate without conditions has the text of its evaluation: one row has the counts of both.
SCHEMA = pa.schema([("text", pa.binary()), *((name, pa.float64()) for name in COUNTS)])
# The trials of a predicate that is always evaluated for every event. More would make it slow to adapt.
FULL_MEMORY = 1.0 / (1.0 - 2.0 ** (-1.0 / HALF_LIFE))
_EVENTS = b"events"
Array = TypeVar("Array", float, np.ndarray)


@dataclass(frozen=True)
class Learning:
    """Counts by text, a row each, over a number of `events`."""

    rows: pa.Table = field(default_factory=lambda: pa.Table.from_batches([], schema=SCHEMA))
    events: float = 0.0

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def then(self, later: Learning) -> Learning:
        """The sum of this and what was learnt after it."""
        return _summed([self._aged(later.events).rows, later.rows], self.events + later.events)

    def since(self, earlier: Learning) -> Learning:
        """What was learnt after `earlier`, which is part of this; all of this if it has fewer events."""
        events = self.events - earlier.events
        if events < 0.0:
            return self
        left = _summed([self.rows, _scaled(earlier._aged(events).rows, COUNTS, -1.0)], events)
        # What rounding leaves below nothing.
        counts = [np.maximum(left.rows[name].to_numpy(), 0.0) for name in COUNTS]
        changed = np.sum(counts, axis=0) > 0.0
        return Learning(
            pa.table([left.rows["text"], *counts], schema=SCHEMA).filter(pa.array(changed)), events
        )

    def to_bytes(self) -> bytes:
        sink = pa.BufferOutputStream()
        rows = self.rows.replace_schema_metadata({_EVENTS: repr(self.events).encode()})
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> Learning:
        """Reads what `to_bytes` wrote; raises an `IndexFileError` for anything else."""
        try:
            rows = pa.ipc.open_stream(data).read_all()
            events = float(rows.schema.metadata[_EVENTS])
            return cls(rows.replace_schema_metadata().cast(SCHEMA), events)
        except (pa.ArrowInvalid, ValueError, KeyError, TypeError, OSError) as error:
            raise IndexFileError(
                f"this is not what operators have shown ({error}); remove the file"
            ) from None

    def _aged(self, events: float) -> Learning:
        if not events or not len(self):
            return self
        return Learning(_scaled(self.rows, _AGEING, freshness(events)), self.events)


def merged(learnt: Iterable[Learning]) -> Learning:
    """The sum of what parallel workers have learnt; their order is irrelevant."""
    parts = list(learnt)
    return _summed([part.rows for part in parts], sum(part.events for part in parts))


class LearningRecorder:
    """Records what an engine learns of its predicates: `take` gives what is new since the last call."""

    def __init__(self, predicates: Predicates) -> None:
        """Starts from the current counts."""
        self._predicates = predicates
        self._set_mark()

    @classmethod
    def whole(cls, predicates: Predicates) -> Learning:
        """All counts since the beginning."""
        recorder = cls(predicates)
        recorder._before, recorder._events = Learnt(*(np.empty(0) for _ in Learnt._fields)), 0.0
        return recorder.take()

    def take(self) -> Learning:
        """What was learnt since the last call."""
        found = self._since_mark()
        self._set_mark()
        return found

    def _since_mark(self) -> Learning:
        predicates, now, before = self._predicates, self._predicates.learnt, self._before
        events = predicates.events
        asked = np.flatnonzero(now.wanted != _padded(before.wanted, len(now.wanted)))
        called = np.flatnonzero(now.calls != _padded(before.calls, len(now.calls)))
        if not len(asked) and not len(called):
            return Learning(events=events - self._events)
        of_predicates = {
            name: _difference(getattr(now, name), getattr(before, name), asked)
            for name in ("wanted", "told", "held")
        }
        for name in _AGEING:
            known, was = getattr(now, name), _padded(getattr(before, name), len(now.hits))
            then = was * freshness(events - _padded(before.moment, len(was)))
            of_predicates[name] = known[asked] * freshness(events - now.moment[asked]) - then[asked]
        calls = _difference(now.calls, before.calls, called)
        failures = _difference(now.failures, before.failures, called)
        # A running mean has no sum; its current value is the best estimate of what came since.
        of_evaluations = {"calls": calls, "seconds": calls * now.seconds[called], "failures": failures}
        tables = [
            _table(predicates.texts, asked, of_predicates),
            _table(predicates.evaluation_texts, called, of_evaluations),
        ]
        return _summed(tables, events - self._events)

    def _set_mark(self) -> None:
        self._before = Learnt(*(column.copy() for column in self._predicates.learnt))
        self._events = self._predicates.events


def learn(predicates: Predicates, learning: Learning) -> None:
    """Adds what others have learnt; of texts that no subscription has any more, only the counts of their operator."""
    if not len(learning):
        return
    predicates.events += learning.events
    texts = [text.decode(errors="surrogatepass") for text in learning.rows["text"].to_pylist()]
    counts = {name: learning.rows[name].to_numpy() for name in COUNTS}
    learnt, now = predicates.learnt, predicates.events
    rows, known = _known(texts, predicates.numbers)
    aged = freshness(now - learnt.moment[known])
    for name in _AGEING:
        getattr(learnt, name)[known] = getattr(learnt, name)[known] * aged + counts[name][rows]
    learnt.moment[known] = now
    too_many = np.maximum(learnt.trials[known] / FULL_MEMORY, 1.0)
    learnt.hits[known] /= too_many
    learnt.trials[known] /= too_many
    for name in ("wanted", "told", "held"):
        getattr(learnt, name)[known] += counts[name][rows]
    rows, known = _known(texts, predicates.evaluation_numbers)
    calls = counts["calls"][rows]
    weight = np.maximum(
        calls / np.maximum(learnt.calls[known] + calls, 1.0), 1.0 - (1.0 - COST_WEIGHT) ** calls
    )
    mean = counts["seconds"][rows] / np.maximum(calls, 1.0)
    learnt.seconds[known] += weight * (mean - learnt.seconds[known])
    learnt.calls[known] += calls
    learnt.failures[known] += counts["failures"][rows]
    _learn_operators(predicates, texts, counts)


def _learn_operators(predicates: Predicates, texts: list[str], counts: dict[str, np.ndarray]) -> None:
    learnt, numbers = predicates.learnt, predicates.operators.numbers
    operator = np.array([numbers.get(text.partition("(")[0], -1) for text in texts], dtype=np.int64)
    known = operator >= 0
    evaluated, held, calls, seconds = (
        np.bincount(operator[known], weights=counts[name][known], minlength=len(numbers))
        for name in ("told", "held", "calls", "seconds")
    )
    trials = learnt.operator_trials + evaluated
    kept = np.minimum(1.0, OPERATOR_MEMORY / np.maximum(trials, 1.0))
    learnt.operator_hits[:] = (learnt.operator_hits + held) * kept
    learnt.operator_trials[:] = trials * kept
    weight = 1.0 - (1.0 - COST_WEIGHT) ** calls
    mean = seconds / np.maximum(calls, 1.0)
    learnt.operator_seconds[:] += weight * (mean - learnt.operator_seconds)


def freshness(events: Array) -> Array:
    """The weight of an evaluation after so many events."""
    return 2.0 ** (-events / HALF_LIFE)


def _known(texts: list[str], numbers: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Places of the texts that have a number, and those numbers."""
    found = np.array([numbers.get(text, -1) for text in texts], dtype=np.int64)
    rows = np.flatnonzero(found >= 0)
    return rows, found[rows]


def _summed(tables: list[pa.Table], events: float) -> Learning:
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return Learning(events=events)
    totals = pa.concat_tables(tables).group_by("text").aggregate([(name, "sum") for name in COUNTS])
    columns = [totals["text"], *(totals[f"{name}_sum"] for name in COUNTS)]
    return Learning(pa.table(columns, schema=SCHEMA), events)


def _scaled(rows: pa.Table, names: tuple[str, ...], factor: float) -> pa.Table:
    return pa.table(
        [rows["text"], *(rows[n].to_numpy() * (factor if n in names else 1.0) for n in COUNTS)], schema=SCHEMA
    )


def _table(texts: list[str], numbers: np.ndarray, counts: dict[str, np.ndarray]) -> pa.Table:
    named = pa.array([texts[i].encode(errors="surrogatepass") for i in numbers.tolist()], pa.binary())
    nothing = np.zeros(len(numbers))
    return pa.table([named, *(counts.get(name, nothing) for name in COUNTS)], schema=SCHEMA)


def _difference(now: np.ndarray, before: np.ndarray, at: np.ndarray) -> np.ndarray:
    difference: np.ndarray = now[at] - _padded(before, len(now))[at]
    return difference


def _padded(column: np.ndarray, size: int) -> np.ndarray:
    padded = np.zeros(size)
    padded[: len(column)] = column
    return padded
