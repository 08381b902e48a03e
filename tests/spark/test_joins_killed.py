"""A driver killed with a batch in place that is not committed, then a worker in mid-batch: nothing lost or doubled."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tidings.spark import notifications
from tidings.storage.event_log import EventLog

from .conftest import start
from .test_join_stream import changes, check_sequences, naive, places, told  # noqa: F401
from .test_kill import wait_for

DRIVER = str(Path(__file__).with_name("join_driver.py"))


def workers(session: int) -> list[int]:
    """The Python workers of a driver: forks of the daemon, which is in the driver's session."""
    daemons: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, line = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parent, _, of = (int(word) for word in stat.rpartition(")")[2].split()[1:4])
        if of == session and b"tidings.spark.daemon" in line:
            daemons[int(folder.name)] = parent
    return [pid for pid, parent in daemons.items() if parent in daemons]


@pytest.mark.slow
def test_nothing_lost_nothing_doubled(places, tmp_path):  # noqa: F811
    events = changes(500, seed=3)
    with EventLog(tmp_path / "log") as log:
        for first in range(0, len(events), 50):
            log.append(events[first : first + 50])

    driver = start(sys.executable, DRIVER, str(tmp_path), "hang")
    wait_for((tmp_path / "done-1").exists, driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    (tmp_path / "done-1").unlink()

    driver = start(sys.executable, DRIVER, str(tmp_path))
    wait_for(lambda: (tmp_path / "done-1").exists() and any((tmp_path / "out/.unfinished").iterdir()), driver)
    killed = workers(driver.pid)
    for worker in killed:
        os.kill(worker, signal.SIGKILL)
    assert killed
    assert not (tmp_path / "done-4").exists(), "the kill came too late to prove anything"
    assert driver.wait(120) == 0

    found = notifications(tmp_path / "out")
    assert told(found) == told(naive(events))
    check_sequences(found)
