"""Mail from one end to the other: a service, a mail server, and somebody who confirms, reads and unsubscribes by the links in mails."""

from __future__ import annotations

import email
import email.policy
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin

import httpx
import lxml.html
import pytest
from aiosmtpd.controller import Controller

from tests.service.conftest import Running, Served
from tests.service.delivery.channels.transports.mail_servers import settings
from tidings.service.delivery.channels.message import Unavailable
from tidings.service.delivery.channels.transports import Transports
from tidings.service.settings import Settings


class Postbox:
    """The mails that came, as aiosmtpd hands them over."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.recipients += envelope.rcpt_tos
        self.mails.append(
            cast(EmailMessage, email.message_from_bytes(envelope.content, policy=email.policy.default))
        )
        return "250 taken"

    def wait(self, count: int, seconds: float = 10.0) -> EmailMessage:
        """The last of so many mails."""
        deadline = time.monotonic() + seconds
        while len(self.mails) < count:
            assert time.monotonic() < deadline, f"{len(self.mails)} mails of {count}"
            time.sleep(0.02)
        assert len(self.mails) == count
        return self.mails[-1]


@contextmanager
def postbox() -> Iterator[Postbox]:
    box = Postbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        box.port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


def words_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(cast(EmailMessage, part).get_content())


def state(served: Served, id: str) -> str:
    return str(served.http.get(f"/api/channels/{id}").json()["state"])


def submit(holder: httpx.Client, url: str) -> httpx.Response:
    """Opens a page, and presses the button of its form."""
    page = holder.get(url)
    assert page.status_code == 200, page.text
    form = next(form for form in lxml.html.fromstring(page.text, base_url=url).forms if form.method == "POST")
    return holder.post(urljoin(url, form.action or url), data=dict(form.form_values()), follow_redirects=True)


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Postbox]]:
    with postbox() as box, Running(data=tmp_path_factory.mktemp("mail"), mail=settings(box.port)) as served:
        yield served, box


def test_from_confirmation_to_unsubscription(near: tuple[Served, Postbox]) -> None:
    served, box = near
    before = len(box.mails)
    goals = served.subscribe("WHERE topic = 'goal'", title="Goals")["id"]
    cheap = served.subscribe("WHERE price < 10", title="Cheap")["id"]
    new = {
        "kind": "email",
        "address": "ann@Example.org",
        "title": "Morning",
        "subscriptions": [goals, cheap],
    }
    answer = served.http.post("/api/channels", json=new)
    assert answer.status_code == 201, answer.text
    channel = answer.json()
    assert (channel["state"], channel["address"]) == ("unconfirmed", "ann@example.org")

    asked = box.wait(before + 1)
    assert not any(word in words_of(asked) for word in ("Morning", "Goals"))
    (confirm,) = re.findall(r"http://\S+/channels/confirm/\S+", words_of(asked))
    served.publish({"topic": "goal", "title": "Too early"})
    served.notifications(goals, 1)
    with httpx.Client() as holder:  # somebody without a login
        assert holder.get(confirm).status_code == 200
        assert state(served, channel["id"]) == "unconfirmed"  # which programs that follow links do not change
        assert submit(holder, confirm).status_code == 200
    assert state(served, channel["id"]) == "active"

    served.publish(
        {
            "topic": "goal",
            "title": "A late goal <b>",
            "price": 5,
            "link": "https://news.example/1?a=b&c=d",
        }
    )
    found = box.wait(before + 2)
    for kind in ("plain", "html"):
        text = words_of(found, kind)
        assert {"Goals", "Cheap"} <= set(re.findall(r"\w+", text))
        assert "Too early" not in text
    assert "A late goal &lt;b&gt;" in words_of(found, "html")
    assert "https://news.example/1?a=b&c=d" in words_of(found)
    assert set(box.recipients) == {"ann@example.org"}

    unsubscribe = str(found["List-Unsubscribe"]).strip("<>")
    with httpx.Client() as reader:  # of mail, which does it for its user (RFC 8058)
        form = {"List-Unsubscribe": "One-Click"}
        assert reader.get(unsubscribe).status_code == 200
        assert state(served, channel["id"]) == "active"
        assert reader.post(unsubscribe, data=form).status_code == 200
    assert state(served, channel["id"]) == "ended"
    served.publish({"topic": "goal", "title": "Too late"})
    served.notifications(goals, 3)
    time.sleep(0.3)
    assert len(box.mails) == before + 2


def test_an_admin_who_knows_the_address_sends_a_test(near: tuple[Served, Postbox]) -> None:
    served, box = near
    before = len(box.mails)
    new = {"kind": "email", "address": "bob@example.org", "confirmed": True}
    channel = served.http.post("/api/channels", json=new).json()
    assert channel["state"] == "active"
    said = served.http.post(f"/api/channels/{channel['id']}/test").json()
    assert (said["delivered"], said["status"]) == (True, 250)
    assert str(box.wait(before + 1)["Subject"]) == "Test message from Tidings"


@pytest.mark.parametrize(
    ("kind", "address", "sentence"),
    [
        ("email", "ann", "give one like ann@example.org"),
        ("email", "Ann <ann@example.org>", "give one like ann@example.org"),
        ("email", "a@example.org, b@example.org", "give one like ann@example.org"),
        ("ntfy", "http://127.0.0.1/topic", "makes no requests"),
        ("matrix", "http://10.0.0.1/!a:b.c", "makes no requests"),
        ("apprise", "json://127.0.0.1", "others are not accepted"),
    ],
)
def test_a_wrong_address_is_a_sentence(
    near: tuple[Served, Postbox], kind: str, address: str, sentence: str
) -> None:
    answer = near[0].http.post("/api/channels", json={"kind": kind, "address": address})
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]


def test_without_a_mail_server_there_is_no_mail(tmp_path: Path) -> None:
    transports = Transports(Settings(tmp_path))
    assert "email" not in transports.kinds
    with pytest.raises(Unavailable, match="start it with tidings serve --smtp"):
        transports.of("email")
