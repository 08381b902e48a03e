"""An index whose subscriptions are divided answers as the undivided one does, and need not be open as a whole."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidings.engine.index
from tests.engine import toy_kinds
from tests.kinds.contract.kinds import FILTERS, OPERATORS, PATTERNS
from tests.storage import version_01 as world
from tidings import Engine, Event
from tidings.containment import forest
from tidings.containment.summaries import Summaries
from tidings.errors import IndexFileError, SubscriptionError, TidingsError
from tidings.formats import rdf
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import And, Not, Query
from tidings.model.event import to_table
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division, Placement, divide, size_of
from tidings.storage.versions import Change, Version

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SPLIT, CONTAIN, MERGE = Placement("split", 2), Placement("contain", 2), Placement("contain", 2, 90)
CODE = OPERATORS.operators
MIXED = [PATTERNS, FILTERS] * 4 + [OPERATORS]
Answers = Counter[tuple[Any, ...]]


def answers(engine: Engine, events: list[Event], every: bool = True) -> Answers:
    """Every binding of every answer; without `every`, the verdicts alone: which binding is the first one is open."""
    return Counter(
        (
            row["subscription"],
            row["event"],
            row["verdict"],
            tuple(sorted(row["bindings"] or ())) if every else (),
        )
        for row in engine.publish_many(events, all_bindings=every).to_pylist()
    )


def matched(engine: Engine, event: Event) -> set[str | None]:
    return {notification.subscription for notification in engine.publish(event)}


class Family:
    """Texts of all kinds, of which many are contained in another, because they have its conditions and more."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.texts: dict[str, str] = {}
        self.containers: dict[str, str] = {}
        self.taxonomy = PATTERNS.taxonomy(rng)

    def grow(self, id: str) -> str:
        """A new text for an id. Nothing is contained in the one that it had."""
        for other in [other for other, container in self.containers.items() if container == id]:
            del self.containers[other]
        self.containers.pop(id, None)
        self.texts.pop(id, None)
        text = self.rng.choice(MIXED).text(self.rng)
        if self.texts and self.rng.random() < 0.7:
            container = self.rng.choice(list(self.texts))
            above, further = parse(self.texts[container]), parse(text)
            narrower = to_text(replace(above, where=And((above.where, further.where))))
            try:
                Engine(operators=CODE).subscribe(id, narrower)
                text, self.containers[id] = narrower, container
            except SubscriptionError:  # too many ways
                pass
        self.texts[id] = text
        return text

    def engine(self, count: int) -> Engine:
        engine = Engine(taxonomy=self.taxonomy, operators=CODE)
        for number in range(count):
            engine.subscribe(f"s{number}", self.grow(f"s{number}"))
        return engine

    def events(self, count: int) -> list[Event]:
        return [self.rng.choice(MIXED).event(self.rng) for _ in range(count)]

    def parents(self, engine: Engine) -> np.ndarray:
        """What the forest of containment says: by the subscriptions of an index in their order."""
        subscriptions = engine.index.subscriptions
        live = np.flatnonzero(np.frombuffer(bytes(subscriptions.live), dtype=np.bool_)).tolist()
        place = {id: at for at, id in enumerate(subscriptions.id_list(live))}
        return np.array([place.get(self.containers.get(id, ""), -1) for id in place], dtype=np.int64)


def opened(base: Path, memory: int | None = None) -> DividedIndex:
    found = Division.read(base)
    assert found is not None
    return DividedIndex.open(base, found, operators=CODE, memory=memory)


def use_forest(monkeypatch: pytest.MonkeyPatch, parents: Any) -> None:
    monkeypatch.setattr(forest, "parents", parents)


