"""Folders that version 0.1 has written open, answer alike, and go on."""

from __future__ import annotations

import json
import tarfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.storage import version_01 as world
from tidings import Engine
from tidings.storage import versions

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "version-0.1.tar.gz"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "version-0.1"


@pytest.fixture
def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    return found


PUBLISHED = [*world.events(range(100, 180)), *world.rows(range(20, 30))]


def test_a_saved_engine_answers_alike(folder: Path, expected: dict[str, Any]) -> None:
    engine = Engine.load(folder / "engine", operators=world.OPERATORS)
    assert world.answers(engine, PUBLISHED) == expected["engine"]
    every = world.answers(engine, world.events(range(200, 240)), every=True)
    assert every == expected["every"]
    assert {answer[1] for answer in expected["engine"]} >= {
        "residual",
        "call on a title",
        "t1",
        "join",
        "sum",
    }


def test_what_was_learnt_is_there(folder: Path, expected: dict[str, Any]) -> None:
    engine = Engine.load(folder / "engine", operators=world.OPERATORS)
    rows = engine.stats().table().to_pylist()
    assert sorted([r["predicate"], r["evaluations"], r["hits"]] for r in rows) == expected["learnt"]


def test_it_is_saved_anew_and_answers_alike(folder: Path, expected: dict[str, Any]) -> None:
    """After changes, a fold and a save it is as one of this version."""
    engine = Engine.load(folder / "engine", operators=world.OPERATORS)
    engine.subscribe("new", "WHERE size(?n) AND topic = 'nowhere'")
    engine.unsubscribe("new")
    engine.save(folder / "again")
    again = Engine.load(folder / "again", operators=world.OPERATORS)
    assert world.answers(again, PUBLISHED) == expected["engine"]
    assert "program_first" not in {path.stem for path in (folder / "again" / "subscriptions").iterdir()}


def test_a_version_with_its_tail_answers_alike(folder: Path, expected: dict[str, Any]) -> None:
    root, version = folder / "index", versions.Version.parse(expected["version"])
    assert versions.current(root) == version
    opened = versions.open(root, version, operators=world.OPERATORS)
    assert world.answers(opened, PUBLISHED) == expected["index"]


def test_a_version_is_compacted_and_answers_alike(folder: Path, expected: dict[str, Any]) -> None:
    root = folder / "index"
    compacted = versions.compact(root, operators=world.OPERATORS)
    assert compacted.base == 2
    opened = versions.open(root, compacted, operators=world.OPERATORS)
    assert world.answers(opened, PUBLISHED) == expected["index"]


def test_this_version_answers_alike_too() -> None:
    """The same subscriptions, made now: so the answers in the archive are not those of a bug."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tidings import Table

        engine = Engine(
            taxonomy=world.taxonomy(),
            prefixes=world.PREFIXES,
            networks={"net": world.network()},
            operators=world.OPERATORS,
            tables=[Table(name, columns, key=key) for name, columns, key in world.TABLES],
        )
        world.fill(engine)
    with tarfile.open(ARCHIVE) as archive:
        file = archive.extractfile("version-0.1/answers.json")
        assert file is not None
        expected = json.load(file)
    assert world.answers(engine, PUBLISHED) == expected["engine"]
