"""The answers of a micro-batch of joins are read in slices, in the log's order, and memory has a ceiling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidings import Event
from tidings.model.notification import NOTIFICATION_SCHEMA, to_table
from tidings.service.matching.join_slices import join_slices
from tidings.spark.ordered_files import POSITION, ROWS
from tidings.spark.output import Batch
from tidings.spark.slices import Slice
from tidings.storage.event_log import EventLog, Position

EVENTS, BUCKETS = 40, 4


def written(folder: Path, answers: int, row: str = "{}") -> tuple[Batch, EventLog]:
    """A log of events, each with so many answers in each bucket, in files as buckets write them."""
    with EventLog(folder / "log") as log:
        for number in range(EVENTS):
            log.append([Event(id=f"{number}", source="x", attributes={"n": number})])
    positions = np.repeat(np.arange(EVENTS), answers)
    change = pa.array(
        [[{"table": "t", "change": "+", "row": row}]], NOTIFICATION_SCHEMA.field("changes").type
    )
    (folder / "out").mkdir()
    for bucket in range(BUCKETS):
        table = to_table(
            {
                "subscription": pa.array([f"s{number % answers}" for number in range(len(positions))]),
                "source": pa.repeat("x", len(positions)),
                "event": pa.array(positions.astype(str)),
                "verdict": pa.repeat("match", len(positions)),
                "part": pa.repeat(f"{bucket}/{BUCKETS}", len(positions)),
                "sequence": pa.array(positions + 1),
                "changes": change.take(pa.array(np.zeros(len(positions), dtype=np.int64))),
            }
        )
        table = table.append_column(POSITION, pa.array(positions))
        pq.write_table(table, folder / "out" / f"{bucket}.parquet", row_group_size=ROWS, compression="zstd")
    count = BUCKETS * len(positions)
    return Batch("q", 0, "v1+0", EVENTS, count, 0, folder / "out"), log


def read(batch: Batch, log: EventLog, done: int, size: int) -> list[Slice]:
    return list(join_slices(batch, log, log.start(), log.end(), done=done, size=size))


def keys(parts: list[Slice]) -> list[tuple[str, str, str]]:
    rows = [row for part in parts for row in part.notifications.to_pylist()]
    return [(row["event"], row["subscription"], row["part"]) for row in rows]


def test_slices_of_joins_are_in_order_and_may_be_gone_on_from_anywhere(tmp_path: Path) -> None:
    batch, log = written(tmp_path, 300)
    whole = read(batch, log, 0, 5_000)
    assert [len(part.notifications) for part in whole] == [5_000] * 9 + [3_000]
    assert [part.reached for part in whole] == [
        *(Position(0, 0, 5_000 * number) for number in range(1, 10)),
        Position(*log.end()),
    ]
    assert [part.events for part in whole] == [0] * 9 + [EVENTS]
    found = keys(whole)
    assert len(set(found)) == len(found) == batch.notifications
    assert [int(event) for event, _, _ in found] == sorted(int(event) for event, _, _ in found)
    for part in whole:
        assert part.notified["id"].to_pylist() == part.notifications["event"].unique().to_pylist()
    for done in (5_000, 6_123, batch.notifications):
        assert keys(read(batch, log, done, 5_000)) == found[done:]


def test_a_batch_without_files_is_one_empty_slice(tmp_path: Path) -> None:
    _, log = written(tmp_path, 1)
    empty = Batch("q", 0, "v1+0", 7, 0, 0, tmp_path / "nothing")
    (part,) = read(empty, log, 0, 10)
    assert (part.events, len(part.notifications), part.reached) == (7, 0, Position(*log.end()))


def test_memory_does_not_grow_with_the_number_of_answers(tmp_path: Path) -> None:
    """Each answer has a row of 1 KB, which a file has once, and a table in memory for every answer."""
    batch, log = written(tmp_path, 800, '"' + "x" * 1_000 + '"')
    before, peak, count = pa.total_allocated_bytes(), 0, 0
    for part in join_slices(batch, log, log.start(), log.end(), done=0, size=5_000):
        peak = max(peak, pa.total_allocated_bytes() - before)
        count += len(part.notifications)
    assert count == batch.notifications
    assert peak < 32 << 20 < 100 << 20 < count * 1_000, f"{peak >> 20} MB"
