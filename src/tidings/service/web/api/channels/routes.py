"""Operations on channels: add, list, change, test and end them, and add and remove subscriptions."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import Path, Query, Response
from starlette.concurrency import run_in_threadpool

from tidings.feeds.write.channel import moment
from tidings.service import model
from tidings.service.delivery.channels.channels import ChannelView
from tidings.service.delivery.channels.channels import NewChannel as Wanted
from tidings.service.delivery.channels.composing import schedule_of
from tidings.service.delivery.webhook_attempts import DELIVERED
from tidings.service.owners import LONGEST_USER, user_of
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.channels.models import (
    Channel,
    ChannelChange,
    ChannelCreated,
    ChannelPage,
    ChannelTest,
    NewChannel,
)
from tidings.service.web.api.cursors import Cursor, Limit, link, read_id_cursor

api = router("channels")

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The id of a channel.")]
SubscriptionId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The id of a subscription.")
]


@api.post(
    "/channels",
    operation_id="add_channel",
    summary="Add a channel",
    status_code=201,
    responses=problems(403, 422, 429),
)
def add_channel(caller: CurrentCaller, new: NewChannel, response: Response) -> ChannelCreated:
    """Messages with the notifications of several subscriptions go to one address, as often as the schedule says, from the next
    notification on. A mail address is asked first: until its holder confirms it, nothing else is sent there."""
    channel = caller.service.channels.add(caller.principal, Wanted(**new.model_dump()))
    response.headers["Location"] = f"{caller.service.settings.address}/api/channels/{channel.id}"
    secret = channel.secret if channel.kind == "webhook" else None
    return ChannelCreated(**_shown(caller, channel).model_dump(), secret=secret)


@api.get("/channels", operation_id="list_channels", summary="List my channels, newest first")
def list_channels(
    caller: CurrentCaller,
    response: Response,
    user: Annotated[
        str | None, Query(max_length=LONGEST_USER, description="Only those of this user of a delegate.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ChannelPage:
    principal = caller.principal
    if user is not None:
        principal = caller.service.access.on_behalf(principal, user)
    found = caller.service.channels.page(principal, after=read_id_cursor(cursor), limit=limit + 1)
    page, next = found[:limit], found[limit - 1].id if len(found) > limit else None
    response.headers.update(
        link(caller.service.settings, "/api/channels", next, {"user": user or "", "limit": limit})
    )
    return ChannelPage(items=[channel_model(view) for view in caller.service.channels.views(page)], next=next)


@api.get("/channels/{channel}", operation_id="get_channel", summary="Get a channel", responses=problems(404))
def get_channel(caller: CurrentCaller, channel: Id) -> Channel:
    return _shown(caller, caller.service.channels.find(caller.principal, channel))


@api.patch(
    "/channels/{channel}",
    operation_id="change_channel",
    summary="Change a channel",
    responses=problems(404, 410, 422),
)
def change_channel(caller: CurrentCaller, channel: Id, change: ChannelChange) -> Channel:
    """Its title, its schedule, its subscriptions, or until when it is muted. What waits is sent by the new schedule."""
    given: dict[str, Any] = {name: getattr(change, name) for name in change.model_fields_set}
    return _shown(caller, caller.service.channels.change(caller.principal, channel, **given))


@api.delete(
    "/channels/{channel}",
    operation_id="end_channel",
    summary="End a channel",
    status_code=204,
    responses=problems(404),
)
def end_channel(caller: CurrentCaller, channel: Id) -> None:
    """What waits is not sent any more. Its subscriptions stay as they are."""
    caller.service.channels.remove(caller.principal, channel)


@api.post(
    "/channels/{channel}/test",
    operation_id="send_channel_test",
    summary="Send a test message to a channel",
    responses=problems(404, 410, 422, 429),
)
async def send_channel_test(caller: CurrentCaller, channel: Id) -> ChannelTest:
    """It is sent now, whatever the schedule says. What waits stays as it is."""
    return await send_test(caller, channel)


@api.put(
    "/channels/{channel}/subscriptions/{subscription}",
    operation_id="join_channel",
    summary="Add a subscription to a channel",
    responses=problems(404, 410, 422),
)
def join_channel(caller: CurrentCaller, channel: Id, subscription: SubscriptionId) -> Channel:
    """From its next notification on."""
    return _shown(caller, caller.service.channels.join(caller.principal, channel, subscription))


@api.delete(
    "/channels/{channel}/subscriptions/{subscription}",
    operation_id="leave_channel",
    summary="Remove a subscription from a channel",
    responses=problems(404, 410),
)
def leave_channel(caller: CurrentCaller, channel: Id, subscription: SubscriptionId) -> Channel:
    """What waits of it is still sent."""
    return _shown(caller, caller.service.channels.leave(caller.principal, channel, subscription))


async def send_test(caller: Caller, id: str) -> ChannelTest:
    channel = await run_in_threadpool(caller.service.channels.find, caller.principal, id)
    began = time.monotonic()
    outcome = await caller.service.channels.test(channel)
    return ChannelTest(
        delivered=outcome.result == DELIVERED,
        status=outcome.status,
        seconds=round(time.monotonic() - began, 3),
        error=outcome.error,
    )


def channel_model(view: ChannelView) -> Channel:
    channel = view.channel
    schedule = schedule_of(channel.schedule)
    return Channel(
        id=channel.id,
        kind=channel.kind,
        address=channel.address,
        title=channel.title,
        state=channel.state.value,
        schedule=schedule.to_json(),
        zone=schedule.zone,
        subscriptions=view.subscriptions,
        created=moment(channel.created),
        failures=channel.failures,
        error=channel.error,
        ended_because=channel.reason,
        waiting=view.waiting,
        next_message=None if view.next_message is None else moment(view.next_message),
        last_message=moment(channel.sent[-1]) if channel.sent else None,
        user=user_of(channel.owner),
    )


def _shown(caller: Caller, channel: model.Channel) -> Channel:
    return channel_model(caller.service.channels.views([channel])[0])
