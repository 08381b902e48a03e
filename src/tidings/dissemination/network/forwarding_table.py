"""A forwarding table: which filters and patterns are wanted behind each link, and which few of them to ask the next node for.

The router of a content-based network over a tree (Select-joins, 2.1 and Appendix A). What is registered on any link is covered by
what this node registers on its link towards the root; when the last subscription that needs a filter there has ended, it is
withdrawn, and those that it covered are registered in its place. So a table holds of each node below only filters that do not contain
each other. A link gets an event if a filter behind it matches, or may match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tidings.dissemination.network.covering import Changed, Covering, widest
from tidings.dissemination.packet import Packet, event_of
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.model.taxonomy import Taxonomy

Entry = tuple[str, str]
"""A link, and the text of a filter that is wanted behind it."""


class Upstream(Protocol):
    """Decides which filters to register upstream for all that are there."""

    def update(self, added: Mapping[str, Query], removed: Iterable[str]) -> Changed: ...


class EveryText:
    """Registers every text, each once: what `Covering` is compared with."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # by id
        self._copies: Counter[str] = Counter()

    def update(self, added: Mapping[str, Query], removed: Iterable[str]) -> Changed:
        before = set(self._copies)
        for id in removed:
            text = self._texts.pop(id)
            self._copies[text] -= 1
            if not self._copies[text]:
                del self._copies[text]
        for id, query in added.items():
            text = self._texts[id] = to_text(widest(query))
            self._copies[text] += 1
        return Changed(sorted(self._copies.keys() - before), sorted(before - self._copies.keys()))


class ForwardingTable:
    """A router of `Node`; its filters are the texts of subscriptions."""

    reads_payload = True

    def __init__(
        self,
        upwards: Callable[[Changed], None] | None = None,
        taxonomy: Taxonomy | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        """`upwards` is called with what to register and withdraw on the link towards the root, if there is one."""
        self._upwards = upwards
        self._upstream = upstream if upstream is not None else Covering(taxonomy)
        self._engine = Engine(taxonomy=taxonomy)
        self._copies: Counter[Entry] = Counter()
        self._entry_of: dict[str, Entry] = {}
        self._count: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many filters are matched, those of all links together."""
        return len(self._entry_of)

    def filters(self, link: str) -> int:
        """How many filters are wanted behind a link."""
        return self._count[link]

    def entries(self) -> list[Entry]:
        """All that is registered, as often as it is."""
        return list(self._copies.elements())

    def update(self, register: Iterable[Entry], withdraw: Iterable[Entry]) -> None:
        """Registers some filters, then withdraws others; what comes of both goes upwards at once. All or nothing."""
        register, withdraw = list(register), list(withdraw)
        queries = {entry: parse(entry[1]) for entry in register}
        counts = Counter(register)
        counts.subtract(withdraw)
        for (link, filter), change in counts.items():
            if self._copies[link, filter] + change < 0:
                raise SubscriptionError(
                    f"nothing on the link {link!r} asks for {filter!r}; withdraw what was registered"
                )
        added = [entry for entry, change in counts.items() if change > 0 and not self._copies[entry]]
        self._subscribe({entry: queries[entry] for entry in added})
        self._copies.update(counts)
        removed = [entry for entry in counts if not self._copies[entry]]
        for entry in removed:
            del self._copies[entry]
        ended = [entry for entry in removed if self._entry_of.pop(_id(entry), None) is not None]
        for entry in ended:
            self._engine.unsubscribe(_id(entry))
        self._count.update(link for link, _ in added)
        self._count.subtract(link for link, _ in ended)
        if self._upwards is not None:
            changed = self._upstream.update({_id(entry): queries[entry] for entry in added}, map(_id, ended))
            if changed.register or changed.withdraw:
                self._upwards(changed)

    def _subscribe(self, queries: Mapping[Entry, Query]) -> None:
        done: list[str] = []
        try:
            for entry, query in queries.items():
                self._engine.subscribe(_id(entry), query)
                done.append(_id(entry))
        except SubscriptionError:
            for id in done:
                self._engine.unsubscribe(id)
            raise
        self._entry_of.update({_id(entry): entry for entry in queries})

    def matches(self, packet: Packet, sender: str | None) -> list[str]:
        found = dict.fromkeys(
            self._entry_of[match.subscription][0]
            for match in self._engine.publish(event_of(packet))
            if match.subscription is not None
        )
        return [link for link in found if link != sender]


def _id(entry: Entry) -> str:
    return "\n".join(entry)
