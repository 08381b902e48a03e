"""The bars that must hold on Spark, local[2,4]: the rate beside parsing alone, and the latency of micro-batches.

Latency is from just before the append to the log until the notifications are on disk and the batch is reported.
"""

from __future__ import annotations

import queue
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyoxigraph as ox

from benchmarks import texts
from benchmarks.bars import Bar, loaded, show
from benchmarks.contenders import CLUSTER, scaled
from benchmarks.measure import best, context, write_json
from benchmarks.workloads import Workload, make
from tidings import Event
from tidings.model.event import to_table
from tidings.storage import versions
from tidings.storage.event_log import EventLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER = "local[2,4]"
EVENTS = 20_000
SEGMENTS = 100_000
BATCH = 100
_WARM, _MEASURED = 10, 21


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    from tidings import spark

    workload = make(scaled(CLUSTER, scale))
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        versions.publish(root / "index", loaded(workload))
        session = spark.session(MASTER, preload=root / "index")
        try:
            bars = [
                *rates(session, workload, root, max(400, round(EVENTS * scale))),
                latency(session, workload, root / "few", segments=1),
                latency(session, workload, root / "many", segments=max(10, round(SEGMENTS * scale))),
            ]
        finally:
            session.stop()
    show(bars)
    write_json(
        folder / "spark-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def rates(session: SparkSession, workload: Workload, root: Path, events: int) -> Iterator[Bar]:
    """The same events through two jobs: one that matches them, one that only parses them."""
    from tidings import spark

    for syntax, media_type, name in (
        ("rdfxml", "application/rdf+xml", "RDF/XML"),
        ("turtle", "text/turtle", "Turtle"),
        ("nt", "application/n-triples", "N-Triples"),
    ):
        contents = texts.documents(workload, syntax)
        with EventLog(root / f"log-{syntax}") as log:
            for first in range(0, events, 1000):
                log.append(
                    Event(
                        id=str(i),
                        source="bench",
                        datacontenttype=media_type,
                        data=contents[i % len(contents)],
                    )
                    for i in range(first, min(first + 1000, events))
                )
        frame = session.read.format("tidings").option("partitions", 2).load(str(root / f"log-{syntax}"))
        matching = spark.match(frame, root / "index")
        parsing = frame.mapInArrow(_parse_only(media_type), "triples long")
        _finish(matching)
        _finish(parsing)
        whole, alone = best(lambda job=matching: _finish(job)), best(lambda job=parsing: _finish(job))
        yield Bar(
            f"{name} on Spark {MASTER}, {len(workload.subscriptions):,} subscriptions",
            "at least 0.5 of the rate of parsing alone",
            f"{alone / whole:.2f} ({events / whole:,.0f} events/s)",
            alone / whole >= 0.5,
        )


def latency(session: SparkSession, workload: Workload, root: Path, segments: int) -> Bar:
    """The median micro-batch of 100 events, with a log that already has `segments` segments."""
    from tidings import spark

    documents = texts.documents(workload, "nt")
    done: queue.Queue[int] = queue.Queue()
    _fill(root / "log", segments)
    with (
        EventLog(root / "log", segment_bytes=1 if segments > 1 else 64 << 20) as log,
        spark.run(
            session,
            root / "log",
            root.parent / "index",
            root / "out",
            root / "checkpoint",
            on_batch=lambda batch: done.put(batch.events),
        ) as stream,
    ):
        stream.drain()
        times = []
        for turn in range(_WARM + _MEASURED):
            while not done.empty():
                done.get()
            table = to_table(
                Event(
                    id=f"{turn}-{i}",
                    source="bench",
                    datacontenttype="application/n-triples",
                    data=documents[(turn * BATCH + i) % len(documents)],
                )
                for i in range(BATCH)
            )
            start = time.perf_counter()
            log.append(table)
            seen = 0
            while seen < BATCH:
                seen += done.get(timeout=120)
            times.append(time.perf_counter() - start)
    median = statistics.median(times[_WARM:]) * 1e3
    return Bar(
        f"micro-batch of {BATCH} events, {segments:,} segment{'s' if segments > 1 else ''}",
        "under 400 ms at the median",
        f"{median:.0f} ms",
        median < 400,
    )


def _fill(log_folder: Path, segments: int) -> None:
    """A log of so many segments, written in memory first: a sync for each on disk would take a quarter of an hour."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        with EventLog(Path(place) / "log", segment_bytes=1 if segments > 1 else 64 << 20) as log:
            for i in range(segments):
                log.append([Event(id=f"old{i}", source="bench")])
        shutil.copytree(Path(place) / "log", log_folder)


def _parse_only(media_type: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # An inner function travels to the workers by value: they need not find this package.
    syntax = media_type

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind = ox.RdfFormat.from_media_type(syntax)
        for batch in batches:
            counts = [sum(1 for _ in ox.parse(data.as_py(), format=kind)) for data in batch.column("data")]
            yield pa.RecordBatch.from_arrays([pa.array(counts, pa.int64())], ["triples"])

    return parse


def _finish(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
