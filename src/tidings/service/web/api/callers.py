"""Resolves the caller of a request: its principal, counted against the limits, and the service.

A token comes in the Authorization header, or a session of the page in its cookie; see `AccessControl`. JSON is
accepted with the JSON media type only: a form of another site can send everything but that without a preflight
request.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from tidings.service.model import Principal, Role
from tidings.service.owners import HEADER, UserError
from tidings.service.web.csrf import SESSION_COOKIE
from tidings.service.web.problems import Problem

if TYPE_CHECKING:
    from tidings.service.service import Service

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token, `tid_…`. On a machine of one's own none is needed.",
)


@dataclass(frozen=True, slots=True)
class Caller:
    service: Service
    principal: Principal

    def need(self, role: Role) -> None:
        self.service.access.need(self.principal, role)


async def principal_of(request: Request) -> Principal:
    """The principal of a request. Looking up a token is kept off the event loop."""
    access = request.app.state.service.access
    authorization, session = request.headers.get("authorization"), request.cookies.get(SESSION_COOKIE)
    user = _user_of(request)
    if authorization is None and session is None:
        return access.principal(user=user)
    return await run_in_threadpool(access.principal, authorization, session, user)


def _user_of(request: Request) -> str | None:
    """The user whom the request is for: a header is bytes, and here they are UTF-8."""
    users = request.headers.getlist(HEADER)
    if len(users) > 1:
        raise UserError(f"the request names {len(users):,} users; send {HEADER} once")
    try:
        return users[0].encode("latin-1").decode() if users else None
    except UnicodeDecodeError:
        raise UserError(f"the user is not UTF-8; encode {HEADER} so") from None


def _documented(
    user: Annotated[
        str | None,
        Header(
            alias=HEADER,
            description="The user whom the request is for, as a delegate names its own. Only with the token of a delegate.",
        ),
    ] = None,
) -> None:
    """Describes the header of `principal_of` in the reference of the API."""


async def caller(request: Request) -> Caller:
    principal = await principal_of(request)
    service = request.app.state.service
    if principal.token:
        await run_in_threadpool(service.access.count_request, principal)
    return Caller(service, principal)


CurrentCaller = Annotated[Caller, Depends(caller)]
Ticket = Annotated[
    str | None,
    Header(
        alias="Tidings-Ticket",
        max_length=200,
        description="The ticket that was shown when the subscription began. The owner's token does as well.",
    ),
]


class JsonRoute(APIRoute):
    """A route whose body must have the JSON media type: 415 otherwise."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None

        async def checked(request: Request) -> Response:
            if takes_json and not _is_json(request):
                raise Problem(
                    415,
                    "the body is JSON here; send it as Content-Type: application/json",
                    headers={"Accept": "application/json"},
                )
            return await handle(request)

        return checked


def _is_json(request: Request) -> bool:
    headers = request.headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "":
        return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def router(tag: str) -> APIRouter:
    """A router of the API whose operations take a token."""
    dependencies = [Security(bearer), Depends(_documented)]
    return APIRouter(prefix="/api", tags=[tag], route_class=JsonRoute, dependencies=dependencies)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented errors of an operation; those of every operation are documented as "default"."""
    return dict.fromkeys(statuses, PROBLEM)


PROBLEM: dict[str, Any] = {
    "description": "What is wrong, and what to change.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}
