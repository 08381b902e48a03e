"""Whether everybody can use the pages: names, headings, landmarks and the keyboard, by plain checks."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.service.conftest import Served
from tests.service.web.pages.test_axe import barriers

# What is wrong with a page, as a list of sentences.
STRUCTURE = """() => {
  const wrong = [];
  const say = (words, element) => wrong.push(`${words}: ${element.outerHTML.slice(0, 120)}`);
  const seen = (element) => element.checkVisibility({ visibilityProperty: true });
  const name = (element) => (element.getAttribute("aria-label") ?? "").trim()
    || (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim()
    || [...(element.labels ?? [])].map((label) => label.textContent).join(" ").trim();
  if (document.documentElement.lang !== "en") wrong.push("the page has no language");
  if (!/\\S+.* · Tidings$/.test(document.title)) wrong.push(`the title is ${document.title}`);
  for (const [what, count] of [["main", 1], ["header", 1], ["footer", 1], ["h1", 1], ["nav[aria-label]", 1]])
    if (document.querySelectorAll(what).length !== count) wrong.push(`there is not one ${what}`);
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say(`a heading of level ${own} after one of ${level}`, heading);
    if (!heading.textContent.trim()) say("an empty heading", heading);
    level = own;
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!name(field)) say("a field without a label", field);
  for (const pressed of document.querySelectorAll("button, a[href]"))
    if (!(pressed.textContent.trim() || name(pressed))) say("nothing to read on", pressed);
  for (const picture of document.querySelectorAll("img:not([alt])")) say("a picture without a text", picture);
  for (const drawing of document.querySelectorAll("svg"))
    if (drawing.getAttribute("aria-hidden") !== "true" && !(drawing.getAttribute("role") === "img" && name(drawing))) say("a drawing without a name", drawing);
  for (const region of document.querySelectorAll("section, aside, [role=region], [role=listbox]"))
    if (region.getAttribute("aria-labelledby") && !name(region)) say("a region whose name is not there", region);
  for (const table of document.querySelectorAll("table"))
    for (const head of table.querySelectorAll("th:not([scope])")) say("a head without a scope", head);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids.filter((id, place) => ids.indexOf(id) !== place)) wrong.push(`two of the id ${id}`);
  for (const element of document.querySelectorAll("[aria-describedby], [aria-controls]"))
    for (const id of `${element.getAttribute("aria-describedby") ?? ""} ${element.getAttribute("aria-controls") ?? ""}`.split(" ").filter(Boolean))
      if (!document.getElementById(id)) say(`it points to ${id}, which is not there`, element);
  for (const element of document.querySelectorAll("[style]:not(#options), [onclick], [tabindex]:not([tabindex='0']):not([tabindex='-1'])")) say("style, script or order inside", element);
  for (const target of document.querySelectorAll("button, .button, select, input:not([type=hidden]):not([type=checkbox])"))
    if (seen(target) && target.getBoundingClientRect().height < 24 && !target.classList.contains("link")) say("too low for a finger", target);
  return wrong;
}"""


@pytest.fixture(scope="module")
def paths(service: Served) -> list[str]:
    """Every kind of page, with something on it."""
    made = service.subscribe("WHERE topic = 'seen' AND price < 10", title="Seen")
    paused = service.subscribe("WHERE topic = 'paused'")
    service.http.post(
        f"/api/subscriptions/{paused['id']}/pause", headers={"Tidings-Ticket": paused["ticket"]}
    )
    service.publish(
        {
            "source": "test",
            "id": "a1",
            "topic": "seen",
            "price": 5,
            "title": "Seen",
            "summary": "<p>With <a href='https://example.org/'>a link</a></p>",
        },
        {"source": "test", "id": "a2", "topic": "seen", "price": 50, "title": "Not seen"},
    )
    notification = service.notifications(made["id"])[0]
    return [
        "/",
        "/?search=nothing-like-this",
        "/subscriptions/new",
        f"/subscriptions/{made['id']}/edit",
        "/events",
        "/events/match?source=test&id=a1",
        f"/subscriptions/{made['id']}",
        f"/subscriptions/{paused['id']}",
        f"/subscriptions/{made['id']}/notifications/{notification['id']}",
        "/sources",
        "/taxonomy",
        "/taxonomy?class=http://example.org/Sport",
        "/status",
        "/login",
        "/nothing/is/here",
    ]


def test_structure(service: Served, open_window: Any, paths: list[str]) -> None:
    window = open_window(service)
    wrong: dict[str, list[str]] = {}
    for path in paths:
        window.go(path)
        found = window.page.evaluate(STRUCTURE)
        if found:
            wrong[path] = found
    assert wrong == {}


def test_colours_of_the_editor_and_of_a_trial(service: Served, open_window: Any, paths: list[str]) -> None:
    for scheme in ("light", "dark"):
        window = open_window(service, color_scheme=scheme)
        window.go("/subscriptions/new")
        page = window.page
        page.evaluate(Axe().axe_script)
        page.get_by_label("Subscription text").press_sequentially("WHERE topic = 'seen' AND ?x > 5 A")
        expect(page.get_by_role("listbox")).to_be_visible()
        expect(page.locator(".verdict.bad")).to_be_visible()
        assert page.evaluate(STRUCTURE) + barriers(page, scheme, runOnly=["color-contrast"]) == []
        page.get_by_label("Subscription text").fill("WHERE topic = 'seen' AND price < 10")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("details.near").first).to_be_visible()
        expect(page.locator(".verdict.good")).to_be_visible()
        assert page.evaluate(STRUCTURE) + barriers(page, scheme, runOnly=["color-contrast"]) == []


def test_the_keyboard_gets_everywhere(service: Served, open_window: Any, paths: list[str]) -> None:
    window = open_window(service)
    page = window.page
    window.go("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="New subscription")).to_be_focused()
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(ring.removesuffix("px")) >= 2, "what has the focus does not show it"
    page.keyboard.press("Enter")
    window.wait_for("/subscriptions/new")
    news = page.locator("[aria-live]")
    window.go("/")
    expect(news.first).to_have_attribute("aria-live", "polite")
