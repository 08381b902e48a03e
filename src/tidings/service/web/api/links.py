"""Links to relays: what a relay asks for, and the packets that it is sent. A token with the role `relay` opens one.

A relay is named by the id of its service. It says hello, makes its filters known, and reads packets from where it was;
hello is repeated while it reads, which renews the filters and finds loops.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tidings.service.model import Role
from tidings.service.relay.copies import Copies
from tidings.service.relay.downstream import MEDIA_TYPE, MOST_ACKS, Start
from tidings.service.relay.identity import LONGEST_PATH, PATTERN
from tidings.service.relay.link_filters import MOST
from tidings.service.relay.relays_below import About
from tidings.service.store.transactions import StoreAway
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.models import RequestModel, ResponseModel, SubscriptionText, Text
from tidings.service.web.problems import Problem
from tidings.service.web.streaming import StreamResponse

api = router("relays")
_LOOK_SECONDS = 1.0  # between two looks whether the token is still good
RelayId = Annotated[str, Field(pattern=PATTERN, description="The id of the relay's service.")]
Filters = Annotated[list[SubscriptionText], Field(max_length=MOST)]


class Hello(RequestModel):
    relay: RelayId
    name: Annotated[Text, Field(max_length=100, description="What people call the relay.")] = ""
    address: Annotated[
        Text, Field(max_length=300, pattern="^(https?://.*)?$", description="Where its page is.")
    ] = ""
    copies: int = Field(
        default=0, ge=0, le=1 << 62, description="Notifications that it and those below it made."
    )
    copied_bytes: int = Field(
        default=0, ge=0, le=1 << 62, description="Their bytes, if each was sent by itself."
    )


class Welcome(ResponseModel):
    service: str = Field(description="The id of this service.")
    path: list[str] = Field(description="The ids of the services from this one up to the centre.")
    last: int = Field(description="The largest number of the mailbox.")
    definitions: str = Field(description="The hash of the taxonomy, the prefixes and the networks.")


class LinkDefinitions(ResponseModel):
    taxonomy: str = Field(description="As N-Triples.")
    prefixes: dict[str, str]
    networks: dict[str, dict[str, Any]] = Field(
        description="By name, in the form of GET /api/networks/{name}."
    )


class NewFilters(RequestModel):
    relay: RelayId
    filters: Filters = Field(description="Texts of filters of the relay.")
    again: bool = Field(default=False, description="Whether it had filters here before.")


class RowsRequest(RequestModel):
    relay: RelayId
    filters: Filters = Field(description="Texts of filters of the relay over tables.")


class ChangedFilters(RequestModel):
    relay: RelayId
    register_: Filters = Field(default=[], alias="register", description="Matched from now on.")
    withdraw: Filters = Field(default=[], description="No longer matched, once the others are.")


class RefusedFilter(ResponseModel):
    text: str
    reason: str


class FilterAnswer(ResponseModel):
    refused: list[RefusedFilter]


class Acks(RequestModel):
    relay: RelayId
    payloads: list[Annotated[str, Field(pattern="^[0-9a-f]{32}$")]] = Field(max_length=MOST_ACKS)


@api.post(
    "/links", operation_id="open_link", summary="Request a link, or renew it", responses=problems(403, 409)
)
def open_link(caller: CurrentCaller, hello: Hello) -> Welcome:
    """A relay from which this service gets its own events is refused: events would go round in circles."""
    caller.need(Role.RELAY)
    service = caller.service
    about = About(hello.name, hello.address, Copies(hello.copies, hello.copied_bytes))
    service.downstream.hello(caller.principal, hello.relay, service.path(), about)
    return Welcome(
        service=service.id,
        path=service.path()[:LONGEST_PATH],
        last=service.mailbox.last(),
        definitions=service.definitions.hash,
    )


@api.get(
    "/links/definitions",
    operation_id="get_link_definitions",
    summary="Get the definitions that a relay takes over",
    responses=problems(403),
)
def get_link_definitions(caller: CurrentCaller) -> LinkDefinitions:
    caller.need(Role.RELAY)
    engine = caller.service.definitions.engine
    return LinkDefinitions(
        taxonomy=engine.taxonomy.to_ntriples().decode(),
        prefixes=dict(engine.prefixes),
        networks={name: network.rows() for name, network in engine.networks.items()},
    )


@api.put(
    "/links/filters",
    operation_id="replace_filters",
    summary="Replace the filters of a relay",
    responses=problems(403, 422),
)
def replace_filters(caller: CurrentCaller, new: NewFilters) -> FilterAnswer:
    """Those that are refused are named, with the reasons; the index has all others when this is answered."""
    caller.need(Role.RELAY)
    filters, principal = caller.service.downstream.filters, caller.principal
    return _answer(caller, filters.replace(principal, new.relay, new.filters, again=new.again))


@api.post(
    "/links/filters",
    operation_id="change_filters",
    summary="Change the filters of a relay",
    responses=problems(403, 422),
)
def change_filters(caller: CurrentCaller, changed: ChangedFilters) -> FilterAnswer:
    caller.need(Role.RELAY)
    filters, principal = caller.service.downstream.filters, caller.principal
    refused = filters.register(principal, changed.relay, changed.register_)
    filters.withdraw(principal, changed.relay, changed.withdraw)
    return _answer(caller, refused)


@api.post(
    "/links/rows",
    operation_id="request_rows",
    summary="Request the rows of a relay's filters over tables",
    status_code=204,
    responses=problems(403),
)
def request_rows(caller: CurrentCaller, asked: RowsRequest) -> None:
    """They are sent over the link, for a relay that has lost them. A filter that is not the relay's is ignored."""
    caller.need(Role.RELAY)
    caller.service.downstream.filters.send_rows(caller.principal, asked.relay, asked.filters)