def check_one_family(seed: int, folder: Path) -> tuple[int, int]:
    """Returns how many of 50 subscriptions were contained in others, and in parts because of that, and the number of mergers."""
    family = Family(random.Random(seed))
    engine, events = family.engine(50), family.events(10)
    expected, verdicts = answers(engine, events), answers(engine, events, every=False)
    summaries, mergers = Summaries.collect(engine, to_table(family.events(10))), 0
    indexes = list[DividedIndex]()
    for placement in (SPLIT, MERGE, CONTAIN):
        base = folder / f"{placement.place}-{placement.merge}"
        made = divide(engine, base, placement, family.parents(engine), summaries)
        index = opened(base)
        indexes.append(index)
        assert made == index.division
        assert len(index) == len(engine) == 50
        assert answers(index, events) == expected
        assert answers(index, events, every=False) == verdicts
        table = to_table(events)
        found, visits = index.match_front(table)
        parts = [
            index.match_part(part, table.take(pa.array(visits.event[visits.part == part])))
            for part in range(2)
        ]
        two_stages = pa.concat_tables([found, *parts]).to_pylist()
        assert (
            Counter((row["subscription"], row["event"], row["verdict"], ()) for row in two_stages) == verdicts
        )
        assert len(visits.event) == 20 or placement is not SPLIT
        mergers = made.mergers if placement is MERGE else mergers
    assert answers(engine, events) == expected  # it was only written
    for _ in range(4):
        for _ in range(3):
            change_alike(family, [engine, *indexes])
        expected = answers(engine, events)
        for index in indexes:
            assert answers(index, events) == expected
            assert len(index) == len(engine)
    return sum(piece.subscriptions for piece in made.parts), mergers


def change_alike(family: Family, engines: list[Engine]) -> None:
    """One subscription, wherever it is, is added, replaced, expired or removed."""
    id, until = f"s{family.rng.randrange(55)}", family.rng.choice([None, "2001-01-01", "2090-01-01"])
    text = family.grow(id) if family.rng.random() < 0.6 else None
    for engine in engines:
        if text is None:
            engine.unsubscribe(id)
        else:
            engine.subscribe(id, text, valid_until=until)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_divided_index_answers_as_the_undivided(seed: int, tmp_path: Path) -> None:
    contained, mergers = check_one_family(seed, tmp_path)
    assert contained > 9
    assert mergers > 0


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(100, 2_100, 100))
def test_many_divided_indexes_answer_as_the_undivided(first: int, tmp_path: Path) -> None:
    contained = mergers = 0
    for seed in range(first, first + 100):
        more, merged = check_one_family(seed, tmp_path / str(seed))
        contained, mergers = contained + more, mergers + merged
        shutil.rmtree(tmp_path / str(seed))
    assert contained > 1_000
    assert mergers > 100


def test_networks_joins_operators_and_templates(tmp_path: Path) -> None:
    tables = [Table(name, columns, key=key) for name, columns, key in world.TABLES]
    engine = Engine(
        taxonomy=world.taxonomy(),
        prefixes=world.PREFIXES,
        networks={"net": world.network()},
        operators=world.OPERATORS,
        tables=tables,
    )
    world.fill(engine)
    published = [*world.events(range(100, 130)), *world.rows(range(20, 30))]
    version = versions.publish(tmp_path, engine, placement=SPLIT)
    index = versions.open(tmp_path, version, operators=world.OPERATORS)
    assert isinstance(index, DividedIndex)
    undivided = {"at acme", "call", "call and filter", "call at acme", "t1", "join", "table"}
    assert all(index.part_with(id) is None for id in undivided)
    in_parts = {id for id in world.TEXTS if index.part_with(id) is not None}
    assert len(in_parts) == 9
    assert world.answers(index, published) == world.answers(engine, published)
    assert versions.calls(tmp_path, version)
    assert set(versions.joins(tmp_path, version).tables) == {"stocks", "reviews"}
    after = versions.append(
        tmp_path,
        [
            Change("more", "WHERE age > 20 VIA net AT 'acme'"),
            Change("filter", None),
            versions.NetworkChange("net", "remove_edge", ("door", "acme")),
        ],
        operators=world.OPERATORS,
    )
    engine.subscribe("more", "WHERE age > 20 VIA net AT 'acme'")
    engine.unsubscribe("filter")
    engine.networks["net"].remove_edge("door", "acme")
    index = versions.open(tmp_path, after, operators=world.OPERATORS)
    published = world.events(range(130, 150))
    expected = world.answers(engine, published)
    assert world.answers(index, published) == expected
    folded = versions.compact(tmp_path, operators=world.OPERATORS)
    index = versions.open(tmp_path, folded, operators=world.OPERATORS)
    assert isinstance(index, DividedIndex)
    assert index.division.placement == SPLIT
    assert world.answers(index, published) == expected


