"""What holds for every kind of subscription, whatever its index looks like inside."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidings.engine.index
from tests.examples import seeds
from tests.kinds.contract.kinds import KINDS, Kind
from tidings import Engine, Event
from tidings.engine.engine import BroadSubscription
from tidings.model.taxonomy import Taxonomy

Answers = Counter[tuple[str | None, str, str, tuple[tuple[str, str], ...]]]
SEEDS = seeds(1, 4)

pytestmark = [
    pytest.mark.parametrize("kind", KINDS, ids=str),
    pytest.mark.parametrize("seed", SEEDS),
    pytest.mark.filterwarnings(f"ignore::{BroadSubscription.__module__}.{BroadSubscription.__name__}"),
]


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def taxonomy(kind: Kind, seed: int) -> Taxonomy:
    return kind.taxonomy(random.Random(seed))


@pytest.fixture
def texts(kind: Kind, rng: random.Random) -> dict[str, str]:
    return {f"s{i}": kind.text(rng) for i in range(40)}


@pytest.fixture
def events(kind: Kind, rng: random.Random) -> list[Event]:
    return [kind.event(rng) for _ in range(6)]


@pytest.fixture
def small_folds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folds after a handful of changes instead of thousands."""
    monkeypatch.setattr(tidings.engine.index, "FOLD_AT_LEAST", 7)
    return


def engine_of(kind: Kind, texts: dict[str, str], taxonomy: Taxonomy) -> Engine:
    engine = Engine(taxonomy=taxonomy, operators=kind.operators)
    assert engine.subscribe_many(texts.items()) == []
    return engine


def answers(engine: Engine, events: list[Event]) -> Answers:
    """Every binding of every answer: the same set, whatever order an index finds them in."""
    found: Answers = Counter()
    for row in engine.publish_many(events, all_bindings=True).to_pylist():
        found[row["subscription"], row["event"], row["verdict"], tuple(sorted(row["bindings"] or ()))] += 1
    return found


def pairs(engine: Engine, events: list[Event]) -> Counter[tuple[str | None, str, str]]:
    """The pairs of subscription and event that are told without `all_bindings`, with their verdicts: each once."""
    table = engine.publish_many(events)
    return Counter(
        zip(*(table[name].to_pylist() for name in ("subscription", "event", "verdict")), strict=True)
    )


