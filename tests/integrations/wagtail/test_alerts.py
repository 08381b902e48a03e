"""Asking, confirming, the profile and the report, while the service is away: nothing is lost, and nobody sees an error page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.integrations.wagtail.conftest import Mailbox, header, text_of


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client tries again after a while what does not answer; nobody is there in these tests."""
    monkeypatch.setattr("tidings.client.calls.pause", lambda attempt, seconds: 0.0)


@pytest.fixture
def browser(site: Mailbox) -> Any:
    from django.test import Client

    return Client()


def ask(browser: Any, **given: str) -> Any:
    return browser.post(
        "/tidings/ask/", {"kind": "search", "value": "solar power", "back": "/search/?q=x", **given}
    )


def link_in(mail: Any) -> str:
    return re.search(r"http://site\.example:8000(/tidings/\S+)", text_of(mail))[1]


def test_an_address_confirms_by_mail(site: Mailbox, browser: Any) -> None:
    from wagtail_tidings import conditions
    from wagtail_tidings.models import Alert, OutboxEntry

    answer = ask(browser, email="Ann@Example.ORG")
    assert "Please look into your mail" in answer.content.decode()
    (mail,) = site.mails
    assert (mail["To"], header(mail, "Subject")) == (
        "Ann@example.org",
        "The Example: Please confirm: Pages with “solar power”",
    )
    assert OutboxEntry.objects.filter(action="activate").count() == 0
    link = link_in(mail)
    assert "Yes, tell me" in browser.get(link).content.decode()
    assert Alert.objects.get().confirmed_at is None  # a look changes nothing
    assert "We will tell you" in browser.post(link).content.decode()
    alert = Alert.objects.get()
    assert alert.confirmed_at is not None
    assert alert.text == conditions.text_of("search", "solar power", only_new=False)
    entry = OutboxEntry.objects.get(action="activate")  # the service is away
    assert (entry.content, entry.error, entry.claimed_until) == ({"alert": alert.pk}, "", None)
    assert "It becomes active within some minutes" in browser.post(link).content.decode()
    assert OutboxEntry.objects.filter(action="activate").count() == 1


def test_a_confirmed_address_confirms_the_next_alert_too(site: Mailbox, browser: Any) -> None:
    ask(browser, email="ann@example.org")
    browser.post(link_in(site.mails[0]))
    ask(browser, email="ann@example.org", value="opera")
    assert len(site.mails) == 2
    assert "opera" in text_of(site.mails[1])


def test_an_address_is_not_flooded(site: Mailbox, browser: Any) -> None:
    for number in range(8):
        assert ask(browser, email="ann@example.org", value=f"word{number}").status_code == 200
    assert len(site.mails) == 5


def test_the_same_alert_is_confirmed_by_one_mail(site: Mailbox, browser: Any) -> None:
    answers = [ask(browser, email="ann@example.org").content for _ in range(3)]
    browser.post(link_in(site.mails[0]))
    answers += [ask(browser, email="ann@example.org").content for _ in range(2)]
    assert len(site.mails) == 1
    assert len(set(answers)) == 1  # whoever asks does not learn what others asked for


def test_an_account_needs_no_confirmation(site: Mailbox, browser: Any) -> None:
    from wagtail_tidings import conditions
    from wagtail_tidings.models import Alert

    assert browser.login(username="reader", password="example")
    assert "We will tell you" in ask(browser).content.decode()
    assert "We will tell you" in ask(browser).content.decode()
    alert = Alert.objects.get()  # the same twice is one
    assert alert.visitor.address == "reader@example.org"
    assert site.mails == []
    page = browser.get("/tidings/").content.decode()
    assert "Pages with “solar power”" in page
    assert "cannot be shown at the moment" in page
    answer = browser.post("/tidings/", {"action": "renew", "alert": alert.pk}, follow=True)
    assert "not active yet" in answer.content.decode()
    browser.post("/tidings/", {"action": "schedule", "schedule": "weekly"})
    alert.visitor.refresh_from_db()
    assert alert.visitor.schedule["day"] == "monday"
    browser.post("/tidings/", {"action": "change", "alert": alert.pk, "value": "wind", "only_new": "1"})
    alert.refresh_from_db()
    assert alert.text == conditions.text_of("search", "wind", only_new=True)
    browser.post("/tidings/", {"action": "cancel", "alert": alert.pk})
    assert not Alert.objects.exists()


