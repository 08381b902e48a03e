"""A real standalone cluster on this host, a master and two workers: the same answers as in one process."""

import sys
from pathlib import Path

import pytest

from tidings import Event
from tidings.spark import notifications
from tidings.storage.event_log import EventLog

from .cluster import loopback_cluster
from .conftest import expected, rows, start, words

DRIVER = str(Path(__file__).with_name("driver.py"))


def heavy(event: Event) -> Event:
    """The same event with so much text that two tasks share a micro-batch."""
    text = f'<http://example.org/{event.id}> <http://example.org/text> "{"x" * 40_000}" .\n'
    return Event(
        id=event.id,
        source=event.source,
        datacontenttype=event.datacontenttype,
        data=event.data + text.encode(),
    )


@pytest.mark.slow
def test_two_workers_answer_as_one_process(index, tmp_path):
    events = [heavy(event) for event in words(0, 45)]
    with EventLog(tmp_path / "log") as log:
        for item in events:
            log.append([item])
    with loopback_cluster(tmp_path, workers=2) as master:
        driver = start(sys.executable, DRIVER, str(tmp_path), master)
        try:
            assert driver.wait(150) == 0
        finally:
            driver.kill()
    assert (tmp_path / "executors").read_text() == "2"
    assert rows(notifications(tmp_path / "out")) == expected(index, events)
    # Each micro-batch was written by two tasks, one on each worker.
    parts = [len(list(folder.iterdir())) for folder in (tmp_path / "out").glob("query=*/batch=*")]
    assert parts == [2, 2]
