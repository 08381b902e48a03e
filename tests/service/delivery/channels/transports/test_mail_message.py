"""Mails: what the standard library's parser and lxml read in them is what was meant, whatever the texts of events are."""

from __future__ import annotations

import email
import email.policy
from dataclasses import replace
from email.message import EmailMessage
from typing import cast
from urllib.parse import urlsplit

import lxml.html
import pytest
from hypothesis import given

from tests.examples import examples
from tests.service.delivery.channels.transports.hostile_messages import NASTY, message, messages
from tidings.service.delivery.channels.message import Message, MessageKind
from tidings.service.delivery.channels.transports import message_words as words
from tidings.service.delivery.channels.transports.mail_html import as_html
from tidings.service.delivery.channels.transports.mail_message import mail
from tidings.service.mail_addresses import Sender

SENDER = Sender("Tidings", "alerts@example.org")
NOW = 1.79e9
ALWAYS = {
    "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
}  # fmt: skip
UNSUBSCRIPTION = {"List-Unsubscribe", "List-Unsubscribe-Post"}
ELEMENTS = {"html", "head", "meta", "title", "style", "body", "div", "h2", "h3", "p", "a"}
ATTRIBUTES = {"lang", "charset", "name", "content", "class", "style", "dir", "href"}


def parsed(message: Message, sender: Sender = SENDER) -> EmailMessage:
    return cast(
        EmailMessage, email.message_from_bytes(mail(message, sender, NOW), policy=email.policy.default)
    )


def part(found: EmailMessage, kind: str) -> str:
    body = found.get_body((kind,))
    assert body is not None
    return cast(str, cast(EmailMessage, body).get_content()).replace("\r\n", "\n")


@examples(60)
@given(messages("ann@example.org"))
def test_no_text_becomes_a_header_or_a_part(given: Message) -> None:
    data = mail(given, SENDER, NOW)
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert b"\r" not in data.replace(b"\r\n", b"")
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert b"\x00" not in data
    data.decode("ascii")

    found = parsed(given)
    names = ALWAYS | ({"List-ID"} if given.kind is not MessageKind.CONFIRMATION else set())
    assert names <= set(found.keys()) <= names | UNSUBSCRIPTION
    assert len(found.keys()) == len(set(found.keys()))
    assert (UNSUBSCRIPTION & set(found.keys())) in (set(), UNSUBSCRIPTION)
    assert not found.defects
    assert found["To"] == "ann@example.org"
    assert found["From"] == "Tidings <alerts@example.org>"
    assert str(found["Subject"]) == words.subject(given)
    assert [cast(EmailMessage, inner).get_content_type() for inner in found.iter_parts()] == [
        "text/plain",
        "text/html",
    ]
    assert all(not cast(EmailMessage, inner).defects for inner in found.walk())
    assert part(found, "plain").rstrip("\n") == words.as_text(given).rstrip("\n")
    assert part(found, "html").rstrip("\n") == as_html(given).rstrip("\n")


@examples(60)
@given(messages("ann@example.org"))
def test_no_text_becomes_markup(given: Message) -> None:
    root = lxml.html.document_fromstring(
        as_html(given).encode(), parser=lxml.html.HTMLParser(encoding="utf-8")
    )
    for element in root.iter():
        assert element.tag in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        assert "url(" not in element.get("style", "")
    for link in root.iter("a"):
        assert urlsplit(link.get("href")).scheme.lower() in ("http", "https")
    assert [element.text for element in root.iter("style")] == [
        element.text for element in lxml.html.document_fromstring(as_html(message())).iter("style")
    ]
    shown = [element.text_content() for element in root.iter("h3")]
    if given.kind is MessageKind.NOTIFICATIONS:
        expected = [words.item_title(item) for group in words.groups(given) for item in group.items]
        assert shown == expected
    else:
        assert shown == []


