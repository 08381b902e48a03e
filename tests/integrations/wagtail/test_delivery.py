"""Messages of the service at the site's webhook: who may see what is decided when the mail is about to leave, and it leaves once."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.integrations.wagtail.conftest import Mailbox, header, leave_link, text_of

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes long").decode()
Post = Callable[..., Any]


@pytest.fixture
def ann(site: Mailbox) -> Any:
    """A visitor without an account, with one alert."""
    return visitor(email="ann@example.org")


@pytest.fixture
def reader(site: Mailbox) -> Any:
    """The example's reader, with one alert."""
    from django.contrib.auth import get_user_model

    return visitor(user=get_user_model().objects.get(username="reader"))


def visitor(**who: Any) -> Any:
    from django.utils import timezone
    from wagtail_tidings.models import Alert, Visitor

    number = Visitor.objects.count() + 1
    found = Visitor.objects.create(channel=f"c{number}", secret=SECRET, **who)
    Alert.objects.create(
        visitor=found,
        kind="search",
        value="water",
        title="Pages with “water”",
        text="WHERE body CONTAINS 'water'",
        subscription=f"s{number}",
        confirmed_at=timezone.now(),
    )
    return found


def post(visitor: Any, *pages: Any, id: str = "m1", secret: str = SECRET, age: float = 0, **more: Any) -> Any:
    """Posts a message about pages as the service does; the answer's status."""
    from django.test import Client

    subscription = visitor.alerts.first().subscription if visitor.alerts.exists() else "s9"
    items = [
        {
            "id": f"n{number}",
            "subscription": subscription,
            "event": f"page-{page.pk}-ab12",
            "title": "?",
            "link": None,
        }
        for number, page in enumerate(pages)
    ]
    data = {"id": id, "channel": visitor.channel, "items": items, "more": 0, **more}
    body = json.dumps({"type": "tidings.message", "data": data})
    moment = datetime.now(UTC) - timedelta(seconds=age)
    headers = {
        "webhook-id": id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(id, moment, body),
    }
    answer = Client().post("/tidings/deliver/", body, content_type="application/json", headers=headers)
    return answer.status_code


def test_a_page_is_mailed_with_a_link_that_ends_it(site: Mailbox, ann: Any, article: Any) -> None:
    page = article("Energy", "A dam <for> all", "Water & power for the valley.")
    assert post(ann, page) == 200
    (mail,) = site.mails
    assert mail["To"] == "ann@example.org"
    assert header(mail, "Subject") == "The Example: A dam <for> all"
    text, html = text_of(mail), text_of(mail, "html")
    assert "A dam <for> all\nhttp://site.example:8000/policy/energy/a-dam-for-all/\n" in text
    assert "Water & power for the valley." in text
    assert "Your alert: Pages with “water”" in text
    assert "A dam &lt;for&gt; all</a>" in html
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    leave = leave_link(mail)
    assert leave in text
    assert leave in html.replace("&amp;", "&")


def test_one_click_ends_everything(site: Mailbox, ann: Any, article: Any) -> None:
    from django.test import Client
    from wagtail_tidings.models import Alert, OutboxEntry, Visitor

    page = article("Energy", "Dam", "Water.")
    OutboxEntry.objects.all().delete()
    post(ann, page)
    leave = leave_link(site.mails[0]).removeprefix("http://site.example:8000")
    browser = Client(enforce_csrf_checks=True)
    assert "Cancel all alerts" in browser.get(leave).content.decode()
    assert Visitor.objects.count() == 1  # a look changes nothing
    answer = browser.post(
        leave, "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded"
    )
    assert answer.status_code == 200
    assert (Visitor.objects.count(), Alert.objects.count()) == (0, 0)
    assert sorted(OutboxEntry.objects.values_list("action", flat=True)) == ["cancel", "end channel"]
    assert post(ann, page, id="m2") == 410
    assert len(site.mails) == 1
    assert "You get no more mail" in browser.post(leave).content.decode()
    assert browser.post("/tidings/unsubscribe/bm90/").status_code == 404


def test_a_message_is_mailed_once(site: Mailbox, ann: Any, article: Any) -> None:
    page = article("Energy", "Dam", "Water.")
    assert post(ann, page) == 200
    assert post(ann, page) == 200
    assert len(site.mails) == 1
    assert post(ann, page, id="m2") == 200
    assert len(site.mails) == 2


def test_it_is_repeated_until_the_mail_server_accepts(site: Mailbox, ann: Any, article: Any) -> None:
    page = article("Energy", "Dam", "Water.")
    site.refusing = True
    assert post(ann, page) == 503
    assert post(ann, page) == 503
    site.refusing = False
    assert post(ann, page) == 200
    assert len(site.mails) == 1


