"""Properties of parsing and printing, and texts made to break a parser."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.language.strategies import queries
from tidings.errors import SubscriptionError
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    IsA,
    Query,
    TriplePattern,
    Variable,
    leaves,
    variables,
)
from tidings.language.tokens import WORDS
from tidings.terms import XSD, Iri, Literal

FIVE = Literal("5", XSD + "integer")


@settings(max_examples=300)
@given(queries(templates=True))
def test_what_is_printed_parses_to_the_same_query(query: Query) -> None:
    assert parse(to_text(query)) == query


PIECES = (
    "SELECT FROM WHERE AND OR NOT SUCHTHAT BETWEEN IN LIKE CONTAINS MATCHES ISA EXISTS PREFIX FILTER REGEX ?x ?y a topic "
    "STARTS ENDS WITH ILIKE IGNORE CASE CIDR MISSING IS NULL ANY SATISFIES VIA AT + - * / "
    "'t' \"t\"@en 5 2.5 2004-01-31 true <urn:a> dc:title :x $p `q` ( ) { } , . ; = != < <= > >= && || ! * (?x,p,?y) (a,b,1)"
).split()


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_query_or_a_placed_error(text: str) -> None:
    try:
        query = parse(text)
    except SubscriptionError as error:
        assert error.line is not None
        assert error.column is not None
        lines = (text + " ").split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    else:
        assert parse(to_text(query)) == query


@settings(max_examples=150)
@given(queries(), st.randoms(use_true_random=False))
def test_damaged_texts_never_break_the_parser(query: Query, rng: random.Random) -> None:
    text = to_text(query)
    start = rng.randrange(len(text))
    try:
        parse(text[:start] + text[start + rng.randrange(1, 4) :])
    except SubscriptionError as error:
        assert error.line is not None


MEGABYTE = 999_900


@pytest.mark.parametrize(
    "text",
    [
        "WHERE " + "(" * 10_000 + "a = 1" + ")" * 10_000,
        "WHERE " + "(" * MEGABYTE,
        "WHERE " + "NOT " * 50_000 + "a = 1",
        "WHERE " + "NOT (" * 5_000 + "a = 1" + ")" * 5_000,
        "WHERE " + "(a = 1 OR (b = 1 AND " * 5_000 + "c = 1" + "))" * 5_000,
        "WHERE a = '" + "x" * MEGABYTE,
        "WHERE a = '" + "\\" * MEGABYTE,
        "WHERE (" + " " * MEGABYTE,
        "WHERE (a," + "b" * MEGABYTE,
        "WHERE " + "(a, b" * (MEGABYTE // 5),
        "WHERE " + "a." * (MEGABYTE // 2),
        "WHERE a = " + "x:" * (MEGABYTE // 2) + "!",
        "WHERE a = " + "5" * MEGABYTE + "x",
        "<" * MEGABYTE,
        "'" * MEGABYTE,
        "SELECT " + "?x " * 50_000,
        "WHERE a = '" + "x" * 1_000_000 + "'",
        "SELECT * WHERE { ?x a ?y FILTER(" + "!" * MEGABYTE + ") }",
        "SELECT * WHERE { ?x a ?y FILTER(" + "!(" * 10_000 + "?x = 1" + ")" * 10_000 + ") }",
        "SELECT * WHERE { ?x a ?y FILTER(" + "(?x = 1 && !(?y = 2 || " * 5_000,
        "WHERE a MATCHES '" + "(" * 100_000 + "'",
        "WHERE " + "a-" * (MEGABYTE // 2),
        "WHERE " + "-" * MEGABYTE + "a > 5",
        "WHERE " + "a + " * 100_000 + "a > 5",
        "WHERE a > " + "(a + " * 100_000 + "a",
        "WHERE a = " + "\\'" * (MEGABYTE // 2),
        "WHERE a < " + "<b " * (MEGABYTE // 3),
        "WHERE " + "ANY x IN x SATISFIES (" * 10_000,
        "WHERE a = 5" + " " * MEGABYTE + "b",
        "WHERE a MATCHES '" + "(x{1000}){1000}" + "'",
    ],
    ids=lambda text: text[:20] + "..." + text[-10:],
)
def test_hostile_texts_get_a_sentence_in_time(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(SubscriptionError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1_000
    assert time.perf_counter() - started < 5


def test_a_long_text_of_many_conditions_works() -> None:
    triples = ", ".join(f"(?x, p{i}, n{i})" for i in range(30_000))
    query = parse(f"WHERE {triples} AND ?x ISA Sport")
    assert isinstance(query.where, And)
    assert len(query.where.parts) == 30_001
    options = ", ".join(str(i) for i in range(100_000))
    assert len(parse(f"WHERE a IN ({options})").where.options) == 100_000  # type: ignore[union-attr]


def test_more_predicates_than_allowed_are_refused_at_once() -> None:
    allowed = " OR ".join(f"a{i} = {i}" for i in range(10_000))
    assert len(parse(f"WHERE {allowed}").where.parts) == 10_000  # type: ignore[union-attr]
    started = time.process_time()
    with pytest.raises(SubscriptionError, match=r"more than 10,000 predicates at 1:\d+; .* IN"):
        parse(f"WHERE {allowed} OR ANY x IN xs SATISFIES (x = 5)")
    assert time.process_time() - started < 1


def test_what_stands_behind_an_operand_compares() -> None:
    assert parse("WHERE (a<b)OR(c>d)") == parse("WHERE a < b OR c > d")
    assert parse("WHERE (a<dc:c)OR(c>d)OR(x<<urn:a>)") == parse("WHERE a < dc:c OR c > d OR x < <urn:a>")


def test_redundant_parentheses_are_free() -> None:
    assert parse("WHERE " + "(" * 99 + "a = 1" + ")" * 99) == parse("WHERE a = 1")


def test_prefixes_of_the_user_lie_over_the_well_known_ones() -> None:
    query = parse("WHERE (p, dc:title, my:x)", {"": "http://d/", "dc": "http://dc/", "my": "http://my/"})
    assert query.where == TriplePattern(Iri("http://d/p"), Iri("http://dc/title"), Iri("http://my/x"))


def test_a_sparql_prefix_ends_with_its_text() -> None:
    assert parse("PREFIX k: <http://k/> SELECT * { ?x k:a k:b }").where == TriplePattern(
        Variable("x"), Iri("http://k/a"), Iri("http://k/b")
    )
    with pytest.raises(SubscriptionError, match="unknown prefix 'k' at 1:12"):
        parse("WHERE (?x, k:a, k:b)")


def test_bare_words_mean_what_their_place_says() -> None:
    query = parse("WHERE (Sport, p, ?x) AND ?x ISA Sport AND Sport = 5")
    sport = Iri("urn:tidings:Sport")
    assert query.where == And(
        (
            TriplePattern(sport, Iri("urn:tidings:p"), Variable("x")),
            IsA(Variable("x"), "<=", sport),
            Comparison(Attribute("Sport"), "=", Literal("5", XSD + "integer")),
        )
    )


def test_words_of_the_language_are_names_where_they_can_be() -> None:
    for word in sorted(WORDS - {"NOT", "EXISTS"}):
        assert parse(f"WHERE {word} = 5") == parse(f"WHERE `{word}` = 5")
        assert parse(f"WHERE a < {word} AND EXISTS {word}") == parse(
            f"WHERE a < `{word}` AND EXISTS `{word}`"
        )


def test_a_sign_is_part_of_a_number_or_an_operator() -> None:
    for text in ("a -5 > b", "a - 5 > b", "a-5>b"):
        where = parse(f"WHERE {text}").where
        assert where == Comparison(Arithmetic("-", Attribute("a"), FIVE), ">", Attribute("b"))
    minus = Literal("-5", XSD + "integer")
    for text in ("a = -5", "a=-5", "a = - 5", "-5 = a", "(a) = (-5)"):
        assert parse(f"WHERE {text}").where == Comparison(Attribute("a"), "=", minus)
    assert parse("WHERE a BETWEEN -5 AND -5").where == Between(Attribute("a"), minus, minus)


def test_variables_and_operands_are_found_wherever_they_stand() -> None:
    where = parse(
        "WHERE ?x + 2 * ?y > ?z AND ?w = 'a' IGNORE CASE AND ?v IN (1) AND ANY i IN is SATISFIES (i = 1)"
    ).where
    assert [variable.name for variable in variables(where)] == ["x", "y", "z", "w", "v"]
    assert len(list(leaves(where))) == 4


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="half a character at 1:12"):
        parse("WHERE a = '\ud800'")
