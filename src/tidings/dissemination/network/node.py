"""A node of a content-driven network, without any input or output: packets in, packets for its links out.

One class serves the simulator and live relays. Which links want a packet is decided by its router; whether a payload goes
along, by Algorithm 1 of Select-joins (Appendix G): not if the link has acknowledged it before. A node that needs a content
that it does not have names the payload and whom to ask, and goes on when it is given. A plain node of CN
(`keeps_payloads=False`) passes packets on as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, Protocol, TypeVar

from tidings.dissemination.network.payloads import Directory, Repository
from tidings.dissemination.packet import Packet, Payload, with_payload

Link = TypeVar("Link", bound=Hashable)


class Router(Protocol[Link]):
    """Knows what is wanted behind each link."""

    reads_payload: bool
    """Whether it must see the whole content, such as the graph of an event, to decide."""

    def matches(self, packet: Packet, sender: Link | None) -> Sequence[Link]:
        """The links that a packet goes on to, each once, without the one that it came from."""


class Send(NamedTuple, Generic[Link]):
    link: Link
    packet: Packet


class Missing(NamedTuple):
    """A content that the node needs: ask the addresses one after another; the empty one is the server."""

    id: bytes
    sources: tuple[str, ...]


class Waiting(NamedTuple, Generic[Link]):
    """A packet that goes on as soon as the contents are there; None: to be matched yet."""

    packet: Packet
    links: tuple[Link, ...] | None
    missing: tuple[Missing, ...]
    sender: Link | None = None


class Outcome(NamedTuple, Generic[Link]):
    """What to do for a packet: acknowledge payloads to its sender, send, and fetch what `waiting` needs."""

    acknowledge: tuple[bytes, ...]
    sends: list[Send[Link]]
    waiting: Waiting[Link] | None = None


class Node(Generic[Link]):
    def __init__(
        self,
        address: str,
        router: Router[Link],
        *,
        keeps_payloads: bool = True,
        directory: Directory | None = None,
        repository: Repository | None = None,
    ) -> None:
        self.address = address
        self.router = router
        self.keeps_payloads = keeps_payloads
        self.directory = directory if directory is not None else Directory()
        self.repository = repository if repository is not None else Repository()
        self._bits: dict[Link, int] = {}
        self._free: list[int] = []  # bits of links that ended
        self._everyone = 0  # the bits of all links that are there
        self._clients: set[Link] = set()

    def add_client(self, link: Link) -> None:
        """Behind the link is a subscriber, who is sent every payload."""
        self._bit(link)
        self._clients.add(link)

    def forget(self, link: Link) -> None:
        """A link ended, or its other end starts anew: nothing is known there."""
        bit = self._bits.pop(link, None)
        if bit is not None:
            self.directory.unset(bit)
            self._everyone &= ~(1 << bit)
            self._free.append(bit)
        self._clients.discard(link)

    def receive(self, packet: Packet, sender: Link | None) -> Outcome[Link]:
        """A packet that comes over a link, or enters the network here."""
        if not self.keeps_payloads:
            return Outcome((), [Send(link, packet) for link in self.router.matches(packet, sender)])
        acknowledged = []
        for payload in packet.payloads:
            if payload.content is not None:
                self.repository.put(payload.id, payload.content)
                acknowledged.append(payload.id)
        sends, waiting = self._matched(packet, sender)
        return Outcome(tuple(acknowledged) if sender is not None else (), sends, waiting)

    def resume(self, waiting: Waiting[Link], *contents: bytes) -> Outcome[Link]:
        """Goes on with a packet whose missing contents are given; WireError if one has another hash."""
        packet = with_payload(waiting.packet, *contents)
        for payload in packet.payloads:
            if payload.content is not None:
                self.repository.put(payload.id, payload.content)
        if waiting.links is None:
            return Outcome((), *self._matched(packet, waiting.sender))
        return Outcome((), *self._forwarded(packet, waiting.links))

    def for_link(self, packet: Packet, link: Link) -> Packet | Waiting[Link]:
        """The packet as it goes over one link, lines 6 to 13 of Algorithm 1; or what is missing for that."""
        if not packet.payloads or not self.keeps_payloads:
            return packet
        bit, is_client = 1 << self._bit(link), link in self._clients
        payloads, missing = [], []
        for payload in packet.payloads:
            if payload.is_known:
                payloads.append(payload)
                continue
            kept = self.repository.get(payload.id)
            if not is_client and self.directory.bitmap(payload.id) & bit:
                payload = payload._replace(content=None)
            elif payload.content is None:
                if kept is None:
                    missing.append(self.missing(payload))
                payload = payload._replace(content=kept)
            payloads.append(payload if kept is None else payload._replace(source=self.address))
        if missing:
            return Waiting(self._filled(packet), (link,), tuple(missing))
        return replace(packet, payloads=tuple(payloads))

    def acknowledge(self, link: Link, payload_id: bytes) -> None:
        """The next hop keeps a payload: it need not go over that link again."""
        if link in self._clients:
            return
        self.directory.set(payload_id, self._bit(link))
        if not self._clients and self.directory.bitmap(payload_id) == self._everyone:
            self.repository.spare(payload_id)

    def payload(self, payload_id: bytes) -> bytes | None:
        """The content, for a node that asks; None if it is not here (any more)."""
        return self.repository.get(payload_id)

    def missing(self, payload: Payload) -> Missing:
        """Whom to ask for a payload: the last node that had it, then the server."""
        named = payload.source if payload.source != self.address else ""
        return Missing(payload.id, (named, "") if named else ("",))

    def _matched(self, packet: Packet, sender: Link | None) -> tuple[list[Send[Link]], Waiting[Link] | None]:
        if self.router.reads_payload and packet.missing:
            packet = self._filled(packet)
            if packet.missing:
                return [], Waiting(packet, None, tuple(map(self.missing, packet.missing)), sender)
        return self._forwarded(packet, self.router.matches(packet, sender))

    def _forwarded(
        self, packet: Packet, links: Sequence[Link]
    ) -> tuple[list[Send[Link]], Waiting[Link] | None]:
        sends, late, missing = [], [], {}
        for link in links:
            found = self.for_link(packet, link)
            if isinstance(found, Waiting):
                late.append(link)
                missing.update({content.id: content for content in found.missing})
            else:
                sends.append(Send(link, found))
        if not late:
            return sends, None
        return sends, Waiting(self._filled(packet), tuple(late), tuple(missing.values()))

    def _filled(self, packet: Packet) -> Packet:
        """With the contents that are here, which may be purged before the others come."""
        kept = (self.repository.get(payload.id) for payload in packet.missing)
        return with_payload(packet, *(content for content in kept if content is not None))

    def _bit(self, link: Link) -> int:
        bit = self._bits.get(link)
        if bit is None:
            bit = self._bits[link] = self._free.pop() if self._free else len(self._bits)
            self._everyone |= 1 << bit
        return bit
