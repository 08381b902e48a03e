"""/channels/confirm and /channels/unsubscribe: what the holder of an address does with a link out of a message, without a login.

A GET changes nothing: programs that look at mail open its links. The one-click POST of RFC 8058 needs no cookie and no hidden
field, because the link itself is the secret.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tidings.service.delivery.channels.channels import Channels
from tidings.service.delivery.channels.composing import schedule_of
from tidings.service.model import Channel
from tidings.service.web.pages.channels.schedule_form import in_words
from tidings.service.web.pages.rendering import render
from tidings.service.web.pages.visitor import Form
from tidings.service.web.problems import Problem

pages = APIRouter()

Secret = Annotated[str, Path(max_length=200)]
_MOST = 10_000  # bytes of a request that has one field


@pages.get("/channels/confirm/{secret}")
def ask_to_confirm(request: Request, secret: Secret) -> Response:
    return _page(request, "confirm", _channels(request).confirmable(secret))


@pages.post("/channels/confirm/{secret}")
async def confirm(request: Request, secret: Secret, form: Form) -> Response:
    return _page(request, "confirm", await run_in_threadpool(_channels(request).confirm, secret))


@pages.get("/channels/unsubscribe/{secret}")
def ask_to_unsubscribe(request: Request, secret: Secret) -> Response:
    return _page(request, "unsubscribe", _channels(request).unsubscribable(secret))


@pages.post("/channels/unsubscribe/{secret}")
async def unsubscribe(request: Request, secret: Secret) -> Response:
    if len(await request.body()) > _MOST:
        raise Problem(413, "the body is longer than List-Unsubscribe=One-Click; send only that")
    form = await request.form(max_files=0, max_fields=5)
    if form.get("List-Unsubscribe") != "One-Click":
        raise Problem(422, "the body is not List-Unsubscribe=One-Click; open the link, and use its button")
    return _page(request, "unsubscribe", await run_in_threadpool(_channels(request).unsubscribe, secret))


def _page(request: Request, action: str, channel: Channel) -> Response:
    """It names nothing that the holder of the address does not know from its messages."""
    data = {
        "action": action,
        "state": channel.state.value,
        "address": channel.address,
        "title": channel.title,
    }
    often = in_words(schedule_of(channel.schedule))
    return render(request, "channels/link.html", data, often=often)


def _channels(request: Request) -> Channels:
    channels: Channels = request.app.state.service.channels
    return channels
