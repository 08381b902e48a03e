"""The place "auto" is chosen by the memory that is allowed and by measured times, and answers stay the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidings import Engine, Event
from tidings.errors import IndexFileError
from tidings.model.event import to_table
from tidings.storage import placement_choice, versions
from tidings.storage.division import Division, Placement
from tidings.storage.placement_choice import Choice, made_events

AUTO = Placement("auto", 2)
EVENTS = [Event("t", {"topic": topic, "price": price}) for topic in ("oil", "gas") for price in (1, 50, 99)]


@pytest.fixture(autouse=True)
def few_are_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_choice, "_FEW", 0)


def test_few_subscriptions_are_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_choice, "_FEW", 1_000)
    _, choice = published(tmp_path, None)
    assert (choice.place, choice.microseconds) == ("replicate", {})
    assert choice.reason.endswith("bytes, and fewer than 1,000 subscriptions")
    _, divided = published(tmp_path, choice.bytes - 1)
    assert divided.place in ("split", "contain")


def engine_of(count: int) -> Engine:
    engine = Engine()
    for price in range(count):
        engine.subscribe(f"s{price}", f"WHERE topic = 'oil' AND price > {price}")
    return engine


def published(root: Path, memory: int | None) -> tuple[Path, Choice]:
    version = versions.publish(root, engine_of(60), placement=AUTO, sample=to_table(EVENTS), memory=memory)
    opened = versions.open(root, version)
    assert {n.subscription for n in opened.publish(EVENTS[1])} == {f"s{price}" for price in range(50)}
    base = root / f"v{version.base}"
    choice = Choice.read(base)
    assert choice is not None
    assert f"{choice.place} was chosen: the whole index has {choice.bytes:,} bytes" in choice.reason
    return base, choice


def test_a_whole_index_that_fits_is_one_of_three(tmp_path: Path) -> None:
    _, choice = published(tmp_path, None)
    assert choice.microseconds.keys() == {"replicate", "split", "contain"}
    fastest = min(choice.microseconds.values())
    assert choice.microseconds[choice.place] <= fastest / 0.9 + 1


def test_one_that_does_not_fit_is_divided(tmp_path: Path) -> None:
    base, choice = published(tmp_path, 1_000_000)
    base, smaller = published(tmp_path, choice.bytes - 1)
    assert "replicate" not in smaller.microseconds
    division = Division.read(base)
    assert division is not None
    assert division.place == smaller.place
    assert smaller.memory == choice.bytes - 1


@pytest.mark.parametrize("fastest", ["replicate", "split", "contain"])
def test_the_fastest_is_written(fastest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_choice, "_time", lambda run: 1.0 + (fastest != "replicate"))
    monkeypatch.setattr(placement_choice, "_split", lambda *_: 1.5 + (fastest != "split"))
    monkeypatch.setattr(placement_choice, "_contain", lambda *_: 1.5 + (fastest != "contain"))
    base, choice = published(tmp_path, None)
    division = Division.read(base)
    assert choice.place == fastest
    assert (division.place if division else "replicate") == fastest
    assert [path.name for path in tmp_path.glob("[pv]*") if path.is_dir()] == ["v1"]
    assert versions.verify(tmp_path, versions.current(tmp_path))


def test_a_fold_goes_on_with_the_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service begins without subscriptions, and must not stay whole for that when it has grown."""
    monkeypatch.setattr(placement_choice, "_time", lambda run: 0.1)
    monkeypatch.setattr(placement_choice, "_split", lambda *_: 1.0)
    monkeypatch.setattr(placement_choice, "_contain", lambda *_: 2.0)
    _, before = published(tmp_path, 100_000)
    assert before.place == "replicate"
    texts = (f"WHERE topic = 'gas' AND price > {price}" for price in range(1_000))
    versions.append(tmp_path, [versions.Change(f"t{number}", text) for number, text in enumerate(texts)])
    folded = versions.compact(tmp_path)
    after = versions.choice(tmp_path, folded)
    assert after is not None
    assert (after.place, after.placement, after.memory) == ("split", AUTO, 100_000)
    division = versions.division(tmp_path, folded)
    assert division is not None
    assert len(division.parts) == 2


def test_an_empty_sample_is_none(tmp_path: Path) -> None:
    engine = engine_of(5)
    for count in (5, 0):
        version = versions.publish(
            tmp_path / str(count), engine, placement=AUTO, sample=to_table([]), memory=1_000_000
        )
        choice = versions.choice(tmp_path / str(count), version)
        assert choice is not None
        assert all(taken >= 0 for taken in choice.microseconds.values())
        engine = engine_of(0)


def test_without_a_sample_events_are_made_of_the_subscriptions() -> None:
    engine = engine_of(20)
    engine.subscribe("pattern", "WHERE (?i, topic, 'oil')")
    engine.subscribe("never", "WHERE price > 5 AND price < 3 AND price IN (9)")
    engine.index.fold()
    found = {row["subscription"] for row in engine.publish_many(made_events(engine)).to_pylist()}
    assert {"pattern", *(f"s{price}" for price in range(20))} <= found


def test_a_damaged_choice_is_a_sentence(tmp_path: Path) -> None:
    base, _ = published(tmp_path, None)
    (base / "placement.json").write_text(json.dumps({"place": "split"}))
    with pytest.raises(IndexFileError, match="build the index anew"):
        Choice.read(base)
