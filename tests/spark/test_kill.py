"""A driver killed in mid-batch, twice, and started again: no notification lost, none doubled."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tidings.spark import notifications
from tidings.storage import versions
from tidings.storage.event_log import EventLog

from .conftest import TITLE, rows, start, words

DRIVER = str(Path(__file__).with_name("driver.py"))


def wait_for(there, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not there():
        assert process.poll() is None, "the driver ended before its time"
        assert time.monotonic() < deadline, "the driver takes too long"
        time.sleep(0.001)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2])
def test_nothing_lost_nothing_doubled(index, tmp_path, parts):
    engine = versions.open(index, versions.current(index))
    versions.publish(index, engine, placement=versions.Placement("split", parts))
    events = words(0, 150)
    with EventLog(tmp_path / "log") as log:
        for first in range(0, 150, 10):
            log.append(events[first : first + 10])
    before = versions.current(index)
    unfinished = tmp_path / "out" / ".unfinished"

    # Killed with a batch's output in place that Spark has not yet committed.
    driver = start(sys.executable, DRIVER, str(tmp_path), "local[2,4]", "hang")
    wait_for((tmp_path / "hanging").exists, driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    versions.append(index, [versions.Change("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")])

    # The replayed batch 1 keeps its version. Killed again while the tasks of a later batch run.
    driver = start(sys.executable, DRIVER, str(tmp_path), "local[2,4]")
    wait_for(lambda: (tmp_path / "done-1").exists() and any(unfinished.iterdir()), driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()

    assert not (tmp_path / "done-4").exists(), "the kill came too late to prove anything"

    driver = start(sys.executable, DRIVER, str(tmp_path), "local[2,4]")
    assert driver.wait(120) == 0

    # Batches 0 and 1 with the first version, the rest with the second.
    old = rows(versions.open(index, before).publish_many(events[:60]))
    new = rows(versions.open(index, versions.current(index)).publish_many(events[60:]))
    assert rows(notifications(tmp_path / "out")) == sorted(old + new)
    assert not unfinished.exists() or not any(unfinished.iterdir())
