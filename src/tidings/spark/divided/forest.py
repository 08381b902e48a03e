"""The forest of containment as a Spark job: the workers map the index, and each task looks through a range of subscriptions.

The driver holds the engine that is to be published, and chooses the parents of the candidates that tasks have found.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidings.containment.forest import Columns, Forest, Task
from tidings.engine.engine import Engine
from tidings.spark.code_pickle import pickle_code, unpickle_code
from tidings.spark.worker_python import need_package
from tidings.storage import remote_index, versions
from tidings.storage.division import check
from tidings.storage.versions import Placement, Version

_FEW = 1_000  # rows that are no job
_TASKS = 4  # for each core, so that one with more to do does not keep the others waiting


def publish(
    spark: SparkSession,
    root: str | Path,
    engine: Engine,
    placement: Placement,
    *,
    sample: pa.Table | None = None,
    memory: int | None = None,
) -> Version:
    """Writes an engine as a new version of an index, divided, as `versions.publish` does. Which subscription contains
    which is found out by Spark's workers, who have to see the folder."""
    root = remote_index.own_folder(root)
    root.mkdir(parents=True, exist_ok=True)
    check(placement)
    is_split = placement.parts == 1 or placement.place == "split"
    found = None if is_split else parents(spark, root, engine)
    return versions.publish(root, engine, placement=placement, sample=sample, memory=memory, parents=found)


def parents(spark: SparkSession, root: Path, engine: Engine) -> np.ndarray:
    """What `forest.parents` gives. The index is in a folder below `root` meanwhile."""
    need_package(spark)
    folder = Path(tempfile.mkdtemp(prefix="forest-", dir=root.absolute()))
    folder.chmod(0o755)  # workers may be other users
    try:
        engine.save(folder / "whole")  # it folds
        forest, index = Forest(engine), "whole"
        if forest.engine is not engine:
            index = "distinct"
            forest.engine.save(folder / index)
        opened = partial(_forest, str(folder / index), pickle_code(engine.operators, engine.own_kinds))

        def spread(task: Task, columns: Columns) -> Columns:
            if len(columns[0]) <= _FEW:
                return task(forest, columns)
            return _run(spark.sparkContext, partial(_task, opened, task), columns)

        return forest.parents(spread)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(context: SparkContext, task: partial[Columns], columns: Columns) -> Columns:
    tasks = _TASKS * context.defaultParallelism
    ranges = list(zip(*(np.array_split(column, tasks) for column in columns), strict=True))
    found = context.parallelize(ranges, tasks).map(task).collect()
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def _task(opened: partial[Forest], task: Task, columns: Columns) -> Columns:
    return task(opened(), columns)


@lru_cache(maxsize=1)
def _forest(folder: str, pickled: bytes) -> Forest:
    """Kept from task to task of a worker."""
    code = unpickle_code(pickled)
    return Forest(Engine.load(folder, operators=code.operators, kinds=code.kinds))
