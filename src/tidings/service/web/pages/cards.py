"""Prepares subscriptions, notifications and trials for the pages: their JSON, with members for display."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.service.delivery.notification_json import moment, notification_to_json
from tidings.service.delivery.presentation import content_of, describe, plain_text, safe_html
from tidings.service.model import Delivery, StoredNotification, Subscription
from tidings.service.service import Service
from tidings.service.settings import DAY, Settings
from tidings.service.subscriptions.class_search import ClassSearch
from tidings.service.subscriptions.lifecycle import title_of_text
from tidings.service.subscriptions.preview import Reason, Trial
from tidings.service.web.api import responses

_FEEDS = (("RSS 1.0", "rss1"), ("RSS 2.0", "rss2"), ("Atom", "atom"), ("JSON Feed", "json_feed"))
_IRI = re.compile(r"<([^<>\s]+)>")
COMPARED = 20  # matches of each text that are shown side by side
_SPANS = (
    (3_600.0, "1 hour"),
    (DAY, "1 day"),
    (7 * DAY, "1 week"),
    (30 * DAY, "30 days"),
    (365 * DAY, "1 year"),
)


def subscription_card(
    subscription: Subscription, service: Service, delivery: Delivery | None = None
) -> dict[str, Any]:
    return subscription_cards([subscription], service, delivery)[0]


def subscription_cards(
    subscriptions: Sequence[Subscription], service: Service, delivery: Delivery | None = None
) -> list[dict[str, Any]]:
    """The cards of subscriptions. `told` counts the notifications that are kept; `last_told` is the time of the
    last."""
    counts = (
        service.mailbox.counts([subscription.id for subscription in subscriptions]) if subscriptions else {}
    )
    cards = []
    for subscription in subscriptions:
        newest = service.mailbox.page([subscription.id], limit=1) if subscription.id in counts else []
        more = {
            "titled": subscription.title != title_of_text(subscription.text),
            "told": counts.get(subscription.id, 0),
            "last_told": moment(newest[0].at) if newest else None,
        }
        cards.append(
            {
                **responses.subscription(subscription, service.settings, delivery).model_dump(mode="json"),
                **more,
            }
        )
    return cards


def notification_card(
    notification: StoredNotification, settings: Settings, title: str = ""
) -> dict[str, Any]:
    """The card of a notification. `title` is that of its subscription, where notifications of several stand
    together."""
    item = content_of(notification)
    # Events without any text of their own have one line that says all; once is enough.
    told_twice = plain_text(item.summary_html, 500).startswith(item.title.rstrip("…"))
    summary = (
        ""
        if notification.changes or (told_twice and "<" not in item.summary_html)
        else safe_html(item.summary_html)
    )
    return {
        **notification_to_json(notification, settings),
        "notice": notification.event is None and not notification.changes,
        "title": item.title,
        "link": item.link,
        "summary": summary,
        "author": item.author,
        "source": notification.event.source if notification.event is not None else "",
        "subscription_title": title,
        "why": f"/subscriptions/{notification.subscription}/notifications/{notification.id}"
        if notification.event is not None
        else None,
    }


def reason_card(explanation: Explanation, class_search: ClassSearch) -> dict[str, Any]:
    """The card of an explanation. `shown` is a clause as its author may have written it, with prefixes in place of
    IRIs."""
    card = responses.explanation(explanation).model_dump(mode="json")
    for clause, line in zip(card["clauses"], explanation.clauses, strict=True):
        clause["fate"] = line.fate
        clause["shown"] = _IRI.sub(lambda found: class_search.written(found[1]), line.text)
    return card


def trial_card(trial: Trial, class_search: ClassSearch) -> dict[str, Any]:
    return {
        "problem": "",
        "looked": trial.looked,
        "matched": trial.matched,
        "late": trial.late,
        "matches": [_tried(reason, class_search) for reason in trial.matches],
        "near": [_tried(reason, class_search) for reason in trial.near],
        "rows": None if trial.rows is None else [asdict(change) for change in trial.rows],
    }


def comparison_card(old: Trial, new: Trial, events: Sequence[Event]) -> dict[str, Any]:
    """What two texts match of the events that both were tried on; what only one of them matches comes first."""
    looked = min(old.looked, new.looked)
    keys = [(event.source, event.id) for event in events[:looked]]
    sides = []
    for mine, other in ((old, new), (new, old)):
        found = [event for event, key in zip(events, keys, strict=False) if key in mine.found]
        found.sort(key=lambda event, other=other: (event.source, event.id) in other.found)  # type: ignore[misc]
        items = [
            {
                "title": describe(event).title,
                "source": event.source,
                "only": (event.source, event.id) not in other.found,
            }
            for event in found[:COMPARED]
        ]
        rows = None if mine.rows is None else [asdict(change) for change in mine.rows]
        only = len(mine.found.intersection(keys) - other.found)
        sides.append({"matched": len(found), "only": only, "items": items, "rows": rows})
    return {"problem": "", "looked": looked, "late": old.late or new.late, "old": sides[0], "new": sides[1]}


def _tried(reason: Reason, class_search: ClassSearch) -> dict[str, Any]:
    event = reason.event
    return {
        "title": describe(event).title,
        "source": event.source,
        "id": event.id,
        "changes": [asdict(change) for change in reason.changes],
        **reason_card(reason.explanation, class_search),
    }


def feed_cards(subscription: Subscription, settings: Settings) -> list[dict[str, str]]:
    """The feeds of a subscription, with a short form of each address."""
    addresses = responses.feeds(subscription, settings).model_dump()
    return [
        {"name": name, "url": addresses[form], "shown": addresses[form].removeprefix(settings.address)}
        for name, form in _FEEDS
    ]


def validities(settings: Settings) -> list[tuple[str, str]]:
    """The choices of validity; the first is the default of the service."""
    longest = settings.longest_validity
    usual = settings.validity if longest is None else min(settings.validity, longest)
    named = dict(_SPANS)
    first = named.get(usual) or f"{usual / 3_600:,.3g} hours"
    choices = [("", f"{first} (default)")]
    choices += [
        (f"{span:.0f}", words)
        for span, words in _SPANS
        if span != usual and (longest is None or span <= longest)
    ]
    return choices if longest is not None else [*choices, ("never", "unlimited")]
