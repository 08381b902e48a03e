"""Valid texts that are probably not meant so: what is warned of, where, and what is not."""

import time

import pytest

from tidings import Event, Network, Taxonomy
from tidings.language.likely_mistakes import Known, likely_mistakes
from tidings.model import observed_attributes
from tidings.model.observed_attributes import ObservedAttributes

EX = "http://example.org/"
EVENT = {
    "topic": "sport",
    "price": 20,
    "zip": "8750",
    "day": "2024-01-31",
    "sold": True,
    "user": {"age": 5},
    "offers": [{"price": 3, "shop": "acme"}],
}
NUMBER = "price has numbers in recent events, and"


@pytest.fixture
def known():
    attributes, taxonomy, network = ObservedAttributes("recent event"), Taxonomy(), Network()
    attributes.observe([Event("here", EVENT)])
    taxonomy.add_class(EX + "Sport")
    taxonomy.add_instance(EX + "derby", [EX + "Sport"])
    network.add_node("acme shoes")
    return Known(attributes, {"ex": EX}, taxonomy, {"exchange": network}, ("stocks",))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("topc = 'a'", "topc", "no recent event has the attribute topc; did you mean topic?"),
        ("TOPIC = 'a'", "TOPIC", "no recent event has the attribute TOPIC; did you mean topic?"),
        ("age > 5", "age", "no recent event has the attribute age; did you mean user.age?"),
        ("EXISTS colour", "colour", "no recent event has the attribute colour"),
        ("price + `the fee` > 5", "`the fee`", "no recent event has the attribute the fee"),
        ("user.agee > 5", "user.agee", "no recent event has the attribute user.agee; did you mean user.age?"),
        ("topic = sport", "sport", "sport is read as an attribute; for the text write 'sport'"),
        ("price > '20'", "'20'", f"{NUMBER} '20' is a text; write 20 without quotes"),
        ("price IN ('a', 'b')", "'a'", f"{NUMBER} 'a' is a text; they never compare"),
        ("price STARTS WITH '2'", "price", f"{NUMBER} STARTS WITH looks at texts only"),
        ("price SEARCH '2' STEMMED 'english'", "price", f"{NUMBER} SEARCH looks at texts only"),
        ("topic SEARCH 'sun or rain'", "or", "or is a word to be found; for either of both write OR"),
        (
            "topic SEARCH 'sun not rain'",
            "not",
            "not is a word to be found; to exclude a word write -word",
        ),
        (
            "topic SEARCH 'sun run*'",
            "run*",
            "run* finds the whole word run only; for a part of a word write CONTAINS, or STEMMED 'english' for its forms",
        ),
        ("topic = 5", "5", "topic has texts in recent events, and 5 is a number; for the text write '5'"),
        (
            "topic = -5",
            "-5",
            "topic has texts in recent events, and -5 is a number; for the text write '-5'",
        ),
        (
            "topic = ex:a",
            "ex:a",
            f"topic has texts in recent events, and ex:a is an IRI; for the text write '{EX}a'",
        ),
        ("MISSING topc", "topc", "no recent event has the attribute topc; did you mean topic?"),
        ("NOT (topc = 'a')", "topc", "no recent event has the attribute topc; did you mean topic?"),
        ("NOT topic = sport", "sport", "sport is read as an attribute; for the text write 'sport'"),
        (
            "sold = 'true'",
            "'true'",
            "sold has truth values in recent events, and 'true' is a text; write true without quotes",
        ),
        (
            "ANY o IN offers SATISFIES (o.price < 5 AND o.shpo = 'a')",
            "o.shpo",
            "no recent event has the attribute o.shpo; did you mean o.shop?",
        ),
        (
            "(?x, a, ?c) AND ?c ISA <= ex:Sprot",
            "ex:Sprot",
            "the taxonomy has no class ex:Sprot; did you mean ex:Sport?",
        ),
        (
            "topic = 'a' VIA exchange AT 'acme sheos'",
            "'acme sheos'",
            "the network 'exchange' has no node 'acme sheos'; did you mean 'acme shoes'?",
        ),
    ],
)
def test_a_likely_mistake_is_warned_of_at_its_place(known, text, place, message):
    (warning,) = likely_mistakes(text, known)
    assert (text[warning.start : warning.end], warning.message) == (place, message)


