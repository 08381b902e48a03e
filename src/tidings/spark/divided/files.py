"""Writes a micro-batch's notifications with a divided index: stage 1 writes those of the front, stage 2 those of the parts.

Notifications are not shuffled: what goes through the shuffle beside events are the reports of files. Every notification has the
position of its event in the micro-batch, by which files are merged (ordered_files.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.spark.divided.stages import (
    CARRIED,
    SHUFFLED,
    by_part,
    by_parts,
    match_front,
    match_part,
    received,
    shuffled_rows,
    task_number,
    with_positions,
    without_documents,
)
from tidings.spark.matching import in_log_order
from tidings.spark.ordered_files import POSITION, REPORT, TaskFile
from tidings.spark.task_index import TaskIndex
from tidings.storage.part_visits import total

_TASK = 1 << 40  # positions of a task of stage 1


def divided_reports(events: DataFrame, index: TaskIndex, aside: str, parts: int) -> DataFrame:
    """The reports of the files that the tasks of both stages have written."""
    shuffled = by_part(events.mapInArrow(partial(_front_task, index, aside), SHUFFLED), parts)
    # In the order of the log, in which files are written.
    ordered = shuffled.sortWithinPartitions("task", "number")
    return ordered.mapInArrow(partial(_part_task, index, aside), REPORT)


def _front_task(index: TaskIndex, aside: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    opened, task, number = index.open(), task_number(), 0
    file = TaskFile(aside, f"front-{task:05d}")
    for number, batch in enumerate(batches):
        if batch.num_rows:
            carried = with_positions(batch, task * _TASK + file.events)
            file.events += batch.num_rows
            found, forwards = match_front(opened, batch)
            _write(file, found, carried)
            for part, rows in by_parts(forwards):
                visiting = without_documents(carried, forwards, rows)
                yield from shuffled_rows(part, task, number, visiting, forwarded=True)
    report = pa.Table.from_batches([file.close(opened.learnt())])
    yield from shuffled_rows(task, task, number, report)


def _part_task(index: TaskIndex, aside: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    file = TaskFile(aside, f"part-{task_number():05d}")
    for part, forwarded, piece in received(batches):
        if forwarded:
            found, visits = match_part(index.open(), part, piece)
            file.visits = total([file.visits, visits])
            _write(file, found, piece)
        else:
            yield from piece.to_batches()
    yield file.close()


def _write(file: TaskFile, found: pa.Table, events: pa.Table) -> None:
    """Writes notifications in the order of their events."""
    if found.num_rows:
        ordered, rows = in_log_order(found, events)
        file.write(ordered.append_column(POSITION, events[CARRIED].take(rows)))
