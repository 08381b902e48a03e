"""A driver in a process of its own, for tests that kill it or give it a cluster.

    driver.py ROOT MASTER [hang]

ROOT holds the log and the index and gets the output. With "hang" the driver stops in the sink of batch 1: its output
is in place, and Spark knows nothing of it yet.
"""

import sys
import time
from pathlib import Path

from tidings.spark import run, session

# Little memory, and no waiting for cores of a cluster that are still on their way.
QUICK = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


def main(root: Path, master: str, hang: bool) -> None:
    def sink(frame, batch):
        if hang and batch == 1:
            (root / "hanging").touch()
            time.sleep(600)

    loopback = {"spark.driver.host": "127.0.0.1", "spark.cores.max": "2"}
    spark = session(master, preload=root / "index", settings={**QUICK, **loopback})
    stream = run(
        spark,
        root / "log",
        root / "index",
        root / "out",
        root / "checkpoint",
        sink=sink,
        on_batch=lambda batch: (root / f"done-{batch.id}").touch(),
        available_now=True,
        max_events=30,
    )
    stream.wait()
    # The driver itself is one of them.
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    (root / "executors").write_text(str(len(executors) - 1))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "hang" in sys.argv)
