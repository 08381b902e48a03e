"""Errors of Java that a micro-batch gives back to Spark have no stack, which Spark's own search would overflow on."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidings.spark.java_errors import short_java_errors

STOPPED = """
import sys, threading, time
from pathlib import Path
from tidings import Engine, Event, EventLog, versions
from tidings.spark import run
from tidings.spark.startup import start_spark
folder = Path(sys.argv[1])
engine = Engine()
engine.subscribe("s", "WHERE n = 1")
versions.publish(folder / "index", engine)
with EventLog(folder / "log") as log:
    log.append([Event(id="1", source="x", attributes={"n": 1})])
spark = start_spark("local[2,4]", folder / "index", {})
began = threading.Event()
def sink(frame, batch):
    began.set()
    spark.sparkContext.parallelize([1], 1).map(lambda one: time.sleep(20)).collect()
(query,) = run(spark, folder / "log", folder / "index", folder / "out", folder / "checkpoint", sink=sink).queries
began.wait()
time.sleep(2)
query.stop()
time.sleep(1)
print("ended", query.isActive, query.exception())
spark.stop()
"""


def test_an_error_of_java_is_told_without_its_stack(spark: SparkSession) -> None:
    with pytest.raises(Py4JJavaError) as raised, short_java_errors():
        spark._jvm.java.util.ArrayDeque().pop()  # type: ignore[union-attr]
    text = "".join(traceback.format_exception(raised.value))
    assert "py4j.protocol.Py4JJavaError: An error occurred while calling" in text, "Spark looks for this"
    assert "\tat " not in text
    assert len(str(raised.value)) <= 1_000


@pytest.mark.slow
def test_a_query_that_is_stopped_within_a_job_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["ended False None"], done.stderr
    assert "StackOverflowError" not in done.stderr
