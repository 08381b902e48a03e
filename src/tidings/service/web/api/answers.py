"""What the service keeps, as the API tells it: one function for each model that is built from another value."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.feeds.write.channel import moment
from tidings.model.explanation import Explanation
from tidings.service import model
from tidings.service.delivery.notification_json import notification_to_json
from tidings.service.settings import Settings
from tidings.service.subscriptions.preview import Reason
from tidings.service.web.api import models


def subscription(
    one: model.Subscription, settings: Settings, delivery: model.Delivery | None = None
) -> models.Subscription:
    return models.Subscription(
        id=one.id,
        text=one.text,
        title=one.title,
        state=one.state,
        public=one.public,
        created=moment(one.created),
        valid_until=None if one.valid_until is None else moment(one.valid_until),
        feeds=feeds(one, settings),
        webhook=None if delivery is None else webhook(delivery),
    )


def feeds(one: model.Subscription, settings: Settings) -> models.FeedAddresses:
    begin = f"{settings.address}/feeds/{one.id if one.public else one.feed}"
    return models.FeedAddresses(
        rss1=f"{begin}.rdf", rss2=f"{begin}.rss", atom=f"{begin}.atom", json_feed=f"{begin}.json"
    )


def webhook(delivery: model.Delivery) -> models.Webhook:
    failing = delivery.failures > 0
    return models.Webhook(
        url=delivery.url,
        state="disabled" if delivery.disabled else "failing" if failing else "waiting",
        failures=delivery.failures,
        error=delivery.error,
        disabled=delivery.disabled,
        next_try=moment(delivery.next_try) if failing and not delivery.disabled else None,
    )


def explanation(one: Explanation) -> models.Explanation:
    lines = str(one).partition(": ")[2]  # without the id of a subscription that may have none yet
    return models.Explanation(
        verdict=one.verdict,  # type: ignore[arg-type]
        clauses=[
            models.Clause(
                text=clause.text,
                depth=clause.depth,
                held=clause.held,
                evidence=clause.evidence or "",
                decides=clause.decides,
            )
            for clause in one.clauses
        ],
        bindings=dict(one.bindings),
        message=one.message,
        text=lines,
    )


def reason(one: Reason, settings: Settings) -> models.Reason:
    told = model.StoredNotification(
        0, "", "", model.NotificationKind.MATCH, 0.0, one.event
    )  # so that an event has one form everywhere
    event = notification_to_json(told, settings)["event"]
    return models.Reason(
        event=models.NotifiedEvent.model_validate(event), explanation=explanation(one.explanation)
    )


def token(one: model.Token) -> models.Token:
    return models.Token(
        id=one.id,
        name=one.name,
        role=one.role,
        created=moment(one.created),
        ended=None if one.ended is None else moment(one.ended),
        subscriptions=one.subscriptions,
        events_per_second=one.events_per_second,
        requests_per_second=one.requests_per_second,
    )


def rejected(places: Iterable[tuple[object, str]]) -> list[models.Rejected]:
    return [models.Rejected(place=str(place), message=message) for place, message in places]
