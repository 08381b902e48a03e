"""Every page in light and dark colours, on a desktop and on a phone: axe-core finds no serious barrier, nothing is wider than
the screen, no word of a heading is broken, and the keyboard reaches every control."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.service.conftest import Served

AXE = {"resultTypes": ["violations"], "iframes": False}
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}
LAYOUT = """() => {
  const wrong = [];
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre"));
    wrong.push(`the page is ${document.documentElement.scrollWidth} wide: ${wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 100)).join(" | ")}`);
  }
  for (const heading of document.querySelectorAll("h1, h2, h3")) {
    const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement.closest("code, .unseen")) continue;
      for (const word of node.data.matchAll(/\\p{L}+/gu)) {
        const range = new Range();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) wrong.push(`the heading breaks ${word[0]}`);
      }
    }
  }
  for (const control of document.querySelectorAll("button, a[href], input:not([type=hidden]), select, textarea, summary"))
    if (control.checkVisibility({ visibilityProperty: true }) && !control.disabled && control.tabIndex < 0) wrong.push(`no key gets to ${control.outerHTML.slice(0, 100)}`);
  return wrong;
}"""


@pytest.fixture(scope="module")
def paths(house: Served) -> list[str]:
    """Every page, with something on it."""
    made = house.subscribe(
        "WHERE topic = 'seen' AND price < 10", title="Seen", webhook="http://127.0.0.1:9/hook"
    )
    house.publish({"source": "test", "id": "x1", "topic": "seen", "price": 5, "title": "A title"})
    house.http.post("/api/sources", json={"url": "http://127.0.0.1:9/a-long-name-of-a-feed/feed.xml"})
    house.http.post("/api/tokens", json={"name": "the newsroom", "role": "subscriber"})
    new = {"kind": "webhook", "address": "http://127.0.0.1:9/hook", "subscriptions": [made["id"]]}
    channel = house.http.post("/api/channels", json={**new, "schedule": {"digest": "daily"}}).json()["id"]
    unsubscribe = house.service.channels._links.of("unsubscribe", channel).removeprefix(house.url)
    notification = house.notifications(made["id"])[0]
    subscription = f"/subscriptions/{made['id']}"
    return [
        "/", "/subscriptions/new", subscription, f"{subscription}/edit", "/notifications", "/events", "/events/match",
        f"{subscription}/notifications/{notification['id']}", "/sources", "/taxonomy",
        "/taxonomy?class=http://example.org/Sport", "/definitions", "/definitions/tables/stocks", "/definitions/networks/exchange",
        "/status?window=1h", "/tokens", "/api#send_webhook_test", "/login", "/nothing/is/here",
        "/channels", f"/channels/{channel}", unsubscribe,
    ]  # fmt: skip


def barriers(page: Any, scheme: str, **options: Any) -> list[str]:
    """What axe-core, which the page has loaded, calls serious or critical."""
    found = page.evaluate("options => axe.run(options)", {**AXE, **options})["violations"]
    return [
        f"{scheme}: {violation['help']}: {[node['html'][:150] for node in violation['nodes'][:4]]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("screen", ["desktop", pytest.param("phone", marks=pytest.mark.slow)])
def test_no_page_has_a_serious_barrier(
    house: Served, open_window: Any, paths: list[str], screen: str
) -> None:
    wrong: dict[str, list[str]] = {}
    window = open_window(house, **(PHONE if screen == "phone" else {}))
    page = window.page
    for path in paths:
        page.emulate_media(color_scheme="light")
        window.go(path)
        page.evaluate(Axe().axe_script)
        found = page.evaluate(LAYOUT) + barriers(page, "light")
        page.emulate_media(color_scheme="dark")
        # Only what depends on colours; the rest is the same.
        found += barriers(page, "dark", runOnly=["color-contrast", "link-in-text-block"])
        if screen == "desktop":  # what the narrowest screen may change
            page.set_viewport_size(PHONE["viewport"])
            found += page.evaluate(LAYOUT)
            found += barriers(
                page, "narrow", runOnly=["color-contrast", "target-size", "scrollable-region-focusable"]
            )
            page.set_viewport_size(DESKTOP)
        if found:
            wrong[path] = found
    assert wrong == {}
    page.evaluate("document.querySelector('h1').style.color = document.body.style.background = '#888'")
    assert barriers(page, "grey", runOnly=["color-contrast"]), "axe sees what is wrong"
    assert [said for said in window.complaints if "404" not in said] == []


def test_the_keyboard_adds_a_token_and_sends_a_request(house: Served, open_window: Any) -> None:
    window = open_window(house)
    page, keyboard = window.page, window.page.keyboard
    window.go("/tokens")
    page.get_by_label("Name").focus()
    keyboard.type("by keys")
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(page.get_by_text("This secret is shown only once. Copy it now.")).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    expect(page.get_by_role("row", name="by keys")).to_contain_text("publisher")
    window.go("/api#get_health")
    operation = page.locator("details#get_health")
    expect(operation).to_have_attribute("open", "")
    operation.get_by_role("button", name="Send request").press("Enter")
    expect(operation.get_by_role("status")).to_contain_text("200")
    expect(operation.locator("pre")).to_contain_text('"status": "ok"')
    window.go("/status")
    page.locator("#rates-values summary").press("Enter")
    expect(page.locator("#rates-values td").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    page.locator("svg.chart .moment rect").nth(30).hover()
    expect(page.locator("svg.chart .moment text").nth(30)).to_be_visible()
    assert window.complaints == []
