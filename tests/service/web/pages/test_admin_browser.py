"""An admin's walk through the pages, in a real browser: a token for a program, a request as that program, the limits of its role,
and its end."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.service.conftest import Served
from tests.service.web.pages.conftest import Window
from tidings.service.model import Role


def log_in(window: Window, secret: str) -> None:
    window.go("/login")
    window.page.get_by_label("Token", exact=True).fill(secret)
    window.page.get_by_role("button", name="Log in").click()


def test_a_token_is_added_used_and_revoked(guarded: Served, open_window: Any) -> None:
    window: Window = open_window(guarded)
    page = window.page
    log_in(window, guarded.service.access.grant("boss", Role.ADMIN)[1])
    expect(page.locator(".who")).to_contain_text("boss (admin)")
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill("the newsroom")
    page.get_by_label("subscriber").check()
    page.get_by_role("button", name="Add token").press("Enter")
    secret = page.locator("#token-secret").text_content()
    row = page.get_by_role("row").filter(has_text="the newsroom")
    expect(row).to_contain_text("not since the service was started")

    page.get_by_role("link", name="API", exact=True).click()
    page.get_by_label("Token (optional)").fill(secret)
    operation = page.locator("#subscribe")
    operation.locator("summary").click()
    operation.get_by_label("Body").fill('{"text": "WHERE topic = \'oil\'", "title": "Oil"}')
    operation.get_by_role("button", name="Send request").click()
    expect(operation.get_by_role("status")).to_contain_text("201")

    other: Window = open_window(guarded)
    log_in(other, secret)
    expect(other.page.get_by_role("link", name="Oil")).to_be_visible()
    expect(other.page.get_by_role("link", name="Tokens")).to_have_count(0)
    assert window.complaints == other.complaints == []

    for address, heading in (("/definitions", "Definitions"), ("/status", "Status"), ("/sources", "Sources")):
        page.locator(f"nav a[href='{address}']").click()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    page.get_by_role("link", name="Tokens").click()
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("status")).to_contain_text("is revoked")
    other.go("/")
    expect(other.page.get_by_role("link", name="Oil")).to_have_count(0)
    assert window.complaints == []
