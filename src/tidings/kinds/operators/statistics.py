"""Statistics of an engine's operators: evaluations made and spared, by predicate and operator, as text, table or picture.

A predicate is *spared* when an event's subscriptions need it and are decided without its answer. Evaluations that
depend on bindings (`near(?place)`, where a triple binds ?place) have no predicate; they are counted with their operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.kinds.operators.kernels import opening
from tidings.kinds.operators.predicates import Unnumbered
from tidings.kinds.operators.table import OperatorTable

SHOWN = 20
_LONGEST = 60
SCHEMA = pa.schema(
    [
        ("predicate", pa.string()),
        ("operator", pa.string()),
        ("evaluations", pa.int64()),
        ("hits", pa.int64()),
        ("spared", pa.int64()),
        ("failures", pa.int64()),
        ("selectivity", pa.float64()),
        ("cost", pa.float64()),
    ]
)


class Totals(NamedTuple):
    """The totals of one operator. `seconds` were spent; `seconds_spared` is an estimate by the learnt costs."""

    operator: str
    predicates: int
    evaluations: int
    spared: int
    failures: int
    seconds: float
    seconds_spared: float


@dataclass(frozen=True)
class Statistics:
    """`str()` is for reading; `table()` has a row for every predicate, costs in seconds."""

    events: int
    """How many events had subscriptions that operators had to decide."""
    operators: tuple[Totals, ...]
    rows: pa.Table

    @property
    def evaluations(self) -> int:
        return sum(totals.evaluations for totals in self.operators)

    @property
    def spared(self) -> int:
        return sum(totals.spared for totals in self.operators)

    def table(self) -> pa.Table:
        """Predicates by the time they took, the costliest first."""
        spent = pc.multiply(self.rows["evaluations"], self.rows["cost"])
        order = np.lexsort((-self.rows["cost"].to_numpy(), -spent.to_numpy()))
        return self.rows.take(pa.array(order))

    def plot(self, path: str | Path) -> None:
        """Draws a picture, SVG or PNG by the name of the file; needs the extra `draw`."""
        from tidings.kinds.operators.statistics_plot import draw

        draw(self, path)

    def __str__(self) -> str:
        if not self.rows.num_rows and not self.operators:
            return "no subscription calls an operator"
        cells: list[tuple[str, ...]] = [
            ("predicate", "evaluations", "hits", "spared", "failures", "selectivity", "cost")
        ]
        for row in self.table().slice(0, SHOWN).to_pylist():
            text = row["predicate"]
            text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
            counts = (f"{row[name]:,}" for name in ("evaluations", "hits", "spared", "failures"))
            cells.append((text, *counts, f"{row['selectivity']:.2f}", duration(row["cost"])))
        lines = _aligned(cells)
        if self.rows.num_rows > SHOWN:
            lines.append(f"and {self.rows.num_rows - SHOWN:,} more predicates")
        summary: list[tuple[str, ...]] = [
            ("operator", "predicates", "evaluations", "spared", "failures", "time", "time spared")
        ]
        for totals in sorted(self.operators, key=lambda totals: -totals.seconds):
            counts = (f"{n:,}" for n in totals[1:5])
            summary.append(
                (totals.operator, *counts, duration(totals.seconds), duration(totals.seconds_spared))
            )
        return "\n".join([*lines, "", *_aligned(summary), "", self.summary()])

    def summary(self) -> str:
        """One line: what was evaluated and what was spared."""
        seconds = sum(totals.seconds for totals in self.operators)
        spared = sum(totals.seconds_spared for totals in self.operators)
        failures = sum(totals.failures for totals in self.operators)
        parts = [f"{self.evaluations:,} evaluations in {duration(seconds)}"]
        if failures:
            parts.append(f"{failures:,} failed")
        parts.append(
            f"{self.spared:,} spared that would have taken {duration(spared)}"
            if self.spared
            else "none spared"
        )
        return ", ".join(parts)


def statistics(table: OperatorTable) -> Statistics:
    """The statistics of all evaluations so far."""
    predicates, programs, learnt = table.predicates, table.programs, table.predicates.learnt
    numbered = np.flatnonzero(programs.pred_eval >= 0)
    evaluation = programs.pred_eval[numbered]
    operator = programs.eval_operator[evaluation]
    p, cost = np.zeros(len(programs.pred_eval)), np.zeros(len(programs.pred_eval))
    opening.estimates(programs, learnt, predicates.events, p, cost)
    answered, wanted = learnt.told[numbered], learnt.wanted[numbered]
    # Failures are counted by evaluation; a predicate has at most as many as it was wanted and not answered.
    unanswered = wanted - answered
    failures = np.minimum(learnt.failures[evaluation], unanswered)
    names = list(predicates.operators.numbers)
    rows = pa.table(
        [
            pa.array([predicates.texts[i] for i in numbered.tolist()], pa.string()),
            pa.array([names[i] for i in operator.tolist()], pa.string()),
            *(
                counts.astype(np.int64)
                for counts in (answered + failures, learnt.held[numbered], unanswered - failures, failures)
            ),
            p[numbered],
            cost[numbered],
        ],
        schema=SCHEMA,
    )
    # An evaluation is wanted at least as often as the most wanted of its predicates.
    asked = np.zeros(len(learnt.calls))
    np.maximum.at(asked, evaluation, wanted)
    each = np.zeros(len(learnt.calls))
    each[evaluation] = cost[numbered]
    count, spared = np.bincount(operator, minlength=len(names)), np.maximum(asked - learnt.calls, 0.0)
    sums = [
        np.bincount(programs.eval_operator, weights=of, minlength=len(names))
        for of in (learnt.calls, spared, learnt.failures, learnt.calls * each, spared * each)
    ]
    totals = []
    for number, name in enumerate(names):
        calls, left, failed, spent, saved = (float(column[number]) for column in sums)
        more = predicates.unnumbered.get(name, Unnumbered())
        totals.append(
            Totals(
                name,
                int(count[number]),
                int(calls) + more.calls,
                int(left),
                int(failed) + more.failures,
                spent + more.seconds,
                saved,
            )
        )
    totals += [
        Totals(name, 0, more.calls, 0, more.failures, more.seconds, 0.0)
        for name, more in predicates.unnumbered.items()
        if name not in predicates.operators.numbers
    ]
    return Statistics(int(predicates.events), tuple(totals), rows)


def duration(seconds: float) -> str:
    """A time for people: 20 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns under each other: texts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
