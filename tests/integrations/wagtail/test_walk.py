"""A whole walk in a real browser: a visitor searches and confirms by mail, an editor publishes in the Wagtail admin, mail arrives, a
private page goes only to whoever may see it, and one click ends it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import postgresql
from tests.integrations.wagtail.conftest import Mailbox, header, leave_link, text_of
from tests.integrations.wagtail.site_process import running_site
from tests.service.conftest import Running
from tests.service.web.pages.conftest import running_chromium

QUICK, WHOLE = "tests.integrations.wagtail.quick_settings", "newsroom.settings"


@pytest.fixture(
    params=[pytest.param("sqlite", id="sqlite"), pytest.param("postgresql", marks=pytest.mark.slow)],
)
def address(request: pytest.FixtureRequest, tmp_path: Path, smtp: Mailbox) -> Iterator[str]:
    """The address of a site with an empty mailbox."""
    smtp.mails.clear()
    smtp.refusing = False
    service = Running(data=tmp_path / "data", matching="process", open=False, allowed=("127.0.0.0/8",))
    with service as served:
        if request.param == "sqlite":
            with running_site(tmp_path, served, smtp, str(tmp_path / "site.db"), QUICK) as address:
                yield address
            return
        folder = postgresql.programs()
        if folder is None:
            pytest.skip("there is no PostgreSQL on this machine")
        server = postgresql.Server(folder)
        try:
            with running_site(tmp_path, served, smtp, server.create("newsroom"), WHOLE) as address:
                yield address
        finally:
            server.close()


@pytest.fixture
def person(address: str) -> Iterator[Callable[[], Any]]:
    """Opens a browser of somebody else."""
    with running_chromium() as chromium:

        def make() -> Any:
            context = chromium.new_context(base_url=address, viewport={"width": 1280, "height": 900})
            context.set_default_timeout(20_000)
            return context.new_page()

        yield make


def wait_for(mailbox: Mailbox, to: str, count: int) -> list[Any]:
    deadline = time.monotonic() + 30
    while len(mailbox.to(to)) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(mailbox.to(to)) == count, [(mail["To"], mail["Subject"]) for mail in mailbox.mails]
    return mailbox.to(to)


def log_in(page: Any, name: str, at: str) -> None:
    page.goto(at)
    page.fill("[name=username]", name)
    page.fill("[name=password]", "example")
    page.click("[type=submit]")
    page.wait_for_load_state()


def publish(editor: Any, at: str, title: str, body: str) -> str:
    """Writes an article in the Wagtail admin and publishes it; where it can be edited."""
    editor.goto(at)
    editor.fill("#id_title", title)
    editor.click(".public-DraftEditor-content")
    editor.keyboard.type(body)
    # The editor writes into the form after a moment without typing.
    editor.wait_for_function("text => document.querySelector('[name=body]').value.includes(text)", arg=body)
    press_publish(editor)
    return str(editor.locator(".messages a", has_text="Edit").get_attribute("href"))


def press_publish(editor: Any) -> None:
    editor.click("footer [data-w-dropdown-target=toggle]")
    editor.click("[name=action-publish]")
    editor.wait_for_selector(".messages .success")


def section_number(editor: Any, address: str) -> str:
    editor.goto(address)
    found = editor.locator("input[name=kind][value=section] + input[name=value]")
    return str(found.get_attribute("value"))


def child_form(editor: Any, section: str) -> str:
    """Where an article is added in a section."""
    return f"/admin/pages/add/newsroom/articlepage/{section_number(editor, section)}/"


def make_private(editor: Any, section: str) -> None:
    """What the dialog for privacy posts."""
    number = section_number(editor, section)
    (token,) = (cookie["value"] for cookie in editor.context.cookies() if cookie["name"] == "csrftoken")
    answer = editor.request.post(
        f"/admin/pages/{number}/privacy/",
        form={"restriction_type": "login"},
        headers={"X-CSRFToken": token},
    )
    assert answer.json()["is_public"] is False, answer.text()


def test_a_walk(address: str, smtp: Mailbox, person: Callable[[], Any]) -> None:
    ann, reader, editor = person(), person(), person()
    # Somebody without an account asks, and confirms by mail.
    ann.goto("/search/?q=hydrogen")
    ann.fill("[name=email]", "ann@example.net")
    ann.click("text=Tell me")
    ann.wait_for_selector("text=Please look into your mail")
    (mail,) = wait_for(smtp, "ann@example.net", 1)
    ann.goto(re.search(r"http://\S+/tidings/confirm/\S+", text_of(mail))[0])
    ann.click("text=Yes, tell me")
    ann.wait_for_selector("text=We will tell you")
    assert "within some minutes" not in ann.content()
    # Somebody with an account asks by one click.
    log_in(reader, "reader", "/_util/login/")
    reader.goto("/search/?q=hydrogen")
    assert reader.locator("[name=email]").count() == 0
    reader.click("text=Tell me")
    reader.wait_for_selector("text=We will tell you")
    # An editor publishes a private page, then one for everybody.
    log_in(editor, "editor", "/admin/login/")
    make_private(editor, "/staff/")
    publish(editor, child_form(editor, "/staff/"), "Hydrogen bonus", "Every desk gets hydrogen.")
    wait_for(smtp, "reader@example.org", 1)
    form = child_form(editor, "/policy/energy/")
    edit = publish(editor, form, "A hydrogen plant", "Hydrogen from the wind at sea.")
    private, public = wait_for(smtp, "reader@example.org", 2)
    (_, mine) = wait_for(smtp, "ann@example.net", 2)
    assert header(private, "Subject") == "The Example: Hydrogen bonus"
    assert header(public, "Subject") == header(mine, "Subject") == "The Example: A hydrogen plant"
    assert f"{address}/policy/energy/a-hydrogen-plant/" in text_of(mine)
    assert "bonus" not in str(mine)
    # The profile has what was received; of the other one, not the private page.
    reader.goto("/tidings/")
    assert reader.locator(".tidings-received a").all_inner_texts() == ["A hydrogen plant", "Hydrogen bonus"]
    ann.goto(re.search(r"http://\S+/tidings/mine/\S+", text_of(mine))[0])
    assert ann.locator(".tidings-received a").all_inner_texts() == ["A hydrogen plant"]
    assert act(ann, "button:text-is('Pause')") == ("The alert is paused.", "paused")
    assert act(ann, "button:text-is('Resume')") == ("The alert is active again.", "active")
    assert act(ann, "button:text-is('Renew for a year')") == (
        "The alert is valid for another year.",
        "active",
    )
    for schedule in ("daily", "at-once"):
        ann.select_option("[name=schedule]", schedule)
        assert act(ann, ".tidings-schedule button") == ("Mail comes as you chose.", "active")
        assert ann.locator("[name=schedule]").input_value() == schedule
    # Editors see what is asked for.
    editor.goto("/admin/reports/alerts/")
    row = editor.locator("tr", has_text="Pages with “hydrogen”")
    assert re.split(r"\s{2,}|\t", row.inner_text().strip())[:3] == ["Pages with “hydrogen”", "Search", "2"]
    # One click in a mail program ends it, without a login and without cookies.
    assert httpx.post(leave_link(mine), data={"List-Unsubscribe": "One-Click"}).status_code == 200
    editor.goto(edit)
    press_publish(editor)
    wait_for(smtp, "reader@example.org", 3)
    assert len(smtp.to("ann@example.net")) == 2


def act(page: Any, button: str) -> tuple[str, str]:
    """Presses a button of the profile; the answer, and the state of its only alert."""
    with page.expect_navigation():
        page.click(button)
    return page.locator(".tidings-message").inner_text(), page.locator(".tidings-state").inner_text()
