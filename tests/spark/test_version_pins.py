"""A batch's version is decided once, whoever asks and however often."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidings import Engine
from tidings.spark.version_pins import last_base, pin, pinned, replace_lost
from tidings.storage import versions
from tidings.storage.versions import Version


def never():
    raise AssertionError("a pinned batch proposes nothing")


def test_the_first_version_stays(tmp_path):
    assert pin(tmp_path / "pins", 7, lambda: "v1+0") == "v1+0"
    assert pin(tmp_path / "pins", 7, never) == "v1+0"
    assert pin(tmp_path / "pins", 8, lambda: "v2+5") == "v2+5"
    assert pinned(tmp_path / "pins") == {Version(1, 0), Version(2, 5)}


def test_of_many_at_once_one_wins_and_all_follow(tmp_path):
    with ThreadPoolExecutor(16) as threads:
        for batch in range(20):
            said = set(threads.map(lambda i, batch=batch: pin(tmp_path, batch, lambda: f"v{i}+0"), range(16)))
            assert len(said) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(map(str, range(20)))


def test_pins_of_versions_that_are_gone_are_replaced(tmp_path, caplog):
    pins, index = tmp_path / "checkpoint" / "pins", tmp_path / "index"
    engine = Engine()
    versions.publish(index, engine)
    there = versions.append(index, [versions.Change("a", "WHERE topic = 'oil'")])
    for batch, version in enumerate((str(there), "v7+0", f"v1+{there.offset + 1}", "rubbish")):
        pin(pins, batch, lambda version=version: version)
    assert replace_lost(pins, index) == [1, 2, 3]
    assert {path.read_text() for path in pins.iterdir()} == {str(there)}
    assert "micro-batch 3" in caplog.text
    assert replace_lost(pins, index) == []
    pin(tmp_path / "checkpoint" / "joins" / "pins", 0, lambda: "v9+0")
    assert last_base(tmp_path / "checkpoint") == 9


def test_a_failed_proposal_leaves_nothing(tmp_path):
    def fail():
        raise OSError("no index")

    with pytest.raises(OSError, match="no index"):
        pin(tmp_path, 0, fail)
    assert list(tmp_path.iterdir()) == []
    assert pin(tmp_path, 0, lambda: "v1+0") == "v1+0"


def test_pins_that_no_replay_can_ask_for_are_dropped(tmp_path):
    for batch in range(250):
        pin(tmp_path, batch, lambda: "v1+0")
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(150, 250))
