"""Mergers contain their members, are as few as wanted, and keep what members have in common."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.containment_workloads import subscriptions
from benchmarks.workloads import Parameters
from tests.containment import cases
from tidings import Engine, Event
from tidings.containment.contains import contains
from tidings.containment.merging import merge
from tidings.containment.summaries import OWN, Summaries
from tidings.containment.witness import witness
from tidings.formats.rdf import NTRIPLES
from tidings.language.printer import to_text
from tidings.language.query import And, Query
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.model.event import to_table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def engine_of(*texts: str) -> Engine:
    engine = Engine()
    for number, text in enumerate(texts):
        engine.subscribe(f"s{number}", text)
    engine.index.fold()
    return engine


def mergers_of(
    engine: Engine, target: int, summaries: Summaries | None = None
) -> tuple[list[str], list[int]]:
    found = merge(engine, np.ones(len(engine), dtype=np.bool_), target)
    return [to_text(query) for query in found.mergers], found.merger.tolist()


def test_a_merger_has_the_triples_that_all_have() -> None:
    engine = engine_of(
        "WHERE (?i, topic, 'oil'), (?i, price, ?x), (?i, seller, acme) AND ?x > 60",
        "WHERE (?other, topic, 'oil'), (?other, price, ?y), (?other, buyer, acme) AND ?y > 40",
    )
    ((text,), merger) = mergers_of(engine, 1)
    assert merger == [0, 0]
    wanted = "WHERE (?i, topic, 'oil'), (?i, price, ?x) AND ?x > 40"
    assert contains(engine.tree(text), engine.tree(wanted), engine.taxonomy).holds
    assert contains(engine.tree(wanted), engine.tree(text), engine.taxonomy).holds


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("WHERE (n1, p, n2), (n3, q, ?x)", "WHERE (n4, r, n5)"),  # nothing in common
        ("WHERE (n1, ?p, ?x)", "WHERE (?y, ?p, n2)"),  # but that there is a triple
    ],
)
def test_nothing_in_common_makes_no_merger(first: str, second: str) -> None:
    assert mergers_of(engine_of(first, second), 1) == ([], [-1, -1])


def test_a_literal_of_two_triples_is_no_join() -> None:
    """It matches by value, a variable by its term: 5 and 5.0 are the same to the members."""
    engine = engine_of("WHERE (?a, p, 5), (?b, q, 5), (?a, r, n)", "WHERE (?a, p, 6), (?b, q, 6), (?a, r, n)")
    ((text,), _) = mergers_of(engine, 1)
    merged = engine_of(text)
    for spelling in ("5", "5.0"):
        event = Event(
            "t",
            datacontenttype="text/turtle",
            data=f"@prefix : <{WELL_KNOWN['']}> . [] :p 5 ; :r :n . [] :q {spelling} .".encode(),
        )
        assert {n.subscription for n in engine.publish(event)} == {"s0"}
        assert {n.subscription for n in merged.publish(event)} == {"s0"}


def test_a_front_that_is_small_enough_is_left() -> None:
    engine = engine_of(*(f"WHERE (?i, topic, 'oil'), (?i, n{number}, ?x)" for number in range(10)))
    assert mergers_of(engine, 8) == ([], [-1] * 10)
    assert len(mergers_of(engine, 7)[0]) > 0


def _pattern(rng: random.Random) -> Query:
    edges = [cases.edge(rng) for _ in range(rng.randint(1, 4))]
    bound = sorted(
        {node for edge in edges for node in (edge.subject, edge.object)} & {*cases.VARIABLES}, key=str
    )
    tests = [cases.test(rng, variable, cases.CONSTANTS) for variable in bound if rng.random() < 0.4]
    return Query(And((*edges, *tests)))


def check_random_mergers(rng: random.Random) -> int:
    """Whatever a member matches, its merger does; returns how often that was seen."""
    taxonomy, seen = cases.taxonomy(rng), 0
    queries = [query for _ in range(4) for query in cases.pair(rng, taxonomy)]
    queries += [_pattern(rng) for _ in range(10)]
    engine = Engine(taxonomy=taxonomy)
    for number, query in enumerate(queries):
        engine.subscribe(f"s{number}", query)
    engine.index.fold()
    found = merge(engine, engine.index.divisible(), 1 + rng.randrange(4))
    merged = Engine(taxonomy=taxonomy)
    for number, merger in enumerate(found.mergers):
        merged.subscribe(f"m{number}", merger)
    members = np.flatnonzero(found.merger >= 0).tolist()
    made = [witness(queries[number], taxonomy) for number in members]
    events = [cases.mutated(rng, event) for event in made if event is not None for _ in range(5)]
    events = [replace(event, id=str(number)) for number, event in enumerate(events)]
    matches = {(n["event"], n["subscription"]) for n in merged.publish_many(events).to_pylist()}
    for row in engine.publish_many(events).to_pylist():
        merger = int(found.merger[int((row["subscription"] or "s0")[1:])])
        if row["verdict"] == "match" and merger >= 0:
            assert (row["event"], f"m{merger}") in matches, to_text(found.mergers[merger])
            seen += 1
    return seen


def test_mergers_match_what_their_members_match() -> None:
    assert sum(check_random_mergers(random.Random(seed)) for seed in range(20)) > 300


@pytest.mark.slow
def test_many_mergers_match_what_their_members_match() -> None:
    assert sum(check_random_mergers(random.Random(seed)) for seed in range(1_000, 3_000)) > 30_000


@pytest.mark.parametrize("percent", [70, 98])
def test_as_few_are_left_as_are_wanted(percent: int) -> None:
    _, texts = subscriptions(Parameters(subscriptions=1_000, matches=10, overlap=0.0, shapes=50, labels=20))
    engine = Engine()
    assert not engine.subscribe_many(texts)
    engine.index.fold()
    found = merge(engine, np.ones(1_000, dtype=np.bool_), 1_000 * (100 - percent) // 100)
    left = len(found.mergers) + int((found.merger < 0).sum())
    assert left <= 1_000 * (100 - percent) // 100
    for number in range(0, 1_000, 10):
        if (merger := int(found.merger[number])) >= 0:
            member = engine.tree(engine.index.subscriptions.text(number))
            assert contains(found.mergers[merger], member, engine.taxonomy).holds


class TestSummaries:
    def events(self, *graphs: str):  # type: ignore[no-untyped-def]
        return to_table(
            Event("t", id=str(number), datacontenttype=NTRIPLES, data=graph.encode())
            for number, graph in enumerate(graphs)
        )

    def test_similar_graphs_become_what_they_have_in_common(self) -> None:
        common = "".join(f"<urn:a> <urn:p{n}> <urn:b> .\n" for n in range(5))
        other = "".join(f"<urn:c> <urn:q{n}> <urn:d> .\n" for n in range(5))
        engine = engine_of("WHERE (<urn:a>, <urn:p1>, ?x)", "WHERE (<urn:c>, ?p, ?x)")
        events = self.events(common + "<urn:a> <urn:r> <urn:b> .\n", other, common, other)
        found = Summaries.collect(engine, events)
        assert len(found) == 2
        assert found.matches.tolist() == [2, 2]
        assert np.diff(found.first).tolist() == [5, 5]

    def test_what_one_graph_alone_has_is_no_difference(self) -> None:
        """Every item of a feed has an address of its own."""
        items = [f"<urn:i{n}> <urn:topic> <urn:oil> .\n<urn:i{n}> <urn:in> <urn:feed> .\n" for n in range(4)]
        engine = engine_of("WHERE (?x, <urn:topic>, <urn:oil>)")
        found = Summaries.collect(engine, self.events(*items))
        assert len(found) == 1
        assert OWN in list(found.terms)

    def test_they_are_saved_and_loaded(self, tmp_path) -> None:  # type: ignore[no-untyped-def]
        engine = engine_of("WHERE (<urn:a>, <urn:p1>, ?x)")
        found = Summaries.collect(engine, self.events("<urn:a> <urn:p1> <urn:b> .\n"))
        found.save(tmp_path / "summaries")
        again = Summaries.load(tmp_path / "summaries")
        assert list(again.terms) == list(found.terms)
        assert again.triples.tolist() == found.triples.tolist()
        assert again.matches.tolist() == found.matches.tolist()
