"""What is measured of joins is right: columns and lines tell the same, deltas are a database's, bytes those delivered."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.charts import draw
from benchmarks.join_bars import numbered
from benchmarks.join_baselines import DELTAS, DuckTable
from benchmarks.join_runs import WARM, engine_of, lines, measure, renew, texts_of
from benchmarks.join_schemes import choices, decompositions
from benchmarks.join_workloads import Parameters, Workload, make, make_general
from benchmarks.measure import Figure, write_json
from benchmarks.select_joins.trial import Trial, signature_in
from tidings import Engine
from tidings.dissemination.schemes import SCHEMES
from tidings.formats.json_lines import read_lines

MIXED = Parameters(
    subscriptions=600, r_rows=400, s_rows=200, events=WARM + 120, s_share=0.4, update_share=0.4
)


def mixed() -> Workload:
    return make(MIXED)


def test_columns_and_lines_give_the_deltas_of_a_database() -> None:
    workload = mixed()
    baseline = DuckTable(workload)
    wanted = set(zip(*baseline.apply(0, 150).to_pydict().values(), strict=True))
    baseline.close()
    for events in (workload.events(0, 150), read_lines(lines(workload, 0, 150))):
        found = numbered(engine_of(workload).correlate(events), workload)
        assert found.schema == DELTAS
        assert set(zip(*found.to_pydict().values(), strict=True)) == wanted
    assert set(workload.stream[0:150].op.tolist()) == {0, 1, 2}
    assert len(wanted) > 100


def test_a_rate_counts_what_comes_after_the_first_changes() -> None:
    workload = mixed()
    rate, of_lines = measure(workload), measure(workload, form=lines)
    assert rate.changes == of_lines.changes == len(workload.stream) - WARM
    assert rate.deltas == of_lines.deltas > 0
    assert rate.seconds > 0


def test_subscriptions_come_and_go_between_changes() -> None:
    workload = mixed()
    engine = engine_of(workload)
    texts = list(texts_of(workload.groups[0]))[:10]
    found = renew(engine, workload, 0, texts)
    assert found.count == 10
    assert min(found.add_call, found.remove_call) > 0
    assert len(engine) == len(workload)
    assert "late 0" in engine
    assert "q0" not in engine


def test_texts_are_the_rows_of_a_template() -> None:
    workload = mixed()
    (group,) = workload.groups
    one, other = Engine(tables=workload.declared()), Engine(tables=workload.declared())
    one.subscribe_table(group.template, group.arrow())
    for number, text in enumerate(texts_of(group)):
        other.subscribe(f"q{number}", text)
    assert len(one) == len(other) == len(group)
    for engine in (one, other):
        for place in range(len(workload.tables)):
            engine.correlate(workload.loading(place))
    assert all(
        one.snapshot(f"q{number}").changes == other.snapshot(f"q{number}").changes for number in range(20)
    )


@pytest.mark.slow
def test_enumerations_of_schemes_are_the_deltas() -> None:
    """Enum-SJ sends every subscription the rows that it gains and loses, one message for each; with updates more,
    because what a row's coming gives its going may take."""
    for update_share in (0.0, 0.4):
        workload = make(replace(MIXED, update_share=update_share))
        trial = Trial(workload)
        tallies = trial.run(list(SCHEMES.values()), trial.changes())
        deltas = engine_of(workload).correlate(workload.events(0, len(workload.stream)))
        more = tallies["Enum-SJ"].messages - len(deltas)
        assert more >= 0 if update_share else more == 0
        assert {tally.changes for tally in tallies.values()} == {len(workload.stream)}
        assert tallies["Ref-SJ-Clu+"].bytes < tallies["Enum-SJ"].bytes < tallies["Enum-J"].bytes
        assert 0 < tallies["Ref-SJ-Clu+"].skyline_bytes <= tallies["Ref-SJ-Clu"].skyline_bytes


def test_decompositions_of_tables_around_one() -> None:
    workload = make_general(340, 40)
    signatures = [signature_in(workload, number, "s") for number in range(len(workload.groups))]
    found = decompositions(signatures)
    # S is filtered by one of 1, 2, 3 and 2 neighbours; the others have S alone.
    assert len(found) == 12
    assert len({tuple(forms for one in chosen.values() for forms in one) for chosen in found}) == 12


@pytest.mark.slow
def test_choices_are_delivered_to_fewer_than_relaxed_ones() -> None:
    found = {one.name: one for one in choices(False, False, 0.01)}
    best = found["Ref-SJ-Clu+, sampled"]
    assert best.delivered < found["Rel-Sel"].delivered
    assert all(best.sent <= one.sent for name, one in found.items() if name.startswith("Enum"))


def test_bars_over_names_are_drawn_and_reported(tmp_path: Path) -> None:
    figure = Figure(
        name="joins-13",
        title="Bytes of a change",
        x_label="scheme",
        y_label="bytes",
        x=["Rel-Sel", "Ref-SJ-Clu+\nworst"],
        series={"sent by the server": [112.0, 58.2], "delivered to subscribers": [85_708.0, 7_614.0]},
        reference="a byte",
        published="nothing",
        log_y=True,
    )
    (tmp_path / "results").mkdir()
    draw(figure, tmp_path / "results" / "joins-13.png")
    assert (tmp_path / "results" / "joins-13.png").read_bytes().startswith(b"\x89PNG")
    origin = {"commit": "", "machine": {"processor": "", "cores": 1, "python": ""}, "calibration_ms": 1}
    write_json(tmp_path / "results" / "joins-13.json", asdict(figure) | origin)
    report.write(tmp_path / "results", tmp_path / "docs" / "benchmarks.md")
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "| Ref-SJ-Clu+, worst | 58.2 | 7,614 |" in page
    assert "(../results/joins-13.png)" in page
