"""The links to relays below this service: each event that a relay's filters match is sent to it once.

A link is an endless answer of frames (dissemination/wire.py), in the order of the mailbox, whose numbers are the packets'
sequence: a relay that comes again names the last one it has on disk. The next page, a few megabytes, is read when the last
was taken, so a slow relay costs no memory. Frames that begin with a zero byte are no packets. A mark: everything up to a
number has been sent. A gap: events up to a number may be missing, because the mailbox has deleted them before they were sent,
or was notified itself that some are.

    mark    00 | number, 8 bytes | time, 8 bytes
    gap     00 | number, 8 bytes
"""

from __future__ import annotations

import asyncio
import logging
import struct
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.dissemination.live.carriers import is_carrier
from tidings.dissemination.network.node import Node, Waiting
from tidings.dissemination.packet import Packet
from tidings.dissemination.wire import WireError, encode, event_packet, frame
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.service.delivery.hub import Hub
from tidings.service.model import Principal
from tidings.service.relay.copies import Copies
from tidings.service.relay.link_filters import LinkFilters, owner_of
from tidings.service.relay.link_members import LinkMembers
from tidings.service.relay.relays_below import About, RelaysBelow
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry

MEDIA_TYPE = "application/vnd.tidings.packets"
HEARTBEAT = 5.0  # seconds between marks when nothing is sent
MOST_ACKS = 10_000  # of a request
PAGE, PAGE_BYTES = 200, 4 << 20  # events that are read at once, and their size unless a single event has more
_MARK = struct.Struct(">BQd")
_GAP = struct.Struct(">BQ")
_SENT = 10_000  # events that are remembered, so that each is sent once
RENEW_EVERY = 600.0
_OVERLAP = 60.0  # seconds before an event that a relay names
_LOOKS_BACK = 600.0  # seconds before it came to the relay, if it is not stored here


logger = logging.getLogger(__name__)


class Loop(TidingsError):
    """A relay would get events from itself."""

    status = 409


@dataclass(eq=False)
class Link:
    """A link that is open."""

    owner: str
    relay: str
    loop: asyncio.AbstractEventLoop
    since: float
    ids: frozenset[str] = frozenset()
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    sent: OrderedDict[tuple[str, str], None] = field(default_factory=OrderedDict)
    changes: int = -1  # of the registry, when `ids` was read
    members: LinkMembers = field(default_factory=lambda: LinkMembers((), {}))
    member_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Start:
    """Where a link begins: after a number. If the relay comes from elsewhere, it names the last event that it has, and when
    that came."""

    after: int | None = None
    event: tuple[str, str] | None = None
    since: float | None = None


class Beginning(NamedTuple):
    """The number after which a link begins, and whether events that the relay does not have may be missing there."""

    after: int
    is_gap: bool = False


