"""Versions of an index: a base and a tail, appended to by any process, opened by any other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidings import Engine, Event, SubscriptionError, versions
from tidings.errors import IndexFileError
from tidings.versions import Change, Version

EVENT = Event.from_rdf("<urn:tidings:a> <urn:tidings:p> 5 .", "turtle", id="e")
P, Q = "WHERE (?x, p, ?y)", "WHERE (?x, q, ?y)"


def matched(engine: Engine) -> set[str | None]:
    return {n.subscription for n in engine.publish(EVENT)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An index with one base that holds s0 and s1."""
    engine = Engine(prefixes={"my": "urn:tidings:"})
    engine.subscribe("s0", P)
    engine.subscribe("s1", Q)
    assert versions.publish(tmp_path / "index", engine) == Version(1, 0)
    return tmp_path / "index"


def test_versions_are_written_and_read() -> None:
    assert str(Version(3, 1234)) == "v3+1234"
    assert Version.parse(" v3+1234\n") == Version(3, 1234)
    for text in ("", "v3", "3+4", "v3+-1", "v3+4x", "CURRENT"):
        with pytest.raises(IndexFileError, match="names no version"):
            Version.parse(text)


def test_a_tail_is_replayed(root: Path) -> None:
    first = versions.current(root)
    second = versions.append(root, [Change("s2", "WHERE (?x, my:p, ?y)"), Change("s0", None)])
    third = versions.append(root, [Change("s2", Q), Change("s3", P, "2000-01-01")])
    assert first < second < third == versions.current(root)
    assert matched(versions.open(root, first)) == {"s0"}
    assert matched(versions.open(root, second)) == {"s2"}
    assert matched(versions.open(root, third)) == set()  # s3 had ended
    engine = versions.open(root, third)
    assert len(engine) == 3
    assert versions.open(root, third) is engine  # opened once


def test_an_older_pinned_version_stays_what_it_was(root: Path) -> None:
    pinned = versions.append(root, [Change("s2", P)])
    versions.append(root, [Change("s2", None), Change("s4", P)])
    compacted = versions.compact(root)
    assert compacted == Version(2, 0)
    versions.append(root, [Change("s5", P)])
    assert matched(versions.open(root, versions.current(root))) == {"s0", "s4", "s5"}
    assert matched(versions.open(root, pinned)) == {"s0", "s2"}
    assert matched(versions.open(root, compacted)) == {"s0", "s4"}


def test_compact_folds_the_tail_once(root: Path) -> None:
    versions.append(root, [Change(f"more{i}", P) for i in range(10)] + [Change("s0", None)])
    before = matched(versions.open(root, versions.current(root)))
    assert versions.compact(root) == versions.compact(root) == versions.current(root) == Version(2, 0)
    assert matched(versions.open(root, Version(2, 0))) == before
    assert versions.open(root, Version(2, 0)).prefixes == {"my": "urn:tidings:"}


def test_drop_keeps_what_is_current_or_pinned(root: Path) -> None:
    pinned = versions.append(root, [Change("s2", P)])
    versions.compact(root)
    versions.append(root, [Change("s3", P)])
    versions.compact(root)
    assert versions.drop(root, [pinned]) == [2]
    assert matched(versions.open(root, pinned)) == {"s0", "s2"}
    assert versions.drop(root) == [1]
    versions.open(root, versions.current(root))  # the kept one is another now
    with pytest.raises(IndexFileError, match="dropped"):
        versions.open(root, pinned)
    assert versions.drop(root) == []
    assert sorted(path.name for path in root.glob("v*")) == ["v3", "v3.tail"]


def test_a_torn_line_is_not_there(root: Path) -> None:
    good = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b'{"id": "s3", "text": "WHERE (?x, p')
    assert versions.current(root) == good
    after = versions.append(root, [Change("s4", P)])
    assert matched(versions.open(root, after)) == {"s0", "s2", "s4"}
    for line in (root / "v1.tail").read_text().splitlines():
        json.loads(line)


