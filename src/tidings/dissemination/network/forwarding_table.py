"""A forwarding table: for each link the filters and patterns of whoever is behind it, as few as cover them all.

The router of a content-based network over a tree (Select-joins, 2.1 and Appendix A). A subscription is registered at its node and, if
no other one covers it there, on every link towards the root; when the last one below that needs it has ended, it is withdrawn, and
those that it covered are registered in its place. A link gets an event if a filter behind it matches, or may match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tidings.dissemination.network.covering import Changed, Covering
from tidings.dissemination.packet import Packet, event_of
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.language.parser import parse
from tidings.model.taxonomy import Taxonomy


class ForwardingTable:
    """A router of `Node`; its filters are the texts of subscriptions."""

    reads_payload = True

    def __init__(
        self, upwards: Callable[[Changed], None] | None = None, taxonomy: Taxonomy | None = None
    ) -> None:
        """`upwards` is told what to register and withdraw on the link towards the root, if there is one."""
        self._taxonomy = taxonomy
        self._upwards = upwards
        self._above = Covering(taxonomy)
        self._behind: dict[str, Covering] = {}
        self._engine = Engine(taxonomy=taxonomy)
        self._link_of: dict[str, str] = {}
        self._copies: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        """How many filters are matched, those of all links together."""
        return len(self._link_of)

    def register(self, link: str, filter: str) -> None:
        self._copies[link, filter] += 1
        if self._copies[link, filter] > 1:
            return
        try:
            query = parse(filter)
            behind = self._behind.setdefault(link, Covering(self._taxonomy))
            changed = behind.add(filter, query)
        except SubscriptionError:
            del self._copies[link, filter]
            raise
        self._apply(link, changed)
        self._tell(self._above.add(_id(link, filter), query))

    def withdraw(self, link: str, filter: str) -> None:
        if not self._copies[link, filter]:
            del self._copies[link, filter]
            raise SubscriptionError(
                f"nothing on the link {link!r} asks for {filter!r}; withdraw what was registered"
            )
        self._copies[link, filter] -= 1
        if not self._copies[link, filter]:
            del self._copies[link, filter]
            self._apply(link, self._behind[link].remove(filter))
            self._tell(self._above.remove(_id(link, filter)))

    def matches(self, packet: Packet, sender: str | None) -> list[str]:
        found = dict.fromkeys(
            self._link_of[one.subscription]
            for one in self._engine.publish(event_of(packet))
            if one.subscription is not None
        )
        return [link for link in found if link != sender]

    def _apply(self, link: str, changed: Changed) -> None:
        for text in changed.register:
            self._engine.subscribe(_id(link, text), text)
            self._link_of[_id(link, text)] = link
        for text in changed.withdraw:
            self._engine.unsubscribe(_id(link, text))
            del self._link_of[_id(link, text)]

    def _tell(self, changed: Changed) -> None:
        if self._upwards is not None and (changed.register or changed.withdraw):
            self._upwards(changed)


def _id(link: str, text: str) -> str:
    return f"{link}\n{text}"
