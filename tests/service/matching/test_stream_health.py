"""The lag is that of the slowest query, and ready means that events are matched now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from tests.service.conftest import Running, Served
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import IN_PROCESS, BatchRecord
from tidings.storage.event_log import Offset


def record(served: Served, query: str, batch: int, end: Offset) -> None:
    done = BatchRecord(query, batch, "v1+0", end.segment, end.byte, 1, 0, 0, 1.0, 2.0)
    empty = NOTIFICATION_SCHEMA.empty_table(), EVENT_SCHEMA.empty_table()
    assert served.service.mailbox.record(done, *empty)


def gauges(served: Served) -> dict[str, float]:
    lines = [line.split() for line in served.http.get("/metrics").text.splitlines() if line[0] != "#"]
    return {line[0]: float(line[1]) for line in lines}


def test_the_slowest_query_counts_and_no_old_one(running: Callable[..., Running]) -> None:
    with running() as served:
        served.stream.stop()
        end = served.service.log.end
        joins = served.service.settings.data / "checkpoint" / "joins" / "spark" / "metadata"
        joins.parent.mkdir(parents=True)
        joins.write_text(json.dumps({"id": "joins"}))
        served.publish({"id": "1"})
        first = end()
        served.publish({"id": "2"}, {"id": "3"})
        record(served, "of an earlier checkpoint", 1, Offset(9, 9))
        record(served, IN_PROCESS, 1_000, end())
        assert served.http.get("/api/status").json()["waiting_events"] == 3
        record(served, "joins", 1, first)
        served.service.stream_metrics.update()  # which forgets the times of what is answered
        status = served.http.get("/api/status").json()
        assert status["waiting_events"] == 2
        assert status["lag_seconds"] > 0
        assert gauges(served)["tidings_waiting_events"] == 2
        assert gauges(served)["tidings_lag_seconds"] > 0
        assert served.service.stream_health.waiting() == ["joins"]
        record(served, "joins", 2, end())
        assert served.http.get("/api/status").json()["waiting_events"] == 0
        assert gauges(served)["tidings_lag_seconds"] == 0


def test_ready_means_that_events_are_matched_now(running: Callable[..., Running]) -> None:
    with running(max_lag=30.0) as served:
        service, now = served.service, [1_000.0]
        service.log_writer._clock = lambda: now[0]
        assert "the stream is stopped" in served.http.get("/ready").json()["detail"]

        def state(**known: object) -> None:
            service.supervisor._state = replace(service.supervisor.state, **known)  # type: ignore[arg-type]

        def reason() -> str | None:
            ready, status = served.http.get("/ready"), served.http.get("/api/status").json()
            assert status["ready"] is (ready.status_code == 200) is (status["reason"] is None)
            if ready.status_code == 200:
                return None
            assert ready.headers["retry-after"]
            assert ready.json()["detail"] == status["reason"]
            return str(status["reason"])

        served.stream.stop()
        state(status="running")
        assert reason() is None, "nothing waits"
        assert served.http.get("/ready").json() == {
            "status": "ok",
            "message": "",
            "waiting_events": 0,
            "lag_seconds": 0.0,
        }
        served.publish({"id": "1"})
        assert reason() == "the stream has started and has yet to match its first events; 1 event waits"
        state(matching=True)
        assert reason() is None
        now[0] += 31
        assert reason() == "the stream is 31 s behind; 1 event waits"
        assert served.stream.step() == 0
        assert reason() is None
