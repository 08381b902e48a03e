"""A subscription that would flood its owner is warned of before it is saved, by events that came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.conftest import Running
from tidings.client import Client
from tidings.engine.engine import Engine
from tidings.language.parser import parse
from tidings.model.event import Event
from tidings.service.model import Role
from tidings.service.subscriptions.flood import DailyEvents, FloodEstimate, flood_warning
from tidings.storage.event_log import EventLog

DAY = 86_400.0


@pytest.mark.parametrize(
    ("per_day", "share", "words"),
    [
        (4_123, 0.62, "about 4,100 events a day, 62% of all"),
        (1_001, 0.01, "about 1,000 events a day, 1% of all"),
        (1_000, 0.5, None),
        (101, 0.51, "about 100 events a day, 51% of all"),
        (100, 1.0, None),
        (0, 0, None),
    ],
)
def test_it_is_a_flood_by_its_number_or_by_its_share(per_day: float, share: float, words: str | None) -> None:
    found = flood_warning(per_day, share)
    assert found is None if words is None else words in (found or "")


def test_events_of_the_last_day_are_counted_by_their_arrival(tmp_path: Path) -> None:
    now = 1_000_000.0
    with EventLog(tmp_path, segment_bytes=2_000, clock=lambda: now) as log:
        daily = DailyEvents(log, lambda: now)
        assert daily.count() == 0
        for step in range(30):
            log.append([Event("s", id=f"{step}-{k}") for k in range(2)])
            now += DAY / 10
            assert abs(daily.count() - min(2 * step + 2, 20)) <= 2
        assert daily.count() == DailyEvents(log, lambda: now).count()
        now += 2 * DAY
        assert daily.count() == 0


def test_the_estimate_is_the_share_of_the_latest_events_times_those_of_a_day() -> None:
    events = [Event("s", {"n": n, "city": "Linz" if n < 20 else "Wien"}, id=str(n)) for n in range(100)]
    estimate, engine = FloodEstimate(lambda: events, lambda: 5_000), Engine()

    def of(text: str, scope: str = "") -> tuple[float, float] | None:
        found = estimate.of(engine, parse(text), text, scope)
        return None if found is None else (found.per_day, found.share)

    assert of("WHERE n < 30") == (1_500, 0.3)
    assert of("WHERE n < 0") == (0, 0)
    assert of("WHERE n < 10", "WHERE city = 'Linz'") == (500, 0.5)
    assert FloodEstimate(tuple, lambda: 5).of(engine, parse("WHERE n = 1"), "WHERE n = 1") is None
    assert estimate.warning(engine, parse("WHERE n < 30"), "WHERE n < 30") is not None


def test_a_flood_is_warned_of_when_it_is_checked_and_when_it_is_saved(
    running: Callable[..., Running],
) -> None:
    with running(matching="process", open=False) as served:
        _, admin = served.service.access.grant("admin", Role.ADMIN, events_per_second=100_000)
        _, ann = served.service.access.grant("ann", Role.SUBSCRIBER, scope="WHERE city = 'Linz'")
        with Client(served.url, admin) as client:
            client.publish(
                [{"id": str(n), "n": n, "city": "Linz" if n < 400 else "Wien"} for n in range(1_600)]
            )
            (warning,) = client.check("WHERE n >= 0").warnings
            assert "about 1,600 events a day, 100% of all" in warning.message
            assert client.try_("WHERE n >= 0").warning == warning.message
            assert client.check("WHERE n > 1595").warnings == []
            (said,) = client.subscribe("WHERE n >= 0").warnings
            assert said == warning.message
            edited = client.edit(client.subscribe("WHERE n > 1598"), text="WHERE n >= 100")
            assert "events a day" in edited.warnings[0]
        with Client(served.url, ann) as client:
            assert client.check("WHERE city = 'Linz'").warnings == []  # none of the latest thousand
        with Client(served.url, admin) as client:
            client.publish([{"id": f"l{n}", "n": n, "city": "Linz"} for n in range(500)])
        with Client(served.url, ann) as client:
            (warning,) = client.check("WHERE city = 'Linz'").warnings
            assert "100% of all" in warning.message  # of those that it may see
