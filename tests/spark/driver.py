"""A driver in a process of its own, for tests that kill it: log, index, output, checkpoint, and when to hang.

With "hang" it stops in the sink of batch 1: the output is in place, and Spark knows nothing of it yet.
"""

import sys
import time
from pathlib import Path

from tidings.spark import run, session


def main(root: Path, master: str, hang: bool) -> None:
    def sink(frame, batch):
        if hang and batch == 1:
            (root / "hanging").touch()
            time.sleep(600)

    spark = session(master, preload=root / "index")
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
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "hang" in sys.argv)
