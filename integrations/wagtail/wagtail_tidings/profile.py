"""The profile of a visitor: what was asked for, its state at the service, and the pages that answered.

Pages are shown only if the visitor may see them now. If the service does not answer, the alerts are shown without their states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from wagtail.models import Page

from tidings import Client
from tidings.client import ServiceError
from wagtail_tidings.connection import visitor_client
from wagtail_tidings.models import Alert, Visitor, state_of
from wagtail_tidings.privacy import visible_pages
from wagtail_tidings.vocabulary import page_of_event

RECEIVED = 5  # pages that are shown of each alert
_READ = 25  # notifications that are read for them


@dataclass
class Card:
    """An alert as it is shown."""

    alert: Alert
    state: str
    valid_until: datetime | None = None
    received: list[tuple[Page, datetime | None]] = field(default_factory=list)


def cards_of(visitor: Visitor) -> tuple[list[Card], bool]:
    """The visitor's alerts, newest first, and whether the service answered."""
    alerts = list(visitor.alerts.filter(confirmed_at__isnull=False).order_by("-pk"))
    try:
        client = visitor_client(visitor)
        known = {found.id: found for found in client.subscriptions()} if alerts else {}
        cards = [_card(visitor, alert, known.get(alert.subscription), client) for alert in alerts]
    except ServiceError:
        return [Card(alert, state_of(alert, None)) for alert in alerts], False
    return cards, True


def _card(visitor: Visitor, alert: Alert, subscription: Any | None, client: Client) -> Card:
    card = Card(alert, state_of(alert, subscription))
    if subscription is not None:
        card.valid_until = subscription.valid_until
        card.received = _received(visitor, client, subscription)
    return card


def _received(visitor: Visitor, client: Client, subscription: Any) -> list[tuple[Page, datetime | None]]:
    times: dict[int, datetime | None] = {}
    for notification in islice(client.notifications(subscription, page=_READ), _READ):
        number = page_of_event((notification.event or {}).get("id"))
        if number is not None:
            times.setdefault(number, notification.time)
    pages = visible_pages(visitor, times)
    return [(pages[number], at) for number, at in times.items() if number in pages][:RECEIVED]
