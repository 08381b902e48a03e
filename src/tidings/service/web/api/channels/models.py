"""Models of the requests and responses about channels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from tidings.service.delivery.channels.channels import MOST_SUBSCRIPTIONS
from tidings.service.web.api.models import MAX_URL, Moment, RequestModel, ResponseModel, Text, Title

ScheduleJson = Annotated[
    dict[str, Any],
    Field(
        description="How often: {} is at once. `digest` (hourly, daily, weekly) with `at`, `day`; `zone`; `at_most` messages in"
        " `per` seconds; `quiet` with `from` and `to`; `muted_until`.",
        examples=[{"digest": "daily", "at": "08:00", "zone": "Europe/Vienna"}],
    ),
]
Subscriptions = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=64)]],
    Field(
        max_length=MOST_SUBSCRIPTIONS, description="The ids of its subscriptions.", examples=[["s1", "s2"]]
    ),
]
MutedUntil = Annotated[
    Text | None,
    Field(max_length=100, description="No message before this time; null: it is not muted.", examples=[None]),
]


class NewChannel(RequestModel):
    kind: Text = Field(
        min_length=1,
        max_length=40,
        description="How messages are sent: email, ntfy, matrix, webhook, or apprise, which stands for other services and is"
        " untested. Which ones a service has depends on its settings.",
        examples=["webhook"],
    )
    address: Text = Field(
        min_length=1,
        max_length=MAX_URL,
        description="Where they go: a mail address, or that of a receiver.",
        examples=["https://example.org/hook"],
    )
    title: Title = ""
    schedule: ScheduleJson = Field(default_factory=dict)
    subscriptions: Subscriptions = Field(default_factory=list)
    secret: Text | None = Field(
        default=None,
        max_length=1_000,
        description="What a chat server wants of senders, such as an access token. A webhook gets one that is made here.",
        examples=[None],
    )
    confirmed: bool = Field(
        default=False,
        strict=True,
        description="The holder of the mail address has confirmed it already; only admins and delegates may say so.",
    )


class ChannelChange(RequestModel):
    """What changes; what is left out stays as it is."""

    title: Title = Field(default_factory=str)
    schedule: ScheduleJson = Field(default_factory=dict)
    subscriptions: Subscriptions = Field(
        default_factory=list, description="All of them; what waits of those that leave is still sent."
    )
    muted_until: MutedUntil = None


class Channel(ResponseModel):
    id: str = Field(examples=["cabcdefghij234567abcd"])
    kind: str = Field(examples=["webhook"])
    address: str = Field(examples=["https://example.org/hook"])
    title: str = Field(description="What people call it.")
    state: Literal["unconfirmed", "active", "ended"]
    schedule: ScheduleJson
    zone: str = Field(description="The time zone of its schedule.", examples=["UTC"])
    subscriptions: list[str] = Field(description="The ids of its subscriptions.")
    created: Moment
    failures: int = Field(description="Attempts in a row that failed.")
    error: str | None = Field(description="Why the last attempt failed.")
    ended_because: str | None = Field(description="Why it has ended.")
    waiting: int = Field(
        description="Notifications that are not sent yet; of a subscription at most 1,000 are counted."
    )
    next_message: Moment | None = Field(description="When the next message is due; null: nothing waits.")
    last_message: Moment | None = Field(description="When the last message was sent.")
    user: str | None = Field(
        default=None, description="Whose it is, of a delegate's users; null: no delegate's."
    )


class ChannelCreated(Channel):
    secret: str | None = Field(
        description="Of a webhook: with which receivers verify signatures; it is shown only now."
    )


class ChannelPage(ResponseModel):
    items: list[Channel]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class ChannelTest(ResponseModel):
    delivered: bool
    status: int | None = Field(description="The status of the server's answer; null: there was none.")
    seconds: float = Field(description="Until the answer, or until it was given up.")
    error: str | None = Field(description="Why it was not delivered.")
