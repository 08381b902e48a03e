"""Joins on Spark, local[2,4]: changes from the log until what each subscription gains and loses is visible Parquet.

The index is published with its rows. What is compiled or loaded at the start is not measured: the clock starts with
changes in the log, after some have gone all the way.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.bars import Bar
from benchmarks.join_runs import engine_of, lines
from benchmarks.join_workloads import Parameters, make
from tidings.formats.json_lines import read_lines
from tidings.storage import versions
from tidings.storage.event_log import EventLog

MASTER = "local[2,4]"
CHANGES, WARM = 60_000, 20_000
_FRAME = 2_000


@dataclass(frozen=True, slots=True)
class SparkRate:
    changes: int
    seconds: float
    notifications: int
    batches: int

    @property
    def per_second(self) -> float:
        return self.changes / self.seconds


def bar(scale: float) -> Bar:
    """The rate at 100,000 subscriptions."""
    rate = measure(Parameters(events=WARM + CHANGES).scaled(scale))
    return Bar(
        "joins on Spark, from the log to Parquet",
        "at least 3,000 row changes/s",
        f"{rate.per_second:,.0f} changes/s, {rate.notifications / rate.seconds:,.0f} notifications/s",
        rate.per_second >= 3_000,
    )


def measure(parameters: Parameters, batch: int = 20_000) -> SparkRate:
    """The last three quarters of a workload's changes, in micro-batches of at most `batch`."""
    from tidings import spark

    workload = make(parameters)
    frames = [read_lines(lines(workload, at, at + _FRAME)) for at in range(0, parameters.events, _FRAME)]
    early = max(1, len(frames) // 8)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        versions.publish(root / "index", engine_of(workload))
        session = spark.session(MASTER, preload=root / "index")
        published, done, notified, batches = 0, 0, 0, 0
        changed = threading.Condition()

        def on_batch(micro_batch: spark.Batch) -> None:
            nonlocal done, notified, batches
            with changed:
                assert not micro_batch.errors
                done, notified, batches = (
                    done + micro_batch.events,
                    notified + micro_batch.notifications,
                    batches + 1,
                )
                changed.notify()

        try:
            with (
                EventLog(root / "log") as log,
                spark.correlate(
                    session, root / "log", root / "index", root / "out", root / "checkpoint",
                    max_events=batch, on_batch=on_batch,
                ) as stream,
            ):  # fmt: skip

                def publish(published_frames: list[pa.Table]) -> None:
                    nonlocal published
                    for frame in published_frames:
                        log.append(frame)
                        published += len(frame)
                    with changed:
                        while done < published:
                            changed.wait(1)
                            if not stream.is_active:
                                stream.wait(1)  # raises what made it end

                # Twice, so that each worker has met rows that were kept.
                publish(frames[:early])
                publish(frames[early : 2 * early])
                before = notified, batches
                start = time.perf_counter()
                publish(frames[2 * early :])
                seconds = time.perf_counter() - start
        finally:
            session.stop()
    return SparkRate(sum(map(len, frames[2 * early :])), seconds, notified - before[0], batches - before[1])


if __name__ == "__main__":
    print(measure(Parameters(events=WARM + CHANGES)))
