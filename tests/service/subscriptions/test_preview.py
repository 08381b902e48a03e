"""Questions that nobody has subscribed to yet: checked, explained, tried on events, completed."""

import pytest

import tidings
from tidings import Engine, Event, Taxonomy
from tidings.kinds.joins.schema.table import Table
from tidings.language.likely_mistakes import TextWarning
from tidings.service.subscriptions.class_search import ClassSearch
from tidings.service.subscriptions.completion import Completer, EventVocabulary
from tidings.service.subscriptions.preview import Preview

EX = "http://example.org/"
GRAPH = (
    f'<{EX}1> <http://purl.org/rss/1.0/title> "A goal" .\n'
    f'<{EX}1> <http://purl.org/dc/elements/1.1/subject> "Football" .\n'
)


@tidings.operator
def locIn(event, district: str):
    return event.attributes.get("district") == district


@pytest.fixture
def engine():
    taxonomy = Taxonomy()
    taxonomy.add_class(EX + "Sport", label="Sport")
    taxonomy.add_class(EX + "Football", [EX + "Sport"], label="Football")
    taxonomy.add_class(EX + "Politics")
    taxonomy.add_instance(EX + "derby", [EX + "Football"])
    tables = [Table("stocks", {"symbol": "text", "per": "number"}), Table("reviews", {"symbol": "text"})]
    network = tidings.Network()
    network.add_node("desk")
    network.add_node("acme shoes")
    return Engine(
        taxonomy=taxonomy,
        prefixes={"ex": EX},
        operators=[locIn],
        tables=tables,
        networks={"exchange": network},
    )


@pytest.fixture
def questions(engine):
    return Preview(engine)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("WHERE a = 5", ("filter",)),
        ("SELECT ?t WHERE (?i, rss:title, ?t)", ("pattern",)),
        ("WHERE a = 5 AND locIn('Bronx')", ("filter", "operator")),
        ("WHERE a = 5 VIA exchange AT desk", ("filter", "network")),
        ("SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.per > 4", ("join",)),
    ],
)
def test_a_text_is_of_a_kind(questions, text, kinds):
    checked = questions.check(text)
    assert (checked.ok, checked.kinds) == (True, kinds)


def test_what_is_wrong_has_its_place(questions):
    checked = questions.check("WHERE a = 5 AND\n  b >")
    assert not checked.ok
    assert (checked.line, checked.column) == (2, 6)
    assert "the text ends" in checked.message


def test_a_broad_text_is_remarked(questions):
    checked = questions.check("SELECT * WHERE (?x, ?p, ?y)")
    assert checked.ok
    assert checked.warnings == (TextWarning("it would match nearly every event", 0, 27),)


def test_likely_mistakes_are_remarked_with_their_places(engine):
    events = [Event("s", {"topic": "sport", "price": 20})]
    questions = Preview(engine, lambda: events)
    text = "topc = 'sport'"
    assert questions.check(text).warnings == (
        TextWarning("no recent event has the attribute topc; did you mean topic?", 0, 4),
    )
    events.insert(0, Event("s", {"topc": "sport"}))
    assert questions.check(text).warnings == ()
    assert questions.check("price > '20'").warnings != ()
    assert questions.check("price > '20'", about_events=False).warnings == ()


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [("storm", "storm", 1), ("WHERE 'big storm'", "big storm", 7), ("el niño", "el niño", 1)],
)
def test_words_alone_get_advice_on_how_to_find_them(engine, text, words, column):
    events = []
    questions = Preview(engine, lambda: events)
    found = f"found only '{words}' at 1:{column}; to find it in titles write WHERE"
    plain = f"{found} title CONTAINS '{words}' IGNORE CASE"
    checked = questions.check(text)
    assert (checked.ok, checked.message, checked.line, checked.column) == (False, plain, 1, column)
    graph = '<http://x/1> <http://purl.org/rss/1.0/title> "Storm" .\n'
    events.append(Event.from_rdf(graph, "nt", source="s"))
    pattern = f"(?item, rss:title, ?title) AND ?title CONTAINS '{words}' IGNORE CASE"
    assert questions.check(text).message == f"{found} {pattern}"
    assert questions.check(text, about_events=False).message == plain
    assert questions.graph_example() == f"WHERE {pattern}".replace(words, "storm")
    events[:0] = [Event("s", {"headline": "Storm", "size": n}) for n in range(5)]
    assert questions.graph_example() is None
    assert questions.check(text).message == f"{found} {pattern}"  # no other title is known
    events[:0] = [Event("s", {"title": "Storm", "size": n}) for n in range(5)]
    assert questions.check(text).message == plain
    for begun in ("tit", "sel", "WHERE", "storm = ", "storm AND"):
        assert "found only" not in questions.check(begun).message


