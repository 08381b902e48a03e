"""Starts the SparkSession that Tidings needs; each setting has its reason beside it."""

from __future__ import annotations

import logging
import os
import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext, accumulators
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tidings.spark import class_archive, source
from tidings.storage import remote_index

# The environment variable by which a worker's daemon learns which index to open before its first fork.
PRELOAD = "TIDINGS_PRELOAD"

LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

SETTINGS: dict[str, str] = {
    # Workers start with imports, index and kernels in place. Spark kills a worker that was idle for 60 s (no
    # setting changes that); the next one then costs 0.7 s instead of 2.4 s.
    "spark.python.daemon.module": "tidings.spark.daemon",
    # 10,000 rows a batch measured best; fewer pay the call, more leave the cache.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Rename instead of the default's checked output stream: the floor of a micro-batch falls by some 200 ms.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A second file with a checksum for each of the files that a micro-batch writes.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # How often an idle stream looks at the log's end; the default of 10 ms kept a fifth of a core busy.
    "spark.sql.streaming.pollingDelay": "25ms",
    # Plans here have no shuffle that adapting could mend, and each micro-batch would pay for the attempt.
    "spark.sql.adaptive.enabled": "false",
    # A task that is repeated because its host is lost gives a part the same events, possibly in other batches. Spark
    # would take that for other data, and fail the job.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    # The few shuffles there are (a user's own counts) are small; 200 tasks would cost seconds.
    "spark.sql.shuffle.partitions": "4",
    # No port opened, no history kept: the stream itself reports its progress.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# One host: no look-up of its name at start, no door to the network. A cluster's driver must be reachable instead.
LOCAL_SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def session(
    master: str = "local[*,4]",
    *,
    name: str = "tidings",
    preload: str | os.PathLike[str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Starts (or gets) the session, with `format("tidings")` registered. The master is `local[N,4]` and not
    `local[N]`: with four attempts one dead Python worker does not fail the job. `preload` is an index that
    workers open at their start; `settings` override the ones here."""
    # Workers must run the interpreter that has this package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    wanted = {**SETTINGS, **(LOCAL_SETTINGS if master.startswith("local") else {})}
    if preload is not None:
        # By the environment locally, by executorEnv on a cluster: the daemon starts before any task names an index.
        os.environ[PRELOAD] = wanted[f"spark.executorEnv.{PRELOAD}"] = remote_index.absolute(preload)
    # The bridge to Java would print the traceback of every failed micro-batch that the caller is given anyway.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    # And the server of accumulators one of its own when the JVM is gone, which the caller is told of too.
    for server in vars(accumulators).values():
        if isinstance(server, type) and issubclass(server, socketserver.BaseServer):
            server.handle_error = lambda *about: None  # type: ignore[method-assign]
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**wanted, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = _start(builder)
    source.register(spark)
    return spark


def _start(builder: SparkSession.Builder) -> SparkSession:
    """Starts Spark with the class archive, or without it if that fails. Logs errors only."""
    running = SparkContext._gateway is not None
    classes = None if running else class_archive.locate()
    # Stands before the user's own extraJavaOptions.
    builder.config("spark.driver.defaultJavaOptions", f"{LOG4J} {class_archive.java_options(classes)}")
    try:
        with _without_remarks():
            spark = builder.getOrCreate()
    except PySparkRuntimeError:
        if classes is None or not classes.exists():
            raise
        classes.unlink()
        builder.config("spark.driver.defaultJavaOptions", LOG4J)
        return builder.getOrCreate()
    if classes is not None and not classes.exists():
        class_archive.keep_at_exit(classes, SparkContext._gateway.proc)  # type: ignore[union-attr]
    return spark


# Messages of Java about a module that Spark uses, and of Spark's workers at each start of a stateful query.
_REMARKS = (
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithState",
    b"Streaming TransformWithState",
)


@contextmanager
def _without_remarks() -> Iterator[None]:
    """Drops known messages of Java that no logging option suppresses, and passes on everything else."""
    said, saying = os.pipe()
    saved = os.dup(2)

    def pass_on() -> None:
        with os.fdopen(said, "rb") as lines, os.fdopen(saved, "wb", buffering=0) as stderr:
            for line in lines:
                if line.strip() and not line.startswith(_REMARKS):
                    stderr.write(line)

    sys.stderr.flush()
    os.dup2(saying, 2)
    os.close(saying)
    threading.Thread(target=pass_on, name="java-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(saved, 2)