@pytest.mark.parametrize(
    "text",
    [
        "topic SEARCH 'sun OR rain \"now or never\" -cold'",
        "topic = 'sport' AND price > 20 AND source = 'x' AND MISSING time",
        "zip > 5 AND zip = '5' AND day > 2024-01-01 AND day = 'today'",
        "price IN ('a', 20) AND price < user.age AND price = $limit",
        "topic = 'A' IGNORE CASE AND topic CONTAINS 'a'",
        "ANY o IN offers SATISFIES (o.price < 5 AND topic = 'a')",
        "(?x, a, ?c) AND ?c ISA ex:Sport AND ?c ISA ex:derby AND ?c ISA $class",
        "topic = 'a' VIA exchange AT 'acme shoes'",
        "SELECT * FROM stocks WHERE per > 5",
        "SELECT ?x WHERE { ?x a ex:Sprot . FILTER(?x > 5) }",
        "this is no subscription",
        "price = 'x'^^xsd:integer AND price IN ('x'^^xsd:integer, 'y'^^xsd:integer)",
        "MISSING error AND error IS NULL AND NOT EXISTS error AND NOT city = 'Linz'",
        "NOT (topic = 'a' OR NOT ANY x IN errors SATISFIES (x.code = 5))",
    ],
)
def test_what_may_be_meant_is_not_warned_of(known, text):
    assert likely_mistakes(text, known) == []


GRAPH = """@prefix rss: <http://purl.org/rss/1.0/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
<http://x/1> a rss:item ; rss:title "Storm" ; dc:subject "Weather" ; <http://example.org/wind> 65 ; <http://other/p#tag> "x" ."""
TITLE = "(?item, rss:title, ?title) AND ?title"
LACKS = "no recent event has the"


@pytest.fixture
def graphs(known):
    taxonomy = Taxonomy()
    taxonomy.add_property("http://purl.org/dc/elements/1.1/subject", [EX + "about"])
    attributes = ObservedAttributes("recent event")
    turtle = Event("s", {}, datacontenttype="text/turtle", data=GRAPH.encode())
    attributes.observe([Event.from_rdf(GRAPH, "turtle", source="s"), turtle, Event("s", {"price": 5})])
    return Known(attributes, {"ex": EX}, taxonomy, {}, ("stocks",))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("(?x, rss:titel, ?t)", "rss:titel", f"{LACKS} property rss:titel; did you mean rss:title?"),
        ("(?x, dc:title, ?t)", "dc:title", f"{LACKS} property dc:title; did you mean rss:title?"),
        ("(?x, ex:WIND , ?t)", "ex:WIND", f"{LACKS} property ex:WIND; did you mean ex:wind?"),
        ("(?x, a, rss:item)", "a", f"{LACKS} property a; did you mean rdf:type?"),
        ("(?x, ex:tga, ?t)", "ex:tga", f"{LACKS} property ex:tga"),
        ("(?x, ex:tags, ?t)", "ex:tags", f"{LACKS} property ex:tags; did you mean <http://other/p#tag>?"),
        (
            "SELECT ?t WHERE { ?x <http://purl.org/rss/1.0/titel> ?t }",
            "<http://purl.org/rss/1.0/titel>",
            f"{LACKS} property <http://purl.org/rss/1.0/titel>; did you mean rss:title?",
        ),
        (
            "PREFIX r: <http://purl.org/rss/1.0/> SELECT ?t WHERE { ?x r:titel ?t }",
            "r:titel",
            f"{LACKS} property r:titel; did you mean rss:title?",
        ),
        (
            "title CONTAINS 'Storm' IGNORE CASE",
            "title",
            f"{LACKS} attribute title, but graphs have the property rss:title; write {TITLE} CONTAINS 'Storm' IGNORE CASE",
        ),
        (
            "price > 5 AND Wind > 60",
            "Wind",
            f"{LACKS} attribute Wind, but graphs have the property ex:wind; write (?item, ex:wind, ?wind) AND ?wind > 60",
        ),
        (
            "NOT subject = 'Sport'",
            "subject",
            f"{LACKS} attribute subject, but graphs have the property dc:subject; write (?item, dc:subject, ?subject)",
        ),
        ("prise > 5", "prise", f"{LACKS} attribute prise; did you mean price?"),
    ],
)
def test_properties_that_no_graph_has_are_warned_of(graphs, text, place, message):
    (warning,) = likely_mistakes(text, graphs)
    assert (text[warning.start : warning.end], warning.message) == (place, message)


