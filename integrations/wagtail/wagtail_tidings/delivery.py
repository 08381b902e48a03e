"""The webhook that the service posts a visitor's messages to. The mail goes out from here.

The answer is 2xx only after the mail server accepted the mail, so that a message is repeated until then. A message that was
mailed is not mailed again. Whether the visitor may see a page is decided here and now. A visitor or a channel that is not
known is answered with 410, which ends the channel.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from smtplib import SMTPException
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from wagtail_tidings.mail import Entry, send_pages
from wagtail_tidings.models import MailedMessage, Visitor
from wagtail_tidings.privacy import visible_pages
from wagtail_tidings.vocabulary import page_of_event

log = logging.getLogger(__name__)

CLAIM = timedelta(minutes=2)  # after which a message is taken over from a process that ended while it mailed
MAX_BYTES = 4 << 20


@csrf_exempt
@require_POST
def deliver(request: HttpRequest) -> HttpResponse:
    """Mails a message of the service. The signature takes the place of a login."""
    body = request.body
    try:
        data = json.loads(body)["data"]
        channel, message = str(data["channel"]), str(data["id"])
    except (ValueError, KeyError, TypeError):
        return _answer("This is no message of Tidings.", 400)
    visitor = Visitor.objects.select_related("user").filter(channel=channel).exclude(channel="").first()
    if visitor is None:
        return _answer("There is no such channel.", 410)
    try:
        Webhook(visitor.secret).verify(body, dict(request.headers))
    except WebhookVerificationError:
        return _answer("The signature is wrong.", 401)
    return _mail_once(visitor, message, data)


def _mail_once(visitor: Visitor, message: str, data: Mapping[str, Any]) -> HttpResponse:
    claimed = _claim(message)
    if claimed is None:
        return _answer("It was mailed before.", 200)
    if not claimed:
        return _answer("It is being mailed at the moment.", 503)
    try:
        mailed = _mail(visitor, data)
    except (OSError, SMTPException) as error:
        MailedMessage.objects.filter(message=message).delete()
        log.warning("The mail server did not accept a mail: %s", error)
        return _answer("The mail server did not accept the mail.", 503)
    except BaseException:
        MailedMessage.objects.filter(message=message).delete()
        raise
    MailedMessage.objects.filter(message=message).update(mailed_at=timezone.now())
    return _answer("Mailed." if mailed else "There is nothing in it that the visitor may see.", 200)


def _claim(message: str) -> bool | None:
    """True: this call mails it. False: another one does. None: it was mailed. No transaction is open while the mail server
    is waited for, because others write meanwhile."""
    try:
        with transaction.atomic():
            MailedMessage.objects.create(message=message)
        return True
    except IntegrityError:
        pass
    if MailedMessage.objects.filter(message=message, mailed_at__isnull=False).exists():
        return None
    now = timezone.now()
    abandoned = MailedMessage.objects.filter(message=message, mailed_at=None, claimed_at__lt=now - CLAIM)
    return abandoned.update(claimed_at=now) == 1


def _mail(visitor: Visitor, data: Mapping[str, Any]) -> bool:
    items = data.get("items") or []
    titles = dict(visitor.alerts.exclude(subscription="").values_list("subscription", "title"))
    items = [item for item in items if item["subscription"] in titles]  # not of what was cancelled meanwhile
    numbers = {item["id"]: page_of_event(item.get("event")) for item in items}
    pages = visible_pages(visitor, filter(None, numbers.values()))
    entries: dict[int, Entry] = {}
    notices: list[str] = []
    for item in items:
        title = titles[item["subscription"]]
        if item.get("event") is None:
            notices.append(f"{title}: {item['title']}")
        elif (page := pages.get(numbers[item["id"]] or 0)) is not None:
            entry = entries.setdefault(page.pk, Entry(page))
            if title not in entry.alerts:
                entry.alerts.append(title)
    if not visitor.address or not (entries or notices):
        return False
    send_pages(visitor, list(entries.values()), notices, int(data.get("more") or 0))
    return True


def _answer(text: str, status: int) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
