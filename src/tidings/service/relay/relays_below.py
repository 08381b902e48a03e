"""What a service knows of the relays below it: who they are, by what they say of themselves, and what has crossed the links
to them since it was started, beside what would have crossed without relays. A relay that is gone stays in the list.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidings.service.relay.copies import NO_COPIES, Copies

MOST = 1_000  # relays that are remembered


class About(NamedTuple):
    """What a relay says of itself. `copies` are the notifications that it and those below it have made."""

    name: str = ""
    address: str = ""
    copies: Copies = NO_COPIES


@dataclass(slots=True)
class RelayBelow:
    """A relay. `about` is None until it has said hello; `copies` were made since this service was started."""

    relay: str
    about: About | None = None
    links: int = 0  # that are open
    since: float = 0.0  # when it came, or went
    filters: int = 0
    messages: int = 0
    bytes: int = 0
    stripped: int = 0
    copies: Copies = NO_COPIES
    renewed: float = 0.0  # when its filters were


class RelaysBelow:
    """By the owners of their filters. Thread-safe."""

    def __init__(self) -> None:
        self._relays: OrderedDict[str, RelayBelow] = OrderedDict()
        self._lock = threading.Lock()

    def all(self) -> Sequence[RelayBelow]:
        """Those that had a link, by name."""
        with self._lock:
            known = [replace(found) for found in self._relays.values() if found.since]
        return sorted(known, key=lambda found: ((found.about or About())[:2], found.relay))

    def met(self, owner: str, relay: str, about: About) -> Copies:
        """A relay says hello. Returns the copies that it has made since the last time."""
        with self._lock:
            found = self._of(owner, relay)
            new = NO_COPIES if found.about is None else about.copies.since(found.about.copies)
            found.about, found.copies = about, found.copies + new
            return new

    def is_due(self, owner: str, relay: str, now: float, every: float) -> bool:
        """Whether its filters were not renewed for so long; then they count as renewed now."""
        with self._lock:
            found = self._of(owner, relay)
            if due := now - found.renewed > every:
                found.renewed = now
            return due

    def opened(self, owner: str, relay: str, at: float) -> None:
        with self._lock:
            found = self._of(owner, relay)
            found.links, found.since = found.links + 1, at

    def closed(self, owner: str, relay: str, at: float) -> None:
        with self._lock:
            found = self._of(owner, relay)
            found.links, found.since = max(0, found.links - 1), at

    def sent(self, owner: str, relay: str, filters: int, crossed: tuple[int, int, int]) -> None:
        """With the messages, bytes and payloads left out that have crossed."""
        messages, size, stripped = crossed
        with self._lock:
            found = self._of(owner, relay)
            found.filters, found.messages = filters, found.messages + messages
            found.bytes, found.stripped = found.bytes + size, found.stripped + stripped

    def _of(self, owner: str, relay: str) -> RelayBelow:
        found = self._relays.setdefault(owner, RelayBelow(relay))
        self._relays.move_to_end(owner)
        if len(self._relays) > MOST:
            self._relays.popitem(last=False)
        return found
