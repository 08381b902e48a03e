"""/channels: the channels of a visitor, and one with its schedule, its subscriptions and what waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.service.delivery.channels.channels import ChannelView, NewChannel
from tidings.service.delivery.channels.composing import schedule_of
from tidings.service.delivery.channels.schedule import DAYS, zones
from tidings.service.model import LIVING, Role
from tidings.service.subscriptions.access_control import NotFound, Unauthorized
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.channels.routes import Id, channel_model, send_test
from tidings.service.web.api.cursors import Cursor, read_id_cursor
from tidings.service.web.pages import flash_secret
from tidings.service.web.pages.channels import schedule_form
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.visitor import Form, Visiting, text_of
from tidings.service.web.problems import Problem, problem_of

if TYPE_CHECKING:
    from tidings.service.service import Service

pages = APIRouter()

LISTED = 50
CHOICES = 500  # subscriptions that a form offers
MUTES = {"3600": "an hour", "28800": "8 hours", "86400": "a day", "604800": "a week"}
NAMES = {"email": "E-mail", "ntfy": "ntfy", "matrix": "Matrix", "apprise": "Apprise", "webhook": "Webhook"}

Fields = Mapping[str, "str | UploadFile"]


@pages.get("/channels")
def show_all(
    request: Request,
    visiting: Visiting,
    after: Cursor = None,
    subscription: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    return _show_all(request, visiting, after=after or None, typed={"subscription": subscription})


@pages.post("/channels")
async def add(request: Request, visiting: Visiting, form: Form) -> Response:
    return await run_in_threadpool(_add, request, visiting, form)


@pages.get("/channels/{channel}")
def show(request: Request, visiting: Visiting, channel: Id) -> Response:
    return _show(request, visiting, channel)


@pages.post("/channels/{channel}")
async def change(request: Request, visiting: Visiting, channel: Id, form: Form) -> Response:
    def step() -> Response:
        found = visiting.service.channels.find(visiting.principal, channel)
        schedule = schedule_form.schedule_from(lambda name: text_of(form, name).strip())
        muted = schedule_of(found.schedule).to_json().get("muted_until")
        visiting.service.channels.change(
            visiting.principal, channel, title=text_of(form, "title"), schedule=schedule, muted_until=muted
        )
        return sent_to(f"/channels/{channel}", "saved")

    return await run_in_threadpool(_done, request, visiting, channel, step)


@pages.post("/channels/{channel}/{word}")
async def act(request: Request, visiting: Visiting, channel: Id, word: str, form: Form) -> Response:
    if word == "test":
        return await _test(request, visiting, channel)
    if word not in _STEPS:
        raise Problem(404, "nothing is at this address; go back to the channel")
    return await run_in_threadpool(
        _done, request, visiting, channel, lambda: _STEPS[word](visiting, channel, form)
    )


def _mute(visiting: Caller, id: str, form: Fields) -> Response:
    seconds = text_of(form, "seconds")
    until = None
    if seconds in MUTES:
        moment = datetime.fromtimestamp(visiting.service.clock() + int(seconds), UTC)
        until = moment.isoformat(timespec="seconds")
    visiting.service.channels.change(visiting.principal, id, muted_until=until)
    return sent_to(f"/channels/{id}", "saved")


def _join(visiting: Caller, id: str, form: Fields) -> Response:
    visiting.service.channels.join(visiting.principal, id, text_of(form, "subscription"))
    return sent_to(_back(id, form), "saved")


def _leave(visiting: Caller, id: str, form: Fields) -> Response:
    visiting.service.channels.leave(visiting.principal, id, text_of(form, "subscription"))
    return sent_to(_back(id, form), "saved")


def _end(visiting: Caller, id: str, form: Fields) -> Response:
    visiting.service.channels.remove(visiting.principal, id)
    return sent_to("/channels", "channel-ended")


_STEPS: Mapping[str, Callable[[Caller, str, Fields], Response]] = {
    "mute": _mute,
    "join": _join,
    "leave": _leave,
    "end": _end,
}


def _back(id: str, form: Fields) -> str:
    """The page that a form is on: that of the channel, or of the subscription."""
    is_elsewhere = text_of(form, "from") == "subscription"
    return f"/subscriptions/{text_of(form, 'subscription')}" if is_elsewhere else f"/channels/{id}"


async def _test(request: Request, visiting: Caller, id: str) -> Response:
    try:
        tested = await send_test(visiting, id)
    except (NotFound, Unauthorized):
        raise
    except (TidingsError, Problem) as error:
        problem = problem_of(error)
        return await run_in_threadpool(
            _show, request, visiting, id, status=problem.status_code, problem=str(problem.detail)
        )
    response = sent_to(f"/channels/{id}")
    flash_secret.set_secrets(
        response, visiting.service.settings, f"/channels/{id}", {"webhook_test": tested.model_dump()}
    )
    return response


def _add(request: Request, visiting: Caller, form: Fields) -> Response:
    typed = {name: text_of(form, name).strip() for name in (*schedule_form.EMPTY, *_TYPED)}
    try:
        chosen = [typed["subscription"]] if typed["subscription"] else []
        channel = visiting.service.channels.add(
            visiting.principal,
            NewChannel(
                typed["kind"],
                typed["address"],
                typed["title"],
                schedule_form.schedule_from(typed.__getitem__),
                chosen,
                text_of(form, "secret").strip() or None,
            ),
        )
    except Unauthorized:
        raise
    except TidingsError as error:
        problem = problem_of(error)
        return _show_all(
            request, visiting, typed=typed, status=problem.status_code, problem=str(problem.detail)
        )
    response = sent_to(f"/channels/{channel.id}", "channel-added")
    if channel.kind == "webhook":
        secrets = {"webhook_secret": channel.secret}
        flash_secret.set_secrets(response, visiting.service.settings, f"/channels/{channel.id}", secrets)
    return response


_TYPED = ("kind", "address", "title", "subscription")


def _done(request: Request, visiting: Caller, id: str, step: Callable[[], Response]) -> Response:
    """The response after a change; if it was refused, the page with the reason above it."""
    try:
        return step()
    except (NotFound, Unauthorized):
        raise
    except TidingsError as error:
        return _show(request, visiting, id, status=problem_of(error).status_code, problem=str(error))


def _show_all(
    request: Request,
    visiting: Caller,
    *,
    after: str | None = None,
    typed: Mapping[str, str] | None = None,
    status: int = 200,
    problem: str = "",
) -> Response:
    service, visitor = visiting.service, visiting.principal
    visiting.need(Role.SUBSCRIBER)
    found = service.channels.page(visitor, after=read_id_cursor(after), limit=LISTED + 1)
    page, next = found[:LISTED], found[LISTED - 1].id if len(found) > LISTED else None
    data = {"channels": [card(view, service.clock()) for view in service.channels.views(page)], "next": next}
    return render(
        request,
        "channels/all.html",
        data,
        visitor=visitor,
        status=status,
        problem=problem,
        kinds=[(kind, NAMES.get(kind, kind)) for kind in service.channels.kinds],
        typed={**schedule_form.EMPTY, **dict.fromkeys(_TYPED, ""), **(typed or {})},
        choices=_offered(service, visitor.token),
        **_choices(),
    )


def _show(request: Request, visiting: Caller, id: str, *, status: int = 200, problem: str = "") -> Response:
    service, visitor = visiting.service, visiting.principal
    channel = service.channels.find(visitor, id)
    shown = card(service.channels.views([channel])[0], service.clock())
    titles = {each.id: each.title for each in service.registry.find_many(shown["subscriptions"])}
    choices = _offered(service, channel.owner)
    secrets = flash_secret.read_secrets(request) if not problem else {}
    response = render(
        request,
        "channels/one.html",
        {"channel": shown},
        visitor=visitor,
        status=status,
        problem=problem,
        titles=titles,
        choices={key: title for key, title in choices.items() if key not in shown["subscriptions"]},
        typed=schedule_form.fields_of(schedule_of(channel.schedule)),
        mutes=MUTES,
        secret=secrets.get("webhook_secret"),
        tested=secrets.get("webhook_test"),
        **_choices(),
    )
    if secrets:
        flash_secret.clear_secrets(response, service.settings, f"/channels/{id}")
    return response


def _offered(service: Service, owner: str) -> dict[str, str]:
    """The ids and titles of those subscriptions that a channel of this owner may have."""
    titles = service.registry.titles(owner=owner, limit=CHOICES)
    living = {each.id for each in service.registry.find_many(list(titles)) if each.state in LIVING}
    return {id: title for id, title in titles.items() if id in living}


def _choices() -> dict[str, Any]:
    return {"days": DAYS, "periods": schedule_form.PERIODS, "zones": sorted(zones())}


def card(view: ChannelView, now: float) -> dict[str, Any]:
    """A channel as pages show it."""
    schedule = schedule_of(view.channel.schedule)
    is_muted = schedule.muted_until is not None and schedule.muted_until > now
    return {
        **channel_model(view).model_dump(mode="json"),
        "name": view.channel.title or view.channel.address,
        "kind_name": NAMES.get(view.channel.kind, view.channel.kind),
        "muted_until": schedule.to_json()["muted_until"] if is_muted else None,
        "often": schedule_form.in_words(schedule),
    }