@examples(30)
@given(messages("ann@example.org"))
def test_texts_are_lines_without_tricks(given: Message) -> None:
    for text in (words.subject(given), *(words.line(item.summary) for item in given.items)):
        assert len(text.splitlines()) <= 1
        assert not set(text) & set(
            "\r\n\x00\x7f\x85\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        )
        assert len(text) < 400
        text.encode()


@pytest.mark.parametrize("text", NASTY)
def test_nasty_names_of_senders_are_encoded(text: str) -> None:
    name = words.line(text)
    found = parsed(message(), Sender(name, "alerts@example.org"))
    (address,) = found["From"].addresses
    assert address.addr_spec == "alerts@example.org"
    # This parser puts a blank between encoded words of a name, where the standard has none.
    assert address.display_name.replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTTPS://Example.org/A", "https://Example.org/A"),
        ("http://bücher.example/ä?q=ü", "http://xn--bcher-kva.example/%C3%A4?q=%C3%BC"),
        ("https://[::1]:8750/x", "https://[::1]:8750/x"),
        ("https://user:password@example.org/", None),
        ("https://example.org/a b", None),
        ("javascript://example.org/%0aalert(1)", None),
        ("https:example.org", None),
        ("", None),
        (None, None),
    ],
)
def test_links(given: str | None, expected: str | None) -> None:
    assert words.link(given) == expected


def test_a_repetition_is_recognisable() -> None:
    first, second = parsed(message()), email.message_from_bytes(mail(message(), SENDER, NOW + 5))
    assert first["Message-ID"] == second["Message-ID"] == "<m1@example.org>"
    assert parsed(message(id="m2"))["Message-ID"] != first["Message-ID"]
    strange = parsed(message(id="m 2>\r\n"))["Message-ID"]
    assert strange.endswith("@example.org>")
    assert strange == parsed(message(id="m 2>\r\n"))["Message-ID"]


def test_a_mail_can_be_unsubscribed_from_by_one_click() -> None:
    found = parsed(message())
    assert found["List-Unsubscribe"] == "<https://tidings.example/channels/unsubscribe/s>"
    assert found["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert found["List-ID"] == "<c1.channels.example.org>"
    assert found["Auto-Submitted"] == "auto-generated"
    assert "Precedence" not in found
    for kind in ("plain", "html"):
        assert "https://tidings.example/channels/unsubscribe/s" in part(found, kind)
    assert not UNSUBSCRIPTION & set(parsed(message(unsubscribe=None)).keys())


def test_a_confirmation_has_nothing_of_the_one_who_asked() -> None:
    asked = message(
        kind=MessageKind.CONFIRMATION, title="BUY PILLS", items=message(items=message().items).items
    )
    data = mail(asked, SENDER, NOW)
    found = parsed(asked)
    assert found["Subject"] == "Confirm messages from tidings.example"
    for kind in ("plain", "html"):
        text = part(found, kind)
        assert "https://tidings.example/channels/confirm/s" in text
        assert not any(word in text for word in ("PILLS", "goal", "Goals", "news.example", "unsubscribe"))
    assert b"PILLS" not in data
    assert parsed(replace(asked, title="other")).as_bytes() == found.as_bytes()


def test_a_digest_is_grouped() -> None:
    item = message().items[0]
    others = tuple(
        item._replace(
            id=str(number),
            subscription=f"s{number % 2}",
            subscription_title=f"Title {number % 2}",
            title=f"Item {number}",
        )
        for number in range(4)
    )
    given = message(items=others, more=7)
    assert words.subject(given) == "Morning: 11 notifications"
    lines = words.as_text(given).splitlines()
    assert [text for text in lines if text.startswith(("*", "Title", "and"))] == [
        "Title 0", "* Item 0", "* Item 2", "Title 1", "* Item 1", "* Item 3",
        "and 7 more: https://tidings.example/channels/c1",
    ]  # fmt: skip
    assert "  Mon 21 Sep 2026, 16:13 CEST" in lines
    assert words.subject(message(items=others[:1])) == "Title 0: Item 0"
    assert words.subject(message(items=others[::2])) == "Title 0: 2 notifications"
    assert "and 7 more" in as_html(given)


@examples(40)
@given(messages("x"))
def test_lists_for_chats_have_a_bounded_size(given: Message) -> None:
    text = words.as_list(given, 500)
    assert len(text.encode()) <= 500
    many = replace(given, kind=MessageKind.NOTIFICATIONS, items=message().items * 100, more=3)
    lines = words.as_list(many, 500).splitlines()
    shown = sum(text.startswith("•") for text in lines)
    assert lines[-1] == f"and {103 - shown} more"
    assert shown > 5
