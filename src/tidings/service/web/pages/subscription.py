"""/subscriptions/{id}: a subscription with its text, state, deliveries and notifications."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.service.delivery.channels.channels import MOST_CHANNELS
from tidings.service.model import (
    ChannelState,
    NotificationKind,
    Principal,
    State,
    StoredNotification,
    Subscription,
)
from tidings.service.subscriptions.access_control import NotFound, Unauthorized
from tidings.service.subscriptions.lifecycle import Lifecycle, read_validity
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.cursors import Number
from tidings.service.web.api.received import EVERYTHING, Filter, Searched, find_notification
from tidings.service.web.api.subscriptions import Id, send_test
from tidings.service.web.pages import flash_secret
from tidings.service.web.pages.admin.definitions import references
from tidings.service.web.pages.cards import (
    feed_cards,
    notification_card,
    reason_card,
    subscription_card,
    validities,
)
from tidings.service.web.pages.channels.owners import card
from tidings.service.web.pages.news import arrivals, listing, undecided_causes
from tidings.service.web.pages.received import PAGE
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.status import IndexWords
from tidings.service.web.pages.visitor import Form, Visiting, text_of, ticket_of
from tidings.service.web.problems import Problem, problem_of

pages = APIRouter()

ENDED = ChannelState.ENDED
_RAW = 20_000  # characters of an event that are shown

Step = Callable[[Lifecycle, Principal, str, "str | None"], Subscription]
_STEPS: Mapping[str, tuple[Step, str]] = {
    "pause": (Lifecycle.pause, "paused"),
    "resume": (Lifecycle.resume, "resumed"),
    "cancel": (Lifecycle.cancel, "cancelled"),
}


@pages.get("/subscriptions/{id}")
def show(
    request: Request,
    visiting: Visiting,
    id: Id,
    *,
    before: Number = None,
    after: Number = None,
    part: Annotated[str, Query(max_length=20)] = "",
    q: Searched = "",
    starred: bool = False,
    undecided: bool = False,
) -> Response:
    if part == "news":
        found = visiting.service.lifecycle.find(visiting.principal, id)
        news = arrivals(visiting, {id: found.title}, after or 0)
        return render(request, "news.html", news, named=False)
    wanted = Filter(" ".join(q.replace("\0", " ").split()), starred, undecided)
    return _show(request, visiting, id, wanted=wanted, before=before)


@pages.post("/subscriptions/{id}/renew")
async def renew(request: Request, visiting: Visiting, id: Id, form: Form) -> Response:
    def step() -> Response:
        validity = read_validity(text_of(form, "valid_for"))
        visiting.service.lifecycle.renew(visiting.principal, id, ticket_of(form), validity)
        return sent_to(f"/subscriptions/{id}", "renewed")

    return await run_in_threadpool(_done, request, visiting, id, step)


@pages.post("/subscriptions/{id}/{word}")
async def change(request: Request, visiting: Visiting, id: Id, word: str, form: Form) -> Response:
    if word == "webhook":
        return await run_in_threadpool(_done, request, visiting, id, lambda: _set_webhook(visiting, id, form))
    if word == "webhook-test":
        return await _test_webhook(request, visiting, id, form)
    if word not in _STEPS:
        raise Problem(404, "nothing is at this address; go back to the subscription")
    take, done = _STEPS[word]

    def step() -> Response:
        changed = take(visiting.service.lifecycle, visiting.principal, id, ticket_of(form))
        # The page says why one is unanswerable.
        return sent_to(f"/subscriptions/{id}", "" if changed.state is State.UNANSWERABLE else done)

    return await run_in_threadpool(_done, request, visiting, id, step)


@pages.get("/subscriptions/{id}/notifications/{notification}")
def why(request: Request, visiting: Visiting, id: Id, notification: str) -> Response:
    service = visiting.service
    subscription, found = find_notification(visiting, id, notification)
    if found.event is None:
        raise Problem(404, "this is a notice of the subscription's life; there is no event to explain")
    index = IndexWords(service.settings.data / "index")
    explanation = service.preview.explain(subscription.text, found.event)
    data = {
        "subscription": subscription_card(subscription, service, visiting.principal.token),
        "notification": {**notification_card(found, service.settings), "starred": False, "unread": False},
        "reason": reason_card(explanation, service.class_search),
        "outdated": _outdated(subscription, found, explanation),
        "versions": service.definitions.described(index.words(service.definitions.index_version())),
        "raw": _raw(found.event),
    }
    return render(request, "why.html", data, visitor=visiting.principal)


def _outdated(subscription: Subscription, found: StoredNotification, explanation: Explanation) -> str:
    """Why a match would be none now, in a sentence; "" if it still is one. What a subscription over tables matches depends on
    rows that have changed since, so nothing is said of those."""
    if (
        found.kind is not NotificationKind.MATCH
        or explanation.verdict != "no match"
        or subscription.over_tables
    ):
        return ""
    if subscription.revision > 1:
        return "The event does not match the present text: the subscription was probably edited after this notification."
    return "The event does not match any more: a definition, such as the taxonomy, was probably changed after this notification."


def _set_webhook(visiting: Caller, id: str, form: Mapping[str, str | UploadFile]) -> Response:
    service, visitor, ticket = visiting.service, visiting.principal, ticket_of(form)
    url = text_of(form, "url").strip()
    if text_of(form, "remove") or not url:
        service.lifecycle.remove_webhook(visitor, id, ticket)
        return sent_to(f"/subscriptions/{id}", "no-webhook")
    delivery = service.lifecycle.set_webhook(visitor, id, ticket, url)
    service.webhooks.poke(id)
    response = sent_to(f"/subscriptions/{id}", "webhook")
    flash_secret.set_secrets(
        response, service.settings, f"/subscriptions/{id}", {"webhook_secret": delivery.secret}
    )
    return response


async def _test_webhook(
    request: Request, visiting: Caller, id: str, form: Mapping[str, str | UploadFile]
) -> Response:
    try:
        tested = await send_test(visiting, id, ticket_of(form))
    except (NotFound, Unauthorized):
        raise
    except (TidingsError, Problem) as error:
        problem = problem_of(error)
        return await run_in_threadpool(
            _show, request, visiting, id, status=problem.status_code, problem=str(problem.detail)
        )
    response = sent_to(f"/subscriptions/{id}#webhook-title")
    flash_secret.set_secrets(
        response, visiting.service.settings, f"/subscriptions/{id}", {"webhook_test": tested.model_dump()}
    )
    return response


def _done(request: Request, visiting: Caller, id: str, step: Callable[[], Response]) -> Response:
    """The response after a change; if it was refused, the page with the reason above it."""
    try:
        return step()
    except (NotFound, Unauthorized):
        raise
    except TidingsError as error:
        return _show(request, visiting, id, status=problem_of(error).status_code, problem=str(error))


def _show(
    request: Request,
    visiting: Caller,
    id: str,
    *,
    wanted: Filter = EVERYTHING,
    before: int | None = None,
    status: int = 200,
    problem: str = "",
) -> Response:
    service, visitor = visiting.service, visiting.principal
    subscription = service.lifecycle.find(visitor, id)
    titles = {id: subscription.title}
    last = (
        service.mailbox.last()
    )  # the lists end there: what comes after it is added by the page's script, once
    shown = subscription_card(subscription, service, visitor.token, service.registry.delivery(id))
    newest = before is None and wanted == EVERYTHING
    data: dict[str, Any] = {
        "subscription": shown,
        "refers_to": references(subscription.text, service.preview.engine),
        "webhook": shown["webhook"],
        "feeds": feed_cards(subscription, service.settings),
        "channels": [
            card(view, service.clock())
            for view in service.channels.views(service.channels.of_subscription(id))
        ],
        **listing(visiting, titles, wanted, before=last + 1 if before is None else before, lines=PAGE),
        "causes": undecided_causes(visiting, titles, until=last) if newest else [],
        **wanted._asdict(),
    }
    secrets = flash_secret.read_secrets(request) if not problem else {}
    there = {channel["id"] for channel in data["channels"]}
    response = render(
        request,
        "subscription.html",
        data,
        other_channels=[
            (channel.id, channel.title or channel.address)
            for channel in service.channels.page(visitor, limit=MOST_CHANNELS)
            if channel.id not in there and channel.owner == subscription.owner and channel.state is not ENDED
        ],
        visitor=visitor,
        status=status,
        problem=problem,
        last=last,
        newest=newest,
        before=before,
        needs_ticket=not visitor.token,
        validities=validities(service.settings),
        ticket=secrets.get("ticket"),
        webhook_secret=secrets.get("webhook_secret"),
        warnings=secrets.get("warnings", ()),
        webhook_test=secrets.get("webhook_test"),
    )
    if secrets:
        flash_secret.clear_secrets(response, service.settings, f"/subscriptions/{id}")
    return response


def _raw(event: Event) -> str:
    """An event nearly as it was published: the envelope, the attributes, then the data if it is a text."""
    envelope = {name: getattr(event, name) for name in ("id", "source", "type", "time", "datacontenttype")}
    envelope = {
        name: value for name, value in {**envelope, **event.attributes}.items() if value not in ("", None)
    }
    text = json.dumps(envelope, indent=2, ensure_ascii=False, default=str)[:_RAW]
    if event.data and not event.attributes:
        text += "\n\n" + event.data[:_RAW].decode(errors="replace")
    return text
