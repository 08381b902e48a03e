"""The pages of channels: forms without scripts, and the links out of messages, which need no login."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from tests.service.conftest import Served
from tests.service.web.pages.test_admin import form
from tests.service.web.pages.test_forms import log_in
from tests.service.web.pages.test_pages import HTML
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.model import Channel, ChannelState, Role
from tidings.service.subscriptions.tickets import new_id
from tidings.service.telemetry.logs import without_secrets
from tidings.service.web.pages.channels.schedule_form import in_words

HOOK = "https://example.org/hook"


@pytest.fixture
def visitor(guarded: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded.url, headers=HTML, timeout=20) as client:
        yield client


@pytest.fixture
def stranger(guarded: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded.url, headers=HTML, timeout=20) as client:
        yield client


def test_a_channel_is_added_changed_muted_and_ended_by_forms(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.SUBSCRIBER)
    text = {"text": "WHERE topic = 'x'", "title": "News of <x>"}
    subscription = form(visitor, "/subscriptions/new", "/subscriptions", **text).url.path.rpartition("/")[2]
    page = visitor.get(f"/channels?subscription={subscription}").text
    assert f'<option value="{subscription}" selected>News of &lt;x&gt;</option>' in page
    choices = {
        "often": "weekly",
        "at": "07:30",
        "day": "friday",
        "zone": "Europe/Vienna",
        "at_most": "2",
        "per": "86400",
    }
    added = form(
        visitor, "/channels", "/channels", kind="webhook", address=HOOK, title="My <b>", subscription=subscription, **choices
    )  # fmt: skip
    path = added.url.path
    assert "whsec_" in added.text
    assert "whsec_" not in visitor.get(path).text
    assert "My &lt;b&gt;" in added.text
    assert "Every Friday at 07:30 (Europe/Vienna), together; at most 2 messages in a day." in added.text
    shown = visitor.get(path, headers={"Accept": "application/json"}).json()["channel"]
    assert shown["subscriptions"] == [subscription]
    muted = form(visitor, path, f"{path}/mute", seconds="3600")
    assert "Muted until" in muted.text
    assert '<p class="crumb"><a href="/channels">Channels</a></p>' in muted.text
    saved = form(visitor, path, path, title="Now", often="", quiet_from="22:00", quiet_to="07:00", zone="UTC")
    assert "At once; none from 22:00 to 07:00 (UTC)." in saved.text
    assert "Muted until" in saved.text
    assert "Muted until" not in form(visitor, path, f"{path}/mute", seconds="").text
    refused = form(visitor, path, path, title="Now", zone="Europe/Wien")
    assert refused.status_code == 422
    assert "did you mean &#39;Europe/Vienna&#39;?" in refused.text
    assert "/channels/" in visitor.get(f"/subscriptions/{subscription}").text
    left = form(visitor, path, f"{path}/leave", subscription=subscription, **{"from": "subscription"})
    assert left.url.path == f"/subscriptions/{subscription}"
    assert "Send to Now" in left.text
    assert form(visitor, path, f"{path}/join", subscription=subscription).url.path == path
    ended = form(visitor, path, f"{path}/end")
    assert ended.url.path == "/channels"
    assert "There is no channel yet." in ended.text


def test_only_what_a_channel_may_have_is_offered(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.SUBSCRIBER)
    ids = []
    for title in ("One", "Two", "Gone"):
        text = {"text": "WHERE topic = 'x'", "title": title}
        ids.append(form(visitor, "/subscriptions/new", "/subscriptions", **text).url.path.rpartition("/")[2])
    form(visitor, f"/subscriptions/{ids[2]}", f"/subscriptions/{ids[2]}/cancel")
    path = form(visitor, "/channels", "/channels", kind="webhook", address=HOOK, subscription=ids[0]).url.path

    def offered(client: httpx.Client, page: str) -> list[str]:
        return [id for id in ids if f'<option value="{id}"' in client.get(page).text]

    assert offered(visitor, "/channels") == ids[:2]
    assert offered(visitor, path) == ids[1:2]
    with httpx.Client(base_url=guarded.url, headers=HTML, timeout=20) as admin:
        log_in(admin, guarded, Role.ADMIN)
        assert offered(admin, path) == ids[1:2]  # those of the channel's owner
        assert offered(admin, "/channels") == []


def test_what_is_refused_keeps_what_was_typed(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.SUBSCRIBER)
    refused = form(
        visitor, "/channels", "/channels", kind="webhook", address="nowhere", title="Typed", often="daily"
    )
    assert refused.status_code >= 400
    assert 'value="Typed"' in refused.text
    assert '<option value="daily" selected>' in refused.text


def test_a_form_of_another_site_changes_nothing(guarded: Served, visitor: httpx.Client) -> None:
    log_in(visitor, guarded, Role.SUBSCRIBER)
    path = form(visitor, "/channels", "/channels", kind="webhook", address=HOOK).url.path
    for address in (path, f"{path}/end", f"{path}/test", f"{path}/mute", "/channels"):
        assert visitor.post(address, data={"title": "x"}).status_code == 403
    assert visitor.get(path).status_code == 200


def mail_channel(guarded: Served, state: ChannelState = ChannelState.UNCONFIRMED) -> Channel:
    """A channel by mail; whether the service sends mail is nothing to the links."""
    store = guarded.service.channels._store
    channel = Channel(new_id("c"), "owner", "email", "ann@example.org", "Her news", "{}", 1e9 * 2)
    return store.add(replace(channel, state=state), [], most=1_000)


def link(guarded: Served, action: str, channel: Channel) -> str:
    return guarded.service.channels._links.of(action, channel.id)


def state_of(guarded: Served, channel: Channel) -> ChannelState:
    found = guarded.service.channels._store.find(channel.id)
    assert found is not None
    return found.state


def test_an_address_is_confirmed_by_its_link_and_a_button(guarded: Served, stranger: httpx.Client) -> None:
    channel = mail_channel(guarded)
    address = link(guarded, "confirm", channel)
    page = stranger.get(address)
    assert "Yes, send them" in page.text
    assert state_of(guarded, channel) is ChannelState.UNCONFIRMED
    assert httpx.post(address).status_code == 403
    token = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert token is not None
    assert "Confirmed" in stranger.post(address, data={"csrf": token[1]}).text
    assert state_of(guarded, channel) is ChannelState.ACTIVE


def test_one_click_ends_a_channel_without_a_login(guarded: Served, stranger: httpx.Client) -> None:
    channel = mail_channel(guarded, ChannelState.ACTIVE)
    address = link(guarded, "unsubscribe", channel)
    assert "End the messages" in stranger.get(address).text
    assert state_of(guarded, channel) is ChannelState.ACTIVE
    assert httpx.post(address).status_code == 422
    assert httpx.post(address, data={"List-Unsubscribe": "No"}).status_code == 422
    assert state_of(guarded, channel) is ChannelState.ACTIVE
    assert httpx.post(address, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert state_of(guarded, channel) is ChannelState.ENDED
    assert "They have ended" in stranger.get(address).text
    again = httpx.post(
        address, files={"List-Unsubscribe": (None, "One-Click")}
    )  # multipart, which RFC 8058 allows too
    assert again.status_code == 200
    other = mail_channel(guarded, ChannelState.ACTIVE)
    assert (
        httpx.post(
            link(guarded, "unsubscribe", other), files={"List-Unsubscribe": (None, "One-Click")}
        ).status_code
        == 200
    )
    assert state_of(guarded, other) is ChannelState.ENDED


def test_a_link_is_for_its_channel_and_its_action_alone(guarded: Served, stranger: httpx.Client) -> None:
    first, second = mail_channel(guarded), mail_channel(guarded)
    confirm = link(guarded, "confirm", first)
    body = {"List-Unsubscribe": "One-Click"}
    for wrong in (
        confirm.replace("/confirm/", "/unsubscribe/"), confirm.replace(first.id, second.id), confirm[:-1], confirm + "0",
        f"{guarded.url}/channels/unsubscribe/{first.id}", f"{guarded.url}/channels/unsubscribe/%C3%A9.x",
    ):  # fmt: skip
        assert stranger.get(wrong).status_code == 404, wrong
        if "/unsubscribe/" in wrong:
            assert stranger.post(wrong, data=body).status_code == 404, wrong
    assert state_of(guarded, first) is state_of(guarded, second) is ChannelState.UNCONFIRMED


def test_links_are_not_in_log_lines() -> None:
    line = 'GET "/channels/unsubscribe/cabc.0123456789abcdef?x=1" and /channels/confirm/cabc.0123 and /channels/cabc'
    assert (
        without_secrets(line)
        == 'GET "/channels/unsubscribe/…?x=1" and /channels/confirm/… and /channels/cabc'
    )


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(), "at once"),
        (Schedule(digest="hourly"), "every hour, together"),
        (Schedule(digest="daily", at=450), "every day at 07:30 (UTC), together"),
        (Schedule(at_most=1), "at once; at most 1 message in an hour"),
        (Schedule(at_most=3, per=90.0), "at once; at most 3 messages in 90 seconds"),
        (Schedule(quiet=(1_320, 0)), "at once; none from 22:00 to 00:00 (UTC)"),
    ],
)
def test_schedules_in_words(schedule: Schedule, words: str) -> None:
    assert in_words(schedule) == words
