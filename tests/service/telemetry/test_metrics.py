"""What is counted, and the last five minutes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from fastapi import FastAPI, HTTPException
from prometheus_client.parser import text_string_to_metric_families

from tidings.service.ingest.log_writer import Backlog
from tidings.service.matching.supervisor import DriverState
from tidings.service.model import BatchRecord, State
from tidings.service.telemetry.metrics import Metrics, RequestMetrics
from tidings.service.telemetry.rates import Rates
from tidings.service.web.streaming import StreamingLayer, StreamResponse
from tidings.storage.part_visits import PartVisits

ALARMS = Path(__file__).parents[3] / "examples" / "alarms.yml"


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def test_what_happens_is_counted() -> None:
    metrics = Metrics()
    metrics.accepted(100, duplicates=3)
    metrics.rejected(2)
    metrics.batch(BatchRecord("q", 1, "v", 0, 0, 100, 7, 0, 10.0, 10.5))
    metrics.latency(0.7)
    metrics.attempt("delivered")
    metrics.attempt("failed")
    metrics.listeners.inc()
    assert value(metrics, "tidings_events_accepted_total") == 100
    assert value(metrics, "tidings_events_duplicate_total") == 3
    assert value(metrics, "tidings_events_rejected_total") == 2
    assert value(metrics, "tidings_notifications_total") == 7
    assert value(metrics, "tidings_batches_total") == 1
    assert value(metrics, "tidings_batch_seconds_sum") == 0.5
    assert value(metrics, "tidings_publish_to_mailbox_seconds_bucket", le="0.75") == 1
    assert value(metrics, "tidings_publish_to_mailbox_seconds_bucket", le="0.5") == 0
    assert value(metrics, "tidings_webhook_attempts_total", outcome="failed") == 1
    assert value(metrics, "tidings_sse_listeners") == 1


def test_visits_of_parts_are_counted_by_part() -> None:
    metrics = Metrics()
    assert b"tidings_part" not in metrics.text(), "no index is divided"
    metrics.watch(parts=lambda: 2)
    assert [value(metrics, "tidings_part_opened_total", part=part) for part in "01"] == [0, 0]
    metrics.visited(PartVisits.from_lists([[10, 20], [1, 2], [30, 40], [1, 0]]))
    metrics.visited(PartVisits.from_lists([[5, 0, 7], [5, 0, 0], [0, 0, 9], [0, 0, 1]]))
    for name, counts in {
        "forwards": (15, 20, 7),
        "false_positives": (6, 2, 0),
        "matches": (30, 40, 9),
        "opened": (1, 0, 1),
    }.items():
        found = [value(metrics, f"tidings_part_{name}_total", part=str(part)) for part in range(3)]
        assert tuple(found) == counts


def test_alarm_rules_use_metrics_that_there_are() -> None:
    metrics = Metrics()
    metrics.watch(subscriptions=dict, driver=DriverState, lag=lambda: Backlog(0, 0.0), log_bytes=lambda: 0)
    there = set(re.findall(r"^# TYPE (\w+)", metrics.text().decode(), re.MULTILINE))
    (group,) = yaml.safe_load(ALARMS.read_text())["groups"]
    used = {rule["alert"]: set(re.findall(r"\btidings_\w+", rule["expr"])) for rule in group["rules"]}
    assert used.pop("TidingsDown") == set()
    for alert, names in used.items():
        assert names, alert
        assert {name.removesuffix("_bucket") for name in names} <= there, alert


def test_two_services_in_a_process_count_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.accepted(1)
    assert value(other, "tidings_events_accepted_total") == 0


def test_states_are_asked_for_when_somebody_looks() -> None:
    metrics = Metrics()
    counts = {State.ACTIVE: 2, State.PAUSED: 0}
    metrics.watch(
        subscriptions=lambda: counts,
        driver=lambda: DriverState("running", restarts=2),
        log_bytes=lambda: 4096,
    )
    counts[State.ACTIVE] = 3
    assert value(metrics, "tidings_subscriptions", state="active") == 3
    assert value(metrics, "tidings_driver_state", state="running") == 1
    assert value(metrics, "tidings_driver_state", state="failed") == 0
    assert value(metrics, "tidings_driver_restarts_total") == 2
    assert value(metrics, "tidings_log_bytes") == 4096


def test_a_store_that_is_away_takes_its_own_numbers_along_only() -> None:
    metrics = Metrics()

    def away() -> Any:
        raise ConnectionError("no route to the store")

    metrics.watch(subscriptions=away, driver=lambda: DriverState("starting"), log_bytes=away)
    assert value(metrics, "tidings_subscriptions") is None
    assert value(metrics, "tidings_driver_state", state="starting") == 1
    assert value(metrics, "tidings_events_accepted_total") == 0


def test_requests_are_counted_by_route_and_never_by_path() -> None:
    app = FastAPI()
    metrics = Metrics()

    @app.get("/api/subscriptions/{id}")
    def find(id: str) -> str:
        if id == "none":
            raise HTTPException(404)
        if id == "bad":
            raise RuntimeError("a fault of ours")
        return id

    @app.get("/stream")
    async def stream() -> StreamResponse:
        async def pieces() -> Any:
            yield b": hello\n\n"
            await asyncio.sleep(0.2)

        return StreamResponse(pieces(), media_type="text/event-stream", headers={})

    async def ask() -> None:
        transport = httpx.ASGITransport(
            StreamingLayer(RequestMetrics(app, metrics)), raise_app_exceptions=False
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            for path in ("s1", "s2", "none", "bad"):
                await client.get(f"/api/subscriptions/{path}")
            await client.get("/wp-admin/secret")
            await client.get("/openapi.json")
            await client.request("BREW", "/api/subscriptions/s1")
            await client.get("/stream")

    asyncio.run(ask())
    route = "/api/subscriptions/{id}"
    assert value(metrics, "tidings_http_requests_total", route=route, status="200", method="GET") == 2
    assert value(metrics, "tidings_http_requests_total", route=route, status="404") == 1
    assert value(metrics, "tidings_http_requests_total", route=route, status="500") == 1
    assert value(metrics, "tidings_http_requests_total", route=route, method="other") == 1
    assert value(metrics, "tidings_http_requests_total", route="none", status="404") == 1
    assert value(metrics, "tidings_http_requests_total", route="/openapi.json") == 1
    assert value(metrics, "tidings_http_request_seconds_count", route=route) == 4
    assert (value(metrics, "tidings_http_request_seconds_sum", route="/stream") or 1) < 0.2
    assert "wp-admin" not in metrics.text().decode()
    assert "s1" not in metrics.text().decode()


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_the_last_five_minutes() -> None:
    clock = Clock()
    rates = Rates(clock=clock)
    rates.add(events=50)
    rates.add(notifications=10, latency=0.3)
    rates.add(latency=0.1)
    rates.add(latency=0.2)
    assert rates.snapshot()["events_per_second"] == [0.0] * 60, "the bucket that fills is not shown"
    clock.now += 5
    rates.add(events=5)
    shown = rates.snapshot()
    assert len(shown["events_per_second"]) == 60
    assert shown["events_per_second"][-1] == 10.0
    assert shown["notifications_per_second"][-1] == 2.0
    assert shown["latency_median"][-2:] == [None, 0.2]
    assert shown["latency_p95"][-1] == 0.3
    assert shown["now"]["events_per_second"] == pytest.approx(50 / 60)
    assert shown["now"]["latency_p95"] == 0.3
    clock.now += 10
    assert rates.snapshot()["events_per_second"][-3:] == [10.0, 1.0, 0.0]
    clock.now += 300
    assert rates.snapshot()["events_per_second"] == [0.0] * 60
    assert rates.snapshot()["now"]["latency_median"] is None


def test_longer_windows_are_coarser_and_show_what_is_just_measured() -> None:
    clock = Clock()
    clock.now = 1_440.0 * 700
    rates = Rates(clock=clock)
    rates.add(events=600, latency=0.2)
    clock.now += 60
    hour, day = rates.snapshot("1h"), rates.snapshot("24h")
    assert (hour["bucket_seconds"], hour["events_per_second"][-2:]) == (60.0, [10.0, 0.0])
    assert (day["bucket_seconds"], day["events_per_second"][-1]) == (1_440.0, 10.0), (
        "by the time it has filled"
    )
    assert day["latency_median"] == [None] * 59 + [0.2]
    assert day["from"] + 60 * 1_440 > clock.now > day["from"] + 59 * 1_440
    clock.now += 2 * 3_600
    assert set(rates.snapshot("1h")["events_per_second"]) == {0.0}
    assert max(rates.snapshot("24h")["events_per_second"]) == 600 / 1_440


def test_a_busy_bucket_keeps_an_even_sample() -> None:
    clock = Clock()
    rates = Rates(clock=clock, seed=1)
    for i in range(20_000):
        rates.add(latency=i / 20_000)
    clock.now += 5
    shown = rates.snapshot()
    assert shown["latency_median"][-1] == pytest.approx(0.5, abs=0.1)
    assert shown["latency_p95"][-1] == pytest.approx(0.95, abs=0.05)
