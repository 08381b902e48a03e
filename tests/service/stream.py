"""The stream without Spark, for tests of what surrounds it: the real log, the real index, the real engine and the real
mailbox, a micro-batch at a time in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidings.kinds.operators.functions.operator import Operator
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.transactions import StoreError
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset

QUERY = "in-process"


class InProcessStream:
    """`step` does one micro-batch; `start` does them in a thread as they come."""

    def __init__(self, data: Path, mailbox: Mailbox, operators: Iterable[Operator] = ()) -> None:
        self._operators = operators
        self._index, self._mailbox = data / "index", mailbox
        self._log = EventLog(data / "log")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="in-process-stream", daemon=True)
        self._batch = mailbox.last_batch(QUERY) or 0
        # As Spark leaves a checkpoint: the query, then the number of each batch before and after it.
        self._checkpoint = data / "checkpoint" / "spark"
        for name in ("offsets", "commits"):
            (self._checkpoint / name).mkdir(parents=True, exist_ok=True)
        (self._checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def step(self) -> int:
        """Answers everything that is in the log; how many notifications that gave."""
        start: Offset = self._mailbox.reached().get(QUERY) or self._log.start()
        end = self._log.end()
        if end <= start:
            return 0
        began = time.time()
        version = versions.current(self._index)
        engine = versions.open(self._index, version, operators=self._operators)
        events = pa.Table.from_batches(self._log.read(start, end), EVENT_SCHEMA)
        notifications = engine.publish_many(events)
        assert notifications.schema.names == NOTIFICATION_SCHEMA.names
        wanted = pc.is_in(_keys(events), value_set=_keys(notifications, "event"))
        self._batch += 1
        (self._checkpoint / "offsets" / str(self._batch)).touch()
        self._mailbox.record(
            BatchRecord(
                QUERY,
                self._batch,
                str(version),
                end.segment,
                end.byte,
                len(events),
                len(notifications),
                0,
                began,
                time.time(),
            ),
            notifications,
            events.filter(wanted),
        )
        (self._checkpoint / "commits" / str(self._batch)).touch()
        return len(notifications)

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            with suppress(StoreError):  # as a driver that is started again
                self.step()


def _keys(table: pa.Table, id: str = "id") -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["source"], table[id], "\0")
