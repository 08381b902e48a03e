"""Addresses in mails that prove who uses them, by a signature of the site's SECRET_KEY."""

from __future__ import annotations

from datetime import timedelta

from django.core import signing

from wagtail_tidings.connection import absolute
from wagtail_tidings.models import Alert, Visitor

CONFIRM_WITHIN = timedelta(days=7)
_CONFIRM, _VISITOR, _LEAVE = (
    "wagtail_tidings.confirm",
    "wagtail_tidings.visitor",
    "wagtail_tidings.unsubscribe",
)


def confirm_link(alert: Alert) -> str:
    return absolute("confirm", signing.dumps(alert.pk, salt=_CONFIRM))


def alert_of(token: str) -> Alert | None:
    """The alert that a link confirms; None if the link is wrong or too old, or the alert was removed."""
    try:
        number = signing.loads(token, salt=_CONFIRM, max_age=CONFIRM_WITHIN)
    except signing.BadSignature:
        return None
    return Alert.objects.select_related("visitor__user").filter(pk=number).first()


def profile_link(visitor: Visitor) -> str:
    """Where the visitor changes everything: with an account by logging in, without one by this link."""
    if visitor.user_id:
        return absolute("profile")
    return absolute("profile_by_link", signing.dumps(visitor.key, salt=_VISITOR))


def visitor_of(token: str) -> Visitor | None:
    return _visitor(token, _VISITOR)


def unsubscribe_link(visitor: Visitor) -> str:
    return absolute("unsubscribe", signing.dumps(visitor.key, salt=_LEAVE))


def leaving_visitor(token: str) -> Visitor | None:
    return _visitor(token, _LEAVE)


def is_leaving(token: str) -> bool:
    """Whether the link is one of ours; the visitor may have left already."""
    try:
        signing.loads(token, salt=_LEAVE)
    except signing.BadSignature:
        return False
    return True


def _visitor(token: str, salt: str) -> Visitor | None:
    try:
        key = signing.loads(token, salt=salt)
    except signing.BadSignature:
        return None
    return Visitor.objects.select_related("user").filter(key=key).first()
