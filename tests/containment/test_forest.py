"""The forest of an index says what `contains` says of all pairs, and an index that is divided by it answers as before."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.containment_workloads import subscriptions
from benchmarks.workloads import Parameters
from tests.containment import cases
from tests.containment.test_completeness import TAXONOMY, part, pattern
from tests.storage.test_divided import CODE, CONTAIN, Family, answers, opened
from tidings import Engine
from tidings.containment import forest, pattern_rows
from tidings.containment.contains import contains
from tidings.containment.forest import Columns, Forest, Spread, Task, parents, without_circles
from tidings.containment.naive import homomorphisms
from tidings.containment.witness import witness
from tidings.errors import SubscriptionError
from tidings.language.query import And, Query
from tidings.model.taxonomy import Taxonomy
from tidings.storage.division import Division, divide

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def engine_of(texts: list[str], taxonomy: Taxonomy | None = None) -> Engine:
    engine = Engine(taxonomy=taxonomy, operators=CODE)
    for number, text in enumerate(texts):
        engine.subscribe(f"s{number}", text)
    return engine


def found(texts: list[str], taxonomy: Taxonomy | None = None) -> list[int]:
    return parents(engine_of(texts, taxonomy)).tolist()


def in_ranges(engine: Engine, count: int) -> Spread:
    """Tasks are done in ranges, each by a forest of its own."""

    def spread(task: Task, columns: Columns) -> Columns:
        ranges = zip(*(np.array_split(column, count) for column in columns), strict=True)
        found = [task(Forest(engine), each) for each in ranges]
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    return spread


def is_below_another(contained: np.ndarray) -> list[bool]:
    """Of each whether it has a parent by the definition; contained[a, b] says that a contains b."""
    count = range(len(contained))
    return [any(contained[a, b] and (not contained[b, a] or a < b) for a in count) for b in count]


def check_against_all_pairs(seed: int) -> tuple[int, int]:
    """Returns how many have parents, and how many have containers that were not found for want of a witness."""
    rng = random.Random(seed)
    taxonomy = cases.taxonomy(rng)
    engine, queries = Engine(taxonomy=taxonomy), list[Query]()
    while len(queries) < 16:
        for query in cases.pair(rng, taxonomy):
            try:
                engine.subscribe(f"s{len(queries)}", query)
                queries.append(query)
            except SubscriptionError:  # too many ways, or a literal as a subject
                pass
    chosen = parents(engine)
    assert Forest(engine).parents(in_ranges(engine, 2)).tolist() == chosen.tolist()
    divisible = engine.index.divisible()
    contained = np.zeros((len(queries), len(queries)), dtype=bool)
    for a in np.flatnonzero(divisible).tolist():
        for b in np.flatnonzero(divisible).tolist():
            contained[a, b] = a != b and contains(queries[a], queries[b], taxonomy).holds
    missed = 0
    for b, (a, expected) in enumerate(zip(chosen.tolist(), is_below_another(contained), strict=True)):
        # What nothing can match is below its copy; `contains` says no of it, even of itself.
        is_empty = not contains(queries[b], queries[b], taxonomy).holds
        assert a < 0 or contained[a, b] or is_empty, (seed, a, b)
        if (a >= 0) != expected:
            assert witness(queries[b], taxonomy) is None, (seed, b)
            missed += 1
    return int((chosen >= 0).sum()), missed


def test_parents_are_those_that_contains_confirms() -> None:
    results = np.array([check_against_all_pairs(seed) for seed in range(8)])
    below, missed = results.sum(axis=0)
    assert below > 15
    assert missed < below / 2


@pytest.mark.slow
def test_parents_are_those_that_contains_confirms_in_many_indexes() -> None:
    results = np.array([check_against_all_pairs(seed) for seed in range(1000, 1400)])
    assert results[:, 0].sum() > 900


@pytest.mark.parametrize("seed", range(4))
def test_roots_of_plain_patterns_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    patterns = [pattern(rng, "abc", (1, 2, 3)) for _ in range(12)]
    patterns += [part(rng, each) for each in patterns]
    engine = Engine(taxonomy=TAXONOMY)
    for number, edges in enumerate(patterns):
        engine.subscribe(f"s{number}", Query(And(tuple(edges))))
    contained = np.array(
        [[a is not b and any(homomorphisms(a, b, TAXONOMY)) for b in patterns] for a in patterns]
    )
    chosen = parents(engine)
    assert (chosen >= 0).tolist() == is_below_another(contained)
    assert all(contained[a, b] for b, a in enumerate(chosen.tolist()) if a >= 0)
    assert (chosen >= 0).sum() > 6


def test_equal_subscriptions_are_below_the_first() -> None:
    texts = [
        "WHERE (?a, <urn:p>, ?b), (?b, <urn:q>, ?c)",
        "SELECT ?y WHERE (?x, <urn:p>, ?y), (?y, <urn:q>, ?z)",  # other names
        "WHERE (?b, <urn:q>, ?c), (?a, <urn:p>, ?b)",  # another order
        "WHERE (?a, <urn:p>, ?b), (?b, <urn:q>, ?c), (?d, <urn:p>, ?e)",  # a triple that says nothing
        "WHERE topic = 'oil'",
        "WHERE topic  =  'oil'",
        "WHERE topic = 'oil'",
    ]
    assert found(texts) == [-1, 0, 0, 0, -1, 4, 4]
    assert found(texts[::-1]) == [-1, 0, 0, -1, 3, 3, 3]
    assert found(["WHERE topic = 'oil'"] * 50) == [-1] + [0] * 49


def test_chains_lead_to_the_most_general() -> None:
    edges = [f"(?x{i}, <urn:p>, ?x{i + 1})" for i in range(6)]
    chain = ["WHERE " + ", ".join(edges[: i + 1]) for i in range(6)]
    assert found(chain) == [-1, 0, 0, 0, 0, 0]
    assert found(chain[::-1]) == [5, 5, 5, 5, 5, -1]
    bounds = [f"WHERE (?a, <urn:price>, ?x) AND ?x > {bound}" for bound in (30, 10, 20, 40)]
    assert found(bounds) == [1, -1, 1, 1]


CONDITIONS = [
    ("(?a, <urn:p>, ?x) AND ?x > 10", "(?a, <urn:p>, ?x) AND ?x > 10.5"),
    ("(?a, <urn:p>, ?x) AND ?x >= 10", "(?a, <urn:p>, 10)"),
    ("(?a, <urn:p>, ?x) AND ?x BETWEEN 1 AND 9", "(?a, <urn:p>, ?x) AND ?x BETWEEN 2 AND 9"),
    ("(?a, <urn:p>, ?x)", "(?a, <urn:p>, 'text')"),
    ("(?a, <urn:p>, ?x) AND ?x != 'a'", "(?a, <urn:p>, ?x) AND ?x = 'b'"),
    ("(?a, <urn:p>, ?x) AND ?x CONTAINS 'a'", "(?a, <urn:p>, ?x) AND ?x STARTS WITH 'ba'"),
    ("(?a, <urn:p>, ?x) AND ?x IN (1, 2, 3)", "(?a, <urn:p>, 2)"),
    ("(?a, <urn:p>, <urn:n>)", "(?a, <urn:p>, ?x), (?x, <urn:q>, ?b) AND ?x = <urn:n>"),
    ("(?a, <urn:p>, ?x) OR topic = 'oil'", "topic = 'oil' AND (?a, <urn:q>, ?b)"),
    ("topic = 'oil'", "topic = 'oil' AND price > 5"),
    ("price > 5", "price > 5 AND topic IN ('oil', 'gas')"),
]
# The first matches a witness of the second that may be made, and does not contain it.
TRAPS = [
    ("(?a, <urn:p>, ?x) AND ?x > 10", "(?a, <urn:p>, ?x) AND ?x >= 10"),
    ("(?a, <urn:p>, ?x), (?b, <urn:q>, ?x)", "(?a, <urn:p>, 5), (?b, <urn:q>, 5)"),
    ("x BETWEEN 10 AND 30", "x >= 10 AND x <= 30"),
    ("(?a, <urn:p>, <urn:n>)", "(?a, <urn:p>, ?x) AND ?x IN (<urn:n>, <urn:m>)"),
    ("(?a, <urn:p>, ?x) AND ?x != <urn:n>", "(?a, <urn:p>, ?x) AND ?x != <urn:m>"),
    ("(?a, rdf:type, <urn:C>)", "(?a, <urn:p>, ?b) AND ?a ISA <urn:C>"),
    ("(?a, <urn:q>, ?c), (?c, <urn:r>, ?d)", "(?a, <urn:q>, ?b), (?b, rdf:_1, ?c), (?c, <urn:r>, ?d)"),
    ("(?a, <urn:tidings:any:1>, ?b)", "(?a, ?b, ?c), (?c, <urn:p>, ?d)"),
]


@pytest.mark.parametrize(("above", "below"), CONDITIONS)
def test_conditions_that_follow(above: str, below: str) -> None:
    assert found([f"WHERE {below}", f"WHERE {above}"]) == [1, -1]


@pytest.mark.parametrize(("one", "other"), TRAPS)
def test_what_only_looks_contained(one: str, other: str) -> None:
    assert found([f"WHERE {one}", f"WHERE {other}"])[1] == -1


def test_the_taxonomy_counts() -> None:
    taxonomy = Taxonomy()
    taxonomy.add_property("urn:author", ["urn:creator"])
    taxonomy.add_class("urn:Cat", ["urn:Animal"])
    texts = [
        "WHERE (?a, <urn:author>, ?b)",
        "WHERE (?a, <urn:creator>, ?b)",
        "WHERE (?a, <urn:p>, ?b) AND ?b ISA <urn:Cat>",
        "WHERE (?a, <urn:p>, ?b) AND ?b ISA <urn:Animal>",
        "WHERE (?a, <urn:p>, ?b), (?b, rdf:type, <urn:Cat>)",
    ]
    assert found(texts, taxonomy) == [1, -1, 3, -1, 3]
    assert found(texts) == [-1, -1, -1, -1, 2]


def test_what_is_never_divided_is_no_parent() -> None:
    texts = [
        "WHERE topic = 'a' OR busy()",
        "WHERE topic = 'b'",
        "WHERE topic = 'a' AND busy()",
        "WHERE topic = 'a'",
    ]
    engine = engine_of([*texts, "WHERE topic = 'a' AND x = 1"])
    engine.unsubscribe("s1")
    assert engine.index.divisible().tolist() == [False, False, False, True, True]
    assert parents(engine).tolist() == [-1, -1, -1, 2]  # without the one that was removed
    assert parents(Engine()).tolist() == []


def test_patterns_without_constants() -> None:
    assert found(["WHERE (?a, ?b, ?c), (?c, ?d, ?e)", "WHERE (?a, ?b, ?a)", "WHERE (?a, ?b, ?c)"]) == [
        2,
        2,
        -1,
    ]
    assert found(["WHERE (?a, <urn:p>, ?b), (?b, ?c, ?d)", "WHERE (?a, ?b, ?c)"]) == [1, -1]


@pytest.mark.parametrize("text", ["WHERE price > {}", "WHERE (?x, <urn:price>, ?y) AND ?y > {}"])
def test_samples_keep_candidates_few(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_SAMPLE", 8)
    monkeypatch.setattr(forest, "_GROWTH", 4)
    monkeypatch.setattr(forest, "_MANY", 1)
    bounds = random.Random(1).sample(range(300), 300)
    engine = engine_of([text.format(bound) for bound in bounds])
    chosen = parents(engine)
    assert [bounds[b] for b in np.flatnonzero(chosen < 0)] == [0]
    assert all(bounds[a] < bounds[b] for b, a in enumerate(chosen.tolist()) if a >= 0)
    assert Forest(engine).parents(in_ranges(engine, 3)).tolist() == chosen.tolist()


def test_rows_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_rows, "_MULTIPLIER", np.uint64(0))  # all hashes are 0
    texts = [f"WHERE (?a, <urn:p{number % 3}>, ?b)" for number in range(9)]
    assert found(texts) == [-1, -1, -1, 0, 1, 2, 0, 1, 2]


def test_circles_are_cut() -> None:
    assert without_circles(np.array([1, 2, 0, 0, 5, -1, 7, 6])).tolist() == [-1, 2, 0, 0, 5, -1, -1, 6]
    assert without_circles(np.array([-1, 0, 1])).tolist() == [-1, 0, 1]


def test_half_of_the_subscriptions_are_below_others() -> None:
    _, texts = subscriptions(Parameters(subscriptions=3000, shapes=100, overlap=0.5))
    engine = engine_of([text for _, text in texts])
    chosen = parents(engine)
    assert 0.45 <= (chosen < 0).mean() <= 0.55
    assert Forest(engine).parents(in_ranges(engine, 7)).tolist() == chosen.tolist()
    rng = random.Random(1)
    for b in rng.sample(np.flatnonzero(chosen >= 0).tolist(), 50):
        above, below = (engine.tree(texts[number][1]) for number in (int(chosen[b]), b))
        assert contains(above, below, engine.taxonomy).holds


def check_division(seed: int, folder: Path) -> int:
    """Returns how many of 50 subscriptions are in parts."""
    family = Family(random.Random(seed))
    engine = family.engine(50)
    events = family.events(10)
    for text in family.rng.sample(list(family.texts.values()), 25):
        event = witness(engine.tree(text), engine.taxonomy)
        events += [] if event is None else [event, cases.mutated(family.rng, event)]
    expected = answers(engine, events)
    made = divide(engine, folder, CONTAIN)
    index = opened(folder)
    assert answers(index, events) == expected
    assert made == Division.read(folder)
    assert made.trees is not None
    assert sum(below for _, below in made.trees.largest) <= sum(piece.subscriptions for piece in made.parts)
    return sum(piece.subscriptions for piece in made.parts)


@pytest.mark.parametrize("seed", [1, 3])
def test_an_index_divided_by_its_forest_answers_as_the_undivided(seed: int, tmp_path: Path) -> None:
    assert check_division(seed, tmp_path / "v1") >= 8


@pytest.mark.slow
def test_many_indexes_divided_by_their_forests_answer_as_the_undivided(tmp_path: Path) -> None:
    assert sum(check_division(seed, tmp_path / str(seed)) for seed in range(100, 220)) > 2_000
