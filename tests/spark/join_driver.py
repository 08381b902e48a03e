"""A driver of joins in a process of its own, for tests that kill it.

    join_driver.py ROOT [hang]

ROOT holds the log and the index and gets the output. With "hang" the driver stops when the output of batch 1 is in
place, and Spark knows nothing of it yet.
"""

import sys
import time
from pathlib import Path

from tidings.spark import Batch, correlate, session


def main(root: Path, hang: bool) -> None:
    def on_batch(batch: Batch) -> None:
        (root / f"done-{batch.id}").touch()
        if hang and batch.id == 1:
            time.sleep(600)

    spark = session("local[2,4]", preload=root / "index")
    places = root / "log", root / "index", root / "out", root / "checkpoint"
    correlate(spark, *places, on_batch=on_batch, available_now=True, max_events=100, buckets=4).wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "hang" in sys.argv)
