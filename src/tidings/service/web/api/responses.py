"""Builds the response models of the API from the values of the service, one function for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, cast

from tidings.feeds.write.channel import moment
from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.model.notification import RowChange
from tidings.service import model
from tidings.service.delivery.notification_json import notification_to_json
from tidings.service.matching.backtests import Backtest
from tidings.service.owners import user_of
from tidings.service.settings import Settings
from tidings.service.subscriptions.definitions import Definitions
from tidings.service.subscriptions.preview import Reason
from tidings.service.web.api import models


def subscription(
    given: model.Subscription, settings: Settings, delivery: model.Delivery | None = None
) -> models.Subscription:
    return models.Subscription(
        id=given.id,
        text=given.text,
        title=given.title,
        state=given.state,
        reason=given.reason,
        public=given.public,
        tags=list(given.tags),
        created=moment(given.created),
        valid_until=None if given.valid_until is None else moment(given.valid_until),
        feeds=feeds(given, settings),
        webhook=None if delivery is None else webhook(delivery),
        revision=given.revision,
        user=user_of(given.owner),
    )


def feeds(given: model.Subscription, settings: Settings) -> models.FeedAddresses:
    begin = f"{settings.address}/feeds/{given.id if given.public else given.feed}"
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


def explanation(given: Explanation, used: Definitions | None = None) -> models.Explanation:
    """`used` are the definitions by which it was explained."""
    lines = str(given).partition(": ")[2]  # without the id of a subscription that may have none yet
    versions = None if used is None else models.UsedVersions(**used.versions())
    if used is not None:
        lines = f"{lines}\nby {used.described()}"
    return models.Explanation(
        verdict=given.verdict,  # type: ignore[arg-type]
        clauses=[
            models.Clause(
                text=clause.text,
                depth=clause.depth,
                held=clause.held,
                evidence=clause.evidence or "",
                decides=clause.decides,
            )
            for clause in given.clauses
        ],
        bindings=dict(given.bindings),
        message=given.message,
        text=lines,
        versions=versions,
    )


def _event(given: Event, settings: Settings) -> Mapping[str, Any]:
    notification = model.StoredNotification(
        0, "", "", model.NotificationKind.MATCH, 0.0, given
    )  # so that an event has one form everywhere
    return cast(Mapping[str, Any], notification_to_json(notification, settings)["event"])


def backtest(given: Backtest, settings: Settings) -> models.Backtest:
    found = given.report
    return models.Backtest(
        id=given.id,
        status=given.status,
        progress=given.progress,
        message=given.message,
        report=None
        if found is None
        else models.BacktestReport.model_validate(found.to_json(lambda event: _event(event, settings))),
    )


def reason(given: Reason, settings: Settings) -> models.Reason:
    return models.Reason(
        event=models.NotifiedEvent.model_validate(_event(given.event, settings)),
        explanation=explanation(given.explanation),
        changes=row_changes(given.changes),
    )


def row_changes(given: Iterable[RowChange]) -> list[models.RowChange]:
    return [models.RowChange.model_validate(asdict(change)) for change in given]


def token(given: model.Token, last_used: float | None) -> models.Token:
    return models.Token(
        id=given.id,
        name=given.name,
        role=given.role,
        created=moment(given.created),
        ended=None if given.ended is None else moment(given.ended),
        last_used=None if last_used is None else moment(last_used),
        subscriptions=given.subscriptions,
        events_per_second=given.events_per_second,
        requests_per_second=given.requests_per_second,
        sources=given.sources,
        scope=given.scope,
    )


def rejected(places: Iterable[tuple[object, str]]) -> list[models.Rejected]:
    return [models.Rejected(place=str(place), message=message) for place, message in places]
