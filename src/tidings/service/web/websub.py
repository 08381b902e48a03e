"""The HTTP side of WebSub: the hub of this service's feeds, and the callbacks of feeds that it follows.

Errors are plain text, as WebSub recommends. A callback's address is a secret of this service and of one hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from tidings.errors import TidingsError
from tidings.service.subscriptions.access_control import TooMany
from tidings.service.web.api.callers import PROBLEM
from tidings.service.websub.hub_requests import FORM, read_request

if TYPE_CHECKING:
    from tidings.service.service import Service

api = APIRouter(tags=["websub"])
Key = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,100}$", description="The secret of the callback.")]
_TEXT: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@api.post(
    "/websub",
    operation_id="request_push",
    summary="Request or end the pushing of a feed",
    status_code=202,
    response_class=PlainTextResponse,
    responses={
        202: {"description": "The callback will be asked whether it wants this.", **_TEXT},
        400: {"description": "What is wrong with the form.", **_TEXT},
        415: {"description": "It is no form.", **_TEXT},
        422: {"description": "The callback must not be called.", **_TEXT},
        429: {"description": "Too many requests.", **_TEXT},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                FORM: {
                    "schema": {
                        "type": "object",
                        "required": ["hub.mode", "hub.topic", "hub.callback"],
                        "properties": {
                            "hub.mode": {"type": "string", "enum": ["subscribe", "unsubscribe"]},
                            "hub.topic": {
                                "type": "string",
                                "description": "The address of a feed, rel=self.",
                            },
                            "hub.callback": {"type": "string", "description": "Where it is posted to."},
                            "hub.lease_seconds": {"type": "integer", "minimum": 1},
                            "hub.secret": {"type": "string", "description": "Fewer than 200 bytes."},
                        },
                    }
                }
            },
        }
    },
)
async def request_push(request: Request) -> PlainTextResponse:
    """The hub of WebSub. The answer says only that the request was read; a feed that does not exist is denied later,
    at the callback."""
    service: Service = request.app.state.service
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        return PlainTextResponse(f"the hub takes a form; send it as {FORM}\n", 415)
    try:
        read = read_request(await request.body(), service.feed_documents, service.settings.allowed)
        service.access.count_verification(read.host)
        service.websub_hub.accept(read)
    except TooMany as error:
        headers = {"Retry-After": f"{max(1, round(error.retry_after + 0.5))}"}
        return PlainTextResponse(f"{error}\n", error.status, headers)
    except TidingsError as error:
        return PlainTextResponse(f"{error}\n", getattr(error, "status", 400))
    return PlainTextResponse("the callback will be asked whether it wants this\n", 202)


@api.get(
    "/websub/callbacks/{key}",
    operation_id="verify_push",
    summary="Check what a hub says of a followed feed",
    response_class=PlainTextResponse,
    responses={
        200: {
            "description": "The challenge.",
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        },
        404: {"description": "This was not asked for.", "content": _TEXT["content"] | PROBLEM["content"]},
    },
)
def verify_push(request: Request, key: Key) -> Response:
    """For hubs of followed feeds: a subscription is verified or denied."""
    service: Service = request.app.state.service
    body = service.websub_callbacks.verify(key, request.query_params)
    if body is None:
        return PlainTextResponse("this service did not ask for that\n", 404)
    # No browser shows it, whatever the challenge is.
    return Response(
        body, media_type="application/octet-stream", headers={"X-Content-Type-Options": "nosniff"}
    )


@api.post(
    "/websub/callbacks/{key}",
    operation_id="take_push",
    summary="Send a followed feed that has changed",
    status_code=202,
    response_class=PlainTextResponse,
    responses={
        202: {"description": "It has come.", **_TEXT},
        410: {"description": "The subscription has ended.", **_TEXT},
        503: {"description": "Too many feeds wait; send it again.", **_TEXT},
    },
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/*": {"schema": {"type": "string"}}}}
    },
)
async def take_push(request: Request, key: Key) -> Response:
    """For hubs of followed feeds. The answer says only that it has come: what is not signed is dropped."""
    service: Service = request.app.state.service
    push = await run_in_threadpool(service.websub_callbacks.known, key)
    if push is None:
        return PlainTextResponse("the subscription has ended\n", 410)
    body = await request.body()
    if not await run_in_threadpool(service.websub_callbacks.take, push, request.headers, body):
        return PlainTextResponse("too many feeds wait; send it again\n", 503, {"Retry-After": "30"})
    return PlainTextResponse("", 202)
