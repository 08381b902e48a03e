"""Parses server-sent events as they arrive, and keeps the position for reconnecting.

The parser keeps the number of the last event that it gave out; the client sends it when it reconnects, so that
nothing is missed or repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tidings.client.responses import Notification


class Parser:
    """Converts bytes to notifications. `last` is the number of the last one; `over` is set when the service has
    ended the stream; `failures` counts failed connections since the last open one."""

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self.over = self.opened = False
        self.failures = 0
        self.retry = 3.0  # seconds
        self._rest = b""
        self.begin()

    def begin(self) -> None:
        """Starts a new connection: an incomplete event is dropped, and comes again."""
        self._rest = b""
        self._id = self._name = ""
        self._data: list[str] = []

    def open(self) -> None:
        """Resets the failures: the service has answered."""
        self.opened, self.failures = True, 0

    def feed(self, piece: bytes) -> Iterator[Notification]:
        *lines, self._rest = (self._rest + piece.replace(b"\r\n", b"\n")).split(b"\n")
        for line in lines:
            if line:
                self._take(line.decode("utf-8", errors="replace"))
            else:
                yield from self._end()

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and "\0" not in value:
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "retry" and value.isdecimal():
            self.retry = int(value) / 1000

    def _end(self) -> Iterator[Notification]:
        number = int(self._id) if self._id.isdecimal() else None
        data, name = "\n".join(self._data), self._name
        self._id, self._name, self._data = "", "", []
        if data:
            members = json.loads(data)
            if name == "missed" and "kind" not in members:
                yield _missed(int(members["from"]), int(members["to"]))
            else:
                yield Notification.read(members)
        if number is not None:  # after it was yielded: a break in between repeats it
            self.last = number


def _missed(first: int, last: int) -> Notification:
    message = f"notifications {first:,} to {last:,} are no longer kept; some of them may have been yours"
    return Notification(f"missed {first} {last}", last, "", "missed", message=message)