@pytest.mark.parametrize(
    "text",
    [
        "(?x, rss:title, ?t), (?x, rdf:type, rss:item), (?x, ?p, 'x') AND price > 5",
        "(?x, ex:about, ?t)",  # by the taxonomy
        "(?x, rdf:_1, ?t), (?x, rdfs:member, ?t)",
        "MISSING title",
        "(?x, $property, ?t)",
    ],
)
def test_properties_that_graphs_may_have_are_not_warned_of(graphs, text, monkeypatch):
    assert likely_mistakes(text, graphs) == []
    monkeypatch.setattr(observed_attributes, "_OF_ONE_EVENT", 4)
    graphs.attributes.observe([Event.from_rdf(GRAPH, "turtle")])
    assert likely_mistakes("(?x, rss:titel, ?t)", graphs) == []  # of a graph that was cut, nothing is sure


def test_what_is_not_known_is_not_doubted(monkeypatch):
    nothing = Known(ObservedAttributes("recent event"), {}, Taxonomy(), {})
    assert likely_mistakes("topic = sport AND ?x ISA Sport AND (?x, a, b) VIA n AT 'b'", nothing) == []
    monkeypatch.setattr(observed_attributes, "_NAMES", 2)
    nothing.attributes.observe([Event(attributes={"a": 1, "b": 2, "c": 3})])
    assert likely_mistakes("topic = 'sport'", nothing) == []


def test_warnings_are_few_and_quick_about_a_long_text_and_many_names():
    attributes = ObservedAttributes("recent event")
    for n in range(4_999):
        attributes.add(f"temperature{n:04}")
    known = Known(attributes, {}, Taxonomy(), {})
    began = time.process_time()
    found = likely_mistakes(" OR ".join(f"temperatura{n % 2_000:04} = 1" for n in range(2_900)), known)
    assert time.process_time() - began < 1.0  # 0.2 s on a machine of 2024; without bounds minutes
    likely_mistakes(" AND ".join(f"NOT humidity{n} = 1" for n in range(2_900)), known)
    assert time.process_time() - began < 2.0
    assert len({warning.message for warning in found}) == len(found) == 10
    assert found[7].message.endswith("did you mean temperature0007?")


def test_events_that_are_cut_leave_no_name_doubtful(monkeypatch, known):
    monkeypatch.setattr(observed_attributes, "_OF_ONE_EVENT", 20)
    known.attributes.observe([Event(attributes={"a": [1] * 10})])
    assert likely_mistakes("topc = 'a'", known)
    known.attributes.observe([Event(attributes={"a": [1] * 20, "b": 1})])
    assert not likely_mistakes("topc = 'a'", known)


def test_without_events_only_a_text_without_quotes_is_doubted():
    attributes = ObservedAttributes("subscription of the file")
    attributes.add("topic")
    known = Known(attributes, {}, Taxonomy(), {}, by_events=False)
    texts = ["topic = sport", "NOT topic != sport"]
    for text in texts:
        (warning,) = likely_mistakes(text, known)
        assert warning.message == "sport is read as an attribute; for the text write 'sport'"
    meant = ["price < limit", "topic = user.topic", "topic = `sport`", "topc = 'a'", "EXISTS sport"]
    for text in [*meant, "ANY o IN offers SATISFIES (o.seller = owner)", "topic = price + fee"]:
        assert likely_mistakes(text, known) == []
