"""Many subscriptions at once: begun by one request, and exported as lines of JSON that such a request takes back.

Each item is checked by itself, and a mistake in one affects no other; all that are right are stored in one transaction, and the
index is waited for once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from tidings.errors import SubscriptionError, TidingsError
from tidings.formats.strict_json import StrictJson
from tidings.service import model
from tidings.service.ingest.request_bodies import LINES
from tidings.service.model import Role, State
from tidings.service.owners import HEADER, UserError, user_of
from tidings.service.store.transactions import StoreError
from tidings.service.subscriptions.lifecycle import Subscribed, read_validity
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.models import BulkAnswer, BulkItem, BulkSubscription
from tidings.service.web.problems import Problem, dumps, invalid, problem_of

api = router("subscriptions")

MOST = 10_000  # subscriptions of a request
_LINE = re.compile(rb"[^\s][^\n]*")
_BODY = {
    "requestBody": {
        "required": True,
        "description": "A list of subscriptions, or one on each line.",
        "content": {
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            "application/x-ndjson": {"schema": {"type": "string"}},
        },
    }
}


@api.post(
    "/subscriptions/bulk",
    operation_id="subscribe_many",
    summary="Add many subscriptions",
    responses=problems(400, 403, 413, 415),
    openapi_extra=_BODY,
)
async def subscribe_many(request: Request, caller: CurrentCaller) -> BulkAnswer:
    """Each is answered with its id and its ticket, or with why it was refused, which costs no other. What is published
    after the answer is matched."""
    caller.need(Role.SUBSCRIBER)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and kind not in LINES:
        raise Problem(415, "send a list as application/json, or lines as application/x-ndjson")
    body = await request.body()
    return await run_in_threadpool(_subscribe, caller, _lines if kind in LINES else _list, body)


@api.get(
    "/subscriptions.ndjson",
    operation_id="export_subscriptions",
    summary="Export my subscriptions, one on each line",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Lines that `subscribe_many` takes.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    },
)
def export_subscriptions(caller: CurrentCaller) -> StreamingResponse:
    """All that are active or paused, with the time that is left to them."""
    caller.need(Role.SUBSCRIBER)
    owner = None if caller.principal.role is Role.ADMIN else caller.principal.token
    lines = _exported(caller, owner)
    begin = list(
        islice(lines, 1)
    )  # a store that is away is reported by the status, not by an answer cut short
    return StreamingResponse(
        chain(begin, lines),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": 'attachment; filename="subscriptions.ndjson"'},
    )


def _subscribe(caller: Caller, read: Callable[[bytes], Iterable[tuple[str, Any]]], body: bytes) -> BulkAnswer:
    places: list[str] = []
    results: list[Subscribed | TidingsError | Problem] = []
    for place, value in read(body):
        if len(places) == MOST:
            raise Problem(
                413, f"the body has more than {MOST:,} subscriptions; send them in several requests"
            )
        places.append(place)
        results.append(_prepared(caller, value))
    right = [number for number, result in enumerate(results) if isinstance(result, Subscribed)]
    begun = caller.service.lifecycle.begin(
        caller.principal, [result for result in results if isinstance(result, Subscribed)]
    )
    for number, result in zip(right, begun, strict=True):
        results[number] = result
        if isinstance(result, Subscribed) and result.webhook is not None:
            caller.service.webhooks.poke(result.subscription.id)
    items = [_item(place, result) for place, result in zip(places, results, strict=True)]
    refused = sum(item.error is not None for item in items)
    return BulkAnswer(subscribed=len(items) - refused, refused=refused, items=items)


def _prepared(caller: Caller, value: Any) -> Subscribed | TidingsError | Problem:
    if isinstance(value, TidingsError):
        return value
    try:
        new = BulkSubscription.model_validate(value)
        if new.user not in (None, user_of(caller.principal.token)):
            return UserError(
                f"this is of the user {new.user!r}; send it with the header {HEADER}: {new.user}"
            )
        return caller.service.lifecycle.prepare(
            caller.principal,
            new.text,
            title=new.title,
            validity=read_validity(new.valid_for),
            public=new.public,
            webhook=new.webhook,
            tags=new.tags,
            one_of_many=True,
            paused=new.state == "paused",
        )
    except ValidationError as error:
        return invalid(error.errors(include_url=False, include_input=False))
    except StoreError:
        raise
    except TidingsError as error:
        return error


def _item(place: str, result: Subscribed | TidingsError | Problem) -> BulkItem:
    if isinstance(result, Subscribed):
        return BulkItem(
            place=place,
            id=result.subscription.id,
            state=result.subscription.state,
            reason=result.subscription.reason,
            ticket=result.ticket,
            webhook_secret=None if result.webhook is None else result.webhook.secret,
            warnings=list(result.warnings),
        )
    line, column = (result.line, result.column) if isinstance(result, SubscriptionError) else (None, None)
    return BulkItem(place=place, error=problem_of(result).detail, line=line, column=column)


def _list(body: bytes) -> Iterator[tuple[str, Any]]:
    """The places and values of a list; a value that is not sound JSON is an error."""
    strict = StrictJson()
    values = strict.read(body)
    if not isinstance(values, list):
        raise Problem(422, "the body is a list of subscriptions; one alone goes to /api/subscriptions")
    for number, value in enumerate(values, 1):
        yield f"item {number}", _sound(strict, value)


def _lines(body: bytes) -> Iterator[tuple[str, Any]]:
    strict, number, position = StrictJson(), 1, 0
    for line in _LINE.finditer(body):
        number += body.count(b"\n", position, line.start())
        position = line.start()
        try:
            yield f"line {number}", _sound(strict, strict.read(line[0]))
        except TidingsError as error:
            yield f"line {number}", error


def _sound(strict: StrictJson, value: Any) -> Any:
    fault = strict.fault(value)
    return value if fault is None else TidingsError(fault)


def _exported(caller: Caller, owner: str | None) -> Iterator[bytes]:
    service = caller.service
    for portion in service.registry.standing(owner):
        webhooks = service.registry.deliveries_of([subscription.id for subscription in portion])
        now = service.clock()
        yield b"".join(_line(subscription, webhooks.get(subscription.id), now) for subscription in portion)


def _line(subscription: model.Subscription, webhook: model.Delivery | None, now: float) -> bytes:
    until = subscription.valid_until
    exported = {
        "id": subscription.id,
        "text": subscription.text,
        "title": subscription.title,
        "public": subscription.public,
        "valid_for": "never" if until is None else max(1.0, round(until - now, 3)),
        "webhook": None if webhook is None else webhook.url,
        "tags": list(subscription.tags),
        "state": "paused" if subscription.state is State.PAUSED else "active",
    }
    if (user := user_of(subscription.owner)) is not None:
        exported["user"] = user
    return dumps(exported) + b"\n"
