"""The process from which Spark forks Python workers, with everything that a worker needs already imported.

Spark kills a worker that was idle for a minute, and a new one would repeat the imports. Forked from this process
it has them, shares their memory, and its garbage collector does not scan them. Nothing may be printed here: on
standard output Spark expects a port number.
"""

from __future__ import annotations

import gc
import os
import sys

from tidings.spark.settings import PRELOAD


def main() -> None:
    import pyarrow as pa
    import pyspark.daemon
    import pyspark.worker

    # Other daemons than the tasks' may come here to plan; only tasks need the index.
    if "pyspark.worker" in sys.argv:
        import tidings.spark.output  # noqa: F401

        # Threads do not survive a fork, and the tasks already use all cores.
        pa.set_cpu_count(1)
        warm(os.environ.get(PRELOAD, ""))
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()


def warm(root: str) -> None:
    """Opens the current version of an index and matches one event, so that kernels are compiled. No operator is
    called: the threads and connections that it opens would not survive the fork."""
    from tidings.engine.engine import Engine
    from tidings.model.event import Event, to_table
    from tidings.storage import versions
    from tidings.storage.divided_index import DividedIndex

    if not root:
        return
    probe = to_table([Event(datacontenttype="application/n-triples", data=b"<a:a> <a:b> <a:c> .\n")])
    try:
        version = versions.current(root)
        engine = kept = versions.open(root, version)
        if versions.calls(root, version):
            engine = Engine()
            engine.subscribe("pattern", "WHERE (?x, <a:b>, ?y)")
            engine.subscribe("filter", "WHERE source = 'a'")
        if isinstance(engine, DividedIndex):
            engine.match_front(probe)  # each worker opens the parts that it needs
        else:
            engine.match(probe.to_batches()[0])
        if kept.joins.tables:
            kept.correlate(probe)
    except Exception:
        # No index yet, or a broken one: the first task meets the same fault and reports it as its own.
        return


if __name__ == "__main__":
    main()