def test_a_misspelt_node_has_its_place(questions):
    checked = questions.check("topic = 'a'\nVIA exchange AT 'acme sheos'")
    assert checked.message == "the network 'exchange' has no node 'acme sheos'; did you mean 'acme shoes'?"
    assert (checked.ok, checked.line, checked.column) == (False, 2, 17)


def test_checking_keeps_nothing(questions):
    questions.check("WHERE a = 5")
    assert len(questions.engine) == 0


def test_a_trial_has_matches_and_near_misses_the_newest_first(questions):
    events = [Event("s", {"a": n % 3, "b": n}, id=str(n)) for n in reversed(range(30))]
    trial = questions.try_on("WHERE a = 1 AND b > 20", events)
    assert (trial.looked, trial.matched) == (30, 3)
    assert [reason.event.id for reason in trial.matches] == ["28", "25", "22"]
    # Both of one clause held in all of these; the newest come first.
    assert [reason.event.id for reason in trial.near][:3] == ["29", "27", "26"]
    assert "✗ a = 1" in str(trial.near[0].explanation)
    # Neither clause held: no near miss.
    assert "0" not in [reason.event.id for reason in trial.near]


def test_a_trial_ends_in_time(questions):
    ticks = iter(range(100))
    trial = questions.try_on(
        "WHERE a = 1", [Event("s", {"a": 1})] * 50, seconds=10, clock=lambda: float(next(ticks))
    )
    assert trial.late
    assert trial.looked == 10


JOIN = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.per > 4"


def test_a_join_is_tried_on_changes_from_the_oldest_on(questions):
    newest_first = [
        Event.insert("reviews", {"symbol": "IBM"}),
        *(Event("s", {"n": n}) for n in range(1_000)),  # which one by one would take seconds
        Event.insert("stocks", {"symbol": "IBM", "per": 50}),
    ]
    trial = questions.try_on(JOIN, newest_first)
    assert (trial.looked, trial.matched, trial.late) == (1_002, 1, False)
    assert trial.matches[0].explanation.message == "reviews gained 1 row, stocks gained 1 row"
    assert {change.table: change.row["symbol"] for change in trial.rows} == {
        "stocks": "IBM",
        "reviews": "IBM",
    }


def test_a_join_is_tried_on_the_rows_that_were_there_before():
    stocks = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
    preview = Preview(Engine(tables=[stocks, Table("reviews", {"symbol": "text"})]))
    oldest_first = [
        Event.update("stocks", {"symbol": "OLD", "per": 5}, {"symbol": "OLD", "per": 1}, id="1"),
        Event.insert("reviews", {"symbol": "NEW"}, id="2"),
        Event.insert("reviews", {"symbol": "OLD"}, id="3"),
        Event.delete("stocks", {"symbol": "GONE", "per": 60}, id="4"),
        Event.delete("reviews", {"symbol": "GONE"}, id="5"),
        Event.delete("stocks", {"symbol": "UNKNOWN"}, id="6"),
    ]
    present = {
        "stocks": [{"symbol": "OLD", "per": 5}, {"symbol": "NEW", "per": 70}],
        "reviews": [{"symbol": "NEW"}, {"symbol": "NEW"}, {"symbol": "OLD"}],
    }
    trial = preview.try_on(JOIN, oldest_first[::-1], rows=lambda tables: present)
    assert [reason.event.id for reason in trial.matches] == ["4", "3", "2"]
    assert [(change.table, change.change) for change in trial.matches[0].changes] == [
        ("stocks", "-"),
        ("reviews", "-"),
    ]
    assert sorted(change.row["symbol"] for change in trial.rows) == ["NEW", "NEW", "NEW", "OLD", "OLD"]
    assert preview.try_on(JOIN, [], rows=lambda tables: present).rows is not None
    unknown = preview.try_on(JOIN, [], rows=lambda tables: None)
    assert (unknown.is_join, unknown.rows) == (True, None)