def test_a_message_that_another_process_left_is_taken_over(site: Mailbox, ann: Any, article: Any) -> None:
    from django.utils import timezone
    from wagtail_tidings.delivery import CLAIM
    from wagtail_tidings.models import MailedMessage

    page = article("Energy", "Dam", "Water.")
    row = MailedMessage.objects.create(message="m1")
    assert post(ann, page) == 503
    MailedMessage.objects.filter(pk=row.pk).update(claimed_at=timezone.now() - 2 * CLAIM)
    assert post(ann, page) == 200
    assert len(site.mails) == 1


@pytest.mark.parametrize("fault", ["signature", "age", "channel"])
def test_others_cannot_send_mail(site: Mailbox, ann: Any, article: Any, fault: str) -> None:
    page = article("Energy", "Dam", "Water.")
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    faults = {"signature": {"secret": other}, "age": {"age": 3600}, "channel": {"channel": "c99"}}
    expected = {"signature": 401, "age": 401, "channel": 410}
    assert post(ann, page, **faults[fault]) == expected[fault]
    assert site.mails == []


def test_a_body_that_is_no_message(site: Mailbox) -> None:
    from django.test import Client

    for body in ("", "[]", '{"data": 5}', "\x00"):
        assert Client().post("/tidings/deliver/", body, content_type="application/json").status_code == 400
    assert Client().get("/tidings/deliver/").status_code == 405


# Privacy


def restrict(page: Any, kind: str, *groups: str) -> None:
    from django.contrib.auth.models import Group
    from wagtail.models import PageViewRestriction

    restriction = PageViewRestriction.objects.create(page=page, restriction_type=kind, password="open sesame")
    restriction.groups.set(Group.objects.get_or_create(name=name)[0] for name in groups)


def join(visitor: Any, group: str) -> None:
    from django.contrib.auth.models import Group

    visitor.user.groups.add(Group.objects.get_or_create(name=group)[0])


CASES = {  # what happened to the page after it matched -> who still gets it
    "nothing": (lambda page: None, {"ann", "reader"}),
    "unpublished": (lambda page: page.unpublish(), set()),
    "deleted": (lambda page: page.delete(), set()),
    "login": (lambda page: restrict(page, "login"), {"reader"}),
    "password": (lambda page: restrict(page, "password"), set()),
    "own group": (lambda page: restrict(page, "groups", "staff"), {"reader"}),
    "other group": (lambda page: restrict(page, "groups", "board"), set()),
    "section": (lambda page: restrict(page.get_parent(), "login"), {"reader"}),
    "section and page": (
        lambda page: (restrict(page.get_parent(), "groups", "board"), restrict(page, "login")),
        set(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_privacy_is_that_of_the_moment_of_delivery(
    site: Mailbox, ann: Any, reader: Any, article: Any, case: str
) -> None:
    happen, expected = CASES[case]
    join(reader, "staff")
    page, number = article("Energy", "Dam", "Water."), None
    number = page.pk
    happen(page)
    page.pk = number
    assert post(ann, page, id="m1") == post(reader, page, id="m2") == 200
    names = {"ann@example.org": "ann", "reader@example.org": "reader"}
    assert {names[mail["To"]] for mail in site.mails} == expected


def test_an_account_that_was_closed_gets_nothing(site: Mailbox, reader: Any, article: Any) -> None:
    reader.user.is_active = False
    reader.user.save()
    assert post(reader, article("Energy", "Dam", "Water.")) == 200
    assert site.mails == []


def test_a_mail_has_each_page_once_and_only_those_that_may_be_seen(
    site: Mailbox, ann: Any, article: Any
) -> None:
    dam, mill, secret = (article("Energy", title, "Water.") for title in ("Dam", "Mill", "Secret"))
    restrict(secret, "login")
    assert post(ann, dam, secret, mill, dam, more=3) == 200
    (mail,) = site.mails
    text = text_of(mail)
    assert (text.count("/dam/"), text.count("/mill/"), text.count("ecret")) == (1, 1, 0)
    assert header(mail, "Subject") == "The Example: Dam, and 1 more"
    assert "There are 3 more" in text


def test_what_was_cancelled_meanwhile_is_not_mailed(site: Mailbox, ann: Any, article: Any) -> None:
    page = article("Energy", "Dam", "Water.")
    ann.alerts.all().delete()
    assert post(ann, page) == 200
    assert site.mails == []


def test_a_notice_of_the_service_is_mailed(site: Mailbox, ann: Any) -> None:
    item = {"id": "n1", "subscription": "s1", "event": None, "title": "It expires on Friday", "link": None}
    assert post(ann, items=[item]) == 200
    assert header(site.mails[0], "Subject") == "The Example: Pages with “water”: It expires on Friday"
