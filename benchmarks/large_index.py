"""Ten million subscriptions on workers that could not hold them all: built by Spark, a part in each task, and matched in 8 parts.

The subscriptions are those of RSS cluster, Section 5, ten edges each, of 250 structures. They are written to Parquet in pieces, so that
this process does not hold them either. Not one of the bars that `python -m benchmarks` runs: it needs 20 GB of disk and
half an hour.

    python -m benchmarks.large_index 10000000 FOLDER
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks import texts
from benchmarks.contenders import CLUSTER
from benchmarks.workloads import Edges, Workload, make
from tidings.errors import TidingsError
from tidings.formats.rdf import NTRIPLES
from tidings.spark import build_index, match, session

PARTS, MEMORY = 8, "1GB"
_PIECE = 1_000_000


def write_subscriptions(count: int, folder: Path) -> Workload:
    """Files of ids and texts, and the workload of the first piece, whose publications match some of it."""
    folder.mkdir(parents=True)
    first: Workload | None = None
    for number in range(-(-count // _PIECE)):
        size = min(_PIECE, count - number * _PIECE)
        workload = make(replace(CLUSTER, subscriptions=size, seed=CLUSTER.seed + number))
        first = first or workload
        ids = pc.binary_join_element_wise(f"s{number}", pa.array(np.arange(size)).cast(pa.string()), "-")
        pq.write_table(
            pa.table({"id": ids, "text": _texts(workload.subscriptions)}), folder / f"{number}.parquet"
        )
    assert first is not None
    return first


def _texts(edges: Edges) -> pa.Array:
    """SELECT * WHERE (n12, p4, n7), … of all subscriptions, column by column."""
    names = pa.array(
        [texts._name(node) for node in range(-2, int(max(edges.subject.max(), edges.object.max())) + 1)]
    )
    labels = pa.array([f"p{label}" for label in range(int(edges.label.max()) + 1)])

    def triples() -> Iterator[pa.Array]:
        for j in range(edges.subject.shape[1]):
            subject, object = (names.take(pa.array(side[:, j] + 2)) for side in (edges.subject, edges.object))
            label = labels.take(pa.array(edges.label[:, j]))
            inside = pc.binary_join_element_wise(subject, label, object, ", ")
            yield pc.binary_join_element_wise("(", inside, ")", "")

    return pc.binary_join_element_wise("SELECT * WHERE ", pc.binary_join_element_wise(*triples(), ", "), "")


def _memory(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The most that this Python worker has had in memory, after a pause in which all workers get a task."""
    list(batches)
    time.sleep(2)
    anonymous = next(
        line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "Anonymous" in line
    )
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield pa.RecordBatch.from_pylist([{"most": most // 1000, "own": int(anonymous.split()[1]) // 1000}])


def main(count: int, folder: Path) -> None:
    start = time.perf_counter()

    def say(text: str) -> None:
        click.echo(f"{time.perf_counter() - start:7.0f} s  {text}")

    workload = write_subscriptions(count, folder / "subscriptions")
    say(
        f"{count:,} subscriptions written; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000:,} MB at most"
    )
    spark = session(settings={"spark.driver.memory": "2g"})
    frame = spark.read.parquet(str(folder / "subscriptions"))
    version, refused = build_index(frame, folder / "index", PARTS)
    size = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    say(f"built {version}, {size / 1e9:.1f} GB, {len(refused)} refused")
    documents = texts.documents(workload, "nt")
    events: DataFrame = spark.createDataFrame(
        [(str(number), NTRIPLES, data) for number, data in enumerate(documents)],
        "id string, datacontenttype string, data binary",
    )
    found = match(events, folder / "index", memory=MEMORY)
    counts = found.groupBy("verdict").count().collect()
    say(f"{len(documents)} events matched with --memory {MEMORY}: {[tuple(row) for row in counts]}")
    start_again = time.perf_counter()
    found.count()
    say(f"again, with parts that are open or not: {time.perf_counter() - start_again:.1f} s")
    workers = spark.range(4, numPartitions=4).mapInArrow(_memory, "most long, own long").collect()
    say(
        f"memory of Python workers, MB at most with mapped files, and their own: {[tuple(row) for row in workers]}"
    )
    try:
        match(events, folder / "index", memory="100MB")
    except TidingsError as error:
        say(f"refused: {error}")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