def completions(engine, text, events=()):
    vocabulary = EventVocabulary()
    vocabulary.observe(events)
    at = text.index("|")
    completer = Completer(engine, ClassSearch(engine.taxonomy, engine.prefixes), vocabulary)
    return completer.complete(text.replace("|", ""), at)


EVENTS = [
    Event("camera/7", {"topic": "sport", "device": {"kind": "phone"}, "tags": ["a", "b"], "size": 12}),
    Event(source="feed", datacontenttype="application/n-triples", data=GRAPH.encode()),
]


@pytest.mark.parametrize(
    ("text", "kind", "first"),
    [
        ("WHERE to|", "attribute", "topic"),
        ("WHERE device.|", "attribute", "device.kind"),
        ("WHERE topic = '|", "value", "sport'"),
        ("SELECT ?x WHERE (?i, rss:|", "property", "rss:title"),
        ("SELECT ?x WHERE (?i, dc:subject, 'Foo|", "value", "Football'"),
        ("SELECT ?x WHERE (?i, sk|", "prefix", "skos:"),
        ("SELECT ?x WHERE (?i, dc:subject, ?x) AND ?x ISA |", "class", "ex:Football"),
        ("SELECT ?x WHERE (?i, dc:subject, ?x) AND ?x ISA ex:S|", "class", "ex:Sport"),
        ("WHERE loc|", "operator", "locIn("),
        ("SELECT * FROM st|", "table", "stocks"),
        ("WHERE a = 1 VIA ex|", "network", "exchange"),
        ("WHERE a = 1 VIA exchange AT 'ac|", "node", "'acme shoes'"),
        ("WHERE topic = 'x' AND NO|", "keyword", "NOT"),
        ("SELECT ?title WHERE (?ti|", "variable", "?title"),
        ("WHERE topic |", "comparison", "= "),
        ("WHERE topic = 'x' AND (other.name st|", "comparison", "STARTS WITH "),
        ("SELECT ?t WHERE (?i, rss:title, ?t) AND ?t IS|", "comparison", "IS NULL"),
        ("WHERE NOT topic !|", "comparison", "!= "),
        ("WHERE topic = |", "value", "'sport'"),
        ("WHERE topic != sp|", "value", "'sport'"),
        ("WHERE topic IN ('a', |", "value", "'sport'"),
        ("WHERE size < |", "value", "12"),
    ],
)
def test_what_could_come_next(engine, text, kind, first):
    found = completions(engine, text, EVENTS)
    assert (found[0].kind, found[0].text) == (kind, first)
    before = text.partition("|")[0]
    # What is completed takes the place of what was typed of it.
    assert questionable(before[: found[0].start] + found[0].text, text)


def questionable(after: str, text: str) -> bool:
    return after.startswith(text.partition("|")[0][:10])


def test_inside_an_unknown_text_nothing_is_offered(engine):
    assert completions(engine, "WHERE nothing = 'x|", EVENTS) == []


@pytest.mark.parametrize("text", ["WHERE topic = 'sport'|", "WHERE EXISTS |", "SELECT ?x WHERE (?i |"])
def test_no_comparison_is_offered_elsewhere(engine, text):
    assert "comparison" not in {found.kind for found in completions(engine, text, EVENTS)}


def test_hostile_events_teach_nothing_and_break_nothing(engine):
    vocabulary = EventVocabulary()
    deep: dict = {}
    for _ in range(50):
        deep = {"a": deep}
    vocabulary.observe(
        [
            Event("s", deep),
            Event(source="s", datacontenttype="application/n-triples", data=b"<<<"),
            Event("s", {"it's": "it's", "x" * 5: "y" * 10_000}),
        ]
    )
    attributes, _ = vocabulary.seen()
    assert all("'" not in value and len(value) <= 60 for values in attributes.values() for value in values)


def test_classes_have_relatives(engine):
    class_search = ClassSearch(engine.taxonomy, engine.prefixes)
    assert [named.label for named in class_search.roots()] == ["Politics", "Sport"]
    about = class_search.about(EX + "Football")
    assert about is not None
    assert [named.written for named in about.parents] == ["ex:Sport"]
    assert [named.iri for named in about.instances] == [EX + "derby"]
    assert [named.label for named in class_search.search("foot")] == ["Football"]
    assert class_search.about(EX + "Nothing") is None
