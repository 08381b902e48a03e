"""The life of an alert: asked for, confirmed, changed, paused, renewed.

A visitor without an account confirms each alert by mail: whoever knows an address cannot ask for anything in its name. A mistake of
a visitor is an `AlertError`, whose sentence is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from wagtail.models import Page, get_page_models

from tidings.client import ServiceError
from wagtail_tidings import outbox
from wagtail_tidings.actions import VALIDITY, set_channel
from wagtail_tidings.conditions import MAX_VALUE, plain_words, text_of
from wagtail_tidings.connection import visitor_client
from wagtail_tidings.mail import send_confirmation
from wagtail_tidings.models import Alert, OutboxEntry, Visitor
from wagtail_tidings.page_event import tag_managers
from wagtail_tidings.privacy import may_see

MAX_ALERTS = 100  # of one visitor
MAX_CONFIRMATIONS = 5  # mails to an address that confirmed nothing, in a day


class AlertError(Exception):
    """What the visitor gave cannot be used. The text says why, and what to do."""


def schedules() -> dict[str, tuple[str, dict[str, str]]]:
    """How often mail comes: name, what people read, and what the service is sent."""
    zone = {"zone": settings.TIME_ZONE}
    return {
        "at-once": ("at once", {}),
        "hourly": ("once an hour at most", {"digest": "hourly", **zone}),
        "daily": ("once a day, at eight in the morning", {"digest": "daily", "at": "08:00", **zone}),
        "weekly": (
            "once a week, on Monday morning",
            {"digest": "weekly", "day": "monday", "at": "08:00", **zone},
        ),
    }


def schedule_name(schedule: dict[str, Any]) -> str:
    return str(schedule.get("digest", "at-once"))


def visitor_of_account(user: Any) -> Visitor:
    if not user.email:
        raise AlertError("Your account has no mail address; add one to it, then try again.")
    return Visitor.objects.get_or_create(user=user)[0]


def visitor_of_address(given: str) -> Visitor:
    name, _, host = given.strip().rpartition("@")
    address = f"{name}@{host.lower()}"
    try:
        validate_email(address)
    except ValidationError:
        raise AlertError(f"“{given[:80]}” is no mail address; write it like ann@example.org.") from None
    return Visitor.objects.get_or_create(user=None, email=address)[0]


def ask(visitor: Visitor, kind: str, value: str, only_new: bool = False) -> Alert:
    """Adds an alert: at once for an account, after a confirmation by mail for an address."""
    value = value.strip() if kind == Alert.Kind.TEXT else " ".join(value.split())
    title = _title(visitor, kind, value)
    text = text_of(kind, value, only_new)
    if visitor.alerts.filter(confirmed_at__isnull=False).count() >= MAX_ALERTS:
        raise AlertError(f"You have {MAX_ALERTS} alerts, which is as many as there can be; cancel one first.")
    alert = visitor.alerts.filter(text=text).first()
    if alert is None:
        alert = Alert(visitor=visitor, kind=kind, value=value, only_new=only_new, title=title, text=text)
    if visitor.user_id:
        if alert.confirmed_at is None:
            confirm(alert)
    elif alert.confirmed_at is None:
        _ask_to_confirm(alert)
    return alert


def _ask_to_confirm(alert: Alert) -> None:
    """Sends the confirmation, once a day for an alert, unless the address was sent so many that somebody else may be asking."""
    now = timezone.now()
    day_ago = now - timedelta(days=1)
    if alert.pk and alert.created_at > day_ago:
        return
    alert.created_at = now
    alert.save()
    if alert.visitor.alerts.filter(confirmed_at=None, created_at__gt=day_ago).count() <= MAX_CONFIRMATIONS:
        send_confirmation(alert)


def confirm(alert: Alert) -> None:
    """From now on the alert counts; if the service is away, from when it is back."""
    with transaction.atomic():
        alert.confirmed_at = timezone.now()
        alert.save()
        entry = outbox.add(OutboxEntry.Action.ACTIVATE, {"alert": alert.pk})
    outbox.send_now(entry)
    alert.refresh_from_db()


def change(alert: Alert, value: str, only_new: bool) -> None:
    """Other words or another text, and whether changes of pages count."""
    if alert.kind not in (Alert.Kind.SEARCH, Alert.Kind.TEXT):
        value = alert.value
    value = value.strip() if alert.kind == Alert.Kind.TEXT else " ".join(value.split())
    title = _title(alert.visitor, alert.kind, value)
    text = text_of(alert.kind, value, only_new)
    if alert.subscription:
        _call(lambda: visitor_client(alert.visitor).edit(alert.subscription, text=text, title=title))
    alert.value, alert.only_new, alert.title, alert.text = value, only_new, title, text
    alert.save()


def pause(alert: Alert) -> None:
    _at_service(alert, lambda client: client.pause(alert.subscription))


def resume(alert: Alert) -> None:
    _at_service(alert, lambda client: client.resume(alert.subscription))


def renew(alert: Alert) -> None:
    _at_service(alert, lambda client: client.renew(alert.subscription, VALIDITY))


def reschedule(visitor: Visitor, name: str) -> None:
    """How often mail comes, for all alerts of the visitor."""
    if name not in schedules():
        raise AlertError("Choose how often mail should come.")
    visitor.schedule = schedules()[name][1]
    if visitor.channel:
        _call(lambda: set_channel(visitor))
    Visitor.objects.filter(pk=visitor.pk).update(schedule=visitor.schedule)


def _at_service(alert: Alert, call: Callable[[Any], Any]) -> None:
    if not alert.subscription:
        raise AlertError("This alert is not active yet; try again in a minute.")
    _call(lambda: call(visitor_client(alert.visitor)))


def _call(call: Callable[[], Any]) -> None:
    try:
        call()
    except ServiceError as error:
        if error.status is None or error.status >= 500:
            raise AlertError("This cannot be changed at the moment; try again in a minute.") from error
        raise AlertError(f"This was refused: {error}.") from error


def _title(visitor: Visitor, kind: str, value: str) -> str:
    is_empty = not plain_words(value) if kind == Alert.Kind.SEARCH else not value
    if is_empty or len(value) > MAX_VALUE:
        raise AlertError(f"Give at least a word, and at most {MAX_VALUE} characters.")
    if kind == Alert.Kind.SEARCH:
        return f"Pages with “{value}”"[:200]
    if kind == Alert.Kind.TAG:
        return f"Pages tagged {_tag_name(value)}"[:200]
    if kind == Alert.Kind.SECTION:
        return f"Everything in {_section(visitor, value).title}"[:200]
    if kind == Alert.Kind.TEXT and visitor.user_id:
        _check_text(visitor, value)
        return value[:200]
    raise AlertError("An alert is about words, a tag or a section; choose one of them.")


def _tag_name(slug: str) -> str:
    for model in get_page_models():
        for manager in tag_managers(model):
            tag = manager.related_model.objects.filter(slug=slug).first()
            if tag is not None:
                return str(tag.name)
    raise AlertError(f"There is no tag “{slug[:80]}”; choose one that a page has.")


def _section(visitor: Visitor, number: str) -> Page:
    page = Page.objects.filter(pk=number).first() if number.isdecimal() and len(number) < 10 else None
    if page is None or not may_see(visitor, page):
        raise AlertError("There is no such section; choose another one.")
    return page


def _check_text(visitor: Visitor, text: str) -> None:
    try:
        checked = visitor_client(visitor).check(text)
    except ServiceError as error:
        raise AlertError("This cannot be checked at the moment; try again in a minute.") from error
    if not checked.ok:
        raise AlertError(f"This is not understood: {checked.message}")
