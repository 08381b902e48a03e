"""What people do with the page, in a real browser."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from playwright.sync_api import expect

from tests.service.conftest import Served
from tests.service.web.pages.conftest import Window


def subscribe(window: Window, text: str, title: str = "", **choices: str) -> str:
    """Through the editor, as people do; the id of the new subscription."""
    window.go("/subscriptions/new")
    window.page.get_by_label("Subscription text").fill(text)
    window.page.get_by_label("Title").fill(title)
    for label, value in choices.items():
        window.page.get_by_label(label.replace("_", " ")).select_option(value)
    window.page.get_by_role("button", name="Subscribe").click()
    window.wait_for("/subscriptions/s")
    return window.page.url.rpartition("/")[2]


def news(window: Window) -> Any:
    return window.page.get_by_role("region", name="otifications").get_by_role("listitem")


def test_subscribe_publish_and_see_it_arrive(service: Served, window: Window) -> None:
    id = subscribe(window, "WHERE topic = 'finance' AND price < 50", "Cheap finance")
    page = window.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Cheap finance")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.evaluate("window.samePage = true")
    service.publish(
        {"source": "test", "id": "f1", "topic": "finance", "price": 20, "title": "Markets rise"},
        {"source": "test", "id": "f2", "topic": "finance", "price": 90, "title": "Too dear"},
    )
    began = time.monotonic()
    expect(page.get_by_role("heading", name="Markets rise")).to_be_visible()
    assert time.monotonic() - began < 5
    expect(page.get_by_role("heading", name="Too dear")).to_have_count(0)
    expect(page.get_by_text("Nothing yet")).to_be_hidden()
    assert page.evaluate("window.samePage") is True, "the page was loaded anew"
    page.get_by_role("link", name="Why this notification: Markets rise").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Why this notification")
    expect(page.locator(".why .held").first).to_contain_text("topic = 'finance'")
    expect(page.get_by_text('"price": 20')).to_be_visible()
    assert service.notifications(id)[0]["event"]["title"] == "Markets rise"


def test_the_first_page_tells_of_all_subscriptions_as_they_are_told(service: Served, window: Window) -> None:
    subscribe(window, "WHERE topic = 'weather'", "Weather")
    window.go("/")
    expect(window.page.get_by_text("live", exact=True)).to_be_visible()
    service.publish(
        *({"source": "test", "id": f"w{i}", "topic": "weather", "title": f"Storm {i}"} for i in range(3))
    )
    for i in range(3):
        expect(window.page.get_by_role("heading", name=f"Storm {i}")).to_have_count(1)
    titles = window.page.locator(".news h3").all_text_contents()
    assert [title.strip() for title in titles[:3]] == ["Storm 2", "Storm 1", "Storm 0"]
    expect(window.page.locator(".news").get_by_role("link", name="Weather").first).to_be_visible()


def test_a_ticket_is_shown_once_and_kept_by_the_browser(service: Served, window: Window) -> None:
    subscribe(window, "WHERE topic = 'kept'", "Kept")
    ticket = window.page.locator("#ticket").text_content()
    expect(window.page.get_by_text("Copy it now")).to_be_hidden()
    expect(window.page.get_by_text("This browser has stored it")).to_be_visible()
    assert re.fullmatch(r"tkt_[\w-]{43}", ticket)
    window.page.reload()
    expect(window.page.locator("#ticket")).to_have_count(0)
    assert ticket not in window.page.content()
    expect(window.page.get_by_label("Ticket").first).to_have_value(ticket)
    hint = window.page.get_by_text("Only who has the ticket of this subscription can change it").first
    expect(hint).to_be_hidden()
    window.page.evaluate("localStorage.clear()")
    window.page.reload()
    expect(hint).to_be_visible()


def test_renew_pause_resume_and_cancel(service: Served, window: Window) -> None:
    id = subscribe(window, "WHERE topic = 'life'", "Life")
    page = window.page

    def press(name: str) -> None:
        """A page that has just loaded fills the ticket in first."""
        expect(page.locator("input[data-ticket]").first).not_to_have_value("")
        page.get_by_role("button", name=name).click()

    expect(page.locator("[data-valid-until]")).to_contain_text("in 1 day")
    page.get_by_label("Valid for").select_option(label="1 week")
    press("Renew")
    expect(page.get_by_role("status").filter(has_text="Renewed")).to_be_visible()
    expect(page.locator("[data-valid-until]")).to_contain_text("in 7 days")
    press("Pause")
    expect(page.locator(".head .badge")).to_contain_text("paused")
    press("Resume")
    expect(page.locator(".head .badge")).to_contain_text("active")
    expect(page.get_by_role("region", name="Feeds to read and share")).to_be_visible()
    press("End subscription")
    expect(page.locator(".head .badge")).to_contain_text("cancelled")
    expect(page.get_by_role("region", name="Feeds")).to_have_count(0)
    expect(page.get_by_role("button", name="Renew")).to_have_count(0)
    assert service.http.get(f"/api/subscriptions/{id}").json()["state"] == "cancelled"


def test_a_wrong_ticket_is_refused(service: Served, open_window: Any) -> None:
    made = service.subscribe("WHERE topic = 'other'", title="Of somebody else")
    window = open_window(service)
    window.go(f"/subscriptions/{made['id']}")
    page = window.page
    for ticket, words in (("tkt_wrong", "not the ticket"), ("", "Only who has the ticket")):
        page.get_by_label("Ticket").first.fill(ticket)
        page.get_by_role("button", name="End subscription").click()
        expect(page.get_by_role("alert")).to_contain_text(words)
        assert service.http.get(f"/api/subscriptions/{made['id']}").json()["state"] == "active"
    page.get_by_label("Ticket").first.fill(made["ticket"])
    page.get_by_role("button", name="End subscription").click()
    expect(page.locator(".head .badge")).to_contain_text("cancelled")


def test_a_question_is_checked_as_it_is_typed(window: Window) -> None:
    window.go("/subscriptions/new")
    page = window.page
    area, verdict = page.get_by_label("Subscription text"), page.locator("#verdict")
    area.press_sequentially("WHERE topic = 'finance'\nAMD price < 20")
    expect(verdict).to_contain_text("Line 2, column 1")
    expect(verdict).to_contain_text("did you mean 'AND'?")
    expect(page.locator(".paint mark")).to_have_text("AMD")
    expect(area).to_have_attribute("aria-invalid", "true")
    area.fill("WHERE topic = 'finance'\nAND price < 20")
    expect(verdict).to_have_text("Valid: a filter.")
    expect(page.locator(".paint mark")).to_have_count(0)
    expect(area).to_have_attribute("aria-invalid", "false")


def test_a_question_is_completed_with_the_keyboard(service: Served, window: Window) -> None:
    service.publish({"source": "test", "id": "c1", "temperature": 21, "tempo": "slow"})
    deadline = time.monotonic() + 10
    while "temperature" not in service.http.get("/api/complete", params={"text": "WHERE temper"}).text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    window.go("/subscriptions/new")
    page = window.page
    area, options = page.get_by_label("Subscription text"), page.get_by_role("listbox", name="Completions")
    area.press_sequentially("WHERE temp")
    expect(options).to_be_visible()
    expect(area).to_have_attribute("aria-expanded", "true")
    first = options.get_by_role("option").first
    expect(first).to_have_attribute("aria-selected", "true")
    expect(area).to_have_attribute("aria-activedescendant", first.get_attribute("id"))
    area.press("ArrowDown")
    expect(first).to_have_attribute("aria-selected", "false")
    area.press("ArrowUp")
    chosen = first.locator(".what").text_content()
    assert chosen in ("temperature", "tempo")
    area.press("Enter")
    expect(area).to_have_value(f"WHERE {chosen}")
    expect(options).to_be_hidden()
    area.press_sequentially(" > 5 AND tem")
    expect(options).to_be_visible()
    area.press("Escape")
    expect(options).to_be_hidden()
    expect(area).to_have_value(f"WHERE {chosen} > 5 AND tem")
    area.fill("SELECT ?t WHERE (?i, dc:subject, ?t) AND ?t ISA ex:Roc")
    area.fill("SELECT ?t WHERE (?i, dc:subject, ?t) AND ?t ISA ")
    area.press_sequentially("ex:Row")
    expect(options.get_by_role("option", name="ex:Rowing")).to_be_visible()
    area.press("Tab")
    expect(area).to_have_value("SELECT ?t WHERE (?i, dc:subject, ?t) AND ?t ISA ex:Rowing")
    expect(area).to_be_focused()


def test_a_question_is_tried_before_it_is_asked(service: Served, window: Window) -> None:
    service.publish(
        {"source": "test", "id": "t1", "colour": "red", "weight": 3, "title": "A red one"},
        {"source": "test", "id": "t2", "colour": "red", "weight": 30, "title": "A heavy red one"},
    )
    window.go("/subscriptions/new")
    page = window.page
    page.get_by_label("Subscription text").fill("WHERE colour = 'red' AND weight < 10")
    page.get_by_role("button", name="Try it").click()
    trial = page.get_by_role("region", name="On the last events")
    expect(trial).to_contain_text("1 matches")
    match, near = trial.locator("details.match"), trial.locator("details.near").first
    expect(match).to_contain_text("A red one")
    expect(match.locator(".why .held")).not_to_have_count(0)
    expect(near).to_contain_text("A heavy red one")
    expect(near.locator(".why .fell").last).to_contain_text("weight < 10")
    expect(near.locator(".why .fell").last).to_contain_text("30")
    changed = trial.get_by_text("The text has changed since")
    expect(changed).to_be_hidden()
    page.get_by_label("Subscription text").fill("WHERE colour =")
    expect(changed).to_be_visible()
    page.get_by_role("button", name="Try it").click()
    expect(changed).to_be_hidden()
    expect(trial.locator(".note.bad")).to_be_visible()


def test_an_example_is_put_in_by_a_click(service: Served, window: Window) -> None:
    window.go("/subscriptions/new")
    example = window.page.locator("[data-example]").first
    text = example.get_attribute("data-example")
    example.click()
    expect(window.page.get_by_label("Subscription text")).to_have_value(text)
    expect(window.page.locator("#verdict")).to_contain_text("Valid:")


HOSTILE = {
    "source": "evil<script>alert(1)</script>",
    "id": "x1",
    "topic": "hostile",
    "title": "<img src=x onerror=alert('title')> {{ 7 * 7 }}",
    "link": "javascript:alert('link')",
    "summary": "<p>Hello <b>there</b></p><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    "<a href=\"javascript:document.title='taken'\">click</a><svg onload=\"document.title='taken'\"></svg>"
    '<iframe src="/login"></iframe><form action="https://evil.example/"><input name=ticket></form><style>body{display:none}</style>',
}


def test_hostile_content_is_shown_and_does_nothing(service: Served, window: Window) -> None:
    id = subscribe(window, "WHERE topic = 'hostile'", "<script>alert(1)</script> ' \" </title>")
    expect(window.page.get_by_text("live", exact=True)).to_be_visible()
    service.publish(HOSTILE)
    item = window.page.locator(".news > li")
    expect(item).to_have_count(1)
    for path in (
        None,
        f"/subscriptions/{id}",
        "/",
        "/sources",
        f"/subscriptions/{id}/notifications/{service.notifications(id)[0]['id']}",
    ):
        if path is not None:
            window.go(path)
        page = window.page
        assert page.title() != "taken"
        assert (
            page.locator(
                "main script, main iframe, main style, main svg[onload], main [onerror], main [onload]"
            ).count()
            == 0
        )
        assert (
            page.locator("a[href^='javascript' i], form[action*='evil'], .news form, .news input").count()
            == 0
        )
        if path != "/sources":
            expect(page.locator(".news h3").filter(has_text="onerror=alert('title')")).to_have_count(1)
            expect(page.locator(".news h3").filter(has_text="{{ 7 * 7 }}")).to_have_count(1)
    window.page.locator(".summary a").first.click(no_wait_after=True) if window.page.locator(
        ".summary a"
    ).count() else None
    assert window.page.title() != "taken"
    window.go("/subscriptions/new?text=" + "%3C%2Ftextarea%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert (
        window.page.get_by_label("Subscription text").input_value() == "</textarea><script>alert(1)</script>"
    )
    assert window.page.locator("main script").count() == 0


def test_publishing_following_and_refusing_by_the_page(service: Served, window: Window) -> None:
    window.go("/sources")
    page = window.page
    page.get_by_label("Event", exact=True).fill(json.dumps({"source": "page", "id": "p1", "topic": "page"}))
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("status")).to_contain_text("1 event accepted")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("status")).to_contain_text("known already")


def test_a_new_feed_is_shown_as_it_is_fetched(house: Served, open_window: Any) -> None:
    window = open_window(house)
    window.go("/sources")
    page = window.page
    page.get_by_label("Address").fill("http://127.0.0.1:9/nobody-answers.xml")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("The feed is followed.")
    row = page.get_by_role("row").filter(has_text="nobody-answers")
    expect(row).to_contain_text("failing", timeout=15_000)  # without loading the page again


def test_everything_works_without_a_script(service: Served, open_window: Any) -> None:
    window = open_window(service, java_script_enabled=False)
    page = window.page
    window.go("/subscriptions/new")
    page.get_by_label("Subscription text").fill("WHERE topic = 'plain' AND")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#verdict")).to_contain_text("1:2")
    page.get_by_label("Subscription text").fill("WHERE topic = 'plain'")
    service.publish({"source": "test", "id": "n1", "topic": "plain", "title": "Before"})
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("details.match")).to_contain_text("Before")
    expect(page.get_by_label("Subscription text")).to_have_value("WHERE topic = 'plain'")
    page.get_by_role("button", name="Subscribe").click()
    ticket = page.locator("#ticket").text_content()
    id = page.url.rpartition("/")[2]
    service.publish({"source": "test", "id": "n2", "topic": "plain", "title": "After"})
    service.notifications(id)
    window.go(f"/subscriptions/{id}")
    expect(page.get_by_role("heading", name="After")).to_be_visible()
    page.get_by_label("Ticket").first.fill(ticket)
    page.get_by_role("button", name="Renew").click()
    expect(page.get_by_role("status").filter(has_text="Renewed")).to_be_visible()
    window.go("/taxonomy")
    page.get_by_role("link", name="Sport", exact=True).click()
    page.get_by_role("link", name="Subscribe to this class").click()
    expect(page.get_by_label("Subscription text")).to_have_value(re.compile("ISA ex:Sport"))


def test_logging_in_and_out(guarded: Served, open_window: Any) -> None:
    from tidings.service.model import Role

    _, secret = guarded.service.access.grant("ada", Role.SUBSCRIBER)
    window = open_window(guarded)
    page = window.page
    window.go("/status")
    window.wait_for(r"/login\?next=")
    page.get_by_label("Token").fill("tid_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Status")
    expect(page.locator(".who")).to_contain_text("ada")
    id = subscribe(window, "WHERE topic = 'mine'", "Mine")
    expect(page.get_by_label("Ticket", exact=True)).to_have_count(0)  # the owner's token is enough
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".head .badge")).to_contain_text("paused")
    assert guarded.service.registry.find(id).state == "paused"
    page.get_by_role("button", name="Log out").click()
    window.go(f"/subscriptions/{id}")
    window.wait_for(r"/login\?next=")
