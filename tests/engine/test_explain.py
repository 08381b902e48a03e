"""Why an event matches or does not, in words that agree with what was told to subscribers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import date

import pytest

from tests.examples import seeds
from tests.kinds.contract.kinds import PATTERNS
from tests.kinds.operators.cases import Case
from tidings import Engine, Event, Out, Taxonomy, operator
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.network import Network
from tidings.model.explanation import Clause, Explanation


def event(text: str, **rest: object) -> Event:
    return Event.from_rdf(f"@prefix : <urn:tidings:> . {text}", "turtle", **rest)  # type: ignore[arg-type]


def engine_of(text: str, taxonomy: Taxonomy | None = None) -> Engine:
    engine = Engine(taxonomy=taxonomy)
    engine.subscribe("s", text)
    return engine


def test_a_match_shows_every_clause_and_what_it_was_bound_to() -> None:
    engine = engine_of("SELECT ?y WHERE (?x, p, ?y), (?y, year, ?z) AND ?z > 2003")
    told = engine.explain("s", event(":a :p :b . :b :year '2005' ."))
    assert (told.verdict, told.bindings) == ("match", {"y": "urn:tidings:b"})
    assert [clause.held for clause in told.clauses] == [True, True, True]
    assert str(told).splitlines() == [
        "s: match",
        "  ✓ (?x, <urn:tidings:p>, ?y)   ?x = urn:tidings:a, ?y = urn:tidings:b",
        "  ✓ (?y, <urn:tidings:year>, ?z)   ?z = 2005",
        "  ✓ ?z > 2003",
    ]


def test_the_first_clause_without_support_and_the_longest_prefix() -> None:
    engine = engine_of("WHERE (?x, p, ?y), (?y, year, ?z), (?y, q, ?w) AND ?z > 2003")
    told = engine.explain("s", event(":a :p :b . :a :p :c . :c :year 2005 ."))
    assert told.verdict == "no match"
    assert [clause.held for clause in told.clauses] == [True, True, False, None]
    assert told.clauses[2] == Clause(
        "(?y, <urn:tidings:q>, ?w)", False, "no such triple with ?y = urn:tidings:c"
    )
    assert "✗" in str(told)
    assert told.bindings == {}
    told = engine.explain("s", event(":a :p :c . :c :year 2001 ; :q 1 ."))
    assert told.clauses[-1] == Clause("?z > 2003", False, "does not hold for ?z = 2001")


def test_clauses_hold_jointly() -> None:
    """Each clause has support alone; together they have none."""
    told = engine_of("WHERE (?x, p, ?y), (?x, q, ?z)").explain("s", event(":a :p 1 . :b :q 2 ."))
    assert [clause.held for clause in told.clauses] == [True, False]


def test_the_alternative_that_went_furthest() -> None:
    engine = engine_of("WHERE ((?x, p, ?y) AND (?x, q, ?z) AND (?x, r, ?w)) OR (?x, other, ?y)")
    told = engine.explain("s", event(":a :p 1 ; :q 2 ."))
    assert told.verdict == "no match"
    assert [clause.held for clause in engine.explain("s", event(":a :other 1 .")).clauses] == [True]


def test_attributes_are_those_of_the_published_event() -> None:
    engine = engine_of(
        "WHERE price = 0.1 AND day > 2004-01-31 AND datacontenttype = 'x/y' AND tags = 'b' AND source = 'me'"
    )
    one = Event(
        attributes={"price": 0.1, "day": date(2005, 1, 1), "tags": ["a", "b"]},
        source="me",
        datacontenttype="x/y",
    )
    assert [n.verdict for n in engine.publish(one)] == ["match"]
    assert engine.explain("s", one).verdict == "match"
    other = Event(attributes={"price": 0.2})
    assert engine.explain("s", other).clauses[0] == Clause("price = 0.1", False, "price is 0.2")


def test_a_filter_is_shown_as_a_tree() -> None:
    engine = engine_of("WHERE topic = 'finance' AND (age BETWEEN 20 AND 30 OR geo IN ('CA', 'NY'))")
    told = engine.explain("s", Event(attributes={"topic": "finance", "age": 31}))
    assert str(told).splitlines() == [
        "s: no match",
        "  ✓ topic = 'finance'   topic is 'finance'",
        "  ✗ any of",
        "    ✗ age BETWEEN 20 AND 30   age is 31   ←",
        "    ✗ geo IN ('CA', 'NY')   geo is missing   ←",
    ]
    told = engine.explain("s", Event(attributes={"topic": "finance", "age": 25}))
    assert told.verdict == "match"
    assert [clause.decides for clause in told.clauses] == [True, False, True, False]


def test_a_pattern_shows_the_attributes_it_looked_at() -> None:
    engine = engine_of("WHERE (?x, p, ?y) AND topic = 'a' AND size > 3")
    told = engine.explain("s", event(":a :p 1 .", attributes={"topic": "a", "size": [1, 2]}))
    assert [clause.evidence for clause in told.clauses] == [
        "?x = urn:tidings:a, ?y = 1",
        "topic is 'a'",
        "does not hold, size is 1, 2",
    ]


def test_more_bindings_than_anyone_looks_through() -> None:
    """The one binding that holds may be left out: then nothing is claimed, and a match is never denied."""
    engine = engine_of("WHERE (?x, p, ?y), (?y, q, ?z)")
    many = " ".join(f":a :p :n{i} ." for i in range(1500))
    assert [n.verdict for n in engine.publish(event(f"{many} :n7 :q 1 ."))] == ["match"]
    assert engine.explain("s", event(f"{many} :n7 :q 1 .")).verdict in ("match", "undecided")
    told = engine.explain("s", event(many))
    assert told.verdict == "undecided"
    assert "1,000" in str(told)


def test_an_unreadable_event() -> None:
    told = engine_of("WHERE (?x, p, ?y)").explain("s", Event(datacontenttype="text/turtle", data=b"broken"))
    assert told.verdict == "error"
    assert "not readable as Turtle" in str(told)


@pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
@pytest.mark.parametrize("seed", range(5))
def test_explanations_agree_with_notifications(seed: int) -> None:
    rng = random.Random(100 + seed)
    engine = Engine(taxonomy=PATTERNS.taxonomy(rng))
    for i in range(30):
        engine.subscribe(f"s{i}", PATTERNS.text(rng))
    for _ in range(3):
        one = PATTERNS.event(rng)
        told = {n.subscription for n in engine.publish(one)}
        for i in range(30):
            explanation = engine.explain(f"s{i}", one)
            assert (explanation.verdict == "match") == (f"s{i}" in told), (
                f"{engine.text(f's{i}')}\n{explanation}"
            )
            if not any(clause.text.startswith("(") for clause in explanation.clauses):
                continue  # a filter: clauses after one that failed are shown too
            held = [clause.held for clause in explanation.clauses]
            assert held == sorted(held, key=[True, False, None].index)
            assert held.count(False) == (0 if explanation.verdict == "match" else 1)


# -- operators


@operator(cost=1e-6)
def locIn(event: Event, area: str) -> bool:
    return event.attributes.get("area") == area


@operator(cost=20e-3)
def mobPattern(event: Event, people: Out[int]) -> Iterator[int]:
    yield from event.attributes["groups"]


@operator(cost=10e-3)
async def near(event: Event, place: str) -> bool:
    return place.endswith(event.attributes.get("near", "?"))


def asked(text: str, **settings: object) -> Engine:
    engine = Engine(operators=[locIn, mobPattern, near], **settings)  # type: ignore[arg-type]
    engine.subscribe("s", text)
    return engine


def told(explanation: Explanation) -> list[str]:
    """The lines of an explanation without the times."""
    return [re.sub(r", [\d.]+ (s|ms|µs)(?=$| )", "", line) for line in str(explanation).splitlines()]


def test_a_match_by_operators_shows_what_they_answered() -> None:
    engine = asked("{locIn(Bronx), mobPattern(?people), (?people>50)}")
    found = engine.explain("s", Event(attributes={"area": "Bronx", "groups": [12, 85]}))
    assert told(found) == [
        "s: match",
        "  ✓ locIn('Bronx')   ran: true",
        "  ✓ mobPattern(?people)   ran: ?people = 85 (1 of 2)",
        "  ✓ ?people > 50",
    ]
    assert found.bindings == {"people": "85"}
    assert [clause.fate for clause in found.clauses] == ["ran", "ran", ""]
    found = engine.explain("s", Event(attributes={"area": "Bronx", "groups": [12, 30]}))
    assert told(found)[2:] == [
        "  ✓ mobPattern(?people)   ran: ?people = 12, 30",
        "  ✗ ?people > 50   does not hold for ?people = 12, 30   ←",
    ]
    found = engine.explain("s", Event(attributes={"area": "Bronx", "groups": []}))
    assert told(found)[2:] == ["  ✗ mobPattern(?people)   ran: nothing   ←", "  · ?people > 50"]


def test_a_call_is_spared_by_another() -> None:
    engine = asked("{mobPattern(?people), (?people>50), locIn(Bronx)}")
    found = engine.explain("s", Event(attributes={"area": "Queens"}))
    assert told(found) == [
        "s: no match",
        "  · mobPattern(?people)   spared: locIn('Bronx') is false",
        "  · ?people > 50",
        "  ✗ locIn('Bronx')   ran: false   ←",
    ]


def test_a_call_is_spared_by_what_is_cheaper() -> None:
    engine = asked("WHERE mobPattern(?people) AND topic = 'x' AND ?people > 50")
    assert told(engine.explain("s", Event(attributes={"topic": "y"}))) == [
        "s: no match",
        "  · mobPattern(?people)   spared: topic = 'x' does not hold",
        "  ✗ topic = 'x'   topic is 'y'   ←",
        "  · ?people > 50",
    ]


def test_a_call_is_spared_by_the_other_side_of_an_or() -> None:
    engine = asked("WHERE topic = 'x' AND (mobPattern(50) OR locIn(Bronx) OR NOT near(Times_Square))")
    assert told(engine.explain("s", Event(attributes={"topic": "x", "area": "Bronx"}))) == [
        "s: match",
        "  ✓ topic = 'x'   topic is 'x'   ←",
        "  ✓ any of",
        "    · mobPattern(50)   spared: the OR holds by locIn('Bronx')",
        "    ✓ locIn('Bronx')   ran: true   ←",
        "    · not",
        "      · near('Times_Square')   spared: the OR holds by locIn('Bronx')",
    ]


def test_an_operator_that_fails_leaves_it_undecided() -> None:
    engine = asked("WHERE locIn(Bronx) AND mobPattern(?people) AND ?people > 50")
    found = engine.explain("s", Event(attributes={"area": "Bronx"}))
    assert (found.verdict, found.message) == ("undecided", "mobPattern failed: KeyError: 'groups'")
    assert told(found)[1:] == [
        "  ✓ locIn('Bronx')   ran: true",
        "  ? mobPattern(?people)   failed: KeyError: 'groups'   ←",
        "  · ?people > 50   unknown",
    ]


def test_triples_bind_what_operators_are_asked_with() -> None:
    engine = asked("SELECT ?place WHERE (?shop, at, ?place) AND near(?place) AND locIn(Bronx)")
    shops = ":shop :at 'the Park', 'the Bridge' ."
    found = engine.explain("s", event(shops, attributes={"area": "Bronx", "near": "Bridge"}))
    assert (found.verdict, found.bindings) == ("match", {"place": "the Bridge"})
    assert told(found)[1:] == [
        "  ✓ (?shop, <urn:tidings:at>, ?place)   ?shop = urn:tidings:shop, ?place = the Bridge",
        "  ✓ near(?place)   ran: true",
        "  ✓ locIn('Bronx')   ran: true",
    ]
    found = engine.explain("s", event(shops, attributes={"area": "Bronx", "near": "Zoo"}))
    assert "  ✗ near(?place)   ran 2 times: false   ←" in told(found)
    found = engine.explain("s", event(":shop :by :road .", attributes={"area": "Bronx"}))
    assert told(found) == [
        "s: no match",
        "  ✗ (?shop, <urn:tidings:at>, ?place)   no such triple",
        "  · near(?place)   spared: (?shop, <urn:tidings:at>, ?place) is not there",
        "  · locIn('Bronx')   spared: (?shop, <urn:tidings:at>, ?place) is not there",
    ]


def test_an_event_that_does_not_arrive_asks_no_operator() -> None:
    network = Network()
    network.add_node("port")
    network.add_node("city")
    engine = asked("WHERE locIn(Bronx) VIA roads AT 'city'", networks={"roads": network})
    found = engine.explain("s", Event("port", {"area": "Bronx"}))
    assert told(found) == [
        "s: no match",
        "  · locIn('Bronx')   spared: VIA roads AT 'city': no path leads there from port",
        "  ✗ VIA roads AT 'city'   no path leads there from port",
    ]


def test_explaining_is_not_publishing() -> None:
    engine = asked("WHERE locIn(Bronx) AND mobPattern(?people)")
    one = Event(attributes={"area": "Bronx", "groups": [3]})
    engine.publish(one)
    before = engine.stats()
    engine.explain("s", one)
    after = engine.stats()
    assert (after.events, after.operators) == (before.events, before.operators)
    assert after.rows.equals(before.rows)


@pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
@pytest.mark.parametrize("seed", seeds(10, 25))
def test_explanations_by_operators_agree_with_the_definition(seed: int) -> None:
    rng = random.Random(f"explained {seed}")
    case = Case(
        rng, subscriptions=8, events=4, failing=rng.choice([0, 0.1, 0.4]), triples=0.3, mixed=seed % 3 == 0
    )
    engine = Engine(operators=case.operators)
    assert engine.subscribe_many((f"s{i}", text) for i, text in enumerate(case.texts)) == []
    for n in range(4):
        for i, text in enumerate(case.texts):
            found = engine.explain(f"s{i}", case.event(n))
            assert found.verdict == (case.verdict(i, n) or "no match"), f"{text}\n{found}"
            for clause in found.clauses:
                assert clause.evidence.startswith(clause.fate), f"{text}\n{found}"


STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
REVIEWS = Table("reviews", {"symbol": "text", "by": "text", "rating": "number"})
PEOPLE = Table("people", {"name": "text", "firm": "text"}, key=["name"])
CHAIN = (
    "SELECT * FROM stocks JOIN reviews USING (symbol) JOIN people ON by = name "
    "WHERE per BETWEEN 45 AND 70 AND rating >= 6 AND rating < 9 AND firm IN ('x', 'y')"
)


def over_tables(text: str = CHAIN) -> Engine:
    engine = Engine(tables=[STOCKS, REVIEWS, PEOPLE])
    engine.subscribe("s", text)
    return engine


def review(symbol: str | None, by: str | None, rating: float) -> Event:
    return Event.insert("reviews", {"symbol": symbol, "by": by, "rating": rating})


def stock(per: float, symbol: str = "GOOG") -> Event:
    return Event.insert("stocks", {"symbol": symbol, "per": per})


def test_of_a_change_the_condition_that_does_not_hold() -> None:
    told = over_tables().explain("s", review("GOOG", "Ida", 9))
    assert str(told).splitlines() == [
        "s: no match",
        "  ✗ comes: reviews  symbol 'GOOG'  by 'Ida'  rating 9.0",
        "    ✓ rating >= 6   reviews.rating is 9.0",
        "    ✗ rating < 9   reviews.rating is 9.0",
        "    · rows of stocks with the same symbol",
        "    · rows of people with the same name",
    ]


def test_of_a_change_the_rows_that_join_it() -> None:
    engine = over_tables()
    assert "no row joins it" in str(engine.explain("s", stock(50)))
    for one in (review("GOOG", "Ida", 7), review("GOOG", "Tom", 5), review(None, "Tom", 7)):
        engine.publish(one)
    told = engine.explain("s", stock(50))
    assert [(clause.held, clause.evidence) for clause in told.clauses][2:] == [
        (True, "2 rows join it, of which 1 hold what is asked of reviews"),
        (False, "no row joins it"),
    ]
    engine.publish(Event.insert("people", {"name": "Ida", "firm": "z"}))
    told = engine.explain("s", stock(50))
    assert told.clauses[-1].evidence == "1 row joins it, but none holds what is asked of people"
    engine.publish(Event.update("people", {"name": "Ida", "firm": "x"}))
    told = engine.explain("s", stock(50))
    assert (told.verdict, told.message) == ("match", "gains 3 rows")
    assert [clause.text for clause in told.clauses if clause.text.startswith("gains")] == [
        "gains stocks  symbol 'GOOG'  per 50.0",
        "gains reviews  symbol 'GOOG'  by 'Ida'  rating 7.0",
        "gains people  name 'Ida'  firm 'x'",
    ]
    assert not engine.joins.correlator.rows.of(0)  # nothing changes by it


def test_what_is_told_of_a_change_is_what_would_be_notified() -> None:
    engine = over_tables()
    random_ = random.Random(7)
    seen = set()
    for _ in range(150):
        symbol, name = random_.choice("ab"), random_.choice("IT")
        row: dict[str, object] = random_.choice(
            [
                {"symbol": symbol, "per": random_.choice([40, 50, 60])},
                {"symbol": symbol, "by": name, "rating": random_.choice([5, 7])},
                {"name": name, "firm": random_.choice(["x", None])},
            ]
        )
        table = "stocks" if "per" in row else "reviews" if "by" in row else "people"
        word = random_.choice(["insert", "delete"] if table == "reviews" else ["insert", "update", "delete"])
        change = getattr(Event, word)(table, row)
        told, found = engine.explain("s", change), engine.publish(change)
        seen.add(told.verdict)
        assert told.verdict == (found[0].verdict if found else "no match")
        changes = found[0].changes if found else ()
        counts = [sum(clause.text.startswith(word) for clause in told.clauses) for word in ("gains", "loses")]
        assert counts == [sum(one.change == sign for one in changes) for sign in "+-"]
    assert seen == {"match", "no match", "error"}


def test_events_that_say_nothing_to_a_join() -> None:
    engine = over_tables("SELECT * FROM stocks WHERE per > 50")
    assert engine.explain("s", Event(attributes={"x": 1})).message == "the event changes no row of a table"
    told = engine.explain("s", review("GOOG", "Ida", 7))
    assert told.message == "a row of reviews changes, and the subscription looks at stocks"
    assert "asks for a snapshot" in engine.explain("s", Event.snapshot("s")).message
    told = engine.explain("s", Event.insert("stock", {"symbol": "GOOG"}))
    assert (told.verdict, "did you mean 'stocks'" in told.message) == ("error", True)
    late = Event.insert("stocks", {"symbol": "GOOG", "per": 60}, source="here", sequence=3)
    assert engine.explain("s", late).verdict == "match"
    engine.publish(late)
    assert "came again, or late" in engine.explain("s", late).message
    told = engine.explain("s", Event.update("stocks", {"symbol": "GOOG", "per": 60}))
    assert (told.verdict, told.message) == ("no match", "the row stays as it is")
    truncated = engine.explain("s", Event(type="tidings.truncate", attributes={"table": "stocks"}))
    assert (truncated.verdict, truncated.message) == ("match", "loses 1 row")
