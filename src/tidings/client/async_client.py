"""The asynchronous client. It has the same methods as `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast
from weakref import WeakSet

import httpx

from tidings.client import calls, channel_calls
from tidings.client.calls import Call, Page, Validity, id_of
from tidings.client.connection import Connection
from tidings.client.responses import (
    Backtest,
    BulkItem,
    Channel,
    Checked,
    Definition,
    Explanation,
    Matches,
    Notification,
    Receipt,
    ServiceError,
    Source,
    Status,
    Subscription,
    Trial,
)
from tidings.client.stream import Parser

if TYPE_CHECKING:
    from tidings.kinds.joins.schema.table import Table
    from tidings.kinds.networks.network import Network

T = TypeVar("T")


class AsyncClient(Connection):
    """A client of the service at an address. `token` is needed where the service is not open; `transport` is for
    tests. Each method is described at `Client`."""

    def __init__(
        self,
        address: str = "http://localhost:8750",
        token: str | None = None,
        *,
        user: str | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(address, user)
        self._http = httpx.AsyncClient(transport=transport, **self._options(token, timeout))
        self._streams: WeakSet[AsyncGenerator[Notification, None]] = WeakSet()

    async def close(self) -> None:
        for stream in list(self._streams):
            with suppress(
                RuntimeError
            ):  # another task waits for its next notification, and ends with the connection
                await stream.aclose()
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Subscriptions

    async def subscribe(
        self,
        text: str,
        *,
        title: str = "",
        valid_for: Validity = None,
        public: bool = False,
        webhook: str | None = None,
        tags: Sequence[str] = (),
    ) -> Subscription:
        """Subscribes: events published afterwards are matched. `valid_for` is in seconds, a timedelta or "never";
        without it the service decides."""
        members = {"title": title, "public": public, "webhook": webhook, "tags": list(tags)}
        return self._keep(await self._do(calls.subscribe(text, valid_for, members)))

    async def edit(
        self,
        subscription: Subscription | str,
        *,
        text: str | None = None,
        title: str | None = None,
        public: bool | None = None,
        valid_for: Validity = None,
        webhook: str | None = None,
        tags: Sequence[str] | None = None,
        revision: int | None = None,
        ticket: str | None = None,
    ) -> Subscription:
        """Changes a subscription in place; what is None stays. Events published afterwards are matched with the new
        text. With `revision`, one that has changed meanwhile is refused, with status 412."""
        named = {"text": text, "title": title, "public": public, "valid_for": valid_for, "webhook": webhook}
        changes = {**named, "tags": None if tags is None else list(tags)}
        ticket = self._ticket(subscription, ticket)
        return await self._do(calls.edit(id_of(subscription), changes, revision, ticket))

    async def subscribe_many(self, subscriptions: Iterable[str | Mapping[str, Any]]) -> list[BulkItem]:
        """Subscribes to many texts, or dicts as of `export`. Each gets an id and a ticket, or an error; one that is
        refused affects no other."""
        items: list[BulkItem] = []
        for call in calls.subscribe_many(subscriptions):
            items += self._keep_many(await self._do(call))
        return items

    async def export(self) -> list[dict[str, Any]]:
        """All active and paused subscriptions of the caller, as `subscribe_many` takes them."""
        return await self._do(calls.export())

    async def subscriptions(
        self, *, state: str | None = None, search: str = "", tag: str = "", user: str | None = None
    ) -> AsyncGenerator[Subscription, None]:
        """The caller's subscriptions, newest first; of a delegate those of all its users, or of this one."""
        cursor = None
        while True:
            page = await self._do(calls.subscriptions(state, search, tag, user, cursor))
            for subscription in page.items:
                yield subscription
            if (cursor := page.next) is None:
                return

    async def subscription(self, id: str) -> Subscription:
        return await self._do(calls.subscription(id))

    async def renew(
        self, subscription: Subscription | str, valid_for: Validity = None, *, ticket: str | None = None
    ) -> Subscription:
        """Starts a new validity from now; an expired subscription is active again."""
        id = id_of(subscription)
        return await self._do(calls.renew(id, valid_for, self._ticket(subscription, ticket)))

    async def pause(self, subscription: Subscription | str, *, ticket: str | None = None) -> Subscription:
        return await self._do(calls.change(id_of(subscription), "pause", self._ticket(subscription, ticket)))

    async def resume(self, subscription: Subscription | str, *, ticket: str | None = None) -> Subscription:
        return await self._do(calls.change(id_of(subscription), "resume", self._ticket(subscription, ticket)))

    async def cancel(self, subscription: Subscription | str, *, ticket: str | None = None) -> Subscription:
        """Cancels for good."""
        return await self._do(calls.cancel(id_of(subscription), self._ticket(subscription, ticket)))

    async def set_webhook(
        self, subscription: Subscription | str, url: str, *, ticket: str | None = None
    ) -> str:
        """Posts notifications to `url`; returns the secret that verifies their signatures."""
        return await self._do(calls.set_webhook(id_of(subscription), url, self._ticket(subscription, ticket)))

    async def remove_webhook(self, subscription: Subscription | str, *, ticket: str | None = None) -> None:
        await self._do(calls.remove_webhook(id_of(subscription), self._ticket(subscription, ticket)))

    # Channels

    async def channels(self, *, user: str | None = None) -> AsyncGenerator[Channel, None]:
        """The caller's channels, newest first; of a delegate those of all its users, or of this one."""
        cursor = None
        while True:
            page = await self._do(channel_calls.channels(user, cursor))
            for channel in page.items:
                yield channel
            if (cursor := page.next) is None:
                return

    async def channel(self, id: str) -> Channel:
        """A channel as it is now."""
        return await self._do(channel_calls.channel(id))

    async def add_channel(
        self,
        kind: str,
        address: str,
        *,
        title: str = "",
        schedule: Mapping[str, Any] | None = None,
        subscriptions: Iterable[Subscription | str] = (),
        secret: str | None = None,
        confirmed: bool = False,
    ) -> Channel:
        """Sends messages with the notifications of several subscriptions to one address: at once, or as often as the
        schedule says, such as {"digest": "daily", "at": "08:00", "zone": "Europe/Vienna"}. The holder of a mail
        address is asked first, unless an admin or a delegate says that it is confirmed."""
        members = {
            "kind": kind,
            "address": address,
            "title": title,
            "schedule": dict(schedule or {}),
            "subscriptions": [id_of(each) for each in subscriptions],
            "secret": secret,
            "confirmed": confirmed,
        }
        return await self._do(channel_calls.add(members))

    async def change_channel(
        self,
        channel: Channel | str,
        *,
        title: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        subscriptions: Iterable[Subscription | str] | None = None,
        muted_until: datetime | str | None = None,
    ) -> Channel:
        """Changes what is not None. A schedule replaces all of the one before; "never" as `muted_until` ends a mute."""
        ids = None if subscriptions is None else [id_of(each) for each in subscriptions]
        changes = {"title": title, "schedule": schedule, "subscriptions": ids}
        return await self._do(channel_calls.change(id_of(channel), changes, muted_until))

    async def join_channel(self, channel: Channel | str, subscription: Subscription | str) -> Channel:
        """Adds a subscription to a channel, from its next notification on."""
        return await self._do(channel_calls.join(id_of(channel), id_of(subscription)))

    async def leave_channel(self, channel: Channel | str, subscription: Subscription | str) -> Channel:
        """Removes a subscription from a channel; what waits of it is still sent."""
        return await self._do(channel_calls.leave(id_of(channel), id_of(subscription)))

    async def end_channel(self, channel: Channel | str) -> None:
        """Ends a channel for good; its subscriptions stay."""
        await self._do(channel_calls.end(id_of(channel)))

    async def test_channel(self, channel: Channel | str) -> Mapping[str, Any]:
        """Sends a test message now: whether it was delivered, or the error."""
        return await self._do(channel_calls.test(id_of(channel)))

    # Notifications

    async def notifications(
        self, subscription: Subscription | str, *, after: int | None = None, page: int = 100
    ) -> AsyncGenerator[Notification, None]:
        """The notifications of a subscription, newest first; or, with the number of one, those after it, oldest
        first. Pages are fetched as they are needed."""
        cursor = None
        while True:
            found: Page[Notification] = await self._do(
                calls.notifications(id_of(subscription), after, page, cursor)
            )
            for notification in found.items:
                yield notification
            if (cursor := found.next) is None:
                return

    def listen(
        self,
        subscription: Subscription | str | Iterable[Subscription | str] | None = None,
        *,
        after: int | None = None,
        payload: Literal["always", "once"] = "always",
    ) -> AsyncGenerator[Notification, None]:
        """Yields new notifications, or those after this number, as they come; of one subscription, several, or all
        of the caller's. A broken connection is opened again at the same position. Ends when the subscription
        does. With a `payload` of "once" rows are without payload columns that a `Replica` of the subscription
        has, and fills in."""
        stream = self._listen(self._ids(subscription), after, payload)
        self._streams.add(stream)
        return stream

    async def _listen(
        self, ids: list[str] | None, after: int | None, payload: str
    ) -> AsyncGenerator[Notification, None]:
        parser = Parser((await self.status()).last_number if after is None else after)
        while True:
            try:
                async with aclosing(self._pieces(ids, parser, payload)) as pieces:
                    async for notification in pieces:
                        yield notification
            except ServiceError as error:
                parser.failures += 1
                seconds = calls.reopening(parser.failures, parser.opened, error)
                if seconds is None:
                    raise
                await asyncio.sleep(seconds)
                continue
            if parser.over:
                return
            await asyncio.sleep(
                calls.pause(0, None)
            )  # the service closed it: it stops, or that was all so far

    async def explain(self, notification: Notification) -> Explanation:
        """Explains why a notification was sent."""
        return await self._do(calls.explain(notification))

    # Events

    async def publish(self, events: Any, *, format: str | None = None, source: str = "") -> Receipt:
        """Publishes an event, a dict, many of them, or a document with its format: "turtle", "nt", "rdfxml", "jsonld",
        "rss", "atom", "jsonfeed", "ndjson", or a media type. They are durable when it returns. It is tried again when
        the service is away; an event that got through is not published twice."""
        receipt = Receipt()
        for call in calls.publish(events, format, source):
            receipt = receipt + await self._do(call)
        return receipt

    async def match(self, event: Any, *, format: str | None = None, source: str = "") -> Matches:
        """Which of the caller's subscriptions an event would match, which is given as to `publish`, and is not
        published. Subscriptions over tables take no part."""
        return await self._do(calls.match(event, format, source))

    async def follow(self, url: str, *, title: str = "", interval: float | None = None) -> Source:
        """Follows a feed: its items are events from now on. `interval` is in seconds, from a minute to a week; without it
        the service's own. One that is followed already stays as it is."""
        return await self._do(calls.follow(url, title, interval))

    async def change_source(
        self, url: str, *, title: str | None = None, interval: float | Literal["default"] | None = None
    ) -> Source:
        """Changes a followed feed; what is None stays. An `interval` of "default" is that of the service."""
        return await self._do(calls.change_source(url, title, interval))

    async def follow_opml(self, document: str | bytes) -> Mapping[str, Any]:
        """Follows all feeds of an OPML file; how many were added, known and refused."""
        return await self._do(calls.follow_opml(document))

    async def unfollow(self, url: str) -> None:
        await self._do(calls.unfollow(url))

    async def sources(self) -> AsyncGenerator[Source, None]:
        """The followed feeds, oldest first, with their fetch states. Pages are fetched as they are needed."""
        cursor = None
        while True:
            page = await self._do(calls.sources(cursor))
            for source in page.items:
                yield source
            if (cursor := page.next) is None:
                return

    # Tables

    async def tables(self) -> list[Table]:
        """The tables that subscriptions may join, as a `Replica` takes them."""
        return await self._do(calls.tables())

    async def rows(self, table: str) -> AsyncGenerator[dict[str, Any], None]:
        """The rows of a table as the stream has them, in no particular order. Pages are fetched as they are needed."""
        cursor = None
        while True:
            page = await self._do(calls.rows(table, cursor))
            for row in page.items:
                yield row
            if (cursor := page.next) is None:
                return

    async def snapshot(self, subscription: Subscription | str, *, ticket: str | None = None) -> str:
        """Requests all rows of a subscription over tables. They come as notifications of the kind "snapshot", of the
        event whose id is returned."""
        return await self._do(calls.snapshot(id_of(subscription), self._ticket(subscription, ticket)))

    # Texts of subscriptions

    async def check(self, text: str) -> Checked:
        """Whether a text can be subscribed to."""
        return await self._do(calls.check(text))

    async def try_(self, text: str) -> Trial:
        """What a text would have matched of the last events, and why."""
        return await self._do(calls.try_(text))

    async def backtest(
        self,
        text: str,
        *,
        days: int = 30,
        schedule: Mapping[str, Any] | None = None,
        progress: Callable[[float], None] = lambda done: None,
    ) -> Backtest:
        """What a text would have matched of all events of the last days, and which messages a schedule would have sent: that
        of a channel, or a daily digest. `progress` is called with the part that is done."""
        state = await self._do(calls.begin_backtest(text, days, schedule))
        try:
            while (report := state.result()) is None:
                progress(state.progress)
                await asyncio.sleep(calls.BACKTEST_PAUSE)
                state = await self._do(calls.backtest(state.id))
        except BaseException:
            if state.status in ("waiting", "running"):
                await self._do(calls.cancel_backtest(state.id))
            raise
        return report

    # Definitions

    async def definitions(self) -> list[Definition]:
        """What subscriptions refer to, in the newest versions: taxonomy, prefixes, networks."""
        return await self._do(calls.definitions())

    async def set_taxonomy(
        self, document: str | bytes, *, format: str = "turtle", replaces: int | None = None
    ) -> Definition:
        """Replaces the taxonomy by an RDF document; with `replaces` only if that is the present version. Events that are
        published afterwards are matched by it."""
        return await self._do(calls.set_taxonomy(document, format, replaces))

    async def set_prefixes(self, prefixes: Mapping[str, str], *, replaces: int | None = None) -> Definition:
        """Replaces all prefixes that are not built in."""
        return await self._do(calls.set_prefixes(prefixes, replaces))

    async def set_network(
        self, name: str, network: Network | Mapping[str, Any], *, replaces: int | None = None
    ) -> Definition:
        """Adds or replaces a network, given as one or as its `rows`."""
        return await self._do(calls.set_network(name, network, replaces))

    async def change_network(
        self, name: str, changes: Iterable[tuple[str, Iterable[Any]]], *, replaces: int | None = None
    ) -> Definition:
        """Changes a network, all or nothing: [("add_edge", ("acme", "berlin", "topic = 'oil'")), …]."""
        return await self._do(calls.change_network(name, changes, replaces))

    async def status(self) -> Status:
        """The status of the service."""
        return await self._do(calls.status())

    async def _do(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            try:
                try:
                    response = await self._http.request(**self._request(call))
                except httpx.TransportError as error:
                    raise self._away(error) from None
                return self._read(call, response)
            except ServiceError as error:
                attempt += 1
                if not call.repeatable or not calls.may_pass(error) or attempt >= calls.TRIES:
                    raise
                await asyncio.sleep(calls.pause(attempt, error.retry_after))

    async def _pieces(
        self, ids: list[str] | None, parser: Parser, payload: str
    ) -> AsyncGenerator[Notification, None]:
        parser.begin()
        request = self._request(calls.stream(ids, parser.last, payload))
        # Every generator is closed by the one around it: left to the event loop, two of them are closed at once, which fails.
        try:
            async with self._http.stream(**request, timeout=self._patience) as response:
                if response.status_code == 204:
                    parser.over = True
                    return
                if response.status_code != 200:
                    await response.aread()
                    raise self._error(response)
                parser.open()
                async with aclosing(cast(AsyncGenerator[bytes, None], response.aiter_raw())) as chunks:
                    async for piece in chunks:
                        for notification in parser.feed(piece):
                            yield notification
        except httpx.TransportError as error:
            raise self._away(error) from None
