"""100,000 saved searches in the site, and an editor publishes: each visitor who asked for the page gets it, nobody else, and
publishing takes hardly longer than without the app. `make bench` runs it; the figures are printed."""

from __future__ import annotations

import os
import random
import re
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.wagtail.conftest import Mailbox, free_port, text_of
from tests.integrations.wagtail.service_process import running_service
from tidings import Client
from tidings.client import ServiceError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ALERTS = int(os.environ.get("TIDINGS_ALERTS", "100000"))
OF_ONE = 200  # alerts of a visitor
WORDS, TAGS, SECTIONS = 600, 200, 100
SLOWER = 0.050  # seconds, at most


@pytest.fixture
def connected(prepared: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The site of this process at a real port, and a service in another process. The outbox is sent as in a site."""
    from django.conf import settings
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application
    from django.test import override_settings
    from wagtail_tidings.outbox import Sender

    wake = Sender.wake
    request.getfixturevalue("site")
    request.getfixturevalue("monkeypatch").setattr(Sender, "wake", wake)

    class Quiet(WSGIRequestHandler):
        def log_message(self, *given: object) -> None: ...

    port = free_port()
    server = ThreadedWSGIServer(("127.0.0.1", port), Quiet, ipv6=False)
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with running_service(tmp_path / "data") as (url, token):
        address = f"http://127.0.0.1:{port}"
        given = {"TIDINGS": {"URL": url, "TOKEN": token}, "WAGTAILADMIN_BASE_URL": address}
        with override_settings(**given):
            yield settings.TIDINGS
    server.shutdown()
    thread.join()
    server.server_close()


def fill_site(pages: Any) -> tuple[list[Any], list[Any]]:
    """Sections to publish in, and tags."""
    from newsroom.models import SectionPage
    from taggit.models import Tag
    from wagtail_tidings.models import OutboxEntry

    policy = pages("Policy")
    sections = [policy.add_child(instance=SectionPage(title=f"Section {n}")) for n in range(SECTIONS)]
    tags = [Tag.objects.create(name=f"Tag {n}") for n in range(TAGS)]
    OutboxEntry.objects.all().delete()
    return sections, tags


def wishes(seed: int, sections: list[Any], tags: list[Any]) -> list[list[tuple[str, str, str]]]:
    """For each visitor kind, value and title of what is asked for, each once."""
    chance, found = random.Random(seed), []
    for _ in range(ALERTS // OF_ONE):
        own: dict[str, tuple[str, str, str]] = {}
        while len(own) < OF_ONE:
            kind = chance.choices(("search", "tag", "section"), (3, 1, 1))[0]
            if kind == "search":
                word = f"word{chance.randrange(WORDS):03}"
                wish = (kind, word, f"Pages with {word}")
            elif kind == "tag":
                tag = chance.choice(tags)
                wish = (kind, tag.slug, f"Pages tagged {tag.name}")
            else:
                section = chance.choice(sections)
                wish = (kind, str(section.pk), f"Everything in {section.title}")
            own[wish[2]] = wish
        found.append(list(own.values()))
    return found


def subscribe_all(asked: list[list[tuple[str, str, str]]], tidings: dict[str, str]) -> None:
    """Makes visitors, alerts, subscriptions and channels, as the app does for each, but many at a time."""
    from django.utils import timezone
    from wagtail_tidings.conditions import text_of
    from wagtail_tidings.connection import absolute
    from wagtail_tidings.models import Alert, Visitor

    visitors = [Visitor(email=f"visitor{n}@example.net") for n in range(len(asked))]
    alerts = []
    deliver = absolute("deliver")
    site_client = Client(tidings["URL"], tidings["TOKEN"])
    for visitor, own in zip(visitors, asked, strict=True):
        client = site_client.for_user(visitor.key)
        texts = [{"text": text_of(kind, value, False), "title": title} for kind, value, title in own]
        made = subscribe_many(client, texts)
        assert not [item for item in made if item.error]
        ids = [str(item.id) for item in made]
        channel = client.add_channel("webhook", deliver, subscriptions=ids)
        visitor.channel, visitor.secret = channel.id, channel.secret or ""
        alerts.append((visitor, own, texts, ids))
    site_client.close()
    Visitor.objects.bulk_create(visitors)
    rows = [
        Alert(
            visitor=v,
            kind=w[0],
            value=w[1],
            title=w[2],
            text=t["text"],
            subscription=i,
            confirmed_at=timezone.now(),
        )
        for v, own, texts, ids in alerts
        for w, t, i in zip(own, texts, ids, strict=True)
    ]
    Alert.objects.bulk_create(rows, batch_size=1_000)


def subscribe_many(client: Client, texts: list[dict[str, str]]) -> list[Any]:
    """Tries again while the service is busy with its index."""
    while True:
        try:
            return client.subscribe_many(texts)
        except ServiceError as error:
            if error.status != 503:
                raise
            time.sleep(1)


def mailed(mailbox: Mailbox) -> dict[str, list[str]]:
    """The titles of the alerts in the mails to each address."""
    found: dict[str, list[str]] = defaultdict(list)
    for mail in list(mailbox.mails):
        for line in re.findall(r"^Your alerts?: (.*)$", text_of(mail), re.MULTILINE):
            found[str(mail["To"])] += line.split("; ")
    return found


def publish_time(section: Any, title: str, body: str, *tags: str) -> tuple[Any, float]:
    """Publishes an article; the seconds that `publish` takes."""
    from newsroom.models import ArticlePage

    page = section.add_child(instance=ArticlePage(title=title, body=f"<p>{body}</p>", live=False))
    page.tags.add(*tags)
    revision = page.save_revision()
    began = time.perf_counter()
    revision.publish()
    return page, time.perf_counter() - began


def times(count: int, section: Any, name: str) -> list[float]:
    return [
        publish_time(section, f"{name} {n}", "nothing that is asked for", "Plain")[1] for n in range(count)
    ]


def test_a_page_reaches_all_who_asked_for_it(connected: dict[str, str], site: Mailbox, pages: Any) -> None:
    from wagtail.models import PageViewRestriction
    from wagtail_tidings import outbox, signals
    from wagtail_tidings.actions import push_taxonomy
    from wagtail_tidings.models import MailedMessage

    sections, tags = fill_site(pages)
    for section in sections:  # each has a page already, so that a new one changes no taxonomy
        section.add_child(instance=type(section)(title="Old"))
    push_taxonomy()
    asked = wishes(1, sections, tags)
    began = time.perf_counter()
    subscribe_all(asked, connected)
    print(
        f"\n{sum(map(len, asked)):,} alerts of {len(asked):,} visitors made in {time.perf_counter() - began:.0f} s"
    )

    body = "A page about word007 and word123, which many wait for."
    titles = {
        "Pages with word007",
        "Pages with word123",
        f"Pages tagged {tags[5].name}",
        "Everything in Section 9",
    }
    expected = {
        f"visitor{n}@example.net": sorted(titles & {title for _, _, title in own})
        for n, own in enumerate(asked)
        if titles & {title for _, _, title in own}
    }
    section = pages("Section 9")
    began = time.perf_counter()
    _, seconds = publish_time(section, "The page", body, tags[5].name)
    while outbox.waiting():
        time.sleep(0.02)
    sent = time.perf_counter() - began
    while len(site.mails) < len(expected) and time.perf_counter() - began < 600:
        time.sleep(0.1)
    took = time.perf_counter() - began
    print(f"the service has the page {sent:.1f} s after it was published")
    print(
        f"{len(expected):,} visitors, {sum(map(len, expected.values())):,} alerts: all mails after {took:.1f} s"
    )
    assert {address: sorted(found) for address, found in mailed(site).items()} == expected
    assert len(site.mails) == len(expected)

    # A private page matches the same alerts, and nobody gets it.
    PageViewRestriction.objects.create(page=section, restriction_type="login")
    publish_time(section, "The private page", body, tags[5].name)
    began = time.perf_counter()
    while MailedMessage.objects.filter(mailed_at__isnull=False).count() < 2 * len(expected):
        assert time.perf_counter() - began < 600, "some messages did not come"
        time.sleep(0.2)
    assert len(site.mails) == len(expected)

    # In turns, because the machine may be busy with other things.
    signals.connect()
    with_app, without = [], []
    for turn in range(10):
        with_app += times(3, pages("Section 8"), f"with {turn}")
        signals.disconnect()
        without += times(3, pages("Section 8"), f"without {turn}")
        signals.connect()
    more = statistics.median(with_app) - statistics.median(without)
    print(
        f"publish() of the page: {seconds * 1e3:.0f} ms; at the median {statistics.median(with_app) * 1e3:.1f} ms with the"
        f" app, {statistics.median(without) * 1e3:.1f} ms without: {more * 1e3:+.1f} ms"
    )
    assert more < SLOWER
