"""What the entries of the outbox do at the service. Each may be repeated without harm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tidings import Client
from tidings.client import ServiceError
from wagtail_tidings.connection import absolute, site_client, visitor_client
from wagtail_tidings.models import Alert, OutboxEntry, PushedTaxonomy, Visitor
from wagtail_tidings.page_taxonomy import digest, site_taxonomy

VALIDITY = timedelta(days=365)  # of an alert that is not renewed


def publish(event: dict[str, Any]) -> None:
    site_client().publish(event)


def push_taxonomy(always: bool = False) -> None:
    """Replaces the service's taxonomy if the site's has changed since it was sent last."""
    # Entries that are there already were written with changes that the document below has: one push is for all of them.
    waiting = list(
        OutboxEntry.objects.filter(action=OutboxEntry.Action.TAXONOMY).values_list("pk", flat=True)
    )
    document = site_taxonomy()
    current = digest(document)
    if always or not PushedTaxonomy.objects.filter(digest=current).exists():
        site_client().set_taxonomy(document, format="nt")
        PushedTaxonomy.objects.update_or_create(pk=1, defaults={"digest": current})
    OutboxEntry.objects.filter(pk__in=waiting).delete()


def activate(alert: int) -> None:
    """Makes the subscription of a confirmed alert, and adds it to the visitor's channel."""
    found = Alert.objects.select_related("visitor__user").filter(pk=alert, confirmed_at__isnull=False).first()
    if found is None:
        return  # cancelled meanwhile
    client = visitor_client(found.visitor)
    if not found.subscription:
        made = client.subscribe(found.text, title=found.title, valid_for=VALIDITY)
        found.subscription = made.id
        if not Alert.objects.filter(pk=found.pk, subscription="").update(subscription=made.id):
            client.cancel(made)
            return
    _connect(client, found.visitor, found.subscription)


def _connect(client: Client, visitor: Visitor, subscription: str) -> None:
    visitor.refresh_from_db()
    if not visitor.channel:
        channel = client.add_channel(
            "webhook", absolute("deliver"), schedule=visitor.schedule, subscriptions=[subscription]
        )
        own = Visitor.objects.filter(pk=visitor.pk, channel="")
        if own.update(channel=channel.id, secret=channel.secret):
            return
        client.end_channel(channel.id)  # another alert of the visitor was quicker
        visitor.refresh_from_db()
    others = visitor.alerts.exclude(subscription="").values_list("subscription", flat=True)
    client.change_channel(visitor.channel, subscriptions=list(others))


def cancel(user: str, subscription: str) -> None:
    _unless_gone(lambda: visitor_client(user).cancel(subscription))


def end_channel(user: str, channel: str) -> None:
    _unless_gone(lambda: visitor_client(user).end_channel(channel))


def _unless_gone(call: Callable[[], Any]) -> None:
    try:
        call()
    except ServiceError as error:
        if error.status not in (404, 409, 410):
            raise


ACTIONS: dict[str, Callable[..., None]] = {
    OutboxEntry.Action.EVENT: publish,
    OutboxEntry.Action.TAXONOMY: push_taxonomy,
    OutboxEntry.Action.ACTIVATE: activate,
    OutboxEntry.Action.CANCEL: cancel,
    OutboxEntry.Action.END_CHANNEL: end_channel,
}
