"""A stream that hangs is replaced, with real Spark: the driver or its Java process is stopped while events wait."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.spark.killing import command_of
from tidings import Event
from tidings.service.matching import process_session
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.matching.stream_position import answered, positions
from tidings.service.matching.supervisor import Supervisor
from tidings.service.matching.watchdog import Watchdog
from tidings.service.model import Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.storage.event_log import EventLog, Offset

SILENCE = 15.0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", ["tidings.service.matching.driver", "SparkSubmit"])
def test_a_stopped_stream_is_replaced_and_nothing_is_lost_or_doubled(tmp_path: Path, part: str) -> None:
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    settings = Settings(tmp_path, spark="local[2,4]", spark_settings=quick)
    registry, mailbox = open_stores(settings)
    registry.add_many([Subscription("all", "WHERE source = 'x'", "", "", "", "f", 0.0, None)])
    assert IndexWriter(settings, registry).prepare() == []
    log, checkpoint = EventLog(tmp_path / "log"), tmp_path / "checkpoint"

    def waiting() -> list[str]:
        return [query for query, end in positions(checkpoint, mailbox, log).items() if end < log.end()]

    def wait_for(end: Offset) -> None:
        while answered(checkpoint, mailbox, log) < end:
            assert time.monotonic() < deadline, supervisor.state
            time.sleep(0.1)

    watchdog = Watchdog(waiting, 300.0, silence_seconds=SILENCE, tick_seconds=1.0)
    supervisor, deadline = Supervisor(settings, watchdog=watchdog), time.monotonic() + 600
    supervisor.start()
    supervisor.go()
    try:
        wait_for(log.append([Event("x", {}, id="before")]))
        state = supervisor.state
        assert state.pid is not None
        assert state.matching
        time.sleep(SILENCE + 5)
        assert supervisor.state == state, "an idle driver shows that it lives"
        for pid in process_session.living(state.pid):
            if part in command_of(pid):
                os.kill(pid, signal.SIGSTOP)
        wait_for(log.append([Event("x", {}, id="while it hangs")]))
        assert supervisor.state.restarts == 1
        assert process_session.living(state.pid) == []
    finally:
        supervisor.stop()
    events = [told.event and told.event.id for told in mailbox.page(["all"], after=0)]
    assert events == ["before", "while it hangs"]
    registry.close()
    mailbox.close()
    log.close()
