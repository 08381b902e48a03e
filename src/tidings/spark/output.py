"""Writes a micro-batch's notifications as Parquet by the tasks, and publishes them by one rename.

The folder is `output/query=ID/batch=N`: a replayed batch replaces what it wrote before. Tasks write to an
unfinished folder under unique names and report them; only files that the finished job reports are kept, so a task
that ran twice counts once. Names and contents keep the log's order (ordered_files.py); with a divided index both stages
write (divided/files.py). Spark's own writer took 100 ms more per micro-batch, and every notification passed the JVM.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.kinds.operators.learning import Learning, merged
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.divided.files import divided_reports
from tidings.spark.divided.stages import task_number
from tidings.spark.matching import in_log_order, match_batches
from tidings.spark.ordered_files import REPORT, TaskFile, pieces
from tidings.spark.task_index import TaskIndex
from tidings.storage import versions
from tidings.storage.event_log import sync
from tidings.storage.part_visits import PartVisits, total


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one micro-batch. `errors` counts the events that could not be read; `learnt` is what all workers
    have learnt of operators, `visits` counts what parts of a divided index were visited for."""

    query: str
    id: int
    version: str
    events: int
    notifications: int
    errors: int
    folder: Path
    learnt: Learning = field(default_factory=Learning, repr=False)
    visits: PartVisits = field(default_factory=PartVisits, repr=False)

    def table(self) -> pa.Table:
        """Its notifications, in the log's order."""
        return pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), *self.pieces()])

    def pieces(self) -> Iterator[pa.Table]:
        """The same, a part at a time."""
        return pieces(list(self.folder.glob("*.parquet")))


def write(events: DataFrame, index: TaskIndex, output: Path, *, query: str, batch: int) -> Batch:
    """Matches `events` with a version of the index and writes the notifications to the batch's folder."""
    aside = unfinished(output, query, batch)
    aside.mkdir(parents=True, exist_ok=True)
    division = versions.division(index.root, versions.Version.parse(index.version))
    if division is None:
        written = events.mapInArrow(partial(_write_task, index, str(aside)), REPORT)
    else:
        written = divided_reports(events, index, str(aside), len(division.parts))
    reports = written.toArrow().to_pylist()
    learnt = merged(Learning.from_bytes(report["learnt"]) for report in reports if report["learnt"])
    return settle(reports, output, query, batch, index.version, learnt)


def settle(
    reports: Sequence[Mapping[str, Any]],
    output: Path,
    query: str,
    batch: int,
    version: str,
    learnt: Learning | None = None,
) -> Batch:
    """Moves the files that tasks have reported to the batch's folder."""
    folder, aside = output / f"query={query}" / f"batch={batch:09d}", unfinished(output, query, batch)
    folder.parent.mkdir(exist_ok=True)
    kept = {report["file"] for report in reports if report["file"]}
    for path in aside.iterdir():
        if path.name not in kept:
            path.unlink()
    sync(aside)
    if folder.exists():
        folder.rename(aside.with_suffix(".replaced"))
        shutil.rmtree(aside.with_suffix(".replaced"))
    if kept:
        aside.rename(folder)
    else:
        aside.rmdir()
    sync(folder.parent)
    totals = {name: sum(report[name] for report in reports) for name in ("events", "notifications", "errors")}
    visits = total(PartVisits.from_bytes(report.get("visits", b"")) for report in reports)
    return Batch(query, batch, version, folder=folder, learnt=learnt or Learning(), visits=visits, **totals)


def unfinished(output: Path, query: str, batch: int) -> Path:
    """The folder in which tasks write before the batch is done."""
    return output / ".unfinished" / f"{query}-{batch}"


def clear_unfinished(output: Path) -> None:
    """Removes the unfinished output of a killed run."""
    shutil.rmtree(output / ".unfinished", ignore_errors=True)


def notifications(output: str | os.PathLike[str]) -> pa.Table:
    """All notifications written so far under `output`, oldest batch first, each batch in the log's order."""
    folders = sorted(Path(output).glob("query=*/batch=*"))
    found = (piece for folder in folders for piece in pieces(list(folder.glob("*.parquet"))))
    return pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), *found])


def _write_task(index: TaskIndex, aside: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task: matches, writes one file if there is anything to write, and reports it with what was learnt."""
    opened = index.open()
    file = TaskFile(aside, f"{task_number():05d}")
    for batch in batches:
        file.events += batch.num_rows
        for found in match_batches(opened, iter([batch])):
            if found.num_rows:
                file.write(in_log_order(pa.Table.from_batches([found]), pa.Table.from_batches([batch]))[0])
    yield file.close(opened.learnt())
