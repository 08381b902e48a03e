"""A new kind of subscription is one folder: three that only these tests know go all the way, alone and combined."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.engine.toy_kinds import KINDS, Aisle, Counting, EveryNth, Heavier, ShelfRows
from tidings import (
    Engine,
    Event,
    IndexFileError,
    Network,
    Out,
    SubscriptionError,
    Table,
    TidingsError,
    operator,
)
from tidings.engine.plan import make_plan
from tidings.language.parser import parse
from tidings.language.query import (
    And,
    AnyElement,
    Attribute,
    Comparison,
    KindCondition,
    Not,
    Or,
    Query,
    TextTest,
    Variable,
    Via,
)
from tidings.model.notification import Notification
from tidings.model.pairs import Pairs
from tidings.model.terms import Literal
from tidings.storage import versions

SOURCE = Path(__file__).parents[2] / "src"


def condition(text: str):
    return parse(f"WHERE {text}").where


@operator
def near(event: Event, place: str) -> bool:
    return event.attributes.get("place") == place


@operator
def size(event: Event, n: Out[int]) -> Iterator[int]:
    yield int(event.attributes.get("size", 0))


def network() -> Network:
    made = Network()
    for name, where in (("hall", None), ("door", "topic = 'news'"), ("yard", None)):
        made.add_node(name, where)
    made.add_edge("hall", "door")
    made.add_edge("door", "yard")
    return made


ASKED: dict[str, Query] = {
    "shelf": Query(Aisle(3)),
    "heavy": Query(Heavier(5)),
    "heavy shelf": Query(And((Aisle(3), Heavier(5)))),
    "not the shelf": Query(And((Not(Aisle(3)), condition("topic = 'news'")))),
    "shelf or topic": Query(Or((Aisle(3), condition("topic = 'news'")))),
    "shelf and filter": Query(And((Aisle(3), condition("topic = 'news'")))),
    "shelf and call": Query(And((Aisle(3), condition("near('Bronx')")))),
    "shelf and answer": Query(And((Aisle(3), condition("size(?n) AND ?n > 4")))),
    "heavy or call": Query(Or((Heavier(5), condition("near('Bronx')")))),
    "shelf in the yard": Query(Aisle(3), via=Via("net", "yard")),
    "all": Query(
        And((Aisle(3), Heavier(5), condition("topic = 'news' AND near('Bronx')"))), via=Via("net", "yard")
    ),
    "title on the shelf": Query(
        And((condition("(?i, <urn:title>, ?t)"), Aisle(3), Heavier(5))), select=(Variable("t"),)
    ),
    "third": Query(And((EveryNth(3), condition("topic = 'news'")))),
}


def engine_of(asked: dict[str, Query] = ASKED, **options: object) -> Engine:
    engine = Engine(
        kinds=KINDS,
        operators=[near, size],
        networks={"net": network()},
        **options,  # type: ignore[arg-type]
    )
    for id, query in asked.items():
        engine.subscribe(id, query)
    return engine


def event_of(rng: random.Random, number: int) -> Event:
    attributes = {
        "shelf": rng.choice([1, 3, [1, 3]]),
        "weight": rng.choice([4, 5, 6.5]),
        "topic": rng.choice(["news", "sport"]),
        "place": rng.choice(["Bronx", "Queens"]),
        "size": rng.choice([2, 7]),
    }
    return Event.from_rdf(
        f'<urn:i> <urn:title> "T{number}" .',
        "turtle",
        source=rng.choice(["hall", "elsewhere"]),
        id=f"e{number}",
        attributes=attributes,
    )


def expected(event: Event) -> dict[str, dict[str, str]]:
    """By the meaning of the words, but for `third`: ids and bindings."""
    has = dict(event.attributes)
    shelf = 3 in (has["shelf"] if isinstance(has["shelf"], list) else [has["shelf"]])
    heavy, news, bronx = has["weight"] > 5, has["topic"] == "news", has["place"] == "Bronx"
    yard = event.source == "hall" and news
    held = {
        "shelf": shelf,
        "heavy": heavy,
        "heavy shelf": shelf and heavy,
        "not the shelf": not shelf and news,
        "shelf or topic": shelf or news,
        "shelf and filter": shelf and news,
        "shelf and call": shelf and bronx,
        "shelf and answer": shelf and has["size"] > 4,
        "heavy or call": heavy or bronx,
        "shelf in the yard": shelf and yard,
        "all": shelf and heavy and news and bronx and yard,
        "title on the shelf": shelf and heavy,
    }
    bindings = {"shelf and answer": {"n": str(has["size"])}, "title on the shelf": {"t": f"T{event.id[1:]}"}}
    return {id: bindings.get(id, {}) for id, holds in held.items() if holds}


def events(count: int = 60) -> list[Event]:
    rng = random.Random(5)
    return [event_of(rng, number) for number in range(count)]


def answers(
    engine: Engine, published: list[Event], without: str = "third"
) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {event.id: {} for event in published}
    for answer in Notification.from_table(engine.publish_many(published)):
        assert answer.verdict == "match"
        if answer.subscription != without:
            assert answer.subscription not in found[answer.event]
            found[answer.event][answer.subscription] = answer.bindings
    return found


def test_they_match_alone_and_combined_with_every_other_kind() -> None:
    published = events(200)
    wanted = {event.id: expected(event) for event in published}
    assert answers(engine_of(), published) == wanted
    assert set().union(*wanted.values()) == set(ASKED) - {"third"}
    one_by_one = engine_of()
    assert {e.id: answers(one_by_one, [e])[e.id] for e in published} == wanted


def test_all_at_once_in_one_subscription_with_triples() -> None:
    query = Query(
        And(
            (
                condition(
                    "(?i, <urn:title>, ?t) AND topic = 'news' AND near('Bronx') AND size(?n) AND ?n > 4"
                ),
                Aisle(3),
                Heavier(5),
            )
        ),
        via=Via("net", "yard"),
    )
    engine, matched = engine_of({"all of it": query}), 0
    for event in events(200):
        meant = expected(event)
        wanted = "all" in meant and "shelf and answer" in meant
        found = engine.publish(event)
        assert [answer.bindings for answer in found] == (
            [{"i": "urn:i", "t": f"T{event.id[1:]}", "n": "7"}] if wanted else []
        )
        matched += wanted
    assert matched


def test_a_state_goes_on_from_batch_to_batch() -> None:
    engine, count = engine_of({"third": ASKED["third"]}), 0
    for event in events():
        count += event.attributes["topic"] == "news"
        notified = [answer.subscription for answer in engine.publish(event)]
        assert notified == (["third"] if event.attributes["topic"] == "news" and count % 3 == 0 else [])
    assert count > 6


def test_a_kind_with_state_takes_all_of_a_subscription_or_refuses_it() -> None:
    engine = engine_of({})
    with pytest.raises(SubscriptionError, match="leave VIA net out"):
        engine.subscribe("third", Query(EveryNth(3), via=Via("net", "yard")))
    assert "third" not in engine
    all_of_it = And((EveryNth(2), Aisle(3), Heavier(5), condition("topic = 'news'")))
    engine.subscribe("second", Query(all_of_it))
    found = engine.publish_many(
        [Event(attributes={"shelf": 3, "weight": 6, "topic": "news"}, id=str(i)) for i in range(5)]
    )
    assert found["event"].to_pylist() == ["1", "3"]


def test_validity_ends_for_every_role() -> None:
    engine = engine_of({})
    for id, query in (("shelf", ASKED["shelf"]), ("heavy", ASKED["heavy"]), ("second", Query(EveryNth(1)))):
        engine.subscribe(id, query, valid_until="2030-01-01T00:00:00Z")
    for time, matched in (("2029-12-31T23:59:59Z", 3), ("2030-01-01T00:00:01Z", 0)):
        event = Event(attributes={"shelf": 3, "weight": 6}, time=time)
        assert len(engine.publish(event)) == matched


def test_a_checker_sees_only_what_is_left() -> None:
    engine = engine_of({"heavy shelf": ASKED["heavy shelf"]})
    engine.publish_many([Event(attributes={"shelf": 1, "weight": 9})] * 5)
    limits = engine._index.checkers["scales"]
    assert limits.checked == 0  # type: ignore[attr-defined]
    assert len(engine.publish(Event(attributes={"shelf": 3, "weight": 9}))) == 1
    assert limits.checked == 1  # type: ignore[attr-defined]


def plan(query: Query) -> list[tuple[str, list[str]]]:
    """By way the kind that finds it, and those that check it."""
    made = make_plan(query, engine_of({})._kinds)
    return [(way.finder, [name for name, _ in way.checks]) for way in made.ways]


def test_each_kind_takes_its_part() -> None:
    assert plan(ASKED["heavy shelf"]) == [("shelves", ["scales"])]
    assert plan(ASKED["shelf and filter"]) == [("shelves", ["residuals"])]
    assert plan(ASKED["not the shelf"]) == [("filters", ["residuals"])]
    assert plan(ASKED["heavy"]) == plan(Query(Heavier(1))) == [("every_event", ["scales"])]
    assert plan(Query(Not(Aisle(3)))) == [("every_event", ["residuals"])]
    assert plan(ASKED["title on the shelf"]) == [("patterns", ["residuals", "scales"])]
    assert plan(ASKED["all"]) == [("shelves", ["residuals", "networks", "scales", "operators"])]


def test_explained() -> None:
    engine = engine_of()
    event = Event("hall", {"shelf": 3, "weight": 4, "topic": "news"})
    text = str(engine.explain("heavy shelf", event))
    assert text.startswith("heavy shelf: no match")
    assert "✓ shelf 3" in text
    assert "✗ heavier than 5" in text
    assert engine.explain("shelf", event).verdict == "match"
    assert "every 3th" in str(engine.explain("third", event))
    assert engine.why(Query(Not(Aisle(3))), event).verdict == "no match"


def test_removed_and_replaced() -> None:
    engine, event = engine_of(), Event("hall", {"shelf": 3, "weight": 9, "topic": "sport"})
    before = {answer.subscription for answer in engine.publish(event)}
    assert {"shelf", "heavy shelf"} <= before
    assert engine.unsubscribe("shelf")
    assert not engine.unsubscribe("shelf")
    engine.subscribe("heavy shelf", "WHERE topic = 'news'")
    engine.subscribe("heavy", ASKED["third"])
    assert {answer.subscription for answer in engine.publish(event)} == before - {
        "shelf",
        "heavy shelf",
        "heavy",
    }
    assert engine.unsubscribe("heavy")
    assert "heavy" not in engine


@pytest.mark.parametrize("folded", [False, True])
def test_saved_and_loaded(tmp_path: Path, folded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if folded:
        monkeypatch.setattr("tidings.engine.index.FOLD_AT_LEAST", 3)
    engine, published = engine_of(), events()
    wanted = answers(engine, published)
    engine.unsubscribe("shelf")
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, operators=[near, size], kinds=KINDS)
    loaded.subscribe("shelf", ASKED["shelf"])
    assert answers(loaded, published) == wanted
    assert loaded.explain("heavy shelf", published[0]) == engine.explain("heavy shelf", published[0])
    counters = loaded._stateful["counting"].counters  # type: ignore[attr-defined]
    assert counters["third"][2] == 2 * sum(event.attributes["topic"] == "news" for event in published)


def test_an_index_names_kinds_and_never_what_to_import(tmp_path: Path) -> None:
    engine_of().save(tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"toy_kinds" not in path.read_bytes(), path
    with pytest.raises(IndexFileError, match="not known: counting, scales, shelves; give them with kinds="):
        Engine.load(tmp_path, operators=[near, size])


def test_versions_of_an_index(tmp_path: Path) -> None:
    published = events()
    asked = {id: query for id, query in ASKED.items() if id != "third"}
    wanted = answers(engine_of(asked), published)
    some = dict(list(asked.items())[:6])
    versions.publish(tmp_path, engine_of(some))
    rest = [versions.Change(id, query) for id, query in asked.items() if id not in some]
    versions.append(tmp_path, rest, operators=[near, size], kinds=KINDS)
    opened = versions.open(tmp_path, versions.current(tmp_path), operators=[near, size], kinds=KINDS)
    assert answers(opened, published) == wanted
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"toy_kinds" in path.read_bytes()]
    compacted = versions.compact(tmp_path, operators=[near, size], kinds=KINDS)
    opened = versions.open(tmp_path, compacted, operators=[near, size], kinds=KINDS)
    assert answers(opened, published) == wanted


def test_a_kind_that_the_engine_was_not_given() -> None:
    with pytest.raises(SubscriptionError, match="shelf 3 is of no kind that the engine knows"):
        Engine().subscribe("s", Query(Aisle(3)))


def test_kinds_of_installed_packages(tmp_path: Path) -> None:
    """By an entry point, as a package would offer them."""
    info = tmp_path / "shelving-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelving\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tidings.kinds]\nshelves = tests.engine.toy_kinds:Shelves\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tidings import Engine, Event\n"
        "from tidings.language.query import Query\n"
        "from tests.engine.toy_kinds import Aisle\n"
        "engine = Engine()\n"
        "engine.subscribe('s', Query(Aisle(3)))\n"
        "print(len(engine.publish(Event(attributes={'shelf': 3}))))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_nothing_in_the_package_knows_of_them() -> None:
    words = re.compile(r"\b(Aisle|Heavier|EveryNth|toy_kinds)\b")
    for path in SOURCE.rglob("*.py"):
        assert not words.search(path.read_text()), path


@pytest.mark.parametrize(
    "query",
    [
        Query(And((Aisle(3), TextTest(Attribute("a"), "MATCHES", Literal("("))))),
        Query(TextTest(Attribute("a"), "CIDR", Literal("nowhere"))),
        Query(AnyElement("x", Attribute("items"), Aisle(3))),
        Query(And((Aisle(3), AnyElement("x", Attribute("items"), Aisle(3))))),
        Query(And([Aisle(3)])),  # type: ignore[arg-type]
        Query(And((Aisle(3), 5))),  # type: ignore[arg-type]
        Query(5),  # type: ignore[arg-type]
        Query(Comparison(Attribute("a"), "~", Literal("x"))),
        Query(And((Aisle(3), Comparison(Attribute("a"), "~", Literal("x"))))),
    ],
)
def test_a_tree_that_is_none_is_refused_and_harms_nobody(query: Query) -> None:
    engine = engine_of({"shelf": ASKED["shelf"]})
    with pytest.raises(SubscriptionError):
        engine.subscribe("bad", query)
    assert [answer.subscription for answer in engine.publish(Event(attributes={"shelf": 3}))] == ["shelf"]


def test_json_from_outside_is_a_text_like_any_other() -> None:
    engine = engine_of({"shelf": ASKED["shelf"]})
    with pytest.raises(SubscriptionError):
        engine.subscribe("s", engine.text("shelf"))
    with pytest.raises(SubscriptionError):
        engine.why(engine.text("shelf"), Event())


def test_a_tree_of_the_language_is_its_text() -> None:
    engine = Engine(tables=[Table("a", {"k": "integer"})])
    engine.subscribe("s", parse("SELECT ?t WHERE (?i, <urn:p>, ?t) AND ?t > 5"))
    engine.subscribe("join", parse("SELECT * FROM a WHERE k > 5"))
    assert engine.text("s") == "SELECT ?t WHERE (?i, <urn:p>, ?t) AND ?t > 5"
    assert "join" in engine.joins


def test_a_condition_has_a_name_of_its_own() -> None:
    @dataclass(frozen=True)
    class Exists(KindCondition):
        def holds(self, attributes: object) -> bool:
            return True

    class Kind(Counting):
        name, conditions = "other", (Exists,)

    with pytest.raises(TidingsError, match="Exists is the name of two conditions"):
        Engine(kinds=[Kind()])


def test_rows_that_were_added_in_part_are_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finder that fails leaves no row to the next subscription."""
    engine = engine_of({})
    with monkeypatch.context() as patch:
        patch.setattr(ShelfRows, "add", lambda self, part, prepared: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.subscribe("s", Query(Or((condition("(?i, <urn:p>, ?t)"), Aisle(3)))))
        with pytest.raises(ZeroDivisionError):
            engine.subscribe("s", Query(And((Aisle(3), condition("topic = 'x'")))))
    engine.subscribe("next", "WHERE topic = 'y'")
    assert not engine.publish(Event(attributes={"topic": "x", "shelf": 3}))
    assert len(engine.publish(Event(attributes={"topic": "y"}))) == 1
    assert "s" not in engine


def test_a_checker_may_doubt() -> None:
    pairs = Pairs(*(np.zeros(3, dtype=np.int32) for _ in range(3)), np.full(3, -1), np.full(3, -1))
    assert pairs.with_doubt(np.array([True, False, True]), 4).doubt.tolist() == [4, -1, 4]
    assert len(pairs.take(slice(0, 2))) == 2
