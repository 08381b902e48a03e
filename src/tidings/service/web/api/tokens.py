"""Operations on tokens, for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from tidings.service.model import Role
from tidings.service.subscriptions.scopes import check_scope
from tidings.service.web.api import responses
from tidings.service.web.api.callers import CurrentCaller, problems, router
from tidings.service.web.api.models import NewToken, TokenCreated, Tokens
from tidings.service.web.problems import Problem

api = router("tokens")


@api.get(
    "/tokens",
    operation_id="list_tokens",
    summary="List all tokens, revoked ones too",
    responses=problems(403),
)
def list_tokens(caller: CurrentCaller) -> Tokens:
    caller.need(Role.ADMIN)
    used = caller.service.access.last_used
    return Tokens(
        items=[responses.token(token, used(token.id)) for token in caller.service.registry.tokens()]
    )


@api.post(
    "/tokens", operation_id="create_token", summary="Add a token", status_code=201, responses=problems(403)
)
def create_token(caller: CurrentCaller, new: NewToken) -> TokenCreated:
    """The secret of the token is shown only once, in this answer."""
    caller.need(Role.ADMIN)
    token, secret = caller.service.access.grant(
        new.name,
        new.role,
        subscriptions=new.subscriptions,
        events_per_second=new.events_per_second,
        requests_per_second=new.requests_per_second,
        sources=new.sources,
        scope=check_scope(new.scope),
    )
    return TokenCreated(**responses.token(token, None).model_dump(), secret=secret)


@api.delete(
    "/tokens",
    operation_id="end_token",
    summary="Revoke a token",
    status_code=204,
    responses=problems(403, 404),
)
def end_token(
    caller: CurrentCaller, id: Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Its id.")]
) -> None:
    """The token is refused from now on. Its subscriptions stay."""
    caller.need(Role.ADMIN)
    if not caller.service.access.end(id):
        raise Problem(404, "there is no such token, or it was revoked already; look at the list of tokens")
