"""How far the stream has answered the log.

The queries of the stream are the one that matches, and the one that keeps joins if there are tables. An event is answered
when each of them has answered it. Queries of earlier checkpoints do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tidings.service.store.mailbox import Mailbox
from tidings.spark.offsets import query_id
from tidings.storage.event_log import EventLog, Offset


def current_queries(checkpoint: Path) -> Iterator[tuple[Path, str]]:
    """The stream's queries with the folders of their checkpoints."""
    for folder in (checkpoint, checkpoint / "joins"):
        with suppress(OSError, ValueError, KeyError):  # not started yet
            yield folder, query_id(folder)


def positions(checkpoint: Path, mailbox: Mailbox, log: EventLog) -> dict[str, Offset]:
    """The offset up to which each query has answered. Before the first start there is one without a name."""
    reached, start = mailbox.reached(), log.start()
    found = {query: reached.get(query, start) for _, query in current_queries(checkpoint)}
    return found or {"": start}


def answered(checkpoint: Path, mailbox: Mailbox, log: EventLog) -> Offset:
    """The offset up to which every query has answered."""
    return min(positions(checkpoint, mailbox, log).values())