def test_a_profile_is_ones_own(site: Mailbox, browser: Any) -> None:
    from wagtail_tidings import links
    from wagtail_tidings.models import Alert, Visitor

    ask(browser, email="ann@example.org")
    browser.post(link_in(site.mails[0]))
    assert browser.get("/tidings/").status_code == 302  # to the login
    mine = links.profile_link(Visitor.objects.get()).removeprefix("http://site.example:8000")
    assert "ann@example.org" in browser.get(mine).content.decode()
    assert browser.get(mine[:-3] + "x/").status_code == 404
    alert = Alert.objects.get()
    assert browser.login(username="reader", password="example")
    ask(browser, value="opera")
    assert browser.post("/tidings/", {"action": "cancel", "alert": alert.pk}).status_code == 404
    assert Alert.objects.filter(pk=alert.pk).exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"email": "ann"}, "“ann” is no mail address"),
        ({"email": ""}, "is no mail address"),
        ({"value": "  "}, "Give at least a word"),
        ({"value": "&-"}, "Give at least a word"),
        ({"value": "x" * 501}, "at most 500 characters"),
        ({"kind": "tag", "value": "nothing"}, "There is no tag “nothing”"),
        ({"kind": "section", "value": "99999"}, "There is no such section"),
        ({"kind": "section", "value": "policy"}, "There is no such section"),
        ({"kind": "text", "value": "WHERE a = 1"}, "about words, a tag or a section"),
        ({"kind": "spell", "value": "x"}, "about words, a tag or a section"),
    ],
)
def test_a_mistake_is_a_sentence(site: Mailbox, browser: Any, given: dict[str, str], sentence: str) -> None:
    answer = ask(browser, **{"email": "ann@example.org", **given})
    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert 'href="/search/?q=x"' in answer.content.decode()
    assert site.mails == []


def test_one_does_not_learn_of_a_private_section(site: Mailbox, browser: Any, pages: Any) -> None:
    from wagtail.models import PageViewRestriction

    staff = pages("Staff")
    PageViewRestriction.objects.create(page=staff, restriction_type="login")
    assert ask(browser, email="a@example.org", kind="section", value=str(staff.pk)).status_code == 400
    assert browser.login(username="reader", password="example")
    assert ask(browser, kind="section", value=str(staff.pk)).status_code == 200


def test_the_way_back_stays_on_the_site(site: Mailbox, browser: Any) -> None:
    answer = ask(browser, email="ann@example.org", back="https://evil.example/")
    assert "evil.example" not in answer.content.decode()


def test_forms_are_on_search_tags_and_sections(site: Mailbox, browser: Any, pages: Any) -> None:
    found = browser.get('/search/?q=solar+"power').content.decode()
    assert 'name="value" value="solar &quot;power"' in found
    assert 'name="email"' in found
    assert 'value="climate"' in browser.get("/tag/climate/").content.decode()
    assert browser.login(username="reader", password="example")
    section = browser.get("/policy/").content.decode()
    assert f'name="value" value="{pages("Policy").pk}"' in section
    assert 'name="email"' not in section


def test_editors_see_what_is_asked_for(site: Mailbox, browser: Any) -> None:
    for name, words in (("ann", "solar power"), ("ben", "solar power"), ("ben", "opera"), ("cid", "tram")):
        ask(browser, email=f"{name}@example.org", value=words)
        if name != "cid":
            browser.post(link_in(site.mails[-1]))
    assert browser.login(username="editor", password="example")
    report = browser.get("/admin/reports/alerts/").content.decode()
    assert "<strong>3</strong> alerts of <strong>2</strong> visitors" in report
    assert report.index("Pages with “solar power”") < report.index("Pages with “opera”")
    assert "tram" not in report  # not confirmed
    assert "ann@example.org" not in report
    assert "/admin/reports/alerts/" in browser.get("/admin/").content.decode()
    filtered = browser.get("/admin/reports/alerts/results/?title=oper").content.decode()
    assert ("opera" in filtered, "solar" in filtered) == (True, False)
    sheet = b"".join(browser.get("/admin/reports/alerts/?export=csv").streaming_content).decode()
    assert sheet.splitlines()[1].startswith("Pages with “solar power”,search,2,")


def test_the_report_is_for_editors(site: Mailbox, browser: Any) -> None:
    assert browser.login(username="reader", password="example")
    assert browser.get("/admin/reports/alerts/").status_code == 302


def test_an_account_that_is_deleted_is_forgotten(site: Mailbox, browser: Any) -> None:
    from django.contrib.auth import get_user_model
    from wagtail_tidings.models import Alert, OutboxEntry, Visitor

    assert browser.login(username="reader", password="example")
    ask(browser)
    Alert.objects.update(subscription="s1")
    Visitor.objects.update(channel="c1")
    key = Visitor.objects.get().key
    get_user_model().objects.get(username="reader").delete()
    entries = OutboxEntry.objects.exclude(action="activate").order_by("action")
    assert [(entry.action, entry.content) for entry in entries] == [
        ("cancel", {"user": key, "subscription": "s1"}),
        ("end channel", {"user": key, "channel": "c1"}),
    ]


def test_the_migrations_are_complete(site: Mailbox) -> None:
    from django.core.management import call_command
    from django.test import override_settings

    with override_settings(MIGRATION_MODULES={}):
        call_command("makemigrations", "wagtail_tidings", "newsroom", check=True, dry_run=True, verbosity=0)


def test_the_command_says_that_the_service_is_away(site: Mailbox, article: Any) -> None:
    from django.core.management import CommandError, call_command

    article("Energy", "Dam", "Water.")
    with pytest.raises(CommandError, match=r"Tidings is not reached: .*; 2 calls wait"):
        call_command("tidings_sync")
