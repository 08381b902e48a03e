"""What a text would have matched, shown beside the editor, with and without scripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.service.conftest import Running, Served
from tests.service.web.pages.conftest import Window
from tidings.model.event import Event
from tidings.storage.event_log import EventLog


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that has the events of ten days, forty a day, of which each fourth is of sport."""
    data = tmp_path_factory.mktemp("past")
    now = time.time()
    for day in range(10):
        with EventLog(data / "log", clock=lambda day=day: now - (10 - day) * 86_400) as log:
            log.append(
                [
                    Event(
                        "s", {"topic": "sport" if n % 4 == 0 else "oil", "title": f"No. {n}"}, id=f"{day}-{n}"
                    )
                    for n in range(40)
                ]
            )
    with Running(data=data, matching="process") as served:
        yield served


def test_the_editor_shows_past_matches_by_day_and_the_last_digest(past: Served, open_window: Any) -> None:
    window: Window = open_window(past, viewport={"width": 1280, "height": 900}, timezone_id="Asia/Tokyo")
    page = window.page
    window.go("/subscriptions/new")
    page.fill("textarea", "WHERE topic = 'sport'")
    page.click("[data-backtest]")
    sheet = page.locator("[data-backtest-sheet]")
    expect(sheet).to_contain_text(
        "Of 400 events in the last 10 days, 100 would have matched: 25.0%, about 10 a day."
    )
    expect(sheet.locator("svg.chart .bar")).to_have_count(10)
    expect(sheet).to_contain_text("10 daily messages with 10 items")
    expect(sheet.locator(".digest")).to_contain_text("10 new matches")
    expect(sheet).to_contain_text("Times are of Asia/Tokyo")
    expect(sheet.locator("[data-progress]")).to_be_hidden()
    page.locator("textarea").press_sequentially(" AND price > 3")
    expect(sheet.locator("[data-stale]")).to_be_visible()
    assert not window.complaints
    page.fill("textarea", "WHERE topic =")
    page.click("[data-backtest]")
    expect(sheet.locator(".note.bad")).to_contain_text("the text ends")


def test_without_scripts_the_result_is_a_page(past: Served, open_window: Any) -> None:
    window: Window = open_window(past, java_script_enabled=False)
    window.go("/subscriptions/new?text=WHERE+topic+%3D+'oil'")
    window.page.click("[data-backtest]")
    expect(window.page.locator("main")).to_contain_text("300 would have matched", timeout=15_000)


def test_the_page_of_a_result_is_json_too_and_of_its_caller_alone(past: Served) -> None:
    begun = past.http.post("/api/backtests", json={"text": "WHERE topic = 'oil'"}).json()
    found = past.http.get(f"/backtests/{begun['id']}", headers={"Accept": "application/json"}).json()
    assert found["backtest"]["text"] == "WHERE topic = 'oil'"
    assert past.http.get("/backtests/b0", headers={"Accept": "text/html"}).status_code == 404
