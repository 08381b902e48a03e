"""Estimates the cost of one semijoin of a form, by two models. Select-joins, Appendix D.

The parametric model is a formula over a few statistics of tables and changes; it assumes uniform ranges and values.
The sampled model simulates: a sample of the subscriptions, in every group that they could choose, gets messages of real
changes, and a group's cost is the bytes that reach its members. It needs no assumption, but takes as long as sending.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tidings.dissemination.schemes.filters import audience
from tidings.dissemination.schemes.semijoins import RefSJCluPlus
from tidings.dissemination.schemes.server import Change, Server
from tidings.dissemination.schemes.signature import Semijoin, Side


class TableStatistics(NamedTuple):
    """`change_share[table]`: the probability that a change is one of that table. `rows_a_value[side]`: how many rows of
    a table have one value of its join columns."""

    change_share: Mapping[str, float]
    rows_a_value: Mapping[Side, float]


def measured(server: Server, changes: Iterable[Change]) -> TableStatistics:
    """The statistics of a server's rows, for all sides of the joins of its subscriptions, and of some changes."""
    counts = Counter(change.table for change in changes)
    total = sum(counts.values())
    return TableStatistics(
        {table: counts[table] / total if total else 1 / len(server.tables) for table in server.tables},
        {
            side: server.rows(side).rows_a_value
            for population in server.populations
            for table in population.signature.tables
            for form in population.signature.semijoins(table)
            for side in form
        },
    )


def parametric(form: Semijoin, statistics: TableStatistics) -> float:
    """p_R · 1/3 · j_S/(j_S + 2)  +  p_S · j_R · 1/3 · 2/((j_S + 2)(j_S + 3))

    The share of subscribers that a change reaches. One in three ranges holds a row of the base table. Of ranges on the
    filtering table, j_S/(j_S + 2) hold one of the j_S rows that join it; and 2/((j_S + 2)(j_S + 3)) hold a row that
    comes and none of the j_S that are there. The paper's constants α and β are both 1: messages of both kinds carry a
    row of the base table, so they cost alike.
    """
    j_base, j_filtering = (statistics.rows_a_value[side] for side in form)
    coming_to_base = j_filtering / (j_filtering + 2)
    coming_to_filtering = j_base * 2 / ((j_filtering + 2) * (j_filtering + 3))
    share = statistics.change_share
    return (share[form.base.table] * coming_to_base + share[form.filtering.table] * coming_to_filtering) / 3


def sampled(
    server: Server, changes: Iterable[Change], subscriptions: int, rng: np.random.Generator
) -> dict[Semijoin, float]:
    """Bytes that a change brings to one subscription of each form that the server's subscriptions could choose.

    The rows are those of the server, which does not change; at most `subscriptions` are drawn of each population.
    """
    trial = Server(server.tables.values())
    for population in server.populations:
        drawn = np.sort(rng.permutation(len(population))[:subscriptions])
        ranges = [
            (population.low(slot)[drawn], population.high(slot)[drawn])
            for slot in range(len(population.signature.tables))
        ]
        # All choices at once are no decomposition, and only good for comparing them.
        choices = [
            form for table in population.signature.tables for form in population.signature.semijoins(table)
        ]
        trial.subscribe(population.signature, ranges, choices)
    for table, rows in server.contents().items():
        trial.load(table, rows)
    scheme, received, count = RefSJCluPlus(trial), defaultdict[Semijoin, float](float), 0
    for change in changes:
        count += 1
        for message in scheme.messages(change):
            if isinstance(message.form, Semijoin):
                received[message.form] += message.size * len(audience(message, trial))
    return {form: received[form] / max(1, len(group)) / max(1, count) for form, group in trial.groups.items()}
