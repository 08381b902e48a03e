"""Builds a divided index from a DataFrame of subscriptions, each part in a task: no process ever holds all of them.

Rows go to parts by a hash of their ids, so that those with the same id meet. A task reads its texts into an engine and writes that as a
part, in a folder of its own attempt; the driver takes the folder of the attempt whose answer it has. What cannot be divided, such as joins and
calls of operators, comes back to the driver, whose engine becomes the front.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.engine.engine import Engine
from tidings.spark.worker_python import need_package
from tidings.storage import remote_index, versions
from tidings.storage.division import Placement, WrittenPart, assemble_base, check, id_hash, part_of
from tidings.storage.subscription_table import Refused, check_subscription_columns, texts_by_id, unwarned
from tidings.storage.versions import Version

_RESULT = "part int, written binary"
_ARROW = pa.schema([("part", pa.int32()), ("written", pa.binary())])


class _Written(NamedTuple):
    """What a task says of its part, which is in the folder `name`; the driver has to look at `rest`."""

    name: str
    part: WrittenPart
    rest: list[tuple[str, str]]
    refused: Refused


def build_index(
    subscriptions: DataFrame, root: str | Path, parts: int, *, definitions: Engine | None = None
) -> tuple[Version, Refused]:
    """Writes the index of a DataFrame with the columns `id` and `text`, split into parts, as the current version in the folder
    `root`, which all workers see. Returns the version, and ids and reasons of what it does not have. `definitions` is an engine
    with the taxonomy, prefixes, networks, operators and tables that texts need; its own subscriptions are not used. To change very many
    subscriptions, build it anew: `tidings index compact` holds all of them."""
    check(Placement("split", parts))
    check_subscription_columns(subscriptions.columns)
    need_package(subscriptions.sparkSession)
    front = Engine() if definitions is None else definitions.without_subscriptions()
    refused = Refused()

    def write(base: Path) -> None:
        front.save(base / "front")
        id, text = (F.col(name).cast("string").alias(name) for name in ("id", "text"))
        part = F.expr(f"int(pmod(xxhash64(cast(id AS string)), {parts}))").alias("part")
        rows = subscriptions.select(part, id, text).repartitionById(parts, "part")
        found = rows.mapInArrow(partial(_write_part, str(base)), _RESULT).collect()
        written: dict[int, _Written] = {row.part: pickle.loads(bytes(row.written)) for row in found}
        # Where there are no rows, Spark may start no task.
        made = [written.get(number) or _written(base, f"part-{number}-none", ()) for number in range(parts)]
        for number, each in enumerate(made):
            (base / each.name).rename(part_of(base, number))
            refused.extend(each.refused)
        for left in base.glob("part-*-*"):
            shutil.rmtree(left)
        with unwarned():
            rest = (row for each in made for row in each.rest)
            refused.extend((id, str(error)) for id, error in front.subscribe_many(rest))
        assemble_base(base, front, [each.part for each in made])

    return versions.publish_parts(remote_index.own_folder(root).absolute(), front, write), refused


def _write_part(base: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = TaskContext.get()
    assert task is not None
    rows = (
        row
        for batch in batches
        for row in zip(batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True)
    )
    number = task.partitionId()
    made = _written(Path(base), f"part-{number}-{task.taskAttemptId()}", rows)
    yield pa.RecordBatch.from_pylist([{"part": number, "written": pickle.dumps(made)}], _ARROW)


def _written(base: Path, name: str, rows: Iterable[tuple[str | None, str | None]]) -> _Written:
    """Writes the subscriptions of a part that can be divided."""
    texts, refused = texts_by_id(rows)
    definitions = Engine.load(base / "front")
    part = Engine(
        taxonomy=definitions.taxonomy,
        prefixes=definitions.prefixes,
        tables=definitions.joins.tables.values(),  # so that joins are known as such
    )
    with unwarned():
        part.subscribe_many(texts.items())
    kept = {*part.index.subscriptions.id_list(np.flatnonzero(part.index.divisible()).tolist())}
    rest = [(id, text) for id, text in texts.items() if id not in kept]
    for id, _ in rest:
        part.unsubscribe(id)
    saved = Engine(taxonomy=part.taxonomy, prefixes=part.prefixes)
    saved.index.take_over(part.index, np.frombuffer(bytes(part.index.subscriptions.live), dtype=np.bool_))
    saved.save(base / name)
    ids = saved.index.subscriptions.id_list(range(len(saved.index.subscriptions)))
    hashes = np.fromiter(map(id_hash, ids), dtype=np.uint64, count=len(ids))
    return _Written(name, WrittenPart(hashes, frozenset(saved.index.used_kinds())), rest, refused)