BROAD, NARROW = "WHERE topic = 'oil'", "WHERE topic = 'oil' AND price > 10"
OIL = Event("test", {"topic": "oil", "price": 20}, id="e", time="2026-06-01T00:00:00Z")


def small(root: Path, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str] | None = None) -> Version:
    """An index in which `root` contains all others, in two parts."""
    engine = Engine()
    for id, text in (texts or {"root": BROAD, "a": NARROW, "b": NARROW}).items():
        engine.subscribe(id, text)
    use_forest(monkeypatch, lambda engine: np.array([-1] + [0] * (len(engine) - 1)))
    return versions.publish(root, engine, placement=Placement("contain", 2))


def test_a_container_routes_whatever_has_become_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path, monkeypatch)
    monkeypatch.setattr(tidings.engine.index, "FOLD_AT_LEAST", 0)  # what is folded has other numbers
    for change, stays in (
        (Change("root", BROAD, "2026-01-01"), set()),  # expired before the event
        (Change("root", None), set()),
        (Change("root", "WHERE topic = 'gas'"), set()),
        (Change("root", BROAD), {"root"}),
    ):
        index = versions.open(tmp_path, versions.append(tmp_path, [change]))
        assert matched(index, OIL) == {"a", "b"} | stays
    after = versions.append(tmp_path, [Change("a", "WHERE price > 10"), Change("c", NARROW)])
    assert matched(versions.open(tmp_path, after), OIL) == {"root", "a", "b", "c"}
    assert versions.open(tmp_path, after).explain("a", OIL).part is None
    before = Event("test", {"topic": "gas"}, id="e")
    index = versions.open(tmp_path, after)
    assert isinstance(index, DividedIndex)
    assert len(index.forwards(to_table([before])).event) == 0
    assert index.forwards(to_table([before, OIL])).event.tolist() == [1, 1]


def test_merged_subscriptions_come_and_go(tmp_path: Path) -> None:
    """RSS cluster, Figure 8: a merged leaf is removed, replaced or added; the merger goes on to route to the others."""
    engine = Engine()
    for topic in "abcd":
        engine.subscribe(topic, f"WHERE (?i, <urn:in>, <urn:feed>), (?i, <urn:topic>, <urn:{topic}>)")
    graph = "<urn:1> <urn:in> <urn:feed> .\n" + "".join(f"<urn:1> <urn:topic> <urn:{t}> .\n" for t in "abcd")
    event = Event("t", datacontenttype=rdf.NTRIPLES, data=graph.encode())
    version = versions.publish(tmp_path, engine, placement=MERGE)
    index = versions.open(tmp_path, version)
    assert isinstance(index, DividedIndex)
    assert (index.division.front.subscriptions, index.division.mergers, len(index)) == (0, 1, 4)
    assert matched(index, event) == {*"abcd"}
    assert index.container_of("a") == "merger 0"
    assert "merger 0" not in index
    never = "WHERE (?i, <urn:in>, <urn:feed>), (?i, <urn:topic>, <urn:x>)"
    changes = [Change("a", None), Change("b", never), Change("merger 0", "WHERE (?i, <urn:in>, <urn:feed>)")]
    version = versions.append(tmp_path, changes)
    assert matched(versions.open(tmp_path, version), event) == {"c", "d", "merger 0"}
    version = versions.compact(tmp_path)
    folded = versions.open(tmp_path, version)
    assert matched(folded, event) == {"c", "d", "merger 0"}
    assert len(folded) == 4
    saved = tmp_path / "whole"
    folded.save(saved)
    assert matched(Engine.load(saved), event) == {"c", "d", "merger 0"}


