"""Makes, changes, confirms and ends channels, for those who may.

A channel is of the one who made it, and has only subscriptions of the same owner. Its kind and its address stay as they are. A
channel that a principal may not see gives the same answer as one that does not exist.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tidings.errors import TidingsError
from tidings.service.delivery.channels.composing import CONFIRM, UNSUBSCRIBE, Links, schedule_of
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.delivery.channels.sending import Sender, due_at
from tidings.service.delivery.channels.transports import CONFIRMED, Transports
from tidings.service.delivery.webhook_attempts import Outcome
from tidings.service.model import Channel, ChannelState, Principal, Role, State
from tidings.service.owners import HEADER, UserError, is_of_all_users, owns, user_of
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore
from tidings.service.store.registry import Registry
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import AccessControl, AccessError, NotFound
from tidings.service.subscriptions.lifecycle import check_title

MOST_CHANNELS: Final = 100  # of an owner, those that have ended included
MOST_SUBSCRIPTIONS: Final = 1_000  # of a channel
AS_IT_IS: Final = "as it is"  # in the place of a time that stays


class ChannelError(TidingsError):
    """A channel cannot be made or changed like this."""

    status = 422


class ChannelEnded(AccessError):
    """The channel has ended, and cannot be changed."""

    status = 410


@dataclass(frozen=True, slots=True)
class NewChannel:
    kind: str
    address: str
    title: str = ""
    schedule: Mapping[str, Any] | None = None
    subscriptions: Sequence[str] = ()
    secret: str | None = None  # of a chat room; of a webhook one is made
    confirmed: bool = False


class ChannelView(NamedTuple):
    """A channel with what is of it elsewhere in the store."""

    channel: Channel
    subscriptions: list[str]
    waiting: int  # notifications that are not sent yet
    next_message: float | None


class Channels:
    """The channels of all owners; thread-safe."""

    def __init__(
        self,
        store: ChannelStore,
        messages: ChannelMessages,
        registry: Registry,
        access: AccessControl,
        transports: Transports,
        links: Links,
        *,
        sender: Sender,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._messages, self._registry = store, messages, registry
        self._access, self._transports, self._links = access, transports, links
        self._sender, self._clock = sender, clock

    @property
    def kinds(self) -> list[str]:
        """The kinds of channels that this service can send to."""
        return self._transports.kinds

    # --- by their owners

    def add(self, principal: Principal, new: NewChannel) -> Channel:
        """Makes a channel, which begins with what comes now. One by mail asks the holder of the address first."""
        self._access.need(principal, Role.SUBSCRIBER)
        address = self._transports.of(new.kind).address(new.address)
        schedule = Schedule.from_json(new.schedule or {})
        owner = principal.token
        if is_of_all_users(owner):
            raise UserError(
                f"the token {principal.name!r} adds channels for its users; name one by the header {HEADER}"
            )
        subscriptions = self._own(owner, new.subscriptions)
        asks = new.kind in CONFIRMED and not new.confirmed
        if new.confirmed and principal.role is not Role.ADMIN and user_of(owner) is None:
            raise ChannelError(
                "only admins and delegates may say that an address is confirmed; leave 'confirmed' out"
            )
        if asks:
            self._access.count_confirmation(owner, address)
        secret = tickets.new_webhook_secret() if new.kind == "webhook" else new.secret or ""
        channel = Channel(
            id=tickets.new_id("c"),
            owner=owner,
            kind=new.kind,
            address=address,
            title=check_title(new.title),
            schedule=json.dumps(schedule.to_json()),
            created=self._clock(),
            secret=secret,
            state=ChannelState.UNCONFIRMED if asks else ChannelState.ACTIVE,
        )
        added = self._store.add(channel, subscriptions, most=MOST_CHANNELS)
        self._sender.wake()
        return added

    def find(self, principal: Principal, id: str) -> Channel:
        """The channel, if the principal may see it; otherwise NotFound."""
        found = self._store.find(id)
        if found is None or not self._may_see(principal, found):
            raise NotFound(f"there is no channel {id!r}; look at the list of your channels")
        return found

    def page(self, principal: Principal, *, after: str | None = None, limit: int = 50) -> list[Channel]:
        """The channels that the principal may see, newest first, after the one with the id `after`."""
        self._access.need(principal, Role.SUBSCRIBER)
        owner = None if principal.role is Role.ADMIN else principal.token
        return self._store.page(owner=owner, after=after, limit=limit)

    def change(
        self,
        principal: Principal,
        id: str,
        *,
        title: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        subscriptions: Sequence[str] | None = None,
        muted_until: str | None = AS_IT_IS,
    ) -> Channel:
        """Changes what is given. A schedule replaces all of the one before; `muted_until` changes only that of it, and None
        ends a mute."""
        channel = self._changeable(principal, id)
        values: dict[str, Any] = {}
        if title is not None:
            values["title"] = check_title(title)
        if schedule is not None or muted_until != AS_IT_IS:
            given = dict(schedule_of(channel.schedule).to_json() if schedule is None else schedule)
            if muted_until != AS_IT_IS:
                given["muted_until"] = muted_until
            values["schedule"] = json.dumps(Schedule.from_json(given).to_json())
        if subscriptions is not None:
            there = self._store.subscriptions([id]).get(id, [])
            wanted = self._own(channel.owner, subscriptions, there)
            self._store.join(id, wanted)
            self._store.leave(id, [name for name in there if name not in set(wanted)])
        now = self._clock()
        changed = self._store.change(id, values, due_at(now), now)
        self._sender.wake()
        return channel if changed is None else changed

    def join(self, principal: Principal, id: str, subscription: str) -> Channel:
        channel = self._changeable(principal, id)
        there = self._store.subscriptions([id]).get(id, [])
        self._store.join(id, self._own(channel.owner, [*there, subscription], there))
        return channel

    def leave(self, principal: Principal, id: str, subscription: str) -> Channel:
        channel = self._changeable(principal, id)
        if subscription not in self._store.subscriptions([id]).get(id, []):
            raise NotFound(f"the channel {id} has no subscription {subscription!r}")
        self._store.leave(id, [subscription])
        return channel

    def remove(self, principal: Principal, id: str) -> None:
        """Ends a channel, and forgets it."""
        self.find(principal, id)
        self._store.remove(id)

    async def test(self, channel: Channel) -> Outcome:
        """Sends a test message now. In the event loop that sends."""
        if channel.state is ChannelState.UNCONFIRMED:
            raise ChannelError(
                f"the channel {channel.id} is not confirmed yet; open the link in the mail that was sent"
            )
        if channel.state is ChannelState.ENDED:
            raise _ended(channel)
        self._access.count_channel_test(channel.id)
        return await self._sender.test(channel)

    # --- by the holders of addresses, who have nothing but a link

    def confirmable(self, secret: str) -> Channel:
        """The channel that a link confirms; NotFound if there is none any more."""
        return self._linked(CONFIRM, secret)

    def confirm(self, secret: str) -> Channel:
        channel = self._store.confirm(self.confirmable(secret).id)
        self._sender.wake()
        if channel is None:
            raise _no_link()
        return channel

    def unsubscribable(self, secret: str) -> Channel:
        """The channel that a link ends; NotFound if there is none any more."""
        return self._linked(UNSUBSCRIBE, secret)

    def unsubscribe(self, secret: str) -> Channel:
        channel = self._store.end(
            self.unsubscribable(secret).id, "the holder of the address has ended it by the link in a message"
        )
        if channel is None:
            raise _no_link()
        return channel

    # --- shown

    def views(self, channels: Sequence[Channel]) -> list[ChannelView]:
        """The channels with their subscriptions and with what waits."""
        ids = [channel.id for channel in channels]
        subscriptions = self._store.subscriptions(ids)
        waiting, next_messages = self._messages.waiting(channels), self._messages.next_messages(ids)
        return [
            ChannelView(
                channel,
                subscriptions.get(channel.id, []),
                waiting.get(channel.id, 0),
                next_messages.get(channel.id),
            )
            for channel in channels
        ]

    def counts(self) -> dict[str, int]:
        """How many channels there are in each state."""
        return self._store.counts()

    def of_subscription(self, subscription: str) -> list[Channel]:
        return self._store.channels_of(subscription)

    # ---

    def _may_see(self, principal: Principal, channel: Channel) -> bool:
        if principal.role is Role.ADMIN:
            return True
        return bool(principal.token) and owns(principal.token, channel.owner)

    def _changeable(self, principal: Principal, id: str) -> Channel:
        channel = self.find(principal, id)
        if channel.state is ChannelState.ENDED:
            raise _ended(channel)
        return channel

    def _own(self, owner: str, ids: Sequence[str], there: Sequence[str] = ()) -> list[str]:
        """The ids of subscriptions of an owner; ChannelError names one that is not. Those that are there may have been cancelled."""
        wanted = list(dict.fromkeys(ids))
        if len(wanted) > MOST_SUBSCRIPTIONS:
            raise ChannelError(
                f"a channel has at most {MOST_SUBSCRIPTIONS:,} subscriptions; make another channel"
            )
        found = {
            each.id
            for each in self._registry.find_many(wanted)
            if each.owner == owner and each.state is not State.CANCELLED
        }.union(there)
        for id in wanted:
            if id not in found:
                raise ChannelError(f"there is no subscription {id[:64]!r} of the owner of this channel")
        return wanted

    def _linked(self, action: str, secret: str) -> Channel:
        id = self._links.channel(action, secret)
        channel = None if id is None else self._store.find(id)
        if channel is None:
            raise _no_link()
        return channel


def _ended(channel: Channel) -> ChannelEnded:
    return ChannelEnded(f"the channel {channel.id} has ended: {channel.reason}; make a new one")


def _no_link() -> NotFound:
    return NotFound("this link is not known, or its channel was removed; nothing is sent by it any more")
