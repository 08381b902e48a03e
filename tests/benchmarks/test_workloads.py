"""The papers' workloads: drawn as described, the same every time, and answered alike by every contender."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import pytest

from benchmarks import texts
from benchmarks.contenders import CONTENDERS
from benchmarks.measure import Figure, keep
from benchmarks.report import write
from benchmarks.workloads import Parameters, Workload, make, make_same_structure
from tidings import Engine, Event

SMALL = Parameters(subscriptions=1500, matches=20, publications=3)
DENSE = Parameters(
    subscriptions=1000, matches=20, nodes=200, labels=3, subscription_size=(3, 3), publication_size=(10, 30)
)
WORKLOADS = {
    "own structures": lambda: make(SMALL),
    "shared structures": lambda: make(replace(SMALL, shapes=40)),
    "few labels": lambda: make(DENSE),
    "one structure": lambda: make_same_structure(replace(SMALL, subscriptions=300)),
}


def answers(name: str, workload: Workload) -> set[tuple[int, int]]:
    contender = CONTENDERS[name](workload)
    return set(map(tuple, contender.match(contender.prepare(workload, len(workload.publications))).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("draw", WORKLOADS.values(), ids=WORKLOADS)
def test_contenders_agree(draw: type[Workload]) -> None:
    workload = draw()
    found = {name: answers(name, workload) for name in CONTENDERS}
    expected = next(iter(found.values()))
    assert all(pairs == expected for pairs in found.values()), {
        name: len(pairs) for name, pairs in found.items()
    }
    counts = np.bincount([publication for publication, _ in expected])
    assert (counts >= workload.parameters.matches).all()


def test_one_structure_has_exactly_the_asked_matches() -> None:
    workload = WORKLOADS["one structure"]()
    assert len(answers("Tidings", workload)) == 20 * len(workload.publications)


@pytest.mark.slow
def test_texts_say_what_the_numbers_say() -> None:
    for draw in (WORKLOADS["own structures"], WORKLOADS["one structure"]):
        workload, engine = draw(), Engine()
        assert not engine.subscribe_many(texts.subscription_texts(workload))
        for syntax in texts.SYNTAXES:
            found = {
                (row, int(note.subscription[1:]))
                for row, data in enumerate(texts.documents(workload, syntax))
                for note in engine.publish(Event.from_rdf(data, syntax))
            }
            assert found == answers("counting (G-ToPSS)", workload), syntax


def test_tables_by_shape_say_what_the_numbers_say() -> None:
    workload, engine = WORKLOADS["shared structures"](), Engine()
    tables = texts.tables_by_shape(workload)
    assert len(tables) == len(np.unique(workload.shape)) <= 40
    for template, table in tables:
        engine.subscribe_table(template, table)
    found = {
        (row, int(note.subscription[1:]))
        for row, data in enumerate(texts.documents(workload, "turtle"))
        for note in engine.publish(Event.from_rdf(data, "turtle"))
    }
    assert found == answers("counting (G-ToPSS)", workload)


def test_a_publication_is_a_path_and_more_edges() -> None:
    workload = make(replace(SMALL, publication_size=(12, 30)))
    publications = workload.publications
    assert publications.subject.shape == (3, 30)
    assert (publications.object[:, :10] == publications.subject[:, 1:11]).all()
    for row in range(3):
        assert len({*publications.subject[row].tolist(), *publications.object[row].tolist()}) == 12


def test_variables_and_sizes_are_as_asked() -> None:
    workload = make(replace(SMALL, starred=0.6, stars=3, subscription_size=(6, 7)))
    ends = np.concatenate([workload.subscriptions.subject, workload.subscriptions.object], axis=1)
    stars = np.array([len(set(row[row < 0].tolist())) for row in ends])
    assert set(stars.tolist()) == {0, 3}
    assert abs((stars == 3).mean() - 0.6) < 0.05
    assert workload.subscriptions.label.shape == (1500, 7)


def test_the_seed_decides_everything() -> None:
    first, second, other = make(SMALL), make(SMALL), make(replace(SMALL, seed=1))
    assert (first.subscriptions.subject == second.subscriptions.subject).all()
    assert (first.publications.label == second.publications.label).all()
    assert (first.publications.label != other.publications.label).any()


def test_documents_are_what_a_parser_reads() -> None:
    workload = WORKLOADS["one structure"]()
    graphs = [
        {quad.triple for quad in ox.parse(write_(workload, 0), format=syntax)}
        for write_, syntax in (
            (texts.ntriples, ox.RdfFormat.N_TRIPLES),
            (texts.turtle, ox.RdfFormat.TURTLE),
            (texts.rdf_xml, ox.RdfFormat.RDF_XML),
        )
    ]
    assert graphs[0] == graphs[1] == graphs[2]
    assert len(graphs[0]) == 90


def test_results_become_a_picture_and_a_page(tmp_path: Path) -> None:
    figure = Figure(
        name="cluster-9b",
        title="Matching time",
        x_label="subscriptions",
        y_label="relative",
        x=[1, 10],
        series={"Tidings": [1, 1.5], "counting (G-ToPSS)": [2, 30]},
        reference="5 µs",
        published="125 to 1",
        published_series={"G-ToPSS": [None, 125]},
        log_y=True,
    )
    picture = keep(figure, tmp_path / "results")
    assert picture.read_bytes().startswith(b"\x89PNG")
    write(tmp_path / "results", tmp_path / "docs" / "benchmarks.md")
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "![Matching time](../results/cluster-9b.png)" in page
    assert "| 10 | 1.5 | 30 |" in page
