"""Refuses damaged arrays of programs and predicates, whose values would lead a compiled loop out of bounds.

The manifest has checked types and shapes (arrays/folders.py); here lengths are checked against each other, then values.
Every check relies on those before it. Arrays that pass form valid programs, if perhaps of other subscriptions: a text
that is no call is reported when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, refuse_unless, within
from tidings.kinds.operators.kernels.layout import CONFIRMED, NEGATED, OR
from tidings.kinds.operators.predicates import BY_EVALUATION, BY_OPERATOR, BY_PREDICATE

Arrays = Mapping[str, np.ndarray]


def refuse_damage(folder: Path, arrays: Arrays) -> None:
    """An `IndexFileError` names the array that is wrong, or does not fit the others."""
    refuse_unless(folder, _texts(arrays))
    refuse_unless(folder, _predicates(arrays))
    refuse_unless(folder, _programs(arrays))


def _texts(arrays: Arrays) -> Iterator[tuple[str, bool]]:
    for name in ("operators", "evaluations", "predicates", "calls", "names"):
        blob, start = arrays[f"{name}_blob"], arrays[f"{name}_start"]
        yield f"{name}_start", ascends(start, len(blob))
        yield f"{name}_blob", are_texts(blob, start)
        whole = blob.tobytes()
        pieces = {whole[low:high] for low, high in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)}
        # A number is a position in a list of texts, and is found again by the text.
        yield f"{name}_blob", len(pieces) == len(start) - 1


def _predicates(arrays: Arrays) -> Iterator[tuple[str, bool]]:
    operators, evaluations, predicates = (
        len(arrays[f"{name}_start"]) - 1 for name in ("operators", "evaluations", "predicates")
    )
    of_evaluation, of_predicate = arrays["eval_operator"], arrays["pred_eval"]
    yield "eval_operator", len(of_evaluation) == evaluations and within(of_evaluation, 0, operators)
    yield "pred_eval", len(of_predicate) == predicates and within(of_predicate, -1, evaluations)
    for names, size in ((BY_PREDICATE, predicates), (BY_EVALUATION, evaluations), (BY_OPERATOR, operators)):
        for name in names:
            yield name, len(arrays[name]) == size and _are_counts(arrays[name])
    yield "events", len(arrays["events"]) == 1 and _are_counts(arrays["events"])
    yield "hits", bool(np.all(arrays["hits"] <= arrays["trials"] * (1 + 1e-6)))
    yield "operator_hits", bool(np.all(arrays["operator_hits"] <= arrays["operator_trials"] * (1 + 1e-6)))
    # What was seen later than now would count more with every event that has not come.
    yield "moment", bool(np.all(arrays["moment"] <= arrays["events"][0]))


def _are_counts(column: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(column) & (column >= 0.0)))


def _programs(arrays: Arrays) -> Iterator[tuple[str, bool]]:
    gate_first, leaf_first = arrays["gate_first"], arrays["leaf_first"]
    kind, parent, size = arrays["gate_kind"], arrays["gate_parent"], arrays["gate_size"]
    leaf_gate, asked = arrays["leaf_gate"], arrays["leaf_asked"]
    rows = len(arrays["binds"])
    called = arrays["called"]
    yield "called", len(called) == rows and within(called, 0, len(arrays["calls_start"]) - 1)
    yield "plain", len(arrays["plain"]) == rows
    yield "gate_first", len(gate_first) == rows + 1 and ascends(gate_first, len(kind))
    yield "gate_first", bool(np.all(np.diff(gate_first) > 0))
    yield "leaf_first", len(leaf_first) == rows + 1 and ascends(leaf_first, len(leaf_gate))
    yield "gate_kind", within(kind, 0, (OR | CONFIRMED | NEGATED) + 1)
    row = np.repeat(np.arange(rows), np.diff(gate_first))
    position = np.arange(len(kind)) - gate_first[row]
    # The root comes first, and every other gate after the one above it.
    yield "gate_parent", len(parent) == len(kind) and bool(np.all((parent < 0) == (position == 0)))
    yield "gate_parent", bool(np.all((parent >= -1) & (parent < np.maximum(position, 1))))
    leaf_row = np.repeat(np.arange(rows), np.diff(leaf_first))
    yield "leaf_gate", bool(np.all((leaf_gate >= 0) & (leaf_gate < np.diff(gate_first)[leaf_row])))
    names = arrays["leaf_names"]
    yield "leaf_names", len(names) == len(leaf_gate) and within(names, 0, len(arrays["names_start"]) - 1)
    yield "leaf_asked", len(asked) == len(leaf_gate) and within(asked, 0, 2 * len(arrays["pred_eval"]))
    # A gate that counts more children than it has would never be decided, nor one that has none.
    below = parent >= 0
    children = np.concatenate([gate_first[leaf_row] + leaf_gate, (gate_first[row] + parent)[below]])
    counted = np.bincount(children, minlength=len(kind))
    yield "gate_size", len(size) == len(kind) and bool(np.all(size == counted))
    yield "gate_size", bool(np.all((size > 0) | ((kind & CONFIRMED) > 0)))
