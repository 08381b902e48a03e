"""The index of a task: which folder, which version of it, with what code, in how much memory.

In a stream whose plan is made once, a task does not know its version: the first task of a micro-batch pins it, and the
other tasks, of both stages of a divided index, and any replay use the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark import TaskContext

from tidings.engine.engine import Engine
from tidings.spark import version_pins
from tidings.spark.code_pickle import unpickle_code
from tidings.storage import versions


class TaskIndex(NamedTuple):
    """What a task needs to open an index. Without a version it is the one of its micro-batch; `memory` is how many bytes of
    the index's files one Python worker may have open."""

    root: str
    version: str
    pickled: bytes
    memory: int | None = None

    def open(self) -> Engine:
        """The index. `versions.open` keeps it open between tasks of one worker."""
        code = unpickle_code(self.pickled)
        number = versions.Version.parse(self.version or _pinned(self.root))
        return versions.open(
            self.root, number, operators=code.operators, kinds=code.kinds, memory=self.memory
        )


def _pinned(root: str) -> str:
    """The version of this task's micro-batch, pinned beside the index under the query's id."""
    task = TaskContext.get()
    query = task and task.getLocalProperty("sql.streaming.queryId")
    batch = task and task.getLocalProperty("streaming.sql.batchId")
    if not query or not batch:
        return str(versions.current(root))
    return version_pins.pin(Path(root) / "pins" / query, int(batch), lambda: str(versions.current(root)))
