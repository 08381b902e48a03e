"""What a node of CN* remembers of payloads: a directory of what went over which link, and a repository of contents.

Both are soft state with a cap, least recently used out first; after a loss a payload is sent or fetched again, and that is
all. Select-joins, 5. A bit of the directory is set when the next hop acknowledges a payload (Appendix H), so that one
that keeps no payloads, and one that an acknowledgment of was lost on the way, get the payload with every packet.
"""

from __future__ import annotations

from collections import OrderedDict

from tidings.dissemination.packet import ID_BYTES

DIRECTORY_BYTES = 512 << 10
REPOSITORY_ENTRIES = 400
REPOSITORY_BYTES = 64 << 20


class Directory:
    """For each payload a bitmap, with one bit for each link that it was acknowledged on."""

    def __init__(self, capacity: int = DIRECTORY_BYTES) -> None:
        """The capacity is in bytes of ids and bitmaps."""
        self._capacity = capacity
        self._bitmaps: OrderedDict[bytes, int] = OrderedDict()
        self._width = 1  # bytes of a bitmap

    def __len__(self) -> int:
        return len(self._bitmaps)

    def bitmap(self, id: bytes) -> int:
        """Which links have the payload; none if the entry was purged or never there."""
        found = self._bitmaps.get(id)
        if found is None:
            return 0
        self._bitmaps.move_to_end(id)
        return found

    def set(self, id: bytes, bit: int) -> None:
        self._width = max(self._width, bit // 8 + 1)
        self._bitmaps[id] = self._bitmaps.get(id, 0) | 1 << bit
        self._bitmaps.move_to_end(id)
        while len(self._bitmaps) * (ID_BYTES + self._width) > self._capacity:
            self._bitmaps.popitem(last=False)

    def unset(self, bit: int) -> None:
        """Forgets all that a link has, because it ended or its other end starts anew."""
        for id in self._bitmaps:
            self._bitmaps[id] &= ~(1 << bit)


class Repository:
    """Contents by their ids. An entry that all links have goes first: only one that lost it will ask."""

    def __init__(self, entries: int = REPOSITORY_ENTRIES, max_bytes: int = REPOSITORY_BYTES) -> None:
        self.capacity = entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._contents: OrderedDict[bytes, bytes] = OrderedDict()
        self._spare: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._contents)

    def get(self, id: bytes) -> bytes | None:
        content = self._contents.get(id)
        if content is not None:
            self._contents.move_to_end(id)
        return content

    def put(self, id: bytes, content: bytes) -> None:
        if not self.capacity or len(content) > self._max_bytes:
            return
        if id not in self._contents:
            self._bytes += len(content)
        self._contents[id] = content
        self._contents.move_to_end(id)
        while len(self._contents) > self.capacity or self._bytes > self._max_bytes:
            if self._spare:
                purged = self._contents.pop(self._spare.popitem(last=False)[0])
            else:
                purged = self._contents.popitem(last=False)[1]
            self._bytes -= len(purged)

    def spare(self, id: bytes) -> None:
        """Marks an entry as one that may go before others."""
        if id in self._contents:
            self._spare[id] = None
