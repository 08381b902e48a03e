"""/subscriptions/{id}/edit: changes a subscription in place, after comparing the answers of both texts on recent events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from tidings.errors import SubscriptionError, TidingsError
from tidings.service.model import State, Subscription
from tidings.service.subscriptions.access_control import NotFound, Unauthorized
from tidings.service.subscriptions.lifecycle import Edit, title_of_text
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.cursors import read_number
from tidings.service.web.api.subscriptions import Id
from tidings.service.web.pages import flash_secret
from tidings.service.web.pages.cards import comparison_card, subscription_card
from tidings.service.web.pages.editor import read_tags, tried
from tidings.service.web.pages.rendering import render, sent_to, sentence
from tidings.service.web.pages.visitor import Form, Visiting, text_of, ticket_of
from tidings.service.web.problems import Problem, problem_of

pages = APIRouter()

_FIELDS = ("text", "title", "tags", "public", "revision")


@pages.get("/subscriptions/{id}/edit")
def show(request: Request, visiting: Visiting, id: Id) -> Response:
    found = visiting.service.lifecycle.find(visiting.principal, id)
    if found.state is State.CANCELLED:
        raise Problem(410, f"subscription {id} was cancelled and stays so; subscribe anew")
    return _editor(request, visiting, found, _as_it_is(found))


@pages.post("/subscriptions/{id}/compare")
async def compare(
    request: Request, visiting: Visiting, id: Id, form: Form, part: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Without a script the whole page comes again; a script asks for the part that changes."""

    def step() -> Response:
        found = visiting.service.lifecycle.find(visiting.principal, id)
        typed = _typed(form)
        compared = _compared(visiting, found.text, typed["text"])
        if part == "trial":
            return render(request, "comparison.html", {"compared": compared}, visitor=visiting.principal)
        return _editor(request, visiting, found, typed, compared=compared)

    return await run_in_threadpool(step)


@pages.post("/subscriptions/{id}/edit")
async def save(request: Request, visiting: Visiting, id: Id, form: Form) -> Response:
    return await run_in_threadpool(_save, request, visiting, id, form)


def _save(request: Request, visiting: Caller, id: str, form: Mapping[str, str | UploadFile]) -> Response:
    typed = _typed(form)
    found = visiting.service.lifecycle.find(visiting.principal, id)
    try:
        edit = Edit(
            text=typed["text"],
            title=typed["title"],
            tags=read_tags(typed["tags"]),
            public=bool(typed["public"]),
            revision=read_number(typed["revision"]),
        )
        edited = visiting.service.lifecycle.edit(visiting.principal, id, ticket_of(form), edit)
    except (Unauthorized, NotFound):
        raise
    except SubscriptionError as error:
        return _editor(request, visiting, found, typed, status=422, wrong=sentence(str(error)))
    except TidingsError as error:
        status = problem_of(error).status_code
        return _editor(request, visiting, found, typed, status=status, problem=str(error))
    response = sent_to(f"/subscriptions/{id}", _what_changed(found, edited.subscription))
    if edited.warnings:
        warnings = {"warnings": flash_secret.brief(edited.warnings)}
        flash_secret.set_secrets(response, visiting.service.settings, f"/subscriptions/{id}", warnings)
    return response


def _what_changed(old: Subscription, new: Subscription) -> str:
    if old.public != new.public:
        return "public" if new.public else "not-public"
    matched = new.state is not State.UNANSWERABLE  # otherwise the page says why
    return "edited" if old.text != new.text and matched else "saved"


def _as_it_is(found: Subscription) -> dict[str, str]:
    return {
        "text": found.text,
        "title": found.title if found.title != title_of_text(found.text) else "",
        "tags": ", ".join(found.tags),
        "public": "yes" if found.public else "",
        "revision": str(found.revision),
    }


def _typed(form: Mapping[str, str | UploadFile]) -> dict[str, str]:
    return {name: text_of(form, name) for name in _FIELDS}


def _compared(visiting: Caller, old: str, new: str) -> dict[str, Any]:
    events = visiting.service.recent_events(visiting.principal)
    before, after = (tried(visiting, text, events) for text in (old, new))
    if isinstance(before, str):
        return {"problem": f"The text as it is cannot be tried: {before}"}
    if isinstance(after, str):
        return {"problem": f"The new text cannot be tried: {after}"}
    return comparison_card(before, after, events)


def _editor(
    request: Request,
    visiting: Caller,
    found: Subscription,
    typed: Mapping[str, str],
    *,
    status: int = 200,
    problem: str = "",
    wrong: str = "",
    compared: dict[str, Any] | None = None,
) -> Response:
    card = subscription_card(found, visiting.service, visiting.principal.token)
    return render(
        request,
        "edit.html",
        {"subscription": card, **typed, "wrong": wrong, "compared": compared},
        visitor=visiting.principal,
        status=status,
        problem=problem,
        needs_ticket=not visiting.principal.token,
        graph_example=visiting.service.preview.graph_example(),
    )
