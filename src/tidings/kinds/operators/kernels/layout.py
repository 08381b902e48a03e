"""The arrays that the loops over operators work on.

Programs, one after another, for all subscriptions of an engine; a docket, which is one event's copy of the programs
that are still undecided. In a docket

    row         its gates are gate[g0[r]] .. gate[g0[r+1]], the first of them is the root
    gate        `low` .. `high` are the leaves of its row, `left` the children without a value; `nested`: there are others
    leaf        `asked` is predicate << 1 | negated; `ev` is its evaluation while it matters, then -1
    predicate   its leaves are pred_leaf[pred_first[k] ..]; `ev` is -1 where nothing has to be evaluated
    evaluation  its predicates are ev_pred[ev_first[e] ..]; `live` leaves wait for it

Everything in a docket is numbered from 0; `pred_id` and `ev_id` are the numbers in the engine. What the loops touch
together lies together, and no record goes over the end of a cache line: in columns of their own, the fields cost a
line each, twice the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

# Kinds of gates, as bits.
OR, CONFIRMED, NEGATED = 1, 2, 4
# Truth values, which are states of gates as well; 0 is undecided. AWAITING: to be confirmed. MOOT: a gate above is decided.
TRUE, FALSE, UNKNOWN, AWAITING, MOOT = 1, 2, 3, 4, 5
# States of evaluations; 0 is to do.
CHOSEN, DONE = 1, 2
# What is counted in a docket.
TOP, LINKS, AWAITED, UNDECIDED, CLAIMS, AT_ROW, AT_LEAF, HAS_BEGUN, COUNTERS = range(9)
# Evaluations queue in buckets by gain for their cost: 32 for each doubling, which are the exponent and five bits of
# the number itself, from 2**-40 on. The last one is for those that must be evaluated in any case.
FINENESS, BUCKET_SHIFT, FIRST_BUCKET, BUCKETS = 32, 47, (1023 - 40) * 32, 32 * 104
FORCED = BUCKETS - 1

GATE = np.dtype(
    [
        ("weight", "f4"),
        ("cheapest", "f4"),
        ("left", "i4"),
        ("low", "i4"),
        ("high", "i4"),
        ("parent", "i4"),
        ("claim", "i4"),  # of a root: the last time that an evaluation was looked at for its row
        ("kind", "u1"),
        ("state", "u1"),
        ("doubt", "u1"),
        ("nested", "u1"),
    ],
    align=True,
)
LEAF = np.dtype([("ev", "i4"), ("gate", "i4"), ("asked", "i4"), ("gain", "f4")], align=True)
PREDICATE = np.dtype([("p", "f4"), ("cost", "f4"), ("ev", "i4"), ("truth", "u1")], align=True)
EVALUATION = np.dtype(
    [
        ("gain", "f8"),
        ("cost", "f4"),
        ("live", "i4"),
        ("bucket", "i4"),  # -1: in none
        ("forced", "i4"),
        ("state", "u1"),
    ],
    align=True,
)


class ProgramArrays(NamedTuple):
    gate_first: Array  # int32, by row
    gate_kind: Array  # uint8
    gate_parent: Array  # int32, from the row's first gate on, -1: the root
    gate_size: Array  # int32
    leaf_first: Array  # int32, by row
    leaf_gate: Array  # int32, from the row's first gate on
    leaf_asked: Array  # int32
    pred_eval: Array  # int32, -1: known at once
    eval_operator: Array  # int32


class Learnt(NamedTuple):
    """What was seen of predicates and evaluations. In `hits` and `trials` older sights count less: `moment` is the event
    at which they were last summed. The other counts are plain ones."""

    hits: Array  # float64, by predicate
    trials: Array
    moment: Array
    wanted: Array  # for how many events some row asked
    told: Array  # for how many it was evaluated, failures left out; the name that index files have
    held: Array
    seconds: Array  # by evaluation: the running mean
    calls: Array
    failures: Array
    operator_hits: Array  # by operator
    operator_trials: Array
    operator_seconds: Array


class DocketArrays(NamedTuple):
    g0: Array  # int32
    gate: Array  # GATE
    leaf: Array  # LEAF
    pred: Array  # PREDICATE
    pred_id: Array  # int32
    pred_first: Array  # int32
    pred_leaf: Array  # int32
    ev: Array  # EVALUATION, and one more for leaves without an evaluation
    ev_id: Array  # int32
    ev_first: Array  # int32
    ev_pred: Array  # int32
    bucket: Array  # int32, the first link of each, -1: none
    links: Array  # int32 pairs: an evaluation, and the next link of its bucket
    aside: Array  # int32, evaluations put aside while a frontier is chosen
    awaited: Array  # int32, gates that wait for a confirmation
    counters: Array  # int64