class Downstream:
    """All links to relays below. `count` is called with what crosses them: (relay, messages, bytes, payloads left out)."""

    def __init__(
        self,
        registry: Registry,
        mailbox: Mailbox,
        hub: Hub,
        filters: LinkFilters,
        *,
        count: Callable[[str, int, int, int], None],
        tables: Callable[[], Mapping[str, Table]],
        clock: Callable[[], float],
    ) -> None:
        self._registry, self._mailbox, self._hub, self._tables = registry, mailbox, hub, tables
        self.filters, self._count, self._clock = filters, count, clock
        self._links: set[Link] = set()
        self._lock = threading.Lock()
        self._node: Node[str] = Node("", _NoRouter())
        self.relays = RelaysBelow()
        self.on_copies: Callable[[str, Copies], None] = lambda relay, copies: None
        hub.on_news(self._wake)

    def links(self) -> list[Link]:
        """Those that are open."""
        with self._lock:
            return sorted(self._links, key=lambda link: link.since)

    def hello(self, principal: Principal, relay: str, path: Sequence[str], about: About) -> None:
        """Renews the filters of a relay. Loop if it is on the path from here to the centre."""
        if relay in path:
            raise Loop(
                "this service gets its events from that relay, directly or through others;"
                " give the relay an upstream that is nearer to the centre"
            )
        owner, now = owner_of(principal, relay), self._clock()
        if self.relays.is_due(owner, relay, now, RENEW_EVERY):
            self.filters.renew(principal, relay)
        if (new := self.relays.met(owner, relay, about)).notifications:
            self.on_copies(relay, new)

    def acknowledge(self, principal: Principal, relay: str, ids: Sequence[bytes]) -> None:
        """A relay keeps these payloads. One that it was not sent is of no use to it: it is left out only here."""
        with self._lock:
            for id in ids:
                self._node.acknowledge(owner_of(principal, relay), id)

    def payload(self, principal: Principal, relay: str, id: bytes, number: int) -> bytes | None:
        """The content of a payload of the packet with this number, if it was for this relay."""
        found, _ = self._mailbox.events_of(
            self.filters.sent_for(owner_of(principal, relay)), number - 1, number, 1
        )
        for _, event in found:
            for payload in event_packet(event).payloads:
                if payload.id == id:
                    return payload.content
        return None

    def beginning(self, owner: str, start: Start) -> Beginning:
        """Where a link begins. What was deleted after a number is no loss for a relay whose last event, from elsewhere, is
        stored here."""
        first, last = self._mailbox.first(), self._mailbox.last()
        after = start.after if start.after is not None and start.after <= last else None
        if after is not None and (start.event is None or after + 1 >= first):
            return Beginning(after)
        at = None if start.event is None else self._mailbox.time_of(*start.event)
        if at is not None:
            return Beginning(self._mailbox.number_before(at - _OVERLAP))
        if after is not None or start.since is None:
            return Beginning(last if after is None else after)
        before = self._mailbox.number_before(start.since - _LOOKS_BACK)
        has_deleted = before < first and first > 1
        return Beginning(before, has_deleted or self.filters.began(owner) > start.since)

    async def packets(self, principal: Principal, relay: str, start: Start) -> AsyncGenerator[bytes, None]:
        """The frames of a link, until it is closed or the service ends."""
        owner = owner_of(principal, relay)
        link = Link(owner, relay, asyncio.get_running_loop(), self._clock())
        with self._lock:
            self._links.add(link)
            self.relays.opened(owner, relay, link.since)
            self._node.forget(owner)  # its other end may have started anew
        try:
            seen, is_gap = await asyncio.to_thread(self.beginning, owner, start)
            gap = frame(_GAP.pack(0, seen)) if is_gap else b""
            yield gap + self._mark(seen)
            while not self._hub.stopped:
                link.awake.clear()  # before anything is read
                upto = self._hub.last
                frames, seen = await asyncio.to_thread(self._read, link, seen, upto)
                if seen >= upto and frames:
                    frames.append(self._mark(seen))
                if frames:
                    yield b"".join(frames)
                if seen < upto:
                    continue
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await link.awake.wait()
                except TimeoutError:
                    yield self._mark(seen)
        finally:
            with self._lock:
                self._links.discard(link)
                self.relays.closed(owner, relay, self._clock())

    def _read(self, link: Link, seen: int, upto: int) -> tuple[list[bytes], int]:
        """The next frames, and the number up to which that is all."""
        if link.changes != (now := self._registry.subscription_changes):
            members = self.filters.members(link.owner)
            link.members = LinkMembers([member.text for member in members], self._tables())
            link.member_ids = frozenset(member.id for member in members)
            link.changes, link.ids = now, self.filters.sent_for(link.owner) | link.members.streams
        found, reached = self._mailbox.events_of(link.ids, seen, upto, PAGE, PAGE_BYTES)
        gap = self._gap(link, seen, reached)
        frames, stripped = [], 0
        for number, event in found:
            if (key := (event.source, event.id)) in link.sent:
                continue
            if (crossing := link.members.filtered(event)) is None:
                continue
            link.sent[key] = None
            if len(link.sent) > _SENT:
                link.sent.popitem(last=False)
            # What carries messages goes to a relay once: there is nothing to keep of it.
            carries = is_carrier(event)
            packet = (
                Packet(crossing, number) if carries else self._for_link(link, event_packet(event, number))
            )
            stripped += len(packet.missing)
            try:
                frames.append(frame(encode(packet)))
            except WireError as error:
                logger.error("an event is not sent to the relay %s: %s", link.relay, error)
        size = sum(map(len, frames))
        self._count(link.relay, len(frames), size, stripped)
        self.relays.sent(link.owner, link.relay, len(link.ids), (len(frames), size, stripped))
        return gap + frames, reached

    def _gap(self, link: Link, seen: int, reached: int) -> list[bytes]:
        """The frame that says that events may be missing, if some may. Rows of filters over tables are sent again instead:
        filters leave records out, so a relay would not notice that one is missing."""
        missed = self._mailbox.missed(link.ids, seen, reached)
        if members := missed.keys() & link.member_ids:
            self.filters.request_rows(sorted(members))
        over_events = missed.keys() - link.member_ids - link.members.streams
        number = max((missed[id] for id in over_events), default=None)
        return [] if number is None else [frame(_GAP.pack(0, number))]

    def _for_link(self, link: Link, packet: Packet) -> Packet:
        """The packet without the payloads that the relay has acknowledged."""
        with self._lock:
            found = self._node.for_link(packet, link.owner)
        assert not isinstance(found, Waiting)  # all contents are there
        return found

    def _mark(self, number: int) -> bytes:
        return frame(_MARK.pack(0, max(0, number), self._clock()))

    def end_waits(self) -> None:
        """Has all links end, once the hub has stopped. Callable from any thread."""
        for link in self.links():
            link.loop.call_soon_threadsafe(link.awake.set)

    def _wake(self, news: Mapping[str, int]) -> None:
        """In the hub's thread: wakes the links that something is for, also when their filters are new."""
        now = self._registry.subscription_changes
        for link in self.links():
            if link.changes != now or not link.ids.isdisjoint(news):
                link.loop.call_soon_threadsafe(link.awake.set)


class _NoRouter:
    """The mailbox has decided already which link a packet is for."""

    reads_payload = False

    def matches(self, packet: Packet, sender: str | None) -> Sequence[str]:
        raise AssertionError("packets are matched by the stream")


def read_mark(data: bytes) -> tuple[int, float] | None:
    """The number and the time of a mark; None for any other frame."""
    if len(data) != _MARK.size or data[0]:
        return None
    _, number, at = _MARK.unpack(data)
    return number, at


def read_gap(data: bytes) -> int | None:
    """The number of a gap; None for any other frame."""
    if len(data) != _GAP.size or data[0]:
        return None
    return int(_GAP.unpack(data)[1])
