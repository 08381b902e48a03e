"""The Parquet files of a micro-batch: each task writes one, and they are read in the log's order, a piece at a time.

The tasks of the query that matches read consecutive ranges of the log, and the name of a file begins with its task's
number: one file follows the other. The buckets of joins, and the parts of a divided index, each answer events from all of
the log, so their files have a column more, `position`, which ascends with the events of the micro-batch. Each file is in its
order, and files are merged by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidings.kinds.operators.learning import Learning
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.storage.event_log import sync
from tidings.storage.part_visits import PartVisits

POSITION = "position"
ROWS = 4_096  # of a row group
_READ = 1_024  # rows of a file at once
REPORT = "file string, events long, notifications long, errors long, visits binary, learnt binary"
REPORT_ARROW = pa.schema(
    [
        ("file", pa.string()),
        ("events", pa.int64()),
        ("notifications", pa.int64()),
        ("errors", pa.int64()),
        ("visits", pa.binary()),
        ("learnt", pa.binary()),
    ]
)


class TaskFile:
    """A file of its own for each attempt of a task; there is none if there is nothing to write. `events` is how many the task
    has read, `visits` what it has visited parts of a divided index for."""

    def __init__(self, folder: str, name: str) -> None:
        self._path = Path(folder) / f"{name}-{uuid.uuid4().hex}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self.events = self._notifications = self._errors = 0
        self.visits = PartVisits()

    def write(self, found: pa.Table) -> None:
        """Adds notifications; all have the same columns."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, found.schema, compression="zstd")
        self._writer.write_table(found)
        bad = pc.sum(pc.equal(found["verdict"], "error")).as_py()
        self._errors, self._notifications = self._errors + bad, self._notifications + found.num_rows - bad

    def close(self, learnt: Learning | None = None) -> pa.RecordBatch:
        """The report, when the file is on disk."""
        if self._writer is not None:
            self._writer.close()
            sync(self._path)
        report = {
            "file": self._path.name if self._writer else None,
            "events": self.events,
            "notifications": self._notifications,
            "errors": self._errors,
            "visits": self.visits.to_bytes(),
            "learnt": learnt.to_bytes() if learnt else None,
        }
        return pa.RecordBatch.from_pylist([report], REPORT_ARROW)


def pieces(files: Sequence[Path]) -> Iterator[pa.Table]:
    """The notifications of the files of one micro-batch, in the log's order. Their order is the same for files of the
    same contents and the same order of names."""
    opened = [pq.ParquetFile(path) for path in sorted(files, key=lambda path: path.name)]
    if all(POSITION in file.schema_arrow.names for file in opened):
        found = _merged([file.iter_batches(_READ) for file in opened])
    else:
        found = (pa.Table.from_batches([batch]) for file in opened for batch in file.iter_batches(_READ))
    for piece in found:
        # What was written before there were tables has fewer columns.
        whole = pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), piece], promote_options="default")
        yield whole.select(NOTIFICATION_SCHEMA.names)


def _merged(sources: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.Table]:
    """Holds a batch of each source; takes what comes before the first end of a batch, then reads the next one."""
    heads = {number: batch for number, source in enumerate(sources) if (batch := next(source, None))}
    while heads:
        bound = min(batch[POSITION][-1].as_py() for batch in heads.values())
        taken = []
        for number, batch in list(heads.items()):
            count = int(np.searchsorted(batch[POSITION].to_numpy(), bound, side="right"))
            taken.append(batch.slice(0, count))
            rest = batch.slice(count) if count < batch.num_rows else next(sources[number], None)
            if rest is None:
                del heads[number]
            else:
                heads[number] = rest
        yield pa.Table.from_batches(taken).sort_by(POSITION)  # which keeps the order of equal ones