def test_a_long_torn_line_is_not_there(root: Path) -> None:
    good = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b"x" * 200_000)
    assert versions.current(root) == good


@pytest.mark.parametrize(
    "bad",
    [
        Change("s3", "WHERE ((("),
        Change("s3", "WHERE (?x, nowhere:p, ?y)"),
        Change("s3", "WHERE (?x, p, 'abc'^^xsd:integer)"),
        Change("s3", P, "tomorrow"),
        Change("s3", P, "2004-13-01"),
        Change("", P),
        Change("\ud800", P),
    ],
)
def test_one_bad_change_refuses_all_before_anything_is_written(root: Path, bad: Change) -> None:
    before = (root / "v1.tail").read_bytes()
    with pytest.raises(SubscriptionError):
        versions.append(root, [Change("s2", P), bad])
    assert (root / "v1.tail").read_bytes() == before
    assert versions.current(root) == Version(1, 0)


def test_ids_and_texts_of_any_kind(root: Path) -> None:
    odd = 'line\nbreak "é" \u2028 \x85'
    version = versions.append(
        root, [Change(odd, "WHERE (?x, p, ?y) AND ?y != 'a\u2028b'"), Change("n", "WHERE\n(?x, p,\n?y)")]
    )
    assert matched(versions.open(root, version)) == {"s0", "n"}
    assert odd in versions.open(root, version)


APPENDER = """
import sys
from tidings.versions import Change, append
for i in range(20):
    append(sys.argv[1], [Change(f"{sys.argv[2]}{i}", "WHERE (?x, p, ?y)"), Change(f"{sys.argv[2]}{i - 1}", None)])
"""


def test_two_processes_append(root: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(root), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len((root / "v1.tail").read_text().splitlines()) == 80
    assert matched(versions.open(root, versions.current(root))) == {"s0", "a19", "b19"}


def test_what_is_no_index(tmp_path: Path, root: Path) -> None:
    for call in (versions.current, versions.compact, versions.drop, lambda path: versions.append(path, [])):
        for place in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(IndexFileError, match="holds no index"):
                call(place)
    with pytest.raises(IndexFileError, match="holds no version v9"):
        versions.open(root, Version(9, 0))


def test_a_version_that_was_never_written(root: Path) -> None:
    version = versions.append(root, [Change("s2", P)])
    assert matched(versions.open(root, Version(1, 0))) == {"s0"}
    for offset in (5, version.offset - 1, version.offset + 1):
        with pytest.raises(IndexFileError, match="cannot be read as far as"):
            versions.open(root, Version(1, offset))
    assert matched(versions.open(root, Version(1, 0))) == {"s0"}
    assert matched(versions.open(root, version)) == {"s0", "s2"}


def test_a_damaged_tail_changes_no_version_before_it(root: Path) -> None:
    version = versions.append(root, [Change("s2", P)])
    with (root / "v1.tail").open("ab") as tail:
        tail.write(b'{"id": "s3", "text": "WHERE (?x, p, ?y)"}\n{"id": "s4", "text": "WHERE ((("}\n')
    versions.open(root, version)
    for _ in range(2):
        with pytest.raises(SubscriptionError):
            versions.open(root, versions.current(root))
        assert matched(versions.open(root, version)) == {"s0", "s2"}
    (root / "v1.tail").unlink()
    with pytest.raises(IndexFileError, match="missing"):
        versions.current(root)


def test_an_unfinished_base_is_no_version(root: Path) -> None:
    (root / "v2.writing").mkdir()
    (root / "v2.writing" / "junk").write_text("x")
    assert versions.current(root) == Version(1, 0)
    engine = Engine()
    engine.subscribe("new", P)
    assert versions.publish(root, engine) == Version(2, 0)
    assert matched(versions.open(root, Version(2, 0))) == {"new"}
    assert not (root / "v2.writing").exists()
