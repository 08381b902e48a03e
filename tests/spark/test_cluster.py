"""A real standalone cluster on this host, a master and two workers: the same answers as in one process."""

import os
import signal
import socket
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from tidings import Event
from tidings.spark import class_archive, notifications
from tidings.spark.settings import LOG4J
from tidings.storage.event_log import EventLog

from .conftest import expected, rows, start, words

DRIVER = str(Path(__file__).with_name("driver.py"))
HOME = Path(pyspark.__file__).parent


@contextmanager
def service(name: str, *arguments: str):
    """One of Spark's own daemons, ended with its children by the id of its group."""
    java = (
        str(class_archive.java()),
        "-cp",
        str(HOME / "jars" / "*"),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        LOG4J,
    )
    command = (*java, f"org.apache.spark.deploy.{name}", *arguments)
    # What Spark's start scripts would set, for the executors' own class path.
    process = start(*command, SPARK_HOME=str(HOME), SPARK_SCALA_VERSION="2.13")
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port: int, process) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None, "the master ended before its time"
            assert time.monotonic() < deadline, "the master takes too long"
            time.sleep(0.1)


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
    port = free_port()
    place = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as cluster:
        master = cluster.enter_context(service("master.Master", *place, "--port", str(port)))
        wait_for_port(port, master)
        for number in range(2):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work{number}"))
            cluster.enter_context(service("worker.Worker", *place, *work, f"spark://127.0.0.1:{port}"))
        driver = start(sys.executable, DRIVER, str(tmp_path), f"spark://127.0.0.1:{port}")
        try:
            assert driver.wait(150) == 0
        finally:
            driver.kill()
    assert (tmp_path / "executors").read_text() == "2"
    assert rows(notifications(tmp_path / "out")) == expected(index, events)
    # Each micro-batch was written by two tasks, one on each worker.
    parts = [len(list(folder.iterdir())) for folder in (tmp_path / "out").glob("query=*/batch=*")]
    assert parts == [2, 2]
