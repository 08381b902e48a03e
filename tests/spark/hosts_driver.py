"""The driver on a cluster of hosts, in a process of its own: matches events with indexes, and writes the answers.

    hosts_driver.py FOLDER MASTER CORES PAUSE NAME=INDEX…

An index is an address; without one, NAME= has the subscriptions in a DataFrame. FOLDER/NAME.arrow gets the answers. While a stage of
a job has tasks under way, FOLDER/NAME.stage-1 (the front) or .stage-2 (the parts) is there; tasks of both wait for PAUSE seconds first, so
that there is a middle of a job in which a host can be killed. FOLDER/NAME.seconds gets the time of each job.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
from pyspark.sql import DataFrame, SparkSession

from tests.spark.cluster import HUB
from tests.spark.driver import QUICK
from tests.spark.hosts_workload import EVENTS, texts
from tidings.model.event import to_table
from tidings.spark import match, session
from tidings.spark.divided import stages

TASKS = 12  # of the first stage


def slowly(pause: float, task, *given) -> Iterator[pa.RecordBatch]:
    time.sleep(pause)
    yield from task(*given)


def watch(spark: SparkSession, folder: Path, jobs: list[str]) -> None:
    """Marks the stages of the job that runs: the last is that of the parts, the one before it that of the front."""
    tracker = spark.sparkContext.statusTracker()
    while True:
        for job in tracker.getActiveJobsIds() if jobs else ():
            found = tracker.getJobInfo(job)
            for place, stage in enumerate(sorted(found.stageIds, reverse=True) if found else ()):
                running = tracker.getStageInfo(stage)
                if running is not None and running.numActiveTasks and place < 2:
                    (folder / f"{jobs[-1]}.stage-{2 - place}").touch()
        time.sleep(0.05)


def main(folder: Path, master: str, cores: str, pause: str, *indexes: str) -> None:
    for name in ("_front_task", "_part_task"):
        setattr(stages, name, partial(slowly, float(pause), getattr(stages, name)))
    local = {
        "spark.driver.host": HUB,
        "spark.driver.bindAddress": HUB,
        "spark.local.dir": str(folder / "local"),
    }
    spark = session(
        master, settings={**QUICK, **local, "spark.cores.max": cores, "spark.executor.cores": "2"}
    )
    jobs: list[str] = []
    threading.Thread(target=watch, args=(spark, folder, jobs), daemon=True).start()
    events = spark.createDataFrame(to_table(EVENTS)).repartition(TASKS).cache()
    events.count()
    for given in indexes:
        name, _, index = given.partition("=")
        jobs.append(name)
        began = time.monotonic()
        found = match(events, index or subscriptions(spark)).toArrow()
        seconds = time.monotonic() - began
        aside = folder / f"{name}.writing"
        feather.write_feather(found, aside, compression="uncompressed")
        (folder / f"{name}.seconds").write_text(str(seconds))
        aside.replace(folder / f"{name}.arrow")
    spark.stop()


def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(texts().items()), ["id", "text"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    os._exit(0)
