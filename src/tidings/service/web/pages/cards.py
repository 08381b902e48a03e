"""Prepares subscriptions, notifications and trials for the pages: their JSON, with members for display."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.service.delivery.notification_json import moment, notification_to_json
from tidings.service.delivery.presentation import content_of, describe, plain_text, safe_html
from tidings.service.matching.backtests import Backtest
from tidings.service.model import Delivery, StoredNotification, Subscription
from tidings.service.service import Service
from tidings.service.settings import DAY, Settings
from tidings.service.store.received import NOTHING_UNREAD
from tidings.service.subscriptions.class_search import ClassSearch
from tidings.service.subscriptions.lifecycle import title_of_text
from tidings.service.subscriptions.preview import Reason, Trial
from tidings.service.web.api import responses
from tidings.service.web.api.models import MOST_ROWS
from tidings.service.web.pages.wording import past

_FEEDS = (("RSS 1.0", "rss1"), ("RSS 2.0", "rss2"), ("Atom", "atom"), ("JSON Feed", "json_feed"))
_EXCERPT = 200  # characters of a summary in the line of a notification
_MARKUP = re.compile("<(?!/?p>)")
_IRI = re.compile(r"<([^<>\s]+)>")
_DIGEST_ITEMS = 5  # of a message that are shown
COMPARED = 200  # matches of each text that are listed side by side, most of them on demand
_SPANS = (
    (3_600.0, "1 hour"),
    (DAY, "1 day"),
    (7 * DAY, "1 week"),
    (30 * DAY, "30 days"),
    (365 * DAY, "1 year"),
)


def subscription_card(
    subscription: Subscription, service: Service, reader: str, delivery: Delivery | None = None
) -> dict[str, Any]:
    card = subscription_cards([subscription], service, reader, service.received.latest([subscription.id]))[0]
    return {
        **card,
        "webhook": None if delivery is None else responses.webhook(delivery).model_dump(mode="json"),
    }


def subscription_cards(
    subscriptions: Sequence[Subscription], service: Service, reader: str, latest: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The cards of subscriptions. `unread` counts what the reader has not read, `more` says that this is not all;
    `latest` are the numbers of the latest notifications, of which the time is shown."""
    ids = [subscription.id for subscription in subscriptions]
    unread = service.received.unread(service.marks.positions(reader, ids)) if ids else {}
    times = service.received.times([latest[id] for id in ids if id in latest])
    cards = []
    for subscription in subscriptions:
        at = times.get(latest.get(subscription.id, 0))
        count, undecided, more = unread.get(subscription.id, NOTHING_UNREAD)
        cards.append(
            {
                **responses.subscription(subscription, service.settings).model_dump(mode="json"),
                "titled": subscription.title != title_of_text(subscription.text),
                "unread": count,
                "undecided": undecided,
                "more": more,
                "latest": None if at is None else moment(at),
            }
        )
    return cards


def notification_card(
    notification: StoredNotification, settings: Settings, title: str = ""
) -> dict[str, Any]:
    """The card of a notification. `title` is that of its subscription, where notifications of several stand
    together. `bound` are the bindings that nothing else on the card shows."""
    item = content_of(notification)
    # Events without any text of their own have one line that says all; once is enough.
    excerpt = "" if notification.changes else plain_text(item.summary_html, _EXCERPT)
    if excerpt.rstrip("…").startswith(item.title.rstrip("…")):
        excerpt = excerpt[len(item.title) :].strip(" .:–-")
    summary = "" if notification.changes or not excerpt else safe_html(item.summary_html)
    if not excerpt.endswith("…") and not _MARKUP.search(summary):
        summary = ""  # the excerpt is all of it
    shown = (item.title, excerpt, item.link or "")
    bound = {name: value for name, value in notification.bindings.items() if not _repeats(value, shown)}
    return {
        **notification_to_json(notification, settings),
        "notice": notification.event is None and not notification.changes,
        "title": item.title,
        "link": item.link,
        "excerpt": excerpt,
        "summary": summary,
        "bound": bound,
        "details": bool(
            summary or notification.changes or sum(map(len, map(str, bound.values()))) > _EXCERPT // 2
        ),
        "author": item.author,
        "source": notification.event.source if notification.event is not None else "",
        "subscription_title": title,
        "why": f"/subscriptions/{notification.subscription}/notifications/{notification.id}"
        if notification.event is not None
        else None,
    }


def _repeats(value: object, shown: Sequence[str]) -> bool:
    """Whether one of the shown texts is this value, all of it or its beginning. A number within a title is not: who selects
    it looks for it."""
    text = " ".join(str(value).split())
    return any(text == line or (line.endswith("…") and text.startswith(line[:-1])) for line in shown)


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
        **_result(trial),
    }


def backtest_card(backtest: Backtest) -> dict[str, Any]:
    """The card of a backtest, with the matches that would have been in its last message."""
    card: dict[str, Any] = {
        "id": backtest.id,
        "text": backtest.text,
        "status": backtest.status,
        "progress": round(100 * backtest.progress),
        "problem": backtest.message if backtest.status == "failed" else "",
        "report": None,
    }
    if (found := backtest.report) is None:
        return card
    zone, last = ZoneInfo(found.zone), found.digest.newest[-1:]

    def shown(at: float) -> str:
        return f"{datetime.fromtimestamp(at, zone):%a %-d %b, %H:%M}"

    items = [match for match in found.matches if not last or match.at <= last[0].due]
    card["report"] = {
        "span": past(found.until - found.since),
        "zone": found.zone,
        "events": found.events,
        "matched": found.matched,
        "undecided": found.undecided,
        "unreadable": found.unreadable,
        "share": found.matched / found.events if found.events else 0.0,
        "per_day": found.per_day,
        "warning": found.warning,
        "days": [(each.day.isoformat(), each.matched) for each in found.days],
        "busiest": None if found.busiest is None else (shown(found.busiest.start), found.busiest.matched),
        "digest": found.digest.sentence(),
        "waiting": found.digest.waiting,
        "last": [(shown(message.due), message.items) for message in last],
        "items": [
            {"title": describe(match.event).title, "source": match.event.source, "arrived": shown(match.at)}
            for match in items[:_DIGEST_ITEMS]
        ],
    }
    return card


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
        only = len(mine.found.intersection(keys) - other.found)
        sides.append({"matched": len(found), "only": only, "items": items, **_result(mine)})
    return {"problem": "", "looked": looked, "late": old.late or new.late, "old": sides[0], "new": sides[1]}


def _result(trial: Trial) -> dict[str, Any]:
    """The first rows of a join's result, and how many there are."""
    rows = trial.rows or ()
    return {
        "join": trial.is_join,
        "rows": None if trial.rows is None else [asdict(change) for change in rows[:MOST_ROWS]],
        "row_count": len(rows),
    }


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
