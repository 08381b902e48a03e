"""Writing and editing subscriptions, in a real browser, on a wide screen and on a phone."""

from __future__ import annotations

import json
import time
from typing import Any

from playwright.sync_api import expect

from tests.service.conftest import Served
from tests.service.web.pages.conftest import Window

VERDICTS = """() => {
  const verdict = document.getElementById("verdict");
  window.verdicts = [];
  const note = () => window.verdicts.push(`${verdict.className}: ${verdict.textContent}`);
  new MutationObserver(note).observe(verdict, { childList: true });
}"""
PHONE = {"width": 390, "height": 844}


def overlap(one: Any, other: Any) -> bool:
    a, b = one.bounding_box(), other.bounding_box()
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )


def publish(service: Served) -> None:
    service.publish(
        *(
            {"source": "test", "id": f"b{n}", "colour": "red", "weight": n, "title": f"A red one, {n}"}
            for n in (3, 30)
        )
    )
    deadline = time.monotonic() + 10
    while "weight" not in service.http.get("/api/complete", params={"text": "WHERE weig"}).text:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_editor_completes_and_tries_without_being_in_the_way(service: Served, open_window: Any) -> None:
    publish(service)
    for size in ({"width": 1280, "height": 900}, PHONE):
        window: Window = open_window(service, viewport=size)
        window.go("/subscriptions/new")
        page = window.page
        area, verdict = page.get_by_label("Subscription text"), page.locator("#verdict")
        options, attempt = page.get_by_role("listbox"), page.get_by_role("button", name="Try it")
        page.evaluate(VERDICTS)
        # Comparisons after an attribute, of which none is taken unless it is chosen; then values.
        area.press_sequentially("WHERE colour ")
        expect(options.get_by_role("option").first).to_contain_text("=")
        expect(options.locator("[aria-selected=true]")).to_have_count(0)
        assert not overlap(options, verdict)
        assert not overlap(options, attempt)
        first = options.locator(".what").first.bounding_box()
        assert first["height"] < 30  # on one line
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert window.complaints == []
        if size == PHONE:
            continue
        # A check is put off by every key. The page's policy forbids Playwright's own way to wait for this.
        while not page.evaluate("window.verdicts.length"):
            page.wait_for_timeout(20)
        area.press("ArrowDown")
        area.press("Enter")
        expect(area).to_have_value("WHERE colour = ")
        expect(options.get_by_role("option", name="'red'")).to_be_visible()
        area.press_sequentially("'red'")
        expect(options).to_be_hidden()
        area.press("Enter")
        area.press_sequentially("AND weight < 10")
        expect(area).to_have_value("WHERE colour = 'red'\nAND weight < 10")
        expect(verdict).to_have_text("Valid: a filter.")
        # What is unfinished becomes wrong after a while.
        area.press_sequentially(" OR ")
        expect(page.locator(".verdict.bad")).to_be_visible()
        said = page.evaluate("window.verdicts")
        assert said[0].startswith("verdict idle: Not finished")
        assert any("Not finished: expected a comparison" in words for words in said)
        area.fill("storm")
        expect(verdict).to_contain_text("to find it in titles write WHERE")
        area.fill("WHERE colour = 'red' AND weight < 10")
        attempt.click()
        expect(page.get_by_role("heading", name="On the last events")).to_be_focused()
        expect(page.get_by_text("A red one, 3", exact=False).first).to_be_in_viewport()


def test_warnings_are_shown_below_the_verdict(service: Served, window: Window) -> None:
    checked = {
        "ok": True,
        "kinds": ["filter"],
        "warnings": [{"message": "The 𝄞 is rare", "start": 10, "end": 15}],
    }
    window.page.route(
        "**/api/check", lambda route: route.fulfill(body=json.dumps(checked), content_type="application/json")
    )
    window.go("/subscriptions/new")
    window.page.get_by_label("Subscription text").fill("WHERE 𝄞 = 'red'")
    expect(window.page.locator("#verdict")).to_have_text("Valid: a filter.")
    expect(window.page.locator("#warnings li")).to_have_text(["The 𝄞 is rare"])
    expect(window.page.locator(".paint mark.wary")).to_have_text("'red'")


def test_edited_in_place_after_a_comparison(service: Served, open_window: Any) -> None:
    publish(service)
    window: Window = open_window(service, viewport=PHONE)
    window.go("/subscriptions/new")
    page = window.page
    page.get_by_label("Subscription text").fill("WHERE colour = 'red' AND weight < 10")
    page.get_by_role("button", name="Subscribe").click()
    window.wait_for("/subscriptions/s")
    page.get_by_role("link", name="Edit").click()
    area = page.get_by_label("Subscription text")
    expect(area).to_have_value("WHERE colour = 'red' AND weight < 10")
    covered = page.locator("#covered")
    with page.expect_response("**/api/check"):
        area.fill("WHERE colour = 'red' AND weight < 9")
    expect(page.locator("#verdict")).to_have_text("Valid: a filter.")
    expect(covered).to_be_hidden()  # it does not cover itself
    area.fill("WHERE colour = 'red' AND weight > 10")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".compared .minus")).to_contain_text("A red one, 3")
    expect(page.locator(".compared .plus")).to_contain_text("A red one, 30")
    expect(page.get_by_role("heading", name="As it is")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="Save changes").click()  # with the ticket that the browser has kept
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    window.go("/subscriptions/new")
    area.fill("WHERE colour = 'red' AND weight > 20")
    expect(covered).to_have_text(
        "“WHERE colour = 'red' AND weight > 10” already covers this: whatever matches here matches there too."
    )
    area.fill("WHERE weight > 10 AND colour = 'red'")
    expect(covered).to_have_text("“WHERE colour = 'red' AND weight > 10” asks for the same.")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    area.fill("WHERE weight > 10")
    expect(covered).to_be_hidden()
    assert window.complaints == []
