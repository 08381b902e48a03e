"""Examples of the editor: readable, valid, and one of each kind that the service has declarations for."""

from __future__ import annotations

import tidings
from tidings import Engine, Event, Network
from tidings.kinds.joins.schema.table import Table
from tidings.service.subscriptions.preview import Preview
from tidings.service.web.pages.examples import examples, like_this


@tidings.operator
def locIn(event, district: str, metres: float):
    return True


def test_examples_are_readable_and_of_every_kind() -> None:
    network = Network()
    for name in ("desk", "acme"):
        network.add_node(name)
    network.add_edge("desk", "acme")
    stocks = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
    tables = [stocks, Table("reviews", {"symbol": "text", "rating": "number"})]
    preview = Preview(Engine(operators=[locIn], tables=tables, networks={"exchange": network}))
    newest_first = [
        Event("s", {
            "n": 1794837080 + n, "seen": n, "orderId": 7 + n % 3, "price": 1700.37 + n % 10 * 17.3, "district": "Bronx",
            "time": f"2026-01-{n:02}", "ref": f"a-{n}",
        })
        for n in range(30, 0, -1)
    ]  # fmt: skip
    rows = [Event.insert("stocks", {"symbol": f"S{n % 2}", "per": 10 * n % 70}) for n in range(20)]
    made, from_events = examples([*rows, *newest_first], preview)
    assert from_events
    assert {example["words"]: example["text"] for example in made} == {
        "Everything with the district Bronx": "WHERE district = 'Bronx'",
        "price above 1,800": "WHERE price > 1800",
        "Both together, for Bronx": "WHERE district = 'Bronx'\n  AND price <= 1800",
        "Rows of stocks and reviews with the same symbol": "SELECT * FROM stocks JOIN reviews USING (symbol)\nWHERE stocks.per > 40",
        "What the network exchange lets through to acme": "WHERE district = 'Bronx'\nVIA exchange AT 'acme'",
        "Calls the operator locIn": "WHERE locIn('Bronx', 10)",
    }
    made, from_events = examples([], preview)
    assert not from_events
    assert len(made) == 7


STORM = """<http://x/1> <http://purl.org/rss/1.0/title> "Storm warning for the coast" .
<http://x/1> <http://purl.org/dc/elements/1.1/subject> "Storm" .
<http://x/1> <http://example.org/weather#wind> "65" .
<http://x/1> <http://example.org/weather#level> "orange" .
"""
ITEM = "<http://x/1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://purl.org/rss/1.0/item> .\n"


def test_what_is_made_from_events_matches_one_of_them() -> None:
    preview = Preview(Engine())
    event = Event.from_rdf(STORM, "nt", source="s")
    made, from_events = examples([event], preview)
    assert from_events
    assert made[-1] == {
        "words": "Everything with a title",
        "text": "SELECT ?title WHERE (?item, rss:title, ?title)",
    }
    made, _ = examples([Event.from_rdf(STORM + ITEM, "nt", source="s"), event], preview)
    assert made[-1]["words"] == "Every item of every feed"
    for example in made:
        assert preview.try_on(example["text"], [Event.from_rdf(STORM + ITEM, "nt", source="s")]).matched == 1


def test_a_text_is_made_for_events_like_one() -> None:
    preview = Preview(Engine(prefixes={"met": "http://example.org/weather#"}))
    triples = "(?item, rss:title, ?title), (?item, met:wind, ?wind), (?item, dc:subject, 'Storm'), (?item, met:level, 'orange')"
    assert like_this(Event.from_rdf(STORM, "nt"), preview) == f"SELECT ?title, ?wind\nWHERE {triples}"
    sale = Event("s", {"topic": "sport", "id": "x", "price": 5, "shop": "acme", "colour": "red"})
    assert like_this(sale, preview) == "WHERE topic = 'sport'\n  AND shop = 'acme'"
    assert like_this(Event("s", {"price": 5}), preview) is None
