"""Builds a divided index from a DataFrame of subscriptions, each part in a task: no process ever holds all of them.

Rows go to parts by a hash of their ids, so that those with the same id meet. A task reads its texts into an engine and writes that as a
part. What cannot be divided, such as joins and calls of operators, comes back to the driver, whose engine becomes the front.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.engine.engine import BroadSubscription, EmptySubscription, Engine
from tidings.spark.worker_python import need_package
from tidings.storage import versions
from tidings.storage.division import Placement, WrittenPart, check, id_hash, part_of, put_together
from tidings.storage.subscription_table import Refused, check_subscription_columns, texts_by_id
from tidings.storage.versions import Version

_RESULT = "part int, written binary"
_ARROW = pa.schema([("part", pa.int32()), ("written", pa.binary())])


class _Written(NamedTuple):
    """What a task says of its part; the driver has to look at `rest`."""

    part: WrittenPart
    rest: list[tuple[str, str]]
    refused: Refused


def build_index(
    subscriptions: DataFrame, root: str | Path, parts: int, *, definitions: Engine | None = None
) -> tuple[Version, Refused]:
    """Writes the index of a DataFrame with the columns `id` and `text`, split into parts, as the current version in the folder
    `root`, which all workers see. Returns the version, and ids and reasons of what it does not have. `definitions` is an engine
    with the taxonomy, prefixes, networks, operators and tables that texts need; its own subscriptions are not used."""
    check(Placement("split", parts))
    check_subscription_columns(subscriptions.columns)
    need_package(subscriptions.sparkSession)
    front = Engine() if definitions is None else definitions.without_subscriptions()
    with versions.writing_parts(Path(root).absolute()) as (aside, version):
        front.save(aside / "front")
        rows = subscriptions.select(
            F.expr(f"int(pmod(xxhash64(id), {parts}))").alias("part"), "id", "text"
        ).repartitionById(parts, "part")
        found = rows.mapInArrow(partial(_write_part, str(aside)), _RESULT).collect()
        written: dict[int, _Written] = {row.part: pickle.loads(bytes(row.written)) for row in found}
        made = [written[number] for number in range(parts)]
        refused = [row for each in made for row in each.refused]
        with _quiet():
            rest = (row for each in made for row in each.rest)
            refused += [(id, str(error)) for id, error in front.subscribe_many(rest)]
        put_together(aside, front, [each.part for each in made])
    return version[0], refused


def _write_part(aside: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = TaskContext.get()
    number = task.partitionId() if task else 0
    rows = [
        row
        for batch in batches
        for row in zip(batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True)
    ]
    texts, refused = texts_by_id(rows)
    del rows
    engine = Engine.load(Path(aside) / "front").without_subscriptions()
    part = Engine(taxonomy=engine.taxonomy, prefixes=engine.prefixes)
    with _quiet():
        failed = {id for id, _ in part.subscribe_many(texts.items())}
    whole = np.flatnonzero(~part.index.divisible()).tolist()
    apart = {*failed, *part.index.subscriptions.id_list(whole)}
    rest = [(id, texts[id]) for id in texts if id in apart]
    for id in apart:
        part.unsubscribe(id)
    part.save(part_of(Path(aside), number))
    ids = part.index.subscriptions.id_list(range(len(part.index.subscriptions)))
    hashes = np.fromiter(map(id_hash, ids), dtype=np.uint64, count=len(ids))
    made = _Written(WrittenPart(hashes, frozenset(part.index.used_kinds())), rest, refused)
    yield pa.RecordBatch.from_pylist([{"part": number, "written": pickle.dumps(made)}], _ARROW)


@contextmanager
def _quiet() -> Iterator[None]:
    """What is broad or empty was meant so: nobody reads a warning among millions."""
    with warnings.catch_warnings():
        for remark in (BroadSubscription, EmptySubscription):
            warnings.simplefilter("ignore", remark)
        yield
