"""What is measured of networks is right: traffic of enumerations is their bytes, and figures have a value for each point."""

from __future__ import annotations

import numpy as np

from benchmarks import report
from benchmarks.dissemination_runs import Point, simulate
from benchmarks.join_workloads import DOMAIN, JOIN_VALUES, Parameters, make_stocks
from benchmarks.select_joins.trial import Trial
from tidings.dissemination.schemes import SCHEMES

SMALL = Parameters(subscriptions=400, r_rows=200, s_rows=200, events=60)


def test_a_point_of_a_figure() -> None:
    point = Point(("Enum-SJ", "Rel-Sel", "Ref-SJ-Clu+"), SMALL, payload=50, nodes=10)
    found = simulate(point)
    assert list(found) == list(point.schemes)
    for name, run in found.items():
        assert run.totals.changes == 60
        assert run.totals.traffic > 0, name
    enumerated = found["Enum-SJ"].totals
    assert enumerated.traffic == enumerated.last_hop == enumerated.stress[0]
    # Semijoins are delivered to the same subscriptions, whatever the scheme.
    assert enumerated.deliveries == found["Ref-SJ-Clu+"].totals.deliveries


def test_payloads_have_the_bytes_that_are_asked_for() -> None:
    workload = make_stocks(50, 40)
    trial = Trial(workload, payload=7)
    assert {len(row[-1]) for rows in trial.server.contents().values() for row in rows} == {7}
    r, s = workload.tables
    assert len(np.unique(r.columns["b"])) == JOIN_VALUES
    assert s.initial == 2_300
    assert max(int(r.columns["a"].max()), int(s.columns["c"].max())) <= DOMAIN
    assert sum(len(SCHEMES["Rel-Sel"](trial.server).messages(change)) for change in trial.changes()) == 40


def test_the_report_has_the_figures() -> None:
    names = {name for name, _ in report.FIGURES}
    assert {f"dissemination-{number}" for number in (6, 7, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20)} <= names
