"""Operations on subscriptions: subscribe, list, edit, renew, pause, resume, cancel; and their webhooks."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Header, Path, Query, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tidings.service import model
from tidings.service.delivery.webhook_attempts import DELIVERED
from tidings.service.model import State
from tidings.service.owners import LONGEST_USER
from tidings.service.subscriptions.lifecycle import Edit, read_validity
from tidings.service.web.api import responses
from tidings.service.web.api.callers import Caller, CurrentCaller, Ticket, problems, router
from tidings.service.web.api.cursors import Cursor, Limit, link, read_id_cursor
from tidings.service.web.api.models import (
    NewSubscription,
    Renewal,
    ResponseModel,
    Subscription,
    SubscriptionChange,
    SubscriptionCreated,
    SubscriptionEdited,
    SubscriptionPage,
    Ticketed,
    WebhookSettings,
    WebhookWithSecret,
)
from tidings.service.web.problems import Problem

api = router("subscriptions")


class WebhookTest(ResponseModel):
    delivered: bool
    status: int | None = Field(description="The HTTP status of the receiver's answer; null: there was none.")
    seconds: float = Field(description="Until the answer, or until it was given up.")
    error: str | None = Field(description="Why it was not delivered.")


Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The id of a subscription.")]


@api.post(
    "/subscriptions",
    operation_id="subscribe",
    summary="Add a subscription",
    status_code=201,
    responses=problems(422, 429),
)
def subscribe(caller: CurrentCaller, new: NewSubscription, response: Response) -> SubscriptionCreated:
    """What is published after the answer is matched. The ticket in the answer is shown only once. At a relay, a subscription that
    the upstream service refuses is answered with the state `unanswerable` and the reason."""
    begun = caller.service.lifecycle.subscribe(
        caller.principal,
        new.text,
        title=new.title,
        validity=read_validity(new.valid_for),
        public=new.public,
        webhook=new.webhook,
        tags=new.tags,
    )
    settings, subscription = caller.service.settings, begun.subscription
    if begun.webhook is not None:
        caller.service.webhooks.poke(subscription.id)
    response.headers["Location"] = f"{settings.address}/api/subscriptions/{subscription.id}"
    return SubscriptionCreated(
        **responses.subscription(subscription, settings, begun.webhook).model_dump(),
        ticket=begun.ticket,
        webhook_secret=None if begun.webhook is None else begun.webhook.secret,
        warnings=list(begun.warnings),
    )


@api.get("/subscriptions", operation_id="list_subscriptions", summary="List my subscriptions, newest first")
def list_subscriptions(
    caller: CurrentCaller,
    response: Response,
    *,
    state: Annotated[State | None, Query(description="Only those in this state.")] = None,
    search: Annotated[
        str, Query(max_length=200, description="Only those whose text or title has this.")
    ] = "",
    tag: Annotated[str, Query(max_length=200, description="Only those with this tag.")] = "",
    user: Annotated[
        str | None, Query(max_length=LONGEST_USER, description="Only those of this user of a delegate.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> SubscriptionPage:
    after = read_id_cursor(cursor)
    lifecycle, settings = caller.service.lifecycle, caller.service.settings
    search, tag = search.replace("\0", " "), tag.replace("\0", " ")
    principal = caller.principal
    if user is not None:
        principal = caller.service.access.on_behalf(principal, user)
    found = lifecycle.page(principal, state=state, search=search, tag=tag, after=after, limit=limit + 1)
    page, more = found[:limit], len(found) > limit
    next = page[-1].id if more else None
    response.headers.update(
        link(
            settings,
            "/api/subscriptions",
            next,
            {"state": state, "search": search, "tag": tag, "user": user or "", "limit": limit},
        )
    )
    return SubscriptionPage(
        items=[responses.subscription(subscription, settings) for subscription in page], next=next
    )


@api.get(
    "/subscriptions/{id}",
    operation_id="get_subscription",
    summary="Get a subscription",
    responses=problems(404),
)
def get_subscription(caller: CurrentCaller, id: Id, response: Response) -> Subscription:
    subscription = caller.service.lifecycle.find(caller.principal, id)
    response.headers["ETag"] = f'"{subscription.revision}"'
    return responses.subscription(subscription, caller.service.settings, caller.service.registry.delivery(id))


@api.patch(
    "/subscriptions/{id}",
    operation_id="edit_subscription",
    summary="Edit a subscription",
    responses=problems(403, 404, 409, 410, 412, 422),
)
def edit_subscription(
    caller: CurrentCaller,
    id: Id,
    change: SubscriptionChange,
    response: Response,
    ticket: Ticket = None,
    if_match: Annotated[
        str | None,
        Header(max_length=100, description='`"revision"`: change only this one, and answer 412 otherwise.'),
    ] = None,
) -> SubscriptionEdited:
    """It keeps its id, its ticket, its feeds and its notifications. What is published after the answer is matched with
    the new text. `valid_for` counts from now, and wakes an expired one."""
    named = {name: getattr(change, name) for name in change.model_fields_set - {"ticket", "valid_for"}}
    if "valid_for" in change.model_fields_set:
        named["validity"] = read_validity(change.valid_for)
    edit = Edit(**named, revision=_revision(if_match))
    edited = caller.service.lifecycle.edit(caller.principal, id, ticket or change.ticket, edit)
    if edited.webhook is not None:
        caller.service.webhooks.poke(id)
    response.headers["ETag"] = f'"{edited.subscription.revision}"'
    return SubscriptionEdited(
        **_changed(caller, id, edited.subscription).model_dump(),
        webhook_secret=None if edited.webhook is None else edited.webhook.secret,
        warnings=list(edited.warnings),
    )


@api.post(
    "/subscriptions/{id}/renew",
    operation_id="renew_subscription",
    summary="Renew a subscription",
    responses=problems(403, 404, 410),
)
def renew_subscription(
    caller: CurrentCaller, id: Id, renewal: Renewal | None = None, ticket: Ticket = None
) -> Subscription:
    """Its validity begins anew; an expired subscription becomes active again."""
    wanted = renewal or Renewal()
    validity = read_validity(wanted.valid_for)
    subscription = caller.service.lifecycle.renew(caller.principal, id, ticket or wanted.ticket, validity)
    return _changed(caller, id, subscription)


@api.post(
    "/subscriptions/{id}/pause",
    operation_id="pause_subscription",
    summary="Pause a subscription",
    responses=problems(403, 404, 410),
)
def pause_subscription(
    caller: CurrentCaller, id: Id, with_ticket: Ticketed | None = None, ticket: Ticket = None
) -> Subscription:
    subscription = caller.service.lifecycle.pause(caller.principal, id, ticket or _of(with_ticket))
    return _changed(caller, id, subscription)


@api.post(
    "/subscriptions/{id}/resume",
    operation_id="resume_subscription",
    summary="Resume a paused subscription",
    responses=problems(403, 404, 410),
)
def resume_subscription(
    caller: CurrentCaller, id: Id, with_ticket: Ticketed | None = None, ticket: Ticket = None
) -> Subscription:
    subscription = caller.service.lifecycle.resume(caller.principal, id, ticket or _of(with_ticket))
    return _changed(caller, id, subscription)


@api.delete(
    "/subscriptions/{id}",
    operation_id="cancel_subscription",
    summary="Cancel a subscription for good",
    responses=problems(403, 404, 410),
)
def cancel_subscription(caller: CurrentCaller, id: Id, ticket: Ticket = None) -> Subscription:
    subscription = caller.service.lifecycle.cancel(caller.principal, id, ticket)
    return responses.subscription(subscription, caller.service.settings)


@api.put(
    "/subscriptions/{id}/webhook",
    operation_id="set_webhook",
    summary="Set the webhook of a subscription",
    responses=problems(403, 404, 410),
)
def set_webhook(
    caller: CurrentCaller, id: Id, webhook: WebhookSettings, ticket: Ticket = None
) -> WebhookWithSecret:
    """Signed by the Standard Webhooks rules, with a new secret that is shown only once. What was not delivered to the
    address before goes to this one."""
    delivery = caller.service.lifecycle.set_webhook(
        caller.principal, id, ticket or webhook.ticket, webhook.url
    )
    caller.service.webhooks.poke(id)
    return WebhookWithSecret(**responses.webhook(delivery).model_dump(), secret=delivery.secret)


@api.delete(
    "/subscriptions/{id}/webhook",
    operation_id="remove_webhook",
    summary="Remove the webhook of a subscription",
    status_code=204,
    responses=problems(403, 404, 410),
)
def remove_webhook(caller: CurrentCaller, id: Id, ticket: Ticket = None) -> None:
    caller.service.lifecycle.remove_webhook(caller.principal, id, ticket)


@api.post(
    "/subscriptions/{id}/webhook/test",
    operation_id="send_webhook_test",
    summary="Send a test delivery to the webhook of a subscription",
    responses=problems(403, 404, 409, 410, 429),
)
async def send_webhook_test(
    caller: CurrentCaller, id: Id, with_ticket: Ticketed | None = None, ticket: Ticket = None
) -> WebhookTest:
    """A message of the type `tidings.test`, signed as every delivery. What is waiting for the webhook stays as it is."""
    return await send_test(caller, id, ticket or _of(with_ticket))


async def send_test(caller: Caller, id: str, ticket: str | None) -> WebhookTest:
    service = caller.service

    def webhook() -> model.Delivery:
        service.lifecycle.changeable(caller.principal, id, ticket)
        found = service.registry.delivery(id)
        if found is None:
            raise Problem(409, f"subscription {id} has no webhook; set one first")
        service.access.count_webhook_test(id)
        return found

    delivery = await run_in_threadpool(webhook)
    began = time.monotonic()
    outcome = await service.webhooks.test(delivery)
    return WebhookTest(
        delivered=outcome.result == DELIVERED,
        status=outcome.status,
        seconds=round(time.monotonic() - began, 3),
        error=outcome.error,
    )


def _revision(if_match: str | None) -> int | None:
    """The revision of an If-Match header; None if any will do."""
    tag = "*" if if_match is None else if_match.strip().removeprefix("W/").strip('"')
    if tag == "*":
        return None
    return int(tag) if tag.isdecimal() and len(tag) < 19 else -1  # which is none


def _of(body: Ticketed | None) -> str | None:
    return None if body is None else body.ticket


def _changed(caller: Caller, id: str, subscription: model.Subscription) -> Subscription:
    return responses.subscription(subscription, caller.service.settings, caller.service.registry.delivery(id))
