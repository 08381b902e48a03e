"""What streams learn waits beside the index: batches replace themselves, bases take differences, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kinds.operators.test_learning import OPERATORS, engine, events
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.kinds.operators.learning import Learning, LearningRecorder
from tidings.storage import operator_feedback, versions
from tidings.storage.versions import Change, Version


def lesson(count: int, first: int = 0) -> Learning:
    """What one worker learns from some events."""
    worker = engine()
    worker.publish_many(events(first, first + count))
    return worker.learnt()


def wanted(root: Path, version: Version) -> dict[str, float]:
    opened = versions.open(root, version, operators=OPERATORS)
    predicates = opened._checker.table.predicates
    return dict(zip(predicates.texts, predicates.learnt.wanted.tolist(), strict=True))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    versions.publish(tmp_path / "index", engine())
    return tmp_path / "index"


def test_the_next_base_begins_with_what_all_streams_have_learnt(root: Path) -> None:
    operator_feedback.record(root, "first", 1, 0, lesson(10))
    operator_feedback.record(root, "first", 1, 1, lesson(5))
    operator_feedback.record(root, "second", 1, 0, lesson(7))
    second = versions.compact(root, operators=OPERATORS)
    assert second == Version(2, 0)
    assert wanted(root, second)["often()"] == 22
    assert versions.compact(root) == second, "there is nothing new"
    operator_feedback.record(root, "first", 2, 2, lesson(3))
    assert wanted(root, versions.compact(root, operators=OPERATORS))["often()"] == 25


def test_calls_are_counted_by_operator_over_bases_and_streams(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    before = operator_feedback.calls_by_operator(root, 1)
    assert before["often"].calls == 10
    assert 0 < before["often"].seconds < 1
    second = versions.compact(root, operators=OPERATORS)
    operator_feedback.record(root, "q", 1, 1, lesson(5))
    after = operator_feedback.calls_by_operator(root, second.base)
    assert after["often"].calls == 15
    assert after["often"].failures == 0


def test_a_batch_that_is_replayed_replaces_itself(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    for count in (4, 4, 6):
        operator_feedback.record(root, "q", 1, 1, lesson(count))
    operator_feedback.record(root, "q", 1, 0, lesson(100))  # nothing that Spark would do
    assert wanted(root, versions.compact(root))["often()"] == 16


def test_a_replay_after_a_base_has_taken_its_batch_in_counts_once(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    versions.compact(root)
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    operator_feedback.record(root, "q", 2, 1, lesson(2))
    third = versions.compact(root)
    assert wanted(root, third)["often()"] == 12
    operator_feedback.record(root, "q", 2, 2, lesson(1))
    fourth = versions.compact(root)
    assert wanted(root, fourth)["often()"] == 13
    # What no stream goes on with is tidied away.
    assert [path.name for path in (root / operator_feedback.FOLDER).iterdir()] == ["q-v2.arrow"]


def test_an_index_that_is_built_anew_knows_what_the_one_before_it_knew(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    second = versions.publish(root, engine(new="WHERE often() AND rarely('y')"))
    assert wanted(root, second) == {"often()": 10, "rarely('y')": 0}
    third = versions.publish(root, engine())
    assert wanted(root, third)["often()"] == 10
    # Its own is more than what the base knew, and has to do.
    own = engine()
    own.publish_many(events(0, 4))
    assert wanted(root, versions.publish(root, own))["often()"] == 4


def test_a_batch_without_calls_leaves_nothing(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, Learning())
    assert not (root / operator_feedback.FOLDER).exists()


def test_files_that_cannot_be_read_are_as_if_nothing_had_been_learnt(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(10))
    path = root / operator_feedback.FOLDER / "q-v1.arrow"
    for data in (b"", b"1", b"1 5\nabc", path.read_bytes()[:300]):
        path.write_bytes(data)
        assert set(wanted(root, versions.publish(root, engine())).values()) == {0}
    operator_feedback.record(root, "q", 1, 1, lesson(3))
    (root / f"v{versions.current(root).base}" / "operators" / "manifest.json").write_text("{}")
    versions.publish(root, engine())  # of a base that is damaged nothing is known, and it is not asked
    assert wanted(root, versions.current(root))["often()"] == 3


def test_selectivities_are_handed_on(root: Path) -> None:
    operator_feedback.record(root, "q", 1, 0, lesson(100))
    version = versions.compact(root)
    opened = versions.open(root, version, operators=OPERATORS)
    rows = {
        row["text"]: row for row in LearningRecorder.whole(opened._checker.table.predicates).rows.to_pylist()
    }
    assert rows[b"often()"]["hits"] / rows[b"often()"]["trials"] == pytest.approx(0.9, abs=0.05)
    assert len(opened.learnt()) == 0, "what was read is not told again"


def test_calls_in_a_tail_need_their_operators(root: Path) -> None:
    versions.append(root, [Change("tail", "WHERE often() AND n > 5")], operators=OPERATORS)
    version = versions.current(root)
    opened = versions.open(root, version, operators=OPERATORS)
    assert "tail" in opened
    assert versions.open(root, version, operators=list(OPERATORS)) is opened
    assert [call.name for call in versions.calls(root, version)][-1] == "often"
    assert versions.calls(root, version, since=version) == []
    with pytest.raises(OperatorError, match="unknown operator 'often'"):
        versions.check_operators(root, version, OPERATORS[1:])
    versions.check_operators(root, version, OPERATORS)
