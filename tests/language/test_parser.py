"""Properties of parsing and printing, and texts made to break a parser."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.language.strategies import queries
from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    IsA,
    JoinedTable,
    Parameter,
    Query,
    TriplePattern,
    Variable,
    leaves,
    variables,
)
from tidings.language.syntax.tokens import WORDS
from tidings.model.terms import Iri, Literal
from tidings.model.values import constant_view

FIVE = Literal("5", XSD + "integer")


@examples(80)
@given(queries(templates=True))
def test_what_is_printed_parses_to_the_same_query(query: Query) -> None:
    assert parse(to_text(query)) == query


PIECES = (
    "SELECT FROM WHERE AND OR NOT SUCHTHAT BETWEEN IN LIKE CONTAINS MATCHES ISA EXISTS PREFIX FILTER REGEX ?x ?y a topic "
    "STARTS ENDS WITH ILIKE IGNORE CASE CIDR MISSING IS NULL ANY SATISFIES VIA AT INNER JOIN USING ON USING( a.x + - * / "
    "'t' \"t\"@en 5 2.5 2004-01-31 true <urn:a> dc:title :x $p `q` ( ) { } , . ; = != < <= > >= && || ! * (?x,p,?y) (a,b,1) f(?x) g() f( 5km 5x"
).split()


@examples(150)
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


@examples(50)
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
        "WHERE f(" + "a," * 10_000 + "b)",
        "WHERE f(" + "a," * (MEGABYTE // 2),
        "WHERE f(" + "a," * (MEGABYTE // 2 - 10) + ")",
        "WHERE " + "f(" * (MEGABYTE // 2),
        "WHERE " + "f(a, " * (MEGABYTE // 5),
        "WHERE " + "f(?x) AND " * 50_000 + "f(?x)",
        "WHERE NOT (" + " AND ".join(f"f(?x{i})" for i in range(20_000)) + ")",
        "WHERE f(" + "'a'" * (MEGABYTE // 3),
        "WHERE " + "f('" * (MEGABYTE // 3),
        "WHERE " + "`a`(" * (MEGABYTE // 4),
        "WHERE f(" + " " * MEGABYTE,
        "WHERE " + "f (" * (MEGABYTE // 3),
        "WHERE a = " + "5" * MEGABYTE + "parsec",
        "FROM a" + " JOIN b USING (x)" * 50_000,
        "FROM a JOIN b USING (" + "x," * (MEGABYTE // 2),
        "FROM a JOIN b USING (" * 40_000,
        "FROM a JOIN b ON " + "(" * MEGABYTE,
        "FROM a JOIN b ON " + "a.x = b.x AND " * 60_000,
        "FROM a JOIN b USING" + " " * MEGABYTE + "x",
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


NUMBERS = {
    "5000m": "5000",
    "1.5km": "1500",
    "20ms": "0.020",
    "2h": "7200",
    "-3.50min": "-210",
    "+1us": "0.000001",
    "0.1ft": "0.03048",
    "3kg": "3",
    "10MB": "10000000",
    "2KiB": "2048",
    "-0.0g": "0",
    "123456789012345678901234567890.5mi": "198684442656284444265628444427168.832",
}


@pytest.mark.parametrize(("written", "number"), NUMBERS.items())
def test_a_number_with_a_unit_is_the_exact_number_in_the_base(written: str, number: str) -> None:
    (literal,) = parse(f"WHERE f({written})").where.arguments  # type: ignore[union-attr]
    assert constant_view(literal) == constant_view(Literal(number, XSD + "decimal"))
    assert literal.datatype == XSD + ("decimal" if "." in literal.text else "integer")
    for text in ("a > {}", "a BETWEEN {} AND {}", "a IN ({},{})", "{} < a + b", "a + {} > b", "a = - 2 * {}"):
        assert parse(f"WHERE {text.replace('{}', written)}") == parse(
            f"WHERE {text.replace('{}', literal.text)}"
        )


def test_the_longest_number_may_have_a_unit() -> None:
    where = parse("WHERE a = " + "5" * 100_000 + "km").where
    assert where.right.text == "5" * 100_000 + "000"  # type: ignore[union-attr]


def test_in_a_triple_there_are_no_units() -> None:
    assert parse("WHERE (?x, p, 5m) AND ?x = 5m").where == And(
        (
            TriplePattern(Variable("x"), Iri("urn:tidings:p"), Iri("urn:tidings:5m")),
            Comparison(Variable("x"), "=", FIVE),
        )
    )


def test_a_call_stands_where_a_condition_may() -> None:
    where = parse("WHERE f() OR NOT (g(?x) AND ?x > 5), `in`(a b), (h(?y)) AND ?y < 2km").where
    assert [leaf.name for leaf in leaves(where) if isinstance(leaf, Call)] == ["f", "g", "in", "h"]
    assert parse("SELECT ?x {f(?x, ?y), ?x < ?y}") == parse("SELECT ?x WHERE f(?x, ?y) AND ?x < ?y")


def test_what_a_call_holds_is_what_it_says() -> None:
    text = "WHERE f(Times  Square, 5, 2004-01-31, TRUE, 'x y', <urn:a>, dc:title, http://a/b, ?v, $p, Note: this, 1e3)"
    (call,) = leaves(parse(text).where)
    assert isinstance(call, Call)
    assert call.arguments == (
        Literal("Times Square"),
        FIVE,
        Literal("2004-01-31", XSD + "date"),
        Literal("true", XSD + "boolean"),
        Literal("x y"),
        Iri("urn:a"),
        Iri("http://purl.org/dc/elements/1.1/title"),
        Iri("http://a/b"),
        Variable("v"),
        Parameter("p"),
        Literal("Note: this"),
        Literal("1e3", XSD + "double"),
    )


def test_words_before_a_parenthesis_call_nothing() -> None:
    assert parse("WHERE NOT(a = 1)AND(b IN(1,2,3))OR(EXISTS c)") == parse(
        "WHERE NOT a = 1 AND b IN (1, 2, 3) OR EXISTS c"
    )
    assert parse("WHERE(a, b, c)").where == parse("WHERE (a, b, c)").where


def test_many_calls_with_as_many_arguments_as_there_may_be() -> None:
    call = f"f({', '.join(['?x'] * 100)})"
    assert len(parse(f"WHERE {' AND '.join([call] * 1_000)}").where.parts) == 1_000  # type: ignore[union-attr]


STOCKS = "SELECT * FROM stocks JOIN reviews USING (symbol)"


def test_tables_are_joined_by_columns() -> None:
    text = "FROM a JOIN b USING (x, y) INNER JOIN c ON a.z = c.w AND b.q = c.r WHERE a.x > 5"
    assert parse(text) == Query(
        Comparison(Attribute("a.x"), ">", FIVE),
        stream="a",
        joined=(
            JoinedTable("b", using=("x", "y")),
            JoinedTable(
                "c",
                on=((Attribute("a.z"), Attribute("c.w")), (Attribute("b.q"), Attribute("c.r"))),
            ),
        ),
    )


@pytest.mark.parametrize(
    "spelled",
    [
        "from stocks join reviews using(symbol)",
        "FROM stocks INNER JOIN reviews\nUSING\t( `symbol` )",
        "SELECT * FROM `stocks` Join `reviews` Using (symbol)",
    ],
)
def test_a_join_can_be_spelled_otherwise_and_needs_no_condition(spelled: str) -> None:
    assert parse(spelled) == parse(STOCKS)
    for where in (" WHERE per > 5", " {per > 5}", " where (per > 5)"):
        assert parse(spelled + where) == parse(STOCKS + " WHERE per > 5")


def test_parentheses_behind_on_change_nothing() -> None:
    plain = parse("FROM a JOIN b ON a.x = b.y AND a.z = b.z WHERE a.x > 5")
    for on in ("(a.x = b.y AND a.z = b.z)", "(a.x = b.y) AND (a.z = b.z)", "((a.x=b.y)AND a.z=b.z)"):
        assert parse(f"FROM a JOIN b ON {on} WHERE a.x > 5") == plain
        assert parse(f"FROM a JOIN b ON{on.replace('a.x', ' a.x', 1)} WHERE a.x > 5") == plain


def test_words_of_joins_are_names_everywhere_else() -> None:
    for word in ("inner", "join", "on", "USING"):
        quoted = f"`{word}`"
        for text in (
            "WHERE {} = 5 AND {} IN (1, 2) AND a < {} AND {} BETWEEN 1 AND 2 AND MISSING {}",
            "FROM {} WHERE a = 5 VIA {} AT 'x'",
            "FROM {} JOIN a USING ({}) JOIN b ON {} = b.x AND b.y = {}",
            "FROM a JOIN {} USING (x) WHERE {} = 5",
            "FROM a JOIN {} ON a.x = b.y",
            "WHERE ANY {} IN {} SATISFIES ({} = 5)",
        ):
            assert parse(text.replace("{}", word)) == parse(text.replace("{}", quoted))
    for word in ("inner", "join", "on"):
        assert parse(f"WHERE {word}(x)").where == Call(word, (Literal("x"),))


def test_eight_tables_are_joined() -> None:
    query = parse("FROM t0 " + " ".join(f"JOIN t{i} USING (x)" for i in range(1, 8)))
    assert [table.name for table in query.joined] == [f"t{i}" for i in range(1, 8)]


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="half a surrogate pair at 1:12"):
        parse("WHERE a = '\ud800'")