@pytest.mark.parametrize("id", ["root", "inner", "leaf", "alone"])
def test_a_change_at_every_position_of_the_forest(id: str, tmp_path: Path) -> None:
    texts = {
        "root": BROAD,
        "inner": f"{BROAD} AND price > 1",
        "leaf": f"{BROAD} AND price > 1 AND price < 90",
        "alone": "WHERE price = 20",
    }
    model = Engine()
    for each, text in texts.items():
        model.subscribe(each, text)
    version = versions.publish(tmp_path, model, placement=CONTAIN)
    index = versions.open(tmp_path, version)
    assert isinstance(index, DividedIndex)
    assert [index.part_with(each) is None for each in texts] == [True, False, False, True]
    for text, until in (
        (None, None),
        (texts[id], None),
        (texts[id], "2001-01-01"),  # expired
        ("WHERE price > 19", None),
        (texts[id], None),
    ):
        index = versions.open(tmp_path, versions.append(tmp_path, [Change(id, text, until)]))
        if text is None:
            model.unsubscribe(id)
        else:
            model.subscribe(id, text, valid_until=until)
        assert matched(index, OIL) == matched(model, OIL)
        assert len(index) == len(model)
    folded = versions.open(tmp_path, versions.compact(tmp_path))
    assert isinstance(folded, DividedIndex)
    assert matched(folded, OIL) == matched(model, OIL) == texts.keys()
    assert [folded.part_with(each) is None for each in texts] == [True, False, False, True]


