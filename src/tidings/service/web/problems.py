"""Answers errors as problem details (RFC 9457), with a sentence that says what to change.

Every failing request gets one of these and never a traceback; an unexpected error is a 500 that names the
request, so that the log can be searched for it. Types are addresses relative to the service:
"/problems/not-found".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match

from tidings.errors import EventError, SubscriptionError, TaxonomyError, TidingsError
from tidings.kinds.networks.faults import NetworkError
from tidings.service.store.registry import Conflict
from tidings.storage.event_log import LogError

MEDIA_TYPE = "application/problem+json"
_MOST, _SHOWN, _NESTED = 100, 200, 10  # wrong values reported, characters of a name, names of a place

KINDS: Mapping[int, tuple[str, str]] = {
    400: ("bad-request", "The request cannot be read"),
    401: ("unauthorized", "A token is needed"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "There is no such thing"),
    405: ("method-not-allowed", "Not done this way"),
    406: ("not-acceptable", "No such form"),
    408: ("too-slow", "The request took too long"),
    409: ("conflict", "It was changed, or is over"),
    410: ("gone", "It is over"),
    411: ("length-required", "The length is needed"),
    412: ("precondition", "It was changed meanwhile"),
    413: ("too-large", "The body is too large"),
    414: ("uri-too-long", "The address is too long"),
    415: ("media-type", "The body is of another kind"),
    421: ("misdirected", "Another host was meant"),
    422: ("invalid", "A value cannot be accepted"),
    429: ("too-many", "Too many requests"),
    500: ("internal", "The service failed"),
    503: ("unavailable", "Not now"),
}
# In place of Pydantic's own messages, by the type of its error.
_SENTENCES = {
    "missing": "it is missing; send it",
    "extra_forbidden": "nothing of this name is known here; leave it out, or look for the name in /openapi.json",
    "string_type": "it must be a text",
    "string_too_long": "it has more than {max_length} characters; shorten it",
    "string_too_short": "it has fewer than {min_length} characters; make it longer",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "float_parsing": "it must be a number",
    "finite_number": "it must be a number that is not infinite",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "list_type": "it must be a list",
    "dict_type": "it must be an object",
    "model_type": "it must be an object",
    "model_attributes_type": "it must be an object",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be {ge} or more",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be {le} or less",
    "enum": "it must be {expected}",
    "literal_error": "it must be {expected}",
    "too_long": "it has more than {max_length} items; give fewer",
    "too_short": "it has fewer than {min_length} items; give more",
}


class Problem(HTTPException):
    """An error answer. `extra` are members beside those of the RFC; `kind` overrides that of the status."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.kind = kind
        self.extra = extra

    def body(self, instance: str | None = None) -> dict[str, Any]:
        name, title = KINDS.get(self.status_code, ("error", "The request failed"))
        body = {
            "type": f"/problems/{self.kind or name}",
            "title": title,
            "status": self.status_code,
            "detail": self.detail,
        }
        if instance is not None:
            body["instance"] = instance
        return {**body, **{key: value for key, value in self.extra.items() if value is not None}}

    def response(self, instance: str | None = None) -> Response:
        return Response(
            dumps(self.body(instance)), self.status_code, media_type=MEDIA_TYPE, headers=self.headers
        )


Page = Callable[[Request, Problem], Response]


def install(app: FastAPI, page: Page | None = None) -> None:
    """Adds handlers for errors of every kind. `page` renders them for browsers that accept HTML outside the API."""

    async def handle(request: Request, error: Exception) -> Response:
        return answer(request, error, page)

    for kind in (
        HTTPException,
        RequestValidationError,
        TidingsError,
        DBAPIError,
        PoolTimeout,
        ClientDisconnect,
        Exception,
    ):
        app.add_exception_handler(kind, handle)


def answer(request: Request, error: Exception, page: Page | None = None) -> Response:
    """The answer to a request that ended with an error."""
    problem = problem_of(error)
    if problem.status_code == 405:
        problem = _other_methods(request)
    if problem.status_code >= 500 and problem.status_code != 503:
        problem.extra.setdefault("request", getattr(request.state, "request_id", None))
    if page is not None and for_people(request):
        return page(request, problem)
    return problem.response(request.url.path)


