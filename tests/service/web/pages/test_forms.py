"""What forms answer beside the change itself: warnings that fit into a cookie, refusals in our words, no more than a role sees."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.service.conftest import Served
from tests.service.web.pages.test_admin import form
from tests.service.web.pages.test_pages import HTML
from tidings import Event
from tidings.service.model import Role
from tidings.service.web.pages import flash_secret


@pytest.fixture
def visitor(guarded: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded.url, headers=HTML, timeout=20) as client:
        yield client


def log_in(visitor: httpx.Client, guarded: Served, role: Role) -> None:
    _, secret = guarded.service.access.grant(f"a {role.value}", role)
    form(visitor, "/login", "/login", token=secret)


@pytest.mark.parametrize("letter", ["a", "ä", "漢", "𝄞", '"'])
def test_a_ticket_comes_through_with_any_warnings(guarded: Served, letter: str) -> None:
    response = Response()
    warnings = flash_secret.brief([letter * 5_000] * 100)
    given = {"ticket": "tkt_" + "x" * 43, "webhook_secret": "whsec_" + "x" * 44, "warnings": warnings}
    flash_secret.set_secrets(response, guarded.service.settings, "/subscriptions/s1", given)
    cookie = response.headers["set-cookie"]
    assert len(cookie) < 4_096
    sent = Request({"type": "http", "headers": [(b"cookie", cookie.partition(";")[0].encode())]})
    assert flash_secret.read_secrets(sent) == given
    assert len(warnings) == 5
    assert flash_secret.brief(["short"]) == ["short"]


def test_warnings_of_an_edited_text_are_shown_once(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.SUBSCRIBER)
    guarded.service.log_writer.accept([Event("here", {"topic": "sport"})])
    begun = form(visitor, "/subscriptions/new", "/subscriptions", text="WHERE topic = 'x'")
    path = begun.url.path
    many = " OR ".join(f"topic = bare{n}" for n in range(40))
    edited = form(visitor, f"{path}/edit", f"{path}/edit", text=f"WHERE {many}", revision="1")
    assert edited.url.path == path
    assert edited.text.count('class="note wary"') == 5
    assert 'class="note wary"' not in visitor.get(path).text


def test_a_publisher_gets_no_examples_from_events(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.PUBLISHER)
    answer = form(visitor, "/sources", "/subscriptions", text="WHERE topic =")
    assert answer.status_code == 403
    assert "data-example" not in answer.text
    page = visitor.get("/sources").text
    assert 'href="/events"' not in page
    assert 'href="/taxonomy"' in page


def test_a_name_that_is_too_long_is_refused_in_our_words(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.ADMIN)
    answer = form(visitor, "/tokens", "/tokens", name="n" * 5_000, role="subscriber")
    assert answer.status_code == 422
    assert "characters; shorten it" in answer.text


def test_a_feed_is_new_once_and_known_then(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.PUBLISHER)
    for said in ("The feed is followed.", "That feed was followed already."):
        page = form(visitor, "/sources", "/sources", url="http://93.184.215.14/new").text
        assert said in page
    rows = visitor.get("/sources?part=feeds").text
    assert "http://93.184.215.14/new" in rows
    assert "Fetch now" in rows
    assert "<h1" not in rows


def test_only_who_follows_a_feed_can_undo_its_removal(guarded: Served, visitor: httpx.Client) -> None:
    _, secret = guarded.service.access.grant("a publisher", Role.PUBLISHER)
    url = "http://93.184.215.14/feed"
    as_publisher = {"Authorization": f"Bearer {secret}"}
    assert guarded.http.post("/api/sources", json={"url": url}, headers=as_publisher).status_code == 201
    log_in(visitor, guarded, Role.ADMIN)
    page = form(visitor, "/sources", "/sources/remove", url=url).text
    assert "was removed" in page
    assert ">Undo<" not in page
