"""The app before a real service: what is asked for becomes subscriptions and one channel, and nothing is lost while the service is
away."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.wagtail.conftest import Mailbox
from tests.service.conftest import Running
from tidings import Client
from tidings.service.model import Role


@pytest.fixture(scope="module")
def tidings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("service")
    with Running(data=folder, matching="process", open=False, allowed=("127.0.0.0/8",)) as served:
        _, token = served.service.access.grant("website", Role.DELEGATE, requests_per_second=1_000)
        yield {"URL": served.url, "TOKEN": token}


@pytest.fixture
def connected(site: Mailbox, tidings: dict[str, str]) -> Iterator[Client]:
    """The site with the service, and a client for all of its visitors."""
    from django.test import override_settings

    settings = override_settings(TIDINGS=tidings, WAGTAILADMIN_BASE_URL="http://127.0.0.1:9")
    with settings, Client(tidings["URL"], tidings["TOKEN"]) as client:
        yield client


@pytest.fixture
def reader(site: Mailbox) -> Any:
    from django.contrib.auth import get_user_model
    from wagtail_tidings.alerts import visitor_of_account

    return visitor_of_account(get_user_model().objects.get(username="reader"))


def received(client: Client, alert: Any, count: int) -> list[str]:
    """The titles of what an alert received, newest first, once there are so many."""
    deadline = time.monotonic() + 20
    while True:
        found = [str((each.event or {}).get("title")) for each in client.notifications(alert.subscription)]
        if len(found) >= count or time.monotonic() > deadline:
            assert len(found) == count, found
            return found
        time.sleep(0.05)


def test_alerts_become_subscriptions_and_one_channel(connected: Client, reader: Any, pages: Any) -> None:
    from wagtail_tidings import alerts, outbox

    own = connected.for_user(reader.key)
    words = alerts.ask(reader, "search", "solar power")
    section = alerts.ask(reader, "section", str(pages("Policy").pk), only_new=True)
    assert {each.id: (each.text, each.title, each.state) for each in own.subscriptions()} == {
        alert.subscription: (alert.text, alert.title, "active") for alert in (words, section)
    }
    reader.refresh_from_db()
    alerts.reschedule(reader, "weekly")
    (channel,) = own.channels()
    assert (channel.kind, channel.address) == ("webhook", "http://127.0.0.1:9/tidings/deliver/")
    assert set(channel.subscriptions) == {words.subscription, section.subscription}
    assert channel.schedule["digest"] == "weekly"
    alerts.pause(words)
    alerts.change(words, "wind", only_new=False)
    assert (own.subscription(words.subscription).state, own.subscription(words.subscription).text) == (
        "paused",
        words.text,
    )
    words.delete()
    outbox.send_waiting()
    assert own.subscription(words.subscription).state == "cancelled"
    reader.refresh_from_db()
    reader.delete()
    outbox.send_waiting()
    assert own.subscription(section.subscription).state == "cancelled"
    assert {each.state for each in own.channels()} <= {"ended"}


def test_a_channel_that_has_ended_is_replaced(connected: Client, reader: Any) -> None:
    from wagtail_tidings import alerts

    own = connected.for_user(reader.key)
    first = alerts.ask(reader, "search", "solar")
    reader.refresh_from_db()
    own.end_channel(reader.channel)
    second = alerts.ask(reader, "search", "wind")
    (channel,) = [each for each in own.channels() if each.state == "active"]
    assert set(channel.subscriptions) == {first.subscription, second.subscription}
    ended = reader.channel
    reader.refresh_from_db()
    assert reader.channel == channel.id != ended


def test_nothing_is_lost_while_the_service_is_away(
    connected: Client, tidings: dict[str, str], reader: Any, article: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.management import CommandError, call_command
    from django.test import override_settings
    from wagtail_tidings import alerts, outbox

    monkeypatch.setattr("tidings.client.calls.pause", lambda attempt, seconds: 0.0)
    with override_settings(TIDINGS={**tidings, "URL": "http://127.0.0.1:9"}):
        words = alerts.ask(reader, "search", "water")
        tag = alerts.ask(reader, "tag", "climate")
        assert (words.subscription, tag.subscription) == ("", "")
        for title in ("Dam", "Mill", "Well"):
            article("Energy", title, "Water.", "Climate")
        with pytest.raises(CommandError, match="8 calls wait"):
            call_command("tidings_sync")
        assert outbox.waiting() == 8
    said = io.StringIO()
    call_command("tidings_sync", stdout=said, stderr=said)
    assert "waiting calls were sent" in said.getvalue()
    assert "refused" not in said.getvalue()
    assert outbox.waiting() == 0
    own = connected.for_user(reader.key)
    for alert in (words, tag):
        alert.refresh_from_db()
        assert received(own, alert, 3) == ["Well", "Mill", "Dam"]


def test_a_page_that_is_moved_below_is_found_there(
    connected: Client, reader: Any, pages: Any, article: Any
) -> None:
    from wagtail_tidings import alerts, outbox

    culture = alerts.ask(reader, "section", str(pages("Culture").pk))
    words = alerts.ask(reader, "search", "water")
    own = connected.for_user(reader.key)
    article("Energy", "Before", "Water.")
    outbox.send_waiting()
    assert received(own, words, 1) == ["Before"]  # it was matched by the tree as it is
    pages("Energy").move(pages("Music"), pos="last-child")
    article("Energy", "After", "Water.")
    outbox.send_waiting()
    assert received(own, words, 2) == ["After", "Before"]
    assert received(own, culture, 1) == ["After"]


def test_a_text_of_ones_own(connected: Client, reader: Any, article: Any) -> None:
    from wagtail_tidings import alerts, outbox

    with pytest.raises(alerts.AlertError, match="This is not understood"):
        alerts.ask(reader, "text", "WHERE tags ==")
    own = alerts.ask(reader, "text", "WHERE tags = 'Climate' AND reading_minutes < 5")
    article("Energy", "Dam", "Water.", "Climate")
    article("Energy", "Well", "Water.")
    outbox.send_waiting()
    assert received(connected.for_user(reader.key), own, 1) == ["Dam"]
