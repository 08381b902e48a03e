"""/tokens: lists the access tokens, adds and revokes them; for admins. The secret of a new one is shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from tidings.service.delivery.notification_json import moment
from tidings.service.model import Role
from tidings.service.web.api import tokens as api
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.models import NewToken
from tidings.service.web.pages import flash_secret
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.visitor import Form, Visiting, text_of
from tidings.service.web.problems import Problem, invalid

pages = APIRouter()

ROLES = {
    Role.SUBSCRIBER: "reads and changes its own subscriptions",
    Role.PUBLISHER: "publishes events and follows feeds",
    Role.DELEGATE: "subscribes for users who have no tokens, publishes, and replaces the taxonomy; as a content management"
    " system does",
    Role.RELAY: "opens the link of a relay, and reads its events",
    Role.ADMIN: "everything, tokens too",
}


@pages.get("/tokens")
def show(request: Request, visiting: Visiting) -> Response:
    return _show(request, visiting)


@pages.post("/tokens")
async def add(request: Request, visiting: Visiting, form: Form) -> Response:
    return await run_in_threadpool(_add, request, visiting, form)


@pages.post("/tokens/revoke")
async def revoke(request: Request, visiting: Visiting, form: Form) -> Response:
    def step() -> Response:
        api.end_token(visiting, text_of(form, "id"))
        return sent_to("/tokens", "revoked")

    return await run_in_threadpool(step)


def _add(request: Request, visiting: Caller, form: Mapping[str, str | UploadFile]) -> Response:
    visiting.need(Role.ADMIN)
    name = text_of(form, "name").strip()
    try:
        new = NewToken(name=name, role=Role(text_of(form, "role")))
    except ValidationError as error:
        problem = invalid(error.errors(include_url=False, include_input=False))
        return _show(request, visiting, status=problem.status_code, problem=problem.detail, name=name)
    except ValueError:
        raise Problem(
            422, f"a token has one of the roles {', '.join(role.value for role in ROLES)}; choose one"
        ) from None
    made = api.create_token(visiting, new)
    response = sent_to("/tokens")
    secrets = {"token_name": made.name, "token_secret": made.secret}
    flash_secret.set_secrets(response, visiting.service.settings, "/tokens", secrets)
    return response


def _show(
    request: Request, visiting: Caller, *, status: int = 200, problem: str = "", name: str = ""
) -> Response:
    service = visiting.service
    found = api.list_tokens(visiting).model_dump(mode="json")["items"]
    data: dict[str, Any] = {
        "tokens": [token for token in found if token["ended"] is None],
        "revoked": [token for token in reversed(found) if token["ended"] is not None],
        "since": moment(service.metrics.rates.began),
    }
    secrets = flash_secret.read_secrets(request) if not problem else {}
    response = render(
        request,
        "tokens.html",
        data,
        visitor=visiting.principal,
        status=status,
        problem=problem,
        roles=ROLES,
        name=name,
        own=visiting.principal.token,
        new_name=secrets.get("token_name", ""),
        new_secret=secrets.get("token_secret", ""),
    )
    if secrets:
        flash_secret.clear_secrets(response, service.settings, "/tokens")
    return response
