"""Reading with a real browser: marks, keys, and what arrives while the page is open."""

from __future__ import annotations

import time
from typing import Any

from playwright.sync_api import expect

from tests.service.conftest import Served
from tests.service.web.pages.conftest import Window
from tests.service.web.pages.test_reading import doubts, record


def publish(served: Served, topic: str, *titles: str) -> None:
    rest = {"source": "https://news.example.org/feed.xml", "topic": topic, "author": "Ann Example"}
    served.publish(*({**rest, "id": title, "title": title} for title in titles))


def unread(served: Served, id: str) -> int:
    return served.http.get(f"/api/subscriptions/{id}/read").json()["unread"]


def test_unread_notifications_and_causes_are_counted_as_they_arrive(service: Served, window: Window) -> None:
    id = service.subscribe("WHERE topic = 'count'", title="Counted")["id"]
    publish(service, "count", "One", "Two")
    service.notifications(id, 2)
    page = window.page
    window.go("/")
    badge = page.locator(f"[data-unread={id}]")
    expect(badge).to_contain_text("2")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    publish(service, "count", "Three")
    expect(badge).to_contain_text("3")
    causes = page.get_by_role("list", name="Undecided")
    record(service, doubts(id, 40))
    service.service.hub.wake()
    expect(causes).to_contain_text("40 undecided: locIn failed: KeyError")
    record(service, [*doubts(id, 1_000)[40:], *doubts(id, 2, "near failed: ValueError: far")])
    expect(causes).to_contain_text("1,000 undecided: locIn failed: KeyError")
    expect(causes.get_by_role("listitem")).to_have_count(2)
    expect(page.locator(".news > li")).to_have_count(3)
    height = page.locator(".news > li").first.bounding_box()["height"]
    assert height < 60, "a notification takes more than two lines"

    # Its page is seen, so it is read; a new one is marked, and read as it is seen.
    page.get_by_role("link", name="Counted").first.click()
    expect(page.locator(".news > li.new")).to_have_count(3)
    expect(page.get_by_role("button", name="as read")).to_have_count(0)
    assert unread(service, id) == 0
    publish(service, "count", "Four")
    expect(page.locator(".news > li.new")).to_have_count(4)
    deadline = time.monotonic() + 10
    while unread(service, id):
        assert time.monotonic() < deadline, "what is seen stays unread"
        page.wait_for_timeout(50)
    window.go("/")
    expect(badge).to_be_hidden()


def switch(page: Any, on: bool) -> None:
    """Switches the single keys on or off."""
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use these keys").set_checked(on)
    page.keyboard.press("Escape")


def test_keys_search_and_stars(service: Served, window: Window) -> None:
    id = service.subscribe("WHERE topic = 'keys'", title="Keys and what they do on the page")["id"]
    publish(service, "keys", "Alpha one", "Beta two", "Gamma three")
    service.notifications(id, 3)
    page = window.page
    window.go(f"/subscriptions/{id}")
    items = page.locator(".news > li")
    for key, place in (("j", 0), ("j", 1), ("j", 2), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        expect(items.nth(place)).to_be_focused()
    page.keyboard.press("s")
    star = page.get_by_role("button", name="Star: Beta two")
    expect(star).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    expect(
        items.nth(1).get_by_role("link", name="Why this")
    ).to_be_focused()  # the keyboard goes on from there
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("next notification")
    page.keyboard.press("n")  # not below a dialog
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    switch(page, False)
    page.keyboard.press("n")
    page.keyboard.press("?")
    page.reload()  # it is remembered
    page.keyboard.press("n")
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    switch(page, True)
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search what was received")
    expect(field).to_be_focused()
    page.keyboard.type("n? j")  # typed, not done
    expect(field).to_have_value("n? j")
    field.fill("GAMMA")
    page.keyboard.press("Enter")
    expect(items).to_have_count(1)
    expect(items).to_contain_text("Gamma three")
    page.get_by_role("link", name="Starred").click()
    expect(page.locator(".empty")).to_contain_text("GAMMA")
    window.go("/notifications?starred=true")
    expect(items).to_have_count(1)
    expect(items).to_contain_text("Beta two")
    items.get_by_role("button", name="Star: Beta two").press("Enter")
    expect(items.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "false")
    page.set_viewport_size({"width": 375, "height": 800})
    for path in ("/", "/notifications", f"/subscriptions/{id}"):
        window.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, path
    page.locator("body").press("n")
    window.wait_for("/subscriptions/new")
