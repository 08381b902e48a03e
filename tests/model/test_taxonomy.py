"""The three is-a tests, taxonomies in and out of RDF, and intervals against a search of the graph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TaxonomyError
from tidings.model.taxonomy import Taxonomy, TaxonomyArrays, local_name
from tidings.model.terms import Blank, Iri, Literal

EX = "http://example.org/"
PAGE = Iri(EX + "HomePage#325")


@pytest.fixture
def academia() -> Taxonomy:
    """G-ToPSS, Figure 6: web pages of an academic site."""
    taxonomy = Taxonomy()
    taxonomy.add_class(EX + "ResearchLab", [EX + "Academia"], label="Research Lab")
    taxonomy.add_class(EX + "University", [EX + "Academia"])
    taxonomy.add_class(EX + "MiddlewareGroup", [EX + "ResearchLab"], label="Middleware Group")
    taxonomy.add_class(EX + "PubSub", [EX + "MiddlewareGroup"], label="Pub/Sub System Development")
    taxonomy.add_class(EX + "Aspects", [EX + "MiddlewareGroup"])
    taxonomy.add_class(EX + "UofT", [EX + "University"])
    taxonomy.add_instance(PAGE.value, [EX + "UofT", EX + "PubSub"])
    return taxonomy


@pytest.mark.parametrize(
    ("term", "op", "cls", "expected"),
    [
        (PAGE, "<=", "Academia", True),
        (PAGE, "<=", "MiddlewareGroup", True),
        (PAGE, "<=", "PubSub", True),
        (PAGE, "<=", "Aspects", False),
        (PAGE, "=", "PubSub", True),
        (PAGE, "=", "UofT", True),
        (PAGE, "=", "MiddlewareGroup", False),
        (PAGE, ">=", "PubSub", True),
        (PAGE, ">=", "Academia", False),
        (Iri(EX + "ResearchLab"), "<=", "ResearchLab", True),
        (Iri(EX + "ResearchLab"), "<=", "Academia", True),
        (Iri(EX + "ResearchLab"), "=", "Academia", True),
        (Iri(EX + "ResearchLab"), "=", "ResearchLab", False),
        (Iri(EX + "PubSub"), "=", "Academia", False),
        (Iri(EX + "ResearchLab"), ">=", "PubSub", True),
        (Iri(EX + "PubSub"), ">=", "ResearchLab", False),
        (Iri(EX + "ResearchLab"), "<=", "University", False),
        (Literal("Research Lab"), "<=", "Academia", True),
        (Literal("Research Lab"), "=", "Academia", True),
        (Literal("Research Lab", language="en"), ">=", "PubSub", True),
        (Literal("ResearchLab"), "<=", "Academia", False),  # a label takes the local name's place
        (Literal("UofT"), "<=", "Academia", True),
        (Literal("Elsewhere"), "<=", "Academia", False),
        (Iri(EX + "unknown"), "<=", "Academia", False),
        (Blank("b"), "<=", "Academia", False),
        (Iri(EX + "Asked"), "<=", "Asked", True),  # asking about a class makes it one
        (Literal("Asked"), ">=", "Asked", True),
        (Iri(EX + "Asked"), "=", "Asked", False),
        (Literal("Other"), "<=", "Asked", False),
    ],
)
def test_is_a_of_figure_6(academia: Taxonomy, term: Iri, op: str, cls: str, expected: bool) -> None:
    assert academia.is_a(term, op, EX + cls) is expected


def test_types_stated_in_the_event_count_too(academia: Taxonomy) -> None:
    page, types = Blank("page"), [EX + "UofT", EX + "Unheard"]
    assert academia.is_a(page, "<=", EX + "Academia", types)
    assert academia.is_a(page, "=", EX + "UofT", types)
    assert academia.is_a(page, ">=", EX + "UofT", types)
    assert academia.is_a(page, "<=", EX + "Unheard", types)
    assert not academia.is_a(page, "=", EX + "Academia", types)
    assert not academia.is_a(page, "<=", EX + "ResearchLab", types)


def test_an_unknown_form_of_is_a_is_refused(academia: Taxonomy) -> None:
    with pytest.raises(TaxonomyError, match="not '<'"):
        academia.is_a(PAGE, "<", EX + "Academia")


def test_a_cycle_is_refused_with_its_path_and_changes_nothing() -> None:
    taxonomy = Taxonomy()
    taxonomy.add_class("a", ["b"])
    taxonomy.add_class("b", ["x", "c"])
    before = taxonomy.to_ntriples()
    with pytest.raises(TaxonomyError, match="c is a a is a b is a c"):
        taxonomy.add_class("c", ["y", "a"])
    with pytest.raises(TaxonomyError, match="d is a d"):
        taxonomy.add_class("d", ["d"])
    assert taxonomy.to_ntriples() == before
    taxonomy.add_property("p", ["q"])
    with pytest.raises(TaxonomyError, match="q is a p is a q"):
        taxonomy.add_property("q", ["p"])


@pytest.mark.parametrize("relation", ["subClassOf", "subPropertyOf"])
def test_a_cycle_in_a_document_is_refused_with_its_path(relation: str) -> None:
    links = [("leaf", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("a", "root")]
    document = "".join(
        f"<{EX}{low}> <http://www.w3.org/2000/01/rdf-schema#{relation}> <{EX}{high}> .\n"
        for low, high in links
    )
    with pytest.raises(TaxonomyError) as caught:
        Taxonomy.from_ntriples(document.encode())
    around = [EX + name for name in "abc"]
    turns = [[*around[i:], *around[:i], around[i]] for i in range(3)]
    assert any(f": {' is a '.join(turn)};" in str(caught.value) for turn in turns)


def test_a_document_states_a_taxonomy() -> None:
    taxonomy = Taxonomy.from_rdf(
        """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
           @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
           ex:Sport a owl:Class ; rdfs:label "Sports"@en, "Sport"@de .
           ex:Ball_games rdfs:subClassOf ex:Sport, [ a owl:Restriction ] ; skos:prefLabel "Ball games" .
           ex:final a ex:Ball_games ; rdfs:label "The final" .
           ex:headline rdfs:subPropertyOf ex:title . ex:title rdfs:subPropertyOf ex:text .""",
        "turtle",
    )
    assert taxonomy.labelled("Sports") == taxonomy.labelled("Sport") == (EX + "Sport",)
    assert taxonomy.is_a(Literal("Ball games"), "<=", EX + "Sport")
    assert taxonomy.is_a(Iri(EX + "final"), "<=", EX + "Sport")
    assert not taxonomy.labelled("The final")
    assert len(taxonomy) == 2
    assert taxonomy.super_properties() == {
        EX + "headline": (EX + "title", EX + "text"),
        EX + "title": (EX + "text",),
    }


def test_a_damaged_document_gets_a_sentence() -> None:
    with pytest.raises(TaxonomyError, match="not readable as Turtle"):
        Taxonomy.from_rdf("ex:Sport a", "turtle")


def test_a_name_with_spaces_is_refused() -> None:
    with pytest.raises(TaxonomyError, match="'Research Lab' is not an IRI"):
        Taxonomy().add_class("Research Lab")


def test_written_and_read_back_equal(academia: Taxonomy) -> None:
    academia.add_property(EX + "headline", [EX + "title"])
    academia.add_class(EX + "Quoted", label='a "quoted"\nlabel')
    written = academia.to_ntriples()
    assert Taxonomy.from_rdf(written, "nt") == Taxonomy.from_ntriples(written) == academia
    assert Taxonomy.from_rdf(written, "nt").compile().class_of == academia.compile().class_of
    assert academia != Taxonomy()


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        (EX + "sports/football", "football"),
        (EX + "ns#Ball%20games", "Ball games"),
        (EX + "sports/", "sports"),
        ("urn:example:sport", "sport"),
    ],
)
def test_local_names(iri: str, name: str) -> None:
    assert local_name(iri) == name


def includes(arrays: TaxonomyArrays, upper: int, lower: int) -> bool:
    """Whether class `upper` is `lower` or above it, as the intervals say."""
    part = slice(*arrays.interval_start[upper : upper + 2])
    return bool(((arrays.interval_low[part] <= lower) & (lower <= arrays.interval_high[part])).any())


def test_a_tree_has_one_interval_a_class(academia: Taxonomy) -> None:
    arrays = academia.compile(asked=[EX + "Unheard", EX + "UofT"])
    assert sorted(arrays.class_of.values()) == list(range(8))
    assert (arrays.interval_start == range(9)).all()
    academia_, unheard = arrays.class_of[EX + "Academia"], arrays.class_of[EX + "Unheard"]
    assert includes(arrays, academia_, arrays.class_of[EX + "PubSub"])
    assert not includes(arrays, academia_, unheard)
    assert includes(arrays, unheard, unheard)


def test_a_chain_of_20_000_classes() -> None:
    taxonomy = Taxonomy()
    for depth in range(20_000):
        taxonomy.add_class(f"c{depth}", [f"c{depth - 1}"] if depth else [])
    arrays = taxonomy.compile()
    assert len(arrays.interval_low) == 20_000
    assert includes(arrays, arrays.class_of["c0"], arrays.class_of["c19999"])
    assert not includes(arrays, arrays.class_of["c19999"], arrays.class_of["c0"])
    assert taxonomy.is_a(Iri("c19999"), "<=", "c0")


@st.composite
def hierarchies(draw: st.DrawFn) -> dict[int, set[int]]:
    """Parents of each class, drawn among the classes before it."""
    count = draw(st.integers(1, 14))
    return {c: draw(st.sets(st.integers(0, c - 1), max_size=4)) if c else set() for c in range(count)}


@given(hierarchies(), st.randoms(use_true_random=False))
def test_intervals_agree_with_a_search(parents: dict[int, set[int]], random: object) -> None:
    taxonomy = Taxonomy()
    shuffled = list(parents)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for cls in shuffled:
        taxonomy.add_class(f"c{cls}", [f"c{parent}" for parent in parents[cls]])
    above: dict[int, set[int]] = {}
    for cls, direct in parents.items():
        above[cls] = {cls}.union(*(above[parent] for parent in direct))
    arrays = taxonomy.compile()
    for low in parents:
        number = arrays.class_of[f"c{low}"]
        first, last = arrays.parent_start[number : number + 2]
        assert set(arrays.parent[first:last]) == {arrays.class_of[f"c{parent}"] for parent in parents[low]}
        for high in parents:
            expected = high in above[low]
            assert includes(arrays, arrays.class_of[f"c{high}"], number) is expected
            assert taxonomy.is_a(Iri(f"c{low}"), "<=", f"c{high}") is expected
            assert taxonomy.is_a(Iri(f"c{high}"), ">=", f"c{low}") is expected
    gaps = arrays.interval_low[1:] > arrays.interval_high[:-1] + 1
    inner = [i for i in range(len(gaps)) if i + 1 not in arrays.interval_start]
    assert gaps[inner].all()
