"""The process that workers are forked from: it keeps silent, and a worker's death costs nobody an answer."""

import os
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tidings.model.event import to_table
from tidings.spark import match
from tidings.spark.settings import PRELOAD

from .conftest import expected, rows, words


def test_the_first_thing_it_says_is_its_port(index):
    for preload in (str(index), "/no/such/index"):
        process = subprocess.Popen(
            [sys.executable, "-m", "tidings.spark.daemon", "pyspark.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, PRELOAD: preload},
        )
        said = process.stdout.read(4)
        # Spark ends it by closing its input; it then ends its whole group, itself included.
        rest, _ = process.communicate()
        assert 0 < struct.unpack("!i", said)[0] < 65_536
        assert rest == b""


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


def workers(spark) -> list[int]:
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    daemons = [
        pid for pid in children(java) if b"tidings.spark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return [worker for daemon in daemons for worker in children(daemon)]


def test_killed_workers_are_replaced(spark, index):
    events = words(0, 30)
    frame = spark.createDataFrame(to_table(events))
    assert rows(match(frame, index).toArrow()) == expected(index, events)
    killed = workers(spark)
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert rows(match(frame, index).toArrow()) == expected(index, events)
    assert not set(workers(spark)) & set(killed)
