"""Whether everybody can use the pages: names, headings, landmarks, the keyboard, and contrast, by plain checks."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.service.conftest import Served

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

CONTRAST = """() => {
  const channels = (text) => { const c = text.match(/[\\d.]+/g).map(Number); return { rgb: c.slice(0, 3), alpha: c[3] ?? 1 }; };
  const over = (above, below) => above.rgb.map((v, i) => v * above.alpha + below[i] * (1 - above.alpha));
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    const above = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.alpha) above.push(colour);
      if (colour.alpha === 1) break;
    }
    return above.reverse().reduce((below, colour) => over(colour, below), [255, 255, 255]);
  };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const wrong = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("textarea, option, .unseen, :disabled")) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const back = ground(element);
    const front = over(channels(element.closest("svg") ? style.fill : style.color), back);
    const found = ratio(front, back);
    if (found < (large ? 3 : 4.5)) wrong.add(`${found.toFixed(2)} for "${node.data.trim().slice(0, 40)}" in ${element.tagName}.${element.className}`);
  }
  // What has to be seen to be used: the edges of fields.
  for (const field of document.querySelectorAll("input[type=text], input[type=url], input[type=search], select, .editor")) {
    if (!field.checkVisibility()) continue;
    const found = ratio(channels(getComputedStyle(field).borderTopColor).rgb, ground(field.parentElement));
    if (found < 3) wrong.add(`${found.toFixed(2)} for the edge of ${field.id || field.className}`);
  }
  return [...wrong];
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_structure_and_contrast(service: Served, open_window: Any, paths: list[str], scheme: str) -> None:
    window = open_window(service, color_scheme=scheme)
    wrong: dict[str, list[str]] = {}
    for path in paths:
        window.go(path)
        found = window.page.evaluate(STRUCTURE) + window.page.evaluate(CONTRAST)
        if found:
            wrong[path] = found
    assert wrong == {}


def test_colours_of_the_editor_and_of_a_trial(service: Served, open_window: Any, paths: list[str]) -> None:
    for scheme in ("light", "dark"):
        window = open_window(service, color_scheme=scheme)
        window.go("/subscriptions/new")
        page = window.page
        page.get_by_label("Subscription text").press_sequentially("WHERE topic = 'seen' AND ?x > 5 A")
        expect(page.get_by_role("listbox")).to_be_visible()
        expect(page.locator(".verdict.bad")).to_be_visible()
        assert page.evaluate(STRUCTURE) + page.evaluate(CONTRAST) == []
        page.get_by_label("Subscription text").fill("WHERE topic = 'seen' AND price < 10")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("details.near").first).to_be_visible()
        expect(page.locator(".verdict.good")).to_be_visible()
        assert page.evaluate(STRUCTURE) + page.evaluate(CONTRAST) == []


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
