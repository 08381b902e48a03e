"""The join subscriptions behind one link: decides which messages of a record cross it. Select-joins, 2.1.

A message crosses if some member accepts it. All members of a population are asked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidings.dissemination.live.carriers import MESSAGES, record_event, record_in
from tidings.dissemination.live.membership import membership
from tidings.dissemination.live.records import stream_of
from tidings.dissemination.packet import WireError, message_of
from tidings.dissemination.schemes.filters import audience
from tidings.dissemination.schemes.server import Server
from tidings.errors import SubscriptionError
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse
from tidings.model.event import Event


class LinkMembers:
    """The members behind a link, by their texts."""

    def __init__(self, texts: Iterable[str], tables: Mapping[str, Table]) -> None:
        self._servers: dict[str, Server] = {}
        for text in texts:
            try:
                shape, ranges = read(parse(text), tables)
            except SubscriptionError:  # a table is gone: the index has refused it, too
                continue
            member = membership(shape, tables)
            if member.population not in self._servers:
                seen = member.tables if member.parts else tables
                self._servers[member.population] = Server(seen.values())
            ends = [
                ([low], [high]) for low, high in member.subscription([bounds[:2] for bounds in ranges]).ranges
            ]
            self._servers[member.population].subscribe(member.signature, ends, member.semijoins)  # type: ignore[arg-type]

    @property
    def streams(self) -> frozenset[str]:
        """What their records are stored as."""
        return frozenset(map(stream_of, self._servers))

    def filtered(self, event: Event) -> Event | None:
        """An event that carries messages, with those that some member accepts; None if there are none. Any other event
        is left as it is."""
        if event.type != MESSAGES:
            return event
        try:
            record = record_in(event)
        except WireError:
            return None
        server = self._servers.get(record.population)
        if server is None or not record.packets:  # what was too large is so for everyone
            return None if server is None else event
        kept = tuple(packet for packet in record.packets if len(audience(message_of(packet), server)))
        if not kept:
            return None
        return replace(event, data=record_event(record._replace(packets=kept)).data)
