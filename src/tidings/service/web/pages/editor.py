"""/subscriptions/new: writes a subscription, tries it on recent events, and subscribes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from tidings.errors import SubscriptionError, TidingsError
from tidings.model.event import Event
from tidings.service.matching.backtests import DAYS
from tidings.service.model import Role
from tidings.service.subscriptions.access_control import NotFound, Unauthorized
from tidings.service.subscriptions.lifecycle import MAX_TEXT, read_validity
from tidings.service.subscriptions.preview import Trial
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.preview import new_backtest
from tidings.service.web.pages import flash_secret
from tidings.service.web.pages.cards import backtest_card, trial_card, validities
from tidings.service.web.pages.examples import examples
from tidings.service.web.pages.rendering import render, sent_to, sentence
from tidings.service.web.pages.visitor import Form, Visiting, text_of
from tidings.service.web.problems import problem_of

pages = APIRouter()

_BLANK = {"text": "", "title": "", "tags": "", "valid_for": "", "public": "", "webhook": ""}


@pages.get("/subscriptions/new")
def new(
    request: Request, visiting: Visiting, text: Annotated[str, Query(max_length=MAX_TEXT)] = ""
) -> Response:
    visiting.need(Role.SUBSCRIBER)
    return _editor(request, visiting, {"text": text})


@pages.post("/subscriptions/new")
async def try_it(
    request: Request, visiting: Visiting, form: Form, part: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Without a script the whole page comes again; a script asks for the part that changes."""
    visiting.need(Role.SUBSCRIBER)
    trial = await run_in_threadpool(_trial, visiting, text_of(form, "text"))
    if part == "trial":
        return render(request, "trial.html", {"trial": trial}, visitor=visiting.principal)
    return await run_in_threadpool(_editor, request, visiting, _typed(form), trial=trial)


@pages.post("/backtests")
async def begin_backtest(visiting: Visiting, form: Form) -> Response:
    """Without a script the page of the result follows; a script asks for its parts."""
    schedule = {"digest": "daily", "zone": text_of(form, "zone") or "UTC"}
    begun = await run_in_threadpool(new_backtest, visiting, text_of(form, "text"), schedule, DAYS)
    return sent_to(f"/backtests/{begun.id}")


@pages.get("/backtests/{id}")
def show_backtest(
    request: Request, visiting: Visiting, id: str, part: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    card = backtest_card(visiting.service.backtests.find(visiting.principal, id))
    template = "backtest_result.html" if part == "result" else "backtest.html"
    return render(request, template, {"backtest": card}, visitor=visiting.principal)


@pages.post("/subscriptions")
async def subscribe(request: Request, visiting: Visiting, form: Form) -> Response:
    visiting.need(Role.SUBSCRIBER)  # others see no examples from events
    return await run_in_threadpool(_subscribe, request, visiting, form)


def _subscribe(request: Request, visiting: Caller, form: Mapping[str, str | UploadFile]) -> Response:
    typed = _typed(form)
    try:
        begun = visiting.service.lifecycle.subscribe(
            visiting.principal,
            typed["text"],
            title=typed["title"],
            validity=read_validity(typed["valid_for"]),
            public=bool(typed["public"]),
            webhook=typed["webhook"].strip() or None,
            tags=read_tags(typed["tags"]),
        )
    except (Unauthorized, NotFound):
        raise
    except SubscriptionError as error:
        return _editor(request, visiting, typed, status=422, wrong=sentence(str(error)))
    except TidingsError as error:
        status = problem_of(error).status_code
        return _editor(request, visiting, typed, status=status, problem=str(error))
    if begun.webhook is not None:
        visiting.service.webhooks.poke(begun.subscription.id)
    address = f"/subscriptions/{begun.subscription.id}"
    response = sent_to(address)
    secrets = {"ticket": begun.ticket, "warnings": flash_secret.brief(begun.warnings)}
    if begun.webhook is not None:
        secrets["webhook_secret"] = begun.webhook.secret
    flash_secret.set_secrets(response, visiting.service.settings, address, secrets)
    return response


def _typed(form: Mapping[str, str | UploadFile]) -> dict[str, str]:
    return {name: text_of(form, name) for name in _BLANK}


def read_tags(text: str) -> list[str]:
    """The tags in a field: words between blanks or commas."""
    return text.replace(",", " ").split()


def tried(visiting: Caller, text: str, events: Sequence[Event]) -> Trial | str:
    """A text tried on events, or why it cannot be."""
    service = visiting.service
    if len(text) > MAX_TEXT:
        return f"The text has {len(text):,} characters, and may have {MAX_TEXT:,}."
    checked = service.preview.check(text)
    if not checked.ok:
        return sentence(checked.message)
    try:
        service.scopes.check(visiting.principal, text)
        return service.preview.try_on(text, events, rows=service.table_rows.present)
    except TidingsError as error:
        return sentence(str(error))


def _trial(visiting: Caller, text: str) -> dict[str, Any]:
    service, principal = visiting.service, visiting.principal
    trial = tried(visiting, text, service.recent_events(principal))
    if isinstance(trial, str):
        return {"problem": trial}
    warning = service.preview.flood_warning(text, service.access.scope(principal))
    return {**trial_card(trial, service.class_search), "warning": warning}


def _editor(
    request: Request,
    visiting: Caller,
    typed: Mapping[str, str],
    *,
    status: int = 200,
    problem: str = "",
    wrong: str = "",
    trial: dict[str, Any] | None = None,
) -> Response:
    service = visiting.service
    offered, of_events = examples(service.recent_events(visiting.principal), service.preview)
    data = {**_BLANK, **typed, "examples": offered, "wrong": wrong, "trial": trial}
    return render(
        request,
        "editor.html",
        data,
        visitor=visiting.principal,
        status=status,
        problem=problem,
        validities=validities(service.settings),
        from_events=of_events,
        graph_example=service.preview.graph_example(),
    )
