"""Messages to ntfy and Matrix: what their documentation asks for arrives, and each answer is an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from urllib.parse import urlsplit

import lxml.html
import pytest
import uvloop
from hypothesis import given

from tests.examples import examples
from tests.service.delivery.channels.transports.chat_servers import Answer, Request, chat, matrix, ntfy
from tests.service.delivery.channels.transports.hostile_messages import message, messages
from tidings.errors import TidingsError
from tidings.feeds.addresses import AsyncGuard
from tidings.service.delivery.channels.message import REFUSED, Message, MessageKind
from tidings.service.delivery.channels.transports import matrix as matrix_form
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.channels.transports.chat_requests import ChatServers
from tidings.service.delivery.channels.transports.matrix import Matrix
from tidings.service.delivery.channels.transports.ntfy import Ntfy
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, GONE

NOW = 1.79e9


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(coroutine, 60))


def test_ntfy_takes_a_message() -> None:
    async def check() -> None:
        async with chat(ntfy) as (server, servers):
            transport = Ntfy(servers)
            address = transport.address(f"{server.url}/my-topic/")
            assert address == f"{server.url}/my-topic"
            several = message(address, items=message().items * 3, more=2, title="Grüße 😀")
            for sent in (message(address), several, message(address, MessageKind.TEST)):
                assert (await transport.send(sent, NOW)).result == DELIVERED
            first, second, _ = [request.content for request in server.requests]
            assert first == {
                "topic": "my-topic",
                "title": "Goals: A late goal",
                "message": "It was late.\nhttps://news.example/1",
                "click": "https://news.example/1",
                "tags": ["bell"],
                "priority": 3,
            }
            assert second["message"].splitlines() == [
                "Goals:", *["• A late goal https://news.example/1"] * 3, "and 2 more",
            ]  # fmt: skip
            assert second["click"] == "https://tidings.example/channels/c1"
            assert "authorization" not in server.requests[0].headers

    run(check())


@examples(25)
@given(messages("set below"))
def test_ntfy_takes_every_message(given: Message) -> None:
    async def check() -> None:
        async with chat(ntfy) as (server, servers):
            sent = message(
                f"{server.url}/t",
                given.kind,
                items=given.items,
                title=given.title,
                more=given.more,
                manage=given.manage,
            )
            outcome = await Ntfy(servers).send(sent, NOW)
            assert outcome.result == DELIVERED, outcome
            assert "\n" not in server.requests[0].content["title"]

    run(check())


def test_tokens_of_ntfy() -> None:
    async def check() -> None:
        async with chat(ntfy) as (server, servers):
            address = f"{server.url}/protected"
            assert (await Ntfy(servers).send(message(address, secret="tk_right"), NOW)).result == DELIVERED
            outcome = await Ntfy(servers).send(message(address, secret="tk_wrong"), NOW)
            assert (outcome.result, outcome.status) == (REFUSED, 403)
            assert str(outcome.error).endswith(": forbidden")
            outcome = await Ntfy(servers).send(message(address, secret="a\r\nHost: b"), NOW)
            assert outcome.result == REFUSED
            assert len(server.requests) == 2

    run(check())


def test_matrix_takes_a_message_once() -> None:
    async def check() -> None:
        async with chat(matrix) as (server, servers):
            transport = Matrix(servers)
            address = transport.address(f"{server.url}/!room:example.org")
            for _ in range(2):
                assert (await transport.send(message(address, secret="syt_right"), NOW)).result == DELIVERED
            first, second = server.requests
            assert first.path == second.path
            assert (
                first.path == "/_matrix/client/v3/rooms/%21room%3Aexample.org/send/m.room.message/tidings-m1"
            )
            assert first.content == {
                "msgtype": "m.notice",
                "body": "Goals: A late goal\nIt was late.\nhttps://news.example/1",
                "format": "org.matrix.custom.html",
                "m.mentions": {},
                "formatted_body": "<p><strong>Goals: A late goal</strong></p>"
                '<ul><li><a href="https://news.example/1">A late goal</a><br>It was late.</li></ul>',
            }
            assert (
                await transport.send(message(address, secret="syt_right", id="\ud800/.."), NOW)
            ).result == DELIVERED

    run(check())


@pytest.mark.parametrize(
    ("room", "token", "result", "words", "wait"),
    [
        ("!secret:example.org", "syt_right", REFUSED, "User is not in the room", None),
        ("!absent", "syt_right", REFUSED, "Unknown room", None),
        ("!busy:example.org", "syt_right", FAILED, "Too many requests", 2.5),
        ("!room:example.org", "wrong", REFUSED, "Unknown access token", None),
        ("!room:example.org", "", REFUSED, "needs an access token", None),
    ],
)
def test_what_matrix_refuses(room: str, token: str, result: str, words: str, wait: float | None) -> None:
    async def check() -> None:
        async with chat(matrix) as (server, servers):
            outcome = await Matrix(servers).send(message(f"{server.url}/{room}", secret=token), NOW)
            assert (outcome.result, outcome.retry_after) == (result, wait)
            assert words in str(outcome.error)

    run(check())


@examples(40)
@given(messages("x"))
def test_no_text_becomes_markup_in_matrix(given: Message) -> None:
    content = matrix_form.content(given)
    root = lxml.html.fragment_fromstring(content["formatted_body"], create_parent="div")
    for element in root.iter():
        assert element.tag in {"div", "p", "strong", "ul", "li", "a", "br"}
        assert set(element.attrib) <= {"href"}
    assert all(urlsplit(link.get("href")).scheme.lower() in ("http", "https") for link in root.iter("a"))
    assert root.find("p/strong").text_content() == words.subject(given)


def test_long_messages_to_matrix_are_cut() -> None:
    content = matrix_form.content(message(items=message().items * 500, more=1))
    assert len(content["formatted_body"]) < 13_000
    shown = content["formatted_body"].count("<li>")
    assert 50 < shown < 500
    assert content["formatted_body"].endswith(f"</ul><p>and {501 - shown} more</p>")
    lxml.html.fragment_fromstring(content["formatted_body"], create_parent="div")


@pytest.mark.parametrize(
    ("answer", "result", "words", "wait"),
    [
        (None, FAILED, "did not answer within", None),
        (b"", FAILED, "closed the connection", None),
        (b"SSH-2.0\r\n\r\n", FAILED, "no HTTP", None),
        ((500, "[" * 100_000, {}), FAILED, "500", None),
        ((503, "", {"Retry-After": "7"}), FAILED, "503", 7.0),
        ((429, '{"retry_after_ms": "soon"}', {"Retry-After": "3"}), FAILED, "429", 3.0),
        ((429, '{"retry_after_ms": ' + "9" * 1000 + "}", {}), FAILED, "429", 86_400.0),
        ((429, '{"retry_after_ms": NaN}', {}), FAILED, "429", None),
        ((400, '{"error": "no\\r\\nway"}', {}), REFUSED, "no way", None),
        ((413, "[]", {}), REFUSED, "413", None),
        ((302, "", {"Location": "http://169.254.169.254/"}), FAILED, "redirects are not followed", None),
        ((410, "", {}), GONE, "gone", None),
        ((200, "\x00", {}), DELIVERED, None, None),
    ],
)
def test_every_answer_gives_an_outcome(
    answer: Answer | bytes | None, result: str, words: str | None, wait: float | None
) -> None:
    def say(request: Request) -> Answer | bytes | None:
        return answer

    async def check() -> None:
        async with chat(say) as (server, servers):
            for transport, address in ((Ntfy(servers), "topic"), (Matrix(servers), "!room:example.org")):
                outcome = await transport.send(message(f"{server.url}/{address}", secret="x"), NOW)
                assert (outcome.result, outcome.retry_after) == (result, wait), outcome
                assert (words or "") in str(outcome.error)

    run(check())


WRONG = (
    "", "ntfy.sh/topic", "ftp://ntfy.sh/topic", "https://ntfy.sh", "https://ntfy.sh/", "https://user:x@ntfy.sh/topic",
    "https://ntfy.sh/topic?priority=5", "https:///topic", "https://ntfy.sh/a/b", "https://[::1/topic", "x" * 10_000,
    "https://ntfy.sh/topic#x", "https://ntfy.sh/to\r\npic", "https://ntfy.sh/\ud800", "https://ntfy.sh\\@inside/topic",
)  # fmt: skip
INSIDE = (
    "http://127.0.0.1/",
    "http://localhost/",
    "http://[::1]/",
    "http://10.1.2.3/",
    "http://169.254.169.254/",
    "http://2130706433/",
)


@pytest.mark.parametrize("kind", [Ntfy, Matrix])
def test_wrong_addresses_and_inside_ones_are_refused(kind: type[Ntfy] | type[Matrix]) -> None:
    transport = kind(ChatServers(Receivers(AsyncGuard())))
    name = "topic" if kind is Ntfy else "!room:example.org"
    for address in (*WRONG, *(inside + name for inside in INSIDE)):
        with pytest.raises(TidingsError) as error:
            transport.address(address)
        assert len(str(error.value)) < 600
    assert transport.address(f"https://Chat.example.org/{name}") == f"https://chat.example.org/{name}"


def test_an_address_without_a_topic_is_told_so() -> None:
    transport = Ntfy(ChatServers(Receivers(AsyncGuard())))
    for address in ("https://ntfy.sh", "https://ntfy.sh/"):
        with pytest.raises(TidingsError, match="has no topic of ntfy"):
            transport.address(address)


@pytest.mark.parametrize(
    "room",
    [
        "#news:example.org",
        "room:example.org",
        "!",
        "!a b",
        "!a/b:example.org",
        "%21",
        "!ä:example.org",
        "!" + "a" * 300,
    ],
)
def test_what_is_no_room(room: str) -> None:
    transport = Matrix(ChatServers(Receivers(AsyncGuard())))
    with pytest.raises(TidingsError):
        transport.address(f"https://matrix.example.org/{room}")


def test_a_room_may_be_written_with_percent_signs() -> None:
    transport = Matrix(ChatServers(Receivers(AsyncGuard())))
    assert transport.address("https://m.example/%21a%3Aexample.org") == "https://m.example/!a:example.org"


def test_a_name_that_leads_inside_is_not_connected_to() -> None:
    async def check() -> None:
        async with chat(ntfy) as (server, _):
            port = urlsplit(server.url).port
            servers = ChatServers(Receivers(AsyncGuard(resolve=lambda host, port: ["127.0.0.1"])))
            outcome = await Ntfy(servers).send(message(f"http://rebound.example:{port}/topic"), NOW)
            assert outcome.result == FAILED
            assert "leads to this machine" in str(outcome.error)
            assert not server.requests

    run(check())
