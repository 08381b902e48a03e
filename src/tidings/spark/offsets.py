"""Reads Spark's records of a query: its id, and the range of the log that each micro-batch reads.

    checkpoint/spark/metadata     {"id": …}
    checkpoint/spark/commits/7    when micro-batch 7 is done
    checkpoint/spark/offsets/7    of micro-batch 7, before it runs: a version, facts of the batch, the end of each source

Spark writes both; this module only reads them. The offsets of the last 100 micro-batches are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tidings.errors import TidingsError
from tidings.storage.event_log import Offset


class BatchRange(NamedTuple):
    """The range of a micro-batch: it reads the log from `start` (None: from the first event) to `end`; `began` is
    when Spark made it, in seconds since 1970, the same in every replay."""

    start: Offset | None
    end: Offset
    began: float


def query_id(checkpoint: Path) -> str:
    """The id of the query that has this checkpoint."""
    text = (checkpoint / "spark" / "metadata").read_text()
    query: str = json.loads(text)["id"]
    return query


def batch_range(checkpoint: Path, batch: int) -> BatchRange:
    """The range of a micro-batch of the query that has this checkpoint."""
    folder = checkpoint / "spark" / "offsets"
    end, began = _read(folder / str(batch))
    before = folder / str(batch - 1)
    return BatchRange(_read(before)[0] if before.exists() else None, end, began)


def is_committed(checkpoint: Path, batch: int) -> bool:
    """Whether Spark has noted that a micro-batch is done, and reads it never again."""
    return (checkpoint / "spark" / "commits" / str(batch)).exists()


def last_batches(checkpoint: Path) -> tuple[int, int]:
    """The last micro-batch that is done, and the last that is planned, as Spark has recorded them; -1 for none."""
    done, planned = (
        max((int(path.name) for path in (checkpoint / "spark" / records).glob("[0-9]*")), default=-1)
        for records in ("commits", "offsets")
    )
    return done, planned


def _read(path: Path) -> tuple[Offset, float]:
    try:
        _, facts, source = path.read_text().splitlines()
        offset = json.loads(source)
        return Offset(offset["segment"], offset["byte"]), json.loads(facts)["batchTimestampMs"] / 1e3
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise TidingsError(
            f"{path} does not say how far a micro-batch reads ({error!r}); is it written by another Spark?"
        ) from None