def test_some_match_and_some_do_not(
    kind: Kind, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    """Without this the rest would prove little."""
    found = pairs(engine_of(kind, texts, taxonomy), events)
    assert 5 < len(found) < len(texts) * len(events)
    assert set(found.values()) == {1}


def test_removal_undoes_addition(
    kind: Kind, rng: random.Random, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    engine = engine_of(kind, texts, taxonomy)
    before = answers(engine, events)
    others = {f"other{i}": kind.text(rng) for i in range(20)}
    assert engine.subscribe_many(others.items()) == []
    assert set(answers(engine, events)) >= set(before)
    for id in others:
        assert engine.unsubscribe(id)
        assert not engine.unsubscribe(id)
        assert id not in engine
    assert answers(engine, events) == before
    assert len(engine) == len(texts)


def test_order_of_insertion_is_irrelevant(
    kind: Kind, rng: random.Random, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    shuffled = list(texts.items())
    rng.shuffle(shuffled)
    assert answers(engine_of(kind, dict(shuffled), taxonomy), events) == answers(
        engine_of(kind, texts, taxonomy), events
    )


def test_matching_changes_nothing(
    kind: Kind, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    engine = engine_of(kind, texts, taxonomy)
    first = engine.publish_many(events)
    expected = pairs(engine_of(kind, texts, taxonomy), events)
    assert pairs(engine, events) == expected
    assert answers(engine, events) == answers(engine, events)
    assert pairs(engine, events) == expected
    # What operators show is learnt: that changes which of several bindings is found first, and no answer.
    assert kind.operators or engine.publish_many(events).equals(first)


def test_batch_equals_one_by_one(
    kind: Kind, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    engine = engine_of(kind, texts, taxonomy)
    together = {(r["subscription"], r["event"]): r for r in engine.publish_many(events).to_pylist()}
    every = answers(engine, events)
    alone = [n for event in events for n in engine.publish(event)]
    assert len(alone) == len(together)
    for n in alone:
        row = together[n.subscription, n.event]
        assert (n.verdict, n.source) == (row["verdict"], row["source"])
        for bindings in (n.bindings, dict(row["bindings"])):
            assert every[n.subscription, n.event, n.verdict, tuple(sorted(bindings.items()))]
        assert kind.operators or n.bindings == dict(row["bindings"])


def test_where_a_batch_is_cut_is_irrelevant(
    kind: Kind,
    texts: dict[str, str],
    events: list[Event],
    taxonomy: Taxonomy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_of(kind, texts, taxonomy)
    bad = Event(id="bad", datacontenttype="text/turtle", data=b"broken")
    batch = [bad, *events, bad]
    expected = answers(engine, batch)
    assert expected[None, "bad", "error", ()] == 2
    monkeypatch.setattr("tidings.kinds.patterns.graphs.CHUNK_BYTES", 300)
    assert answers(engine, batch) == expected


def test_save_and_load_round_trip(
    kind: Kind,
    rng: random.Random,
    texts: dict[str, str],
    events: list[Event],
    taxonomy: Taxonomy,
    tmp_path: Path,
) -> None:
    engine = engine_of(kind, texts, taxonomy)
    expected = answers(engine, events)
    engine.save(tmp_path / "one")
    loaded = Engine.load(tmp_path / "one", operators=kind.operators)
    assert answers(loaded, events) == answers(engine, events) == expected
    assert {id: loaded.text(id) for id in texts} == texts
    # A loaded base takes changes, and what is saved then is the whole.
    more = {f"more{i}": kind.text(rng) for i in range(10)} | {"s1": kind.text(rng)}
    loaded.subscribe_many(more.items())
    loaded.unsubscribe("s0")
    loaded.save(tmp_path / "two")
    whole = {id: text for id, text in (texts | more).items() if id != "s0"}
    expected = answers(engine_of(kind, whole, taxonomy), events)
    again = Engine.load(tmp_path / "two", operators=kind.operators)
    assert answers(loaded, events) == answers(again, events) == expected
    assert len(again) == len(whole)
    assert again.taxonomy == taxonomy


def test_subscribe_many_equals_subscribe(
    kind: Kind, texts: dict[str, str], events: list[Event], taxonomy: Taxonomy
) -> None:
    one_by_one = Engine(taxonomy=taxonomy, operators=kind.operators)
    for id, text in texts.items():
        one_by_one.subscribe(id, text)
    many = Engine(taxonomy=taxonomy, operators=kind.operators)
    rejected = many.subscribe_many([*texts.items(), ("bad", "WHERE ((("), ("worse", "")])
    assert [id for id, _ in rejected] == ["bad", "worse"]
    assert answers(many, events) == answers(one_by_one, events)


def test_subscribe_table_equals_its_texts(
    kind: Kind, rng: random.Random, events: list[Event], taxonomy: Taxonomy, tmp_path: Path
) -> None:
    table = kind.table(rng, 60)
    by_table = Engine(taxonomy=taxonomy, operators=kind.operators)
    by_table.subscribe_table(kind.template, table)
    one_by_one = Engine(taxonomy=taxonomy, operators=kind.operators)
    for id in table["id"].to_pylist():
        one_by_one.subscribe(id, by_table.text(id))
    expected = answers(one_by_one, events)
    assert expected
    assert answers(by_table, events) == expected
    by_table.unsubscribe("t3")
    by_table.subscribe("extra", kind.text(rng))
    by_table.unsubscribe("extra")
    by_table.save(tmp_path)
    one_by_one.unsubscribe("t3")
    assert answers(Engine.load(tmp_path, operators=kind.operators), events) == answers(one_by_one, events)


@pytest.mark.usefixtures("small_folds")
def test_snapshot_and_tail_equal_rebuilt(
    kind: Kind, rng: random.Random, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """Random interleavings of everything a user may do, against an engine made from what should be there."""
    engine, known = Engine(taxonomy=taxonomy, operators=kind.operators), dict[str, str]()
    for step in range(120):
        actions = ["add", "replace", "remove", "publish", "reload", "table"]
        action = rng.choices(actions, [8, 4, 5, 3, 1, 1])[0]
        some = rng.choice(list(known)) if known else "nobody"
        if action == "add":
            known[f"s{step}"] = kind.text(rng)
            engine.subscribe(f"s{step}", known[f"s{step}"])
        elif action == "replace" and known:
            known[some] = kind.text(rng)
            engine.subscribe(some, known[some])
        elif action == "remove":
            assert engine.unsubscribe(some) == (known.pop(some, None) is not None)
        elif action == "reload":
            engine.save(tmp_path / f"{step}")
            engine = Engine.load(tmp_path / f"{step}", operators=kind.operators)
        elif action == "table":
            table = kind.table(rng, 5)  # the same ids every time: they replace each other
            engine.subscribe_table(kind.template, table)
            known |= {id: engine.text(id) for id in table["id"].to_pylist()}
        elif action == "publish":
            events = [kind.event(rng) for _ in range(2)]
            assert answers(engine, events) == answers(engine_of(kind, known, taxonomy), events)
        assert len(engine) == len(known)
        assert some in engine or some not in known
    assert {id: engine.text(id) for id in known} == known


def test_broad_subscriptions_warn_and_count(kind: Kind, rng: random.Random, seed: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        engine = Engine()
        engine.subscribe("everything", "WHERE (?s, ?p, ?o)")
    assert [w.category for w in caught] == [BroadSubscription]
    assert "everything" in str(caught[0].message)
    event = next(e for e in iter(lambda: kind.event(rng), None) if e.data)
    assert [n.subscription for n in engine.publish(event)] == ["everything"]
