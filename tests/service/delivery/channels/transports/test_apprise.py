"""The kind apprise: which addresses are accepted, and that none of them leads to another host than the service's own.

No request leaves this machine: names are not resolved here, and the hosts that are looked up are what is tested.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.delivery.channels.transports.hostile_messages import NASTY, message
from tidings.errors import TidingsError
from tidings.service.delivery.channels.message import REFUSED
from tidings.service.delivery.channels.transports import apprise as transport_module
from tidings.service.delivery.channels.transports.apprise import SCHEMES, Apprise
from tidings.service.delivery.webhook_attempts import FAILED, Outcome

NOW = 1.79e9
GOOD = {
    "discord": (f"discord://{'1' * 24}/{'t' * 64}", "discord.com"),
    "gchat": ("gchat://workspace/key/token", "chat.googleapis.com"),
    "line": ("line://token/U0123456789", "api.line.me"),
    "pagerduty": (f"pagerduty://{'i' * 32}@{'k' * 20}", "events.pagerduty.com"),
    "pbul": (f"pbul://{'a' * 32}", "api.pushbullet.com"),
    "pover": (f"pover://{'u' * 30}@{'a' * 30}", "api.pushover.net"),
    "prowl": (f"prowl://{'w' * 40}", "api.prowlapp.com"),
    "pushy": ("pushy://apikey/@device", "api.pushy.me"),
    "revolt": ("revolt://token/channel", "api.revolt.chat"),
    "slack": ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "hooks.slack.com"),
    "tgram": ("tgram://123456789:abcdefg_hijklmnop/12315544", "api.telegram.org"),
}


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    hosts: list[str] = []

    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        hosts.append(host)
        raise socket.gaierror("names are not resolved here")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return hosts


def send(address: str, **more: Any) -> Outcome:
    async def attempt() -> Outcome:
        transport = Apprise()
        try:
            return await transport.send(message(address, **more), NOW)
        finally:
            await transport.close()

    return asyncio.run(attempt())


def test_every_scheme_is_tested() -> None:
    assert GOOD.keys() == SCHEMES.keys()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_service_is_called_at_its_own_host(scheme: str, looked_up: list[str]) -> None:
    address, host = GOOD[scheme]
    assert Apprise().address(address) == address
    outcome = send(address)
    assert outcome.result == FAILED
    assert str(outcome.error).startswith(f"{SCHEMES[scheme]} did not take the message")
    assert set(looked_up) == {host}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_part_of_an_address_chooses_the_host(scheme: str, looked_up: list[str]) -> None:
    good, host = GOOD[scheme]
    rest = good.partition("://")[2]
    inside = (
        "127.0.0.1",
        "localhost:8750",
        "u:p@169.254.169.254",
        "169.254.169.254:80/latest",
        "[::1]",
        "..%2f..",
        "%0d%0aHost:%20x",
    )
    for attack in inside:
        for address in (
            f"{scheme}://{attack}/{rest}",
            f"{scheme}://{attack}@{rest}",
            f"{scheme}://{rest}/{attack}",
            f"{scheme}://{attack}",
        ):
            try:
                Apprise().address(address)
            except TidingsError:
                continue
            send(address)
    assert set(looked_up) <= {host}


@pytest.mark.parametrize(
    "address",
    [
        "", "x", "https://discord.com/api/webhooks/1/2", "json://127.0.0.1/", "xml://10.0.0.1", "form://localhost", "dbus://", "gnome://",
        "macosx://", "windows://", "syslog://", "rsyslog://127.0.0.1", "apprise://127.0.0.1/token", "mailto://user:pass@gmail.com",
        "mqtt://127.0.0.1", "smtp://127.0.0.1", "ntfy://127.0.0.1/topic", "matrix://127.0.0.1", "gotify://127.0.0.1/token", "kodi://127.0.0.1",
        "file:///etc/passwd", "windows://_/?x", "glib://", "kde://", "msteams://x", "workflows://127.0.0.1/a/b", "smpp://x", "opsgenie://x", "ifttt://a@b", "fluxer://127.0.0.1/a/b",
        GOOD["discord"][0] + "?verify=no", GOOD["discord"][0] + "?avatar_url=http://127.0.0.1", GOOD["slack"][0] + "?template=/etc/passwd",
        GOOD["slack"][0] + "/#general",
        "tgram://123456789:abcdefg_hijklmnop/1/2/3", GOOD["discord"][0] + " json://127.0.0.1", GOOD["discord"][0] + ",json://127.0.0.1/://x",
        "discord://", "slack://x", "tgram://x", GOOD["discord"][0] + "\r\nx", "discord://" + "x" * 5_000, *NASTY,
    ],
)  # fmt: skip
def test_what_is_not_accepted(address: str, looked_up: list[str]) -> None:
    with pytest.raises(TidingsError) as error:
        Apprise().address(address)
    assert len(str(error.value)) < 400
    outcome = send(address)
    assert outcome.result == REFUSED
    assert not looked_up


def test_an_address_is_a_secret(looked_up: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    outcome = send(GOOD["discord"][0])
    assert "t" * 64 not in repr(outcome)
    assert "t" * 64 not in caplog.text
    with pytest.raises(TidingsError) as error:
        Apprise().address(GOOD["discord"][0] + "?x=y")
    assert "t" * 64 not in str(error.value)


def test_a_service_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *rest, **more: time.sleep(0.6) or [])

    async def attempt() -> Outcome:
        return await Apprise(timeout=0.1).send(message(GOOD["discord"][0]), NOW)

    began = time.monotonic()
    outcome = asyncio.run(attempt())
    assert outcome == Outcome(FAILED, "Discord did not answer within 0.1 seconds")
    assert time.monotonic() - began < 5


def test_nobody_is_called_by_a_text() -> None:
    broken = transport_module._MENTION.sub(
        "\\g<0>\u200b", "@everyone <!channel> <@U1> a@b.org https://x.example/@ann"
    )
    assert broken == "@\u200beveryone <\u200b!channel> <\u200b@U1> a@b.org https://x.example/@ann"


def test_the_package_is_loaded_only_when_needed() -> None:
    source = Path(transport_module.__file__).read_text()
    assert "\nimport apprise" not in source