def test_an_expired_container_routes(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("root", BROAD, valid_until="2026-01-01")
    engine.subscribe("a", NARROW)
    engine.subscribe("b", NARROW, valid_until="2026-05-01")
    divide(engine, tmp_path / "v1", CONTAIN, np.array([-1, 0, 0]))
    assert matched(opened(tmp_path / "v1"), OIL) == {"a"}
    assert matched(opened(tmp_path / "v1"), replace(OIL, time="2025-01-01")) == {"root", "a", "b"}


def test_a_container_that_ran_out_of_steps_routes(tmp_path: Path) -> None:
    edges = [f"(?x{i}, <urn:p>, ?x{i + 1})" for i in range(30)]
    hard = "WHERE " + ", ".join(edges) + ", (?x30, <urn:q>, ?y)"
    engine = Engine()
    engine.subscribe("root", hard)
    engine.subscribe(
        "easy", "WHERE topic = 'oil'"
    )  # said to be contained, so that only the doubt leads there
    nodes = range(40)
    graph = "\n".join(f"<urn:n{a}> <urn:p> <urn:n{b}> ." for a in nodes for b in nodes if a != b)
    event = Event.from_rdf(graph + "\n<urn:z> <urn:q> <urn:z> .", "nt", id="e", attributes={"topic": "oil"})
    divide(engine, tmp_path / "v1", CONTAIN, np.array([-1, 0]))
    found = {(n.subscription, n.verdict) for n in opened(tmp_path / "v1").publish(event)}
    assert found == {("root", "undecided"), ("easy", "match")}


@pytest.mark.parametrize("place", ["split", "contain"])
def test_an_unreadable_event_is_reported_once(place: str, tmp_path: Path) -> None:
    engine = Engine()
    texts = ["WHERE x = 1", "WHERE (?x, <urn:p>, ?y)", "WHERE (?x, <urn:p>, ?y) AND x = 1", "WHERE x < 5"]
    for number, text in enumerate(texts * 3):
        engine.subscribe(f"s{number}", text)
    engine.subscribe("all", "WHERE x = 1 OR NOT x = 1")
    parents = np.array([12] * 12 + [-1])
    events = pa.table(
        {
            "id": ["good", "half", "no JSON", "no Turtle", "neither"],
            "attributes": ['{"x": 1}', '{"x": ', '{"y": [}', '{"x": 1}', "{"],
            "datacontenttype": ["text/turtle"] * 5,
            "data": [b"<urn:a> <urn:p> 5 ."] * 3 + [b"<urn:a <urn"] * 2,
        }
    )
    divide(engine, tmp_path / "v1", Placement(place, 2), parents)

    def rows(engine: Engine) -> Answers:
        found = engine.publish_many(events).to_pylist()
        return Counter((row["event"], row["subscription"], row["verdict"]) for row in found)

    found = rows(opened(tmp_path / "v1"))
    assert found == rows(engine)
    assert sum(count for (*_, verdict), count in found.items() if verdict == "error") == 4


@pytest.mark.parametrize("place", ["split", "contain"])
def test_a_document_is_parsed_once(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    for number in range(6):
        engine.subscribe(f"s{number}", f"WHERE (?x, <urn:p>, ?y) AND ?y > {number}")
    events = [Event.from_rdf(f"<urn:a> <urn:p> {number} .", "turtle", id=f"e{number}") for number in range(6)]
    table = to_table([replace(e, datacontenttype="application/n-quads") for e in events])
    divide(engine, tmp_path / "v1", Placement(place, 2), np.array([-1, 0, 0, 0, 0, 0]))
    expected, read, canonical = answers(engine, events), list[bytes](), rdf.canonical

    def count(data: bytes, media_type: str) -> bytes:
        read.append(data)
        return canonical(data, media_type)

    monkeypatch.setattr(rdf, "canonical", count)
    index = opened(tmp_path / "v1")
    assert answers(index, table) == expected  # type: ignore[arg-type]
    assert len(read) == 6  # some events visit no part, and those that visit one are not all
    read.clear()
    found, visits = index.match_front(table)
    assert visits.graphs is not None
    for part in range(2):
        rows = pa.array(visits.event[visits.part == part])
        matched = index.match_part(part, table.take(rows), visits.graphs.take(rows).to_pylist())
        found = pa.concat_tables([found, matched])
    assert len(read) == 6
    assert len(found) == sum(expected.values())


def test_kinds_of_ones_own(tmp_path: Path) -> None:
    engine = Engine(kinds=toy_kinds.KINDS)
    heavy, shelf = toy_kinds.Heavier(5), toy_kinds.Aisle(3)
    pattern = parse("WHERE (?x, <urn:p>, ?y)").where
    for number in range(3):
        engine.subscribe(f"heavy {number}", Query(heavy))
        engine.subscribe(f"shelf {number}", Query(shelf))
        engine.subscribe(f"residual {number}", Query(And((pattern, Not(shelf)))))
    version = versions.publish(tmp_path, engine, placement=SPLIT)
    events = [
        Event.from_rdf("<urn:a> <urn:p> 5 .", "turtle", id=f"e{n}", attributes={"shelf": n, "weight": 2 * n})
        for n in range(6)
    ]
    expected = answers(engine, events)
    index = versions.open(tmp_path, version, kinds=toy_kinds.KINDS)
    assert isinstance(index, DividedIndex)
    assert [index.part_with(f"{name} 0") is None for name in ("heavy", "shelf", "residual")] == [
        True,
        True,
        False,
    ]
    assert answers(index, events) == expected
    assert {id.split()[0] for id, *_ in expected} == {"heavy", "shelf", "residual"}
    versions.append(tmp_path, [Change("shelf 0", None)], kinds=toy_kinds.KINDS)
    folded = versions.compact(tmp_path, kinds=toy_kinds.KINDS)
    assert len(versions.open(tmp_path, folded, kinds=toy_kinds.KINDS)) == 8


def test_ids_and_texts_without_an_open_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"root": BROAD} | {f"s{number} é": NARROW for number in range(8)}
    version = small(tmp_path, monkeypatch, texts)
    index = versions.open(tmp_path, version)
    assert isinstance(index, DividedIndex)
    assert len(index) == 9
    assert all(id in index and index.text(id) == text for id, text in texts.items())
    assert "nobody" not in index
    assert "\ud800" not in index
    with pytest.raises(SubscriptionError, match="no subscription 'nobody'"):
        index.text("nobody")
    assert {index.part_with(id) for id in texts} == {None, 0, 1}
    part = index.part_with("s3 é")
    explained = index.explain("s3 é", OIL)
    assert str(explained).splitlines()[0] == f"s3 é: match, in part {part}, below root"
    assert index.open_parts == []
    assert index.unsubscribe("s3 é")
    assert not index.unsubscribe("s3 é")
    assert "s3 é" not in index
    assert len(index) == 8
    table = pa.table({"id": ["s4 é", "new"], "price": [5, 50]})
    index.subscribe_table("WHERE price > $price", table)
    assert len(index) == 9
    assert matched(index, OIL) == texts.keys() - {"s3 é"}


def test_parts_are_opened_within_the_memory_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    for number in range(40):
        engine.subscribe(f"s{number}", f"WHERE price > {number} AND topic = 'oil'")
    expected = matched(engine, OIL)
    version = versions.publish(tmp_path, engine, placement=Placement("split", 4))
    base = tmp_path / "v1"
    division = Division.read(base)
    assert division is not None
    assert [piece.subscriptions for piece in division.parts] == [10] * 4
    assert division.parts[2].bytes == size_of(base / "part-2")
    two = division.front.bytes + sum(sorted(piece.bytes for piece in division.parts)[-2:])
    index = versions.open(tmp_path, version, memory=two)
    assert isinstance(index, DividedIndex)
    assert matched(index, OIL) == expected
    assert index.open_parts == [2, 3]
    assert matched(index, OIL) == expected  # those that are open come first
    assert index.open_parts == [0, 1]
    assert versions.open(tmp_path, version, memory=two) is index
    assert versions.open(tmp_path, version) is not index
    with pytest.raises(IndexFileError, match=r"front and one part .* build it with --parts \d+"):
        versions.open(tmp_path, version, memory=division.front.bytes + 9_000)
    with pytest.raises(IndexFileError, match="are allowed; allow more"):
        versions.open(tmp_path, version, memory=1000)
    version = versions.publish(tmp_path, engine, placement=Placement("split", 1))
    size = size_of(tmp_path / "v2")
    assert type(versions.open(tmp_path, version, memory=size)) is Engine
    sentence = f"not divided and needs {size:,} bytes of memory, and 5,000 are allowed; build it with --parts"
    with pytest.raises(IndexFileError, match=re.escape(sentence)):
        versions.open(tmp_path, version, memory=5000)


def test_an_ended_subscription_is_dead_in_a_part_that_is_opened_again(tmp_path: Path) -> None:
    engine = Engine()
    for number in range(12):
        engine.subscribe(f"s{number}", BROAD)
    pinned = versions.publish(tmp_path, engine, placement=SPLIT)
    division = Division.read(tmp_path / "v1")
    assert division is not None
    room = division.front.bytes + max(piece.bytes for piece in division.parts)
    after = versions.append(tmp_path, [Change("s4", None), Change("s5", NARROW), Change("s6", "WHERE x = 1")])
    everyone = {f"s{number}" for number in range(12)}
    for _ in range(2):
        assert matched(versions.open(tmp_path, after, memory=room), OIL) == everyone - {"s4", "s6"}
    later = versions.append(tmp_path, [Change("s4", BROAD), Change("s0", None)])
    assert matched(versions.open(tmp_path, later, memory=room), OIL) == everyone - {"s6", "s0"}
    assert len(versions.open(tmp_path, later)) == 11
    assert matched(versions.open(tmp_path, pinned), OIL) == everyone
    folded = versions.compact(tmp_path)
    assert matched(versions.open(tmp_path, folded), OIL) == everyone - {"s6", "s0"}
    assert len(versions.open(tmp_path, folded)) == 11
    assert matched(versions.open(tmp_path, later), OIL) == everyone - {"s6", "s0"}


def test_a_new_base_is_divided_as_the_last_one(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("a", BROAD)
    assert versions.publish(tmp_path, engine) == Version(1, 0)
    assert Division.read(tmp_path / "v1") is None
    versions.publish(tmp_path, engine, placement=SPLIT)
    aside = versions.write_aside(tmp_path, engine)
    versions.switch(tmp_path, aside, [Change("b", BROAD)])
    versions.set_network(tmp_path, "net", world.network())
    for number in (2, 3, 4):
        division = Division.read(tmp_path / f"v{number}")
        assert division is not None
        assert division.placement == SPLIT
        versions.try_open(tmp_path, Version(number, 0))
    assert matched(versions.open(tmp_path, versions.current(tmp_path)), OIL) == {"a", "b"}
    last = versions.publish(tmp_path, engine, placement=Placement("split", 1))
    assert type(versions.open(tmp_path, last)) is Engine


def test_a_divided_index_is_published_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "old", monkeypatch)
    version = versions.append(tmp_path / "old", [Change("a", "WHERE x = 1"), Change("c", BROAD)])
    index = versions.open(tmp_path / "old", version)
    for placement, kind in ((None, Engine), (SPLIT, DividedIndex)):
        made = versions.publish(tmp_path / "new", index, placement=placement)
        copy = versions.open(tmp_path / "new", made)
        assert type(copy) is kind
        for each in (copy, index):
            assert matched(each, OIL) == {"root", "b", "c"}
            assert len(each) == 4
            assert each.text("b") == NARROW


def test_what_no_base_can_be_divided_into_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    for number in range(9):
        engine.subscribe(f"s{number}", BROAD)
    use_forest(monkeypatch, lambda engine: np.full(9, -1))
    assert divide(engine, tmp_path / "all", CONTAIN).front.subscriptions == 9
    use_forest(monkeypatch, lambda engine: np.array([-1, *range(8)]))
    made = divide(engine, tmp_path / "many", CONTAIN)
    assert [made.front.subscriptions, *(piece.subscriptions for piece in made.parts)] == [1, 4, 4]
    with pytest.raises(ValueError, match="circle"):
        divide(engine, tmp_path / "circle", CONTAIN, np.array([1, 0] + [-1] * 7))
    with pytest.raises(ValueError, match="give one below 9 for each of 9"):
        divide(engine, tmp_path / "short", CONTAIN, np.array([-1, 0]))
    for placement in (Placement("apart", 2), Placement("split", 0), Placement("split", 5000)):
        with pytest.raises(TidingsError, match="is no place|cannot have"):
            versions.publish(tmp_path / "index", engine, placement=placement)
    assert versions.last_base(tmp_path / "index") == 0


def test_a_base_of_before_there_were_mergers_opens(tmp_path: Path) -> None:
    """It has no members for mergers and loads, and no table of ids beside its subscriptions."""
    engine = Engine()
    for price in range(20):
        engine.subscribe(f"s{price}", f"WHERE topic = 'oil' AND price > {price}")
    divide(engine, tmp_path, CONTAIN)
    file = tmp_path / "division.json"
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({n: fields[n] for n in ("place", "taxonomy", "reads", "pieces", "trees")}))
    for manifest in tmp_path.glob("*/subscriptions/manifest.json"):
        written = json.loads(manifest.read_text())
        del written["arrays"]["id_slots"]
        manifest.write_text(json.dumps(written))
    index = opened(tmp_path)
    assert index.division.placement == CONTAIN
    assert matched(index, OIL) == matched(engine, OIL) != set()
    assert index.unsubscribe("s3")
    assert "s3" not in index
    assert "s4" in index


