"""Covering against brute force: whatever is subscribed to is contained in what is registered, after every change."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.containment import cases
from tests.examples import examples
from tidings.containment.contains import contains
from tidings.dissemination.network.covering import EVERYTHING, Covering, widest
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.model.taxonomy import Taxonomy


def registered_after(changes: list[tuple[str, str | None]], taxonomy: Taxonomy | None = None) -> set[str]:
    """What a parent has that is told of every change, checked after each of them."""
    covering, live, parent = Covering(taxonomy), dict[str, Query](), set[str]()
    for id, text in changes:
        query = None if text is None else parse(text)
        changed = covering.update({} if query is None else {id: query}, [id] if query is None else [])
        assert parent.isdisjoint(changed.register)
        assert parent >= set(changed.withdraw)
        parent |= set(changed.register)
        parent -= set(changed.withdraw)
        live = {key: value for key, value in live.items() if key != id} | (
            {} if query is None else {id: query}
        )
        check(covering, live, parent, taxonomy or Taxonomy())
    return parent


def check(covering: Covering, live: dict[str, Query], parent: set[str], taxonomy: Taxonomy) -> None:
    assert parent == covering.registered
    assert len(covering) == len(live)
    for id, query in live.items():
        cover = covering.cover_of(id)
        assert cover in parent
        wanted, found = widest(query), parse(cover)
        assert to_text(wanted) == cover or found.where == EVERYTHING or contains(found, wanted, taxonomy)
    if not live:
        assert not parent


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[str, str | None]], Taxonomy]:
    """Subscriptions that often contain each other, added, replaced and removed."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    known = cases.taxonomy(rng)
    texts = [to_text(query) for _ in range(6) for query in cases.pair(rng, known)]
    texts += [f"WHERE price < {rng.randrange(9)}" for _ in range(3)]
    ids = [f"s{number}" for number in range(8)]
    return [
        (rng.choice(ids), rng.choice(texts) if rng.random() < 0.7 else None)
        for _ in range(draw(st.integers(1, 25)))
    ], known


@given(histories())
@examples(25)
def test_everything_is_covered_after_every_change(
    given: tuple[list[tuple[str, str | None]], Taxonomy],
) -> None:
    registered_after(*given)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.booleans()), max_size=30))
@examples(25)
def test_of_comparable_ones_the_widest_is_registered(given: list[tuple[int, int, bool]]) -> None:
    changes = [(f"s{id}", f"WHERE price < {bound}" if there else None) for id, bound, there in given]
    live = {id: int(text.split()[-1]) for id, text in dict(changes).items() if text}
    wanted = {f"WHERE price < {max(live.values())}"} if live else set()
    assert registered_after(changes) == wanted


def test_a_narrower_one_comes_back_when_its_cover_ends() -> None:
    narrow, wide = "WHERE topic = 'a' AND price < 5", "WHERE topic = 'a'"
    assert registered_after([("1", narrow)]) == {narrow}
    assert registered_after([("1", narrow), ("2", wide), ("3", narrow)]) == {wide}
    assert registered_after([("1", narrow), ("2", wide), ("2", None)]) == {narrow}
    assert registered_after([("1", wide), ("2", wide), ("1", None)]) == {wide}


def test_a_cover_and_what_it_covers_end_together() -> None:
    texts = {str(bound): parse(f"WHERE price < {bound}") for bound in range(1, 6)}
    covering = Covering()
    covering.update(texts, ())
    changed = covering.update({}, ["5", "4", "2"])
    assert (changed.register, changed.withdraw) == (["WHERE price < 3"], ["WHERE price < 5"])
    check(covering, {id: texts[id] for id in ("1", "3")}, {"WHERE price < 3"}, Taxonomy())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("WHERE topic = 'a' AND near(place, 5)", "WHERE topic = 'a'"),
        ("WHERE near(place, 5)", "WHERE EXISTS id"),
        ("WHERE topic = 'a' OR near(place, 5)", "WHERE EXISTS id"),
        ("WHERE topic = 'a' AND NOT near(place, 5)", "WHERE topic = 'a'"),
        ("WHERE topic = 'a' AND NOT (b = 1)", "WHERE topic = 'a' AND NOT b = 1"),
        ("WHERE topic = 'a' AND score(?x) AND ?x > 3", "WHERE topic = 'a'"),
        ("SELECT ?s WHERE (?s, <urn:p>, ?o) AND score(?o)", "WHERE (?s, <urn:p>, ?o)"),
        ("FROM news WHERE score(?x)", "FROM news WHERE EXISTS id"),
        ("FROM news VIA net AT 'x'", "FROM news WHERE EXISTS id"),
        ("WHERE topic = 'a' VIA net AT 'x'", "WHERE topic = 'a'"),
    ],
)
def test_what_upstream_does_not_know_is_left_out(text: str, asked: str) -> None:
    assert registered_after([("1", text)]) == {asked}


@pytest.mark.slow
def test_ten_thousand_are_covered_in_seconds() -> None:
    rng = random.Random(1)
    queries = {
        f"s{number}": parse(f"WHERE topic = 't{rng.randrange(500)}' AND price < {rng.randrange(1, 1000)}")
        for number in range(10_000)
    }
    covering, began = Covering(), time.perf_counter()
    covering.update(queries, ())
    assert len(covering.registered) == 500
    assert time.perf_counter() - began < 30