def _answer(caller: Caller, refused: dict[str, str]) -> FilterAnswer:
    caller.service.metrics.links.refused(len(refused), "filter")
    return FilterAnswer(refused=[RefusedFilter(text=text, reason=reason) for text, reason in refused.items()])


@api.get(
    "/links/packets",
    operation_id="read_packets",
    summary="Read the packets of a link, an endless answer",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Frames of packets.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
        **problems(403),
    },
)
async def read_packets(
    caller: CurrentCaller,
    relay: Annotated[str, Query(pattern=PATTERN, description="The id of the relay's service.")],
    after: Annotated[
        int | None, Query(ge=0, le=(1 << 63) - 1, description="The number of the last one that it has.")
    ] = None,
    source: Annotated[str | None, Query(max_length=2_000, description="Of an event that it has.")] = None,
    id: Annotated[str | None, Query(max_length=2_000, description="Of that event.")] = None,
    since: Annotated[
        float | None,
        Query(ge=0, allow_inf_nan=False, description="When that event came, in seconds since 1970."),
    ] = None,
) -> Response:
    caller.need(Role.RELAY)
    service, principal = caller.service, caller.principal
    await run_in_threadpool(service.access.check_streams, principal)
    event = None if source is None or id is None else (source, id)

    async def pieces() -> AsyncGenerator[bytes, None]:
        looked = time.monotonic()
        with suppress(StoreAway), service.access.streaming(principal):  # the relay comes again
            async for piece in service.downstream.packets(principal, relay, Start(after, event, since)):
                if (now := time.monotonic()) - looked > _LOOK_SECONDS:
                    looked = now
                    if not await run_in_threadpool(service.access.is_good, principal):
                        return  # the token was ended
                yield piece

    return StreamResponse(pieces(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@api.post(
    "/links/acks",
    operation_id="acknowledge_payloads",
    summary="Add payloads that a relay keeps",
    status_code=204,
    responses=problems(403),
)
def acknowledge_payloads(caller: CurrentCaller, acks: Acks) -> None:
    """A payload that a relay keeps is not sent to it again."""
    caller.need(Role.RELAY)
    caller.service.downstream.acknowledge(
        caller.principal, acks.relay, [bytes.fromhex(id) for id in acks.payloads]
    )


@api.get(
    "/links/payloads",
    operation_id="get_payload",
    summary="Get a payload that a relay has lost",
    response_class=Response,
    responses={
        200: {
            "description": "Its content.",
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        },
        **problems(403, 404),
    },
)
def get_payload(
    caller: CurrentCaller,
    relay: Annotated[str, Query(pattern=PATTERN, description="The id of the relay's service.")],
    id: Annotated[str, Query(pattern="^[0-9a-f]{32}$", description="The id of the payload.")],
    number: Annotated[
        int, Query(ge=0, le=(1 << 63) - 1, description="The sequence of the packet that lacks it.")
    ],
) -> Response:
    """Only a payload of a packet that was for this relay."""
    caller.need(Role.RELAY)
    content = caller.service.downstream.payload(caller.principal, relay, bytes.fromhex(id), number)
    if content is None:
        raise Problem(
            404, "no packet of this number with such a payload was for this relay; read on from the cursor"
        )
    return Response(content, media_type="application/octet-stream")