def test_damage_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = small(tmp_path, monkeypatch)
    assert versions.verify(tmp_path, version)
    for name in ("division.json", "routes/parts.npy", "ids/hash.npy", "part-1/subscriptions/id_blob.npy"):
        path = tmp_path / "v1" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + b"~")
        with pytest.raises(IndexFileError, match="is not as it was written; build the index anew"):
            versions.verify(tmp_path, version)
        path.write_bytes(whole)
    path.write_bytes(whole[:-1] + b"~")
    versions.append(tmp_path, [Change("c", NARROW)])
    with pytest.raises(IndexFileError, match="is not as it was written"):
        versions.compact(tmp_path)  # it must not become a part of the next base


def test_a_division_that_cannot_be_right_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = small(tmp_path, monkeypatch)
    path = tmp_path / "v1" / "division.json"
    right = json.loads(path.read_text())
    for wrong in (
        {"place": 5, "pieces": []},
        {"pieces": [[1, 2, 3]]},
        {"taxonomy": "another"},
        {"pieces": [[1, 9000], [1, 9000]]},
        {"pieces": [[2, 9000], [1, 9000], [1, 9000]]},
    ):
        path.write_text(json.dumps({**right, **wrong}))
        with pytest.raises(IndexFileError, match="build the index anew"):
            versions.open(tmp_path, version)
