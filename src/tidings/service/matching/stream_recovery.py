"""Decides where the stream continues if its checkpoint was lost: at the position that the mailbox has recorded.

The mailbox is authoritative for how far the log was matched. A checkpoint that is lost, or that disagrees with the mailbox
because one of the two was restored from a backup, is not used: the new query continues at the mailbox's position. So no
notification comes twice, and no subscriber gets events that were accepted before it subscribed. Rows of joins are in the
checkpoint alone. They are read again from the log, without new notifications; the subscribers over tables get a notice, and
see a gap in their sequences, also when all of it was restored from a backup.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tidings.service.model import IN_PROCESS, JOINS, MATCH, Notice, NotificationKind
from tidings.service.store.mailbox import Mailbox
from tidings.spark.joins.sequence_mark import are_kept, start_sequences
from tidings.spark.joins.stream import NO_TABLES, declared_tables
from tidings.spark.lock import StreamLock
from tidings.spark.offsets import batch_range, last_batches, query_id
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset

logger = logging.getLogger(__name__)


class Positions(NamedTuple):
    """How far the log was answered by queries of each role; None if by none."""

    match: Offset | None
    joins: Offset | None


def recover(data: Path, mailbox: Mailbox, clock: Callable[[], float] = time.time) -> Positions:
    """Leaves a checkpoint that disagrees with the mailbox; returns where queries without one go on. The stream must
    not be running."""
    checkpoint = data / "checkpoint"
    folders = {MATCH: checkpoint, JOINS: checkpoint / "joins"}
    lock = StreamLock(checkpoint, os.getpid())
    try:
        for role, folder in folders.items():
            _introduce(folder, role, mailbox, EventLog(data / "log"))
        found = Positions(mailbox.reached_by(MATCH), mailbox.reached_by(JOINS))
        if found.match is not None and not _agrees(checkpoint, mailbox):
            logger.warning(
                "the checkpoint is lost or not the mailbox's; the stream goes on at %s", found.match
            )
            for name in ("spark", "pins"):
                shutil.rmtree(checkpoint / name, ignore_errors=True)
        if declared_tables(data / "index") != NO_TABLES:
            _recover_sequences(data / "index", folders[JOINS], mailbox, found.joins, clock())
        return found
    finally:
        lock.release()


def _recover_sequences(
    index: Path, checkpoint: Path, mailbox: Mailbox, reached: Offset | None, now: float
) -> None:
    """Sends a notice to subscriptions that may have missed changes of tables, before anything is recorded: if this fails, it is sent again."""
    kept = are_kept(index, checkpoint)
    if reached is not None and not (kept and _agrees(checkpoint, mailbox)):
        _tell_of_gap(index, mailbox, reached, now)
    # No subscription has a million notifications a second: microseconds are always higher.
    start_sequences(index, checkpoint, None if kept else 0 if reached is None else int(now * 1e6))


def note_queries(queries: list[str], positions: Positions, log: EventLog, mailbox: Mailbox) -> None:
    """Notes the roles of queries that have started, and where those begin that have answered nothing yet."""
    starts = (positions.match or log.start(), log.start())
    for query, role, start in zip(queries, (MATCH, JOINS), starts, strict=False):
        mailbox.know(query, role, start)


def _introduce(checkpoint: Path, role: str, mailbox: Mailbox, log: EventLog) -> None:
    """Notes the role of a checkpoint's query. A mailbox that knows no query of this role has lost all: then it begins where
    the checkpoint is."""
    with suppress(OSError, ValueError, LookupError):
        query = query_id(checkpoint)
        if query == IN_PROCESS:
            return  # the mailbox has all of it
        if query in mailbox.reached() or mailbox.reached_by(role) is None:
            done, _ = last_batches(checkpoint)
            end = log.start() if done < 0 else batch_range(checkpoint, done).end
            mailbox.know(query, role, end, done)


def _agrees(checkpoint: Path, mailbox: Mailbox) -> bool:
    """Whether the mailbox has answered what the checkpoint has as done, and nothing that it has not planned."""
    try:
        query = query_id(checkpoint)
    except (OSError, ValueError, LookupError):
        return False
    if query == IN_PROCESS:  # which another command has left, and Spark cannot read
        return False
    done, planned = last_batches(checkpoint)
    if query not in mailbox.reached():
        return done < 0
    return done <= (-1 if (last := mailbox.last_batch(query)) is None else last) <= planned


def _tell_of_gap(index: Path, mailbox: Mailbox, reached: Offset, now: float) -> None:
    subscriptions = versions.joins(index, versions.current(index)).subscriptions
    live = subscriptions.id_column.filter(pa.array(subscriptions.live)).to_pylist()
    logger.warning(
        "the state of %d subscriptions over tables was lost or restored; they are notified", len(live)
    )
    message = (
        "changes of its tables may be missing, and sequence numbers go on higher, since the state of the stream was lost"
        " or restored; ask for a snapshot"
    )
    mailbox.notify(
        Notice(id, NotificationKind.MISSED, f"missed tables {reached}", now, message) for id in live
    )
