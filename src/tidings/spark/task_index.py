"""The index of a task: where it is, which version of it, with what code, in how much memory.

In a stream whose plan is made once, a task does not know its version: the first task of a micro-batch pins it, and the
other tasks, of both stages of a divided index, and any replay use the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from pyspark import SparkContext, SparkFiles, TaskContext

from tidings.engine.engine import Engine
from tidings.spark import version_pins
from tidings.spark.code_pickle import unpickle_code
from tidings.storage import versions

_SENT = "sent:"


class TaskIndex(NamedTuple):
    """What a task needs to open an index. Without a version it is the one of its micro-batch; `memory` is how many bytes of
    the index's files one Python worker may have open."""

    root: str
    """A folder that all hosts see, an address, or the name of what was sent to the hosts (`sent_root`)."""
    version: str
    pickled: bytes
    memory: int | None = None

    def open(self) -> Engine:
        """The index. `versions.open` keeps it open between tasks of one worker."""
        code, root = unpickle_code(self.pickled), self.root
        if root.startswith(_SENT):
            root = SparkFiles.get(root.removeprefix(_SENT))
        number = versions.Version.parse(self.version or _pinned(root))
        return versions.open(root, number, operators=code.operators, kinds=code.kinds, memory=self.memory)


def sent_root(context: SparkContext, folder: Path) -> str:
    """The root, for tasks, of an index that only the driver sees: Spark sends it once to each executor on another host."""
    if str(context.master).startswith("local"):
        return str(folder)
    archive = shutil.make_archive(str(folder), "tar", folder.parent, folder.name)
    context.addArchive(f"{archive}#{folder.name}")
    return f"{_SENT}{folder.name}/{folder.name}"


def _pinned(root: str) -> str:
    """The version of this task's micro-batch, pinned beside the index under the query's id."""
    task = TaskContext.get()
    query = task and task.getLocalProperty("sql.streaming.queryId")
    batch = task and task.getLocalProperty("streaming.sql.batchId")
    if not query or not batch:
        return str(versions.current(root))
    return version_pins.pin(Path(root) / "pins" / query, int(batch), lambda: str(versions.current(root)))
