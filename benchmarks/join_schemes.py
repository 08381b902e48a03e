"""Schemes of messages under the clock, for the figures of Select-joins: every scheme in one run, beside exact deltas.

What is measured once is kept, because several figures and bars look at the same point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from benchmarks.join_runs import WARM, Rate, measure
from benchmarks.join_workloads import INSERT, Parameters, make, make_general, make_star
from benchmarks.select_joins.trial import Tally, Trial, signature_in
from tidings.dissemination import costs
from tidings.dissemination.decomposition import Decomposition, decompose
from tidings.dissemination.schemes import SCHEMES, Scheme, Semijoin, Signature, audience

CHANGES = 1_000
CENTRE = "s"
_SAMPLE = 4_000  # subscriptions of each kind, for the sampled costs
_EVERY = 3  # changes, of which one is delivered; odd, because inserts and deletes take turns


@dataclass(frozen=True, slots=True)
class Point:
    """One point of Figures 5 and 8."""

    tallies: dict[str, Tally]
    deltas: Rate
    results: float  # joined rows of an inserted row, wanted or not: the relative join output rate


@cache
def point(subscriptions: int, s_rows: int, scale: float = 1.0) -> Point:
    """All schemes, then exact deltas, at a number of subscriptions and of rows in S."""
    events = max(40, round(CHANGES * scale))
    parameters = Parameters(subscriptions=subscriptions, s_rows=s_rows, events=WARM + events)
    workload = make(parameters)
    trial = Trial(workload)
    schemes = list(SCHEMES.values())
    trial.run(schemes, trial.changes(0, WARM))
    tallies = trial.run(schemes, trial.changes(WARM))
    r, s = workload.tables
    rows_a_value = np.bincount(s.columns["b"][: s.initial], minlength=int(r.columns["b"].max()) + 1)
    inserted = workload.stream.new[workload.stream.op == INSERT]
    results = float(rows_a_value[r.columns["b"][inserted]].mean())
    del trial
    return Point(tallies, measure(workload), results)


def growth(scheme: type[Scheme], small: int, large: int, scale: float = 1.0) -> tuple[float, float]:
    """Seconds of a change at two numbers of subscriptions, which take turns."""
    events = max(40, round(CHANGES * scale))
    trials = [Trial(make(Parameters(subscriptions=count, events=WARM + events))) for count in (small, large)]
    seconds = [0.0, 0.0]
    for first in range(0, WARM + events, 20):
        for number, trial in enumerate(trials):
            tally = trial.run([scheme], trial.changes(first, first + 20))[scheme.name]
            seconds[number] += tally.seconds if first >= WARM else 0.0
    return seconds[0] / events, seconds[1] / events


@dataclass(frozen=True, slots=True)
class Choice:
    """What a scheme sends under one decomposition, for a change: bytes that leave the server, bytes that all
    subscribers together are sent, of these the rows of the table in the middle, which alone has a choice, and
    seconds."""

    name: str
    sent: float
    delivered: float
    central: float
    seconds: float
    messages: float
    semijoins: str = ""


@cache
def choices(star: bool, bare: bool, scale: float = 1.0) -> tuple[Choice, ...]:
    """Figures 13 and 14: schemes without semijoins, then decompositions from the worst to the cheapest estimate."""
    subscriptions, events = max(340, round(170_000 * scale)), max(40, round(CHANGES * scale))
    workload = (make_star if star else make_general)(subscriptions, events)
    without = ("s",) if bare else ()

    def trial(decomposition: Decomposition) -> Trial:
        return Trial(workload, decomposition, CENTRE, without)

    signatures = [signature_in(workload, number, CENTRE) for number in range(len(workload.groups))]
    named = decompositions(signatures)
    first = trial(named[0])
    changes = first.changes()
    statistics = costs.measured(first.server, changes)
    sampled = costs.sampled(
        first.server,
        changes,
        round(_SAMPLE * min(1, scale * 10)),
        np.random.default_rng(1),
    )
    wanted = {
        "worst": decompose(signatures, lambda form: -sampled[form]),
        "arbitrary": named[len(named) // 2],
        "parametric": decompose(signatures, lambda form: costs.parametric(form, statistics)),
        "sampled": decompose(signatures, lambda form: sampled[form]),
    }
    plain = ["Rel-Sel", "Enum-J", "Ref-J"] if star else ["Rel-Sel"]
    found = []
    for name, decomposition in wanted.items():
        one = trial(decomposition)
        names = [*([*plain, "Enum-SJ"] if name == "worst" else ()), "Ref-SJ-Clu+"]
        chosen = " ".join(sorted({str(form) for forms in decomposition.values() for form in forms}))
        for scheme, result in _deliver(one, names).items():
            label = scheme if scheme in plain else f"{scheme}, {name}"
            found.append(Choice(label, *result, "" if scheme in plain else chosen))
    return tuple(found)


def decompositions(signatures: Sequence[Signature]) -> list[Decomposition]:
    """All of them, in a fixed order."""
    options = [
        list(product(*(tuple(signature.semijoins(table)) for table in signature.tables)))
        for signature in signatures
    ]
    return [dict(zip(signatures, chosen, strict=True)) for chosen in product(*options)]


def _deliver(trial: Trial, names: Sequence[str]) -> dict[str, tuple[float, float, float, float, float]]:
    """The numbers of a choice, by scheme."""
    changes = trial.changes()
    tallies = trial.run([SCHEMES[name] for name in names], changes)
    # Back to the first row, so that the audience is that of the same changes: rows that went come again.
    delivered = {name: np.zeros(2) for name in names}
    schemes = [SCHEMES[name](trial.server) for name in names]
    looked = 0
    for number, change in enumerate(reversed(changes)):
        undone = change._replace(new=change.old, old=change.new)
        for step in trial.server.steps(undone):
            for scheme in schemes if number % _EVERY == 0 else ():
                for message in scheme.step(step):
                    reached = message.size * len(audience(message, trial.server))
                    is_central = isinstance(message.form, Semijoin) and message.form.base.table == CENTRE
                    delivered[scheme.name] += (reached, reached if is_central else 0)
        looked += number % _EVERY == 0
    return {
        name: (
            tally.each(tally.bytes),
            *(delivered[name] / looked).tolist(),
            tally.each(tally.seconds),
            tally.each(tally.messages),
        )
        for name, tally in tallies.items()
    }