def for_people(request: Request) -> bool:
    """Whether the client wants HTML: it names HTML before JSON, and the address is outside the API."""
    if request.url.path.startswith(("/api/", "/feeds/", "/xmlrpc")):
        return False
    accepts = request.headers.get("accept", "")
    html, plain = accepts.find("text/html"), accepts.find("json")
    return html >= 0 and (plain < 0 or html < plain)


def problem_of(error: Exception) -> Problem:
    """The problem for an error. An error may have a `status`, and `retry_after` in seconds."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return Problem(error.status_code, _detail(error), headers=error.headers)
    if isinstance(error, ClientDisconnect):  # for the log and the metrics: nobody reads it
        return Problem(400, "the connection was closed before the whole request had come; send it again")
    if isinstance(error, RequestValidationError):
        return invalid(error.errors())
    if isinstance(error, SubscriptionError):
        return Problem(422, str(error), kind="subscription", line=error.line, column=error.column)
    if isinstance(error, EventError):
        return Problem(_status(error, 400), str(error), kind="event")
    if isinstance(error, TaxonomyError | NetworkError):
        return Problem(_status(error, 422), str(error))
    if isinstance(error, Conflict):
        return Problem(409, str(error))
    if isinstance(error, LogError):
        return Problem(503, str(error), headers={"Retry-After": "5"})
    if isinstance(error, TidingsError):
        status = _status(error, 400)
        headers = {}
        if status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="tidings"'
        if status in (429, 503):
            headers["Retry-After"] = str(max(1, math.ceil(getattr(error, "retry_after", None) or 1)))
        return Problem(status, str(error), headers=headers)
    if isinstance(error, OperationalError | InterfaceError | PoolTimeout):
        return Problem(
            503, "the store does not answer; try again in a few seconds", headers={"Retry-After": "5"}
        )
    return Problem(
        500, "something went wrong that is not your fault; the service's log says what, under this request"
    )


def _other_methods(request: Request) -> Problem:
    """The methods of an address: Starlette names those of the first route only."""
    taken = []
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            taken.append(method)
    named = ", ".join(taken)
    return Problem(405, f"this address takes {named}, not {request.method[:20]}", headers={"Allow": named})


def _status(error: TidingsError, otherwise: int) -> int:
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else otherwise


def _detail(error: HTTPException) -> str:
    """The detail of an HTTP error: a sentence with a next step in place of Starlette's "Not Found"."""
    if error.status_code == 404:
        return "nothing is at this address; /openapi.json lists what is"
    if error.status_code == 400 and "parsing the body" in str(error.detail):
        return "the body cannot be read as JSON: its encoding, its depth or a number in it is wrong; send plain UTF-8 JSON"
    return str(error.detail)


def invalid(errors: Sequence[Any]) -> Problem:
    """The problem for parameters and bodies that Pydantic found invalid, each with its place."""
    if errors and all(error["loc"][:1] == ("path",) for error in errors):
        return Problem(404, "nothing has this id; look at the list for those there are")
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is not None:
        why = broken.get("ctx", {}).get("error", "it is broken")
        return Problem(400, f"the body is not JSON: {why} at character {broken['loc'][-1]}; fix it there")
    places = [
        {
            "place": ".".join(str(part)[:_SHOWN] for part in error["loc"][:_NESTED]) or "body",
            "message": _sentence(error),
        }
        for error in errors[:_MOST]
    ]
    first = places[0] if places else {"place": "body", "message": "it cannot be accepted"}
    more = f" ({len(errors) - 1:,} more)" if len(errors) > 1 else ""
    return Problem(422, f"{first['place']}: {first['message']}{more}", errors=places)


def _sentence(error: Mapping[str, Any]) -> str:
    """An error in our own words; in those of the library for the few that have none here."""
    kind, context = error["type"], error.get("ctx", {})
    if context.get("field_type") == "Value":  # a text whose length is checked after a check of ours
        kind = f"string_{kind}"
    try:
        return _SENTENCES[kind].format_map(context)
    except KeyError:
        message = str(error["msg"]).removeprefix("Value error, ")
        return message[:1].lower() + message[1:]


def dumps(value: object) -> bytes:
    """JSON that any reader accepts, also where a request had lone surrogates in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")
