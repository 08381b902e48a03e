"""The example site in this process: real tables, a real mail server, and a real service where a test asks for one."""

from __future__ import annotations

import io
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wagtail", reason="Wagtail is not installed")

FOLDER = Path(__file__).parents[3] / "integrations" / "wagtail"
ADDRESS = "http://site.example:8000"


@dataclass
class Mailbox:
    """What a real SMTP server received. `refusing` makes it refuse every mail."""

    port: int
    refusing: bool = False
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refusing:
            return "451 not now"
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if mail["To"] == address]


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def header(mail: EmailMessage, name: str) -> str:
    """A header without the blank that a folded one begins with."""
    return str(mail[name]).strip()


def leave_link(mail: EmailMessage) -> str:
    return header(mail, "List-Unsubscribe").strip("<>")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def smtp() -> Iterator[Mailbox]:
    from aiosmtpd.controller import Controller

    mailbox = Mailbox(free_port())
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port)
    controller.start()
    yield mailbox
    controller.stop()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, smtp: Mailbox) -> Path:
    """Django with a database of the example's pages, and the path of a copy of it."""
    folder = tmp_path_factory.mktemp("newsroom")
    for path in (FOLDER, FOLDER / "example"):
        sys.path.insert(0, str(path))
    os.environ.update(
        DJANGO_SETTINGS_MODULE="tests.integrations.wagtail.quick_settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="1",  # browsers of other tests leave an event loop in this thread
        NEWSROOM_DATABASE=str(folder / "site.db"),
        NEWSROOM_SMTP=f"127.0.0.1:{smtp.port}",
        NEWSROOM_URL=ADDRESS,
        TIDINGS_URL="http://127.0.0.1:9",  # nobody is there
        TIDINGS_TOKEN="tid_of_nobody",
    )
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from wagtail_tidings.outbox import Sender

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sender, "wake", lambda self: None)
        call_command("migrate", run_syncdb=True, verbosity=0, skip_checks=True)
        call_command("newsroom", stdout=io.StringIO())
    from wagtail_tidings.models import OutboxEntry

    OutboxEntry.objects.all().delete()
    connection.close()
    return shutil.copy(folder / "site.db", folder / "copy.db")


@pytest.fixture
def site(prepared: Path, smtp: Mailbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """The site as it was in the beginning, and its empty mailbox. Nothing is sent to the service but by a test itself."""
    from django.core.cache import cache
    from django.db import connection
    from wagtail_tidings.outbox import Sender

    monkeypatch.setattr(Sender, "wake", lambda self: None)

    connection.close()
    place = prepared.with_name("site.db")
    for beside in place.parent.glob("site.db-*"):
        beside.unlink()
    shutil.copy(prepared, place)
    cache.clear()
    smtp.mails.clear()
    smtp.refusing = False
    yield smtp
    connection.close()


@pytest.fixture
def pages(site: Mailbox) -> Any:
    """Pages of the site by title."""
    from wagtail.models import Page

    return lambda title: Page.objects.get(title=title).specific


@pytest.fixture
def article(pages: Any) -> Any:
    """Publishes an article."""
    from newsroom.models import ArticlePage

    def make(section: str, title: str, body: str, *tags: str) -> Any:
        page = pages(section).add_child(instance=ArticlePage(title=title, body=f"<p>{body}</p>"))
        page.tags.add(*tags)
        page.save_revision().publish()
        page.refresh_from_db()
        return page

    return make
