"""Many listeners of server-sent events in one process, which checks and times what comes.

    python -m benchmarks.relays.listeners    with {"host", "port", "subscriptions": [ids], "token"} on standard input

It prints "ready" when all are connected, and when standard input ends what they have got, as JSON: for each subscription the
`seq` of its events in order, how many notifications came twice by their ids, and the seconds from `sent` to here. A listener
whose connection ends comes again with the last id that it saw.

What comes is kept with its time and read at the end: the processor is for the services that are measured.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from contextlib import suppress

_PIECE = re.compile(rb'id: (\d+)\nevent: notification\ndata: \{"id":"([^"]+)"([^\n]*)\n')
_SEQ, _SENT = re.compile(rb'"seq":(\d+)'), re.compile(rb'"sent":([0-9.e+]+)')
_NUMBER = re.compile(rb"(?:^|\n)id: (\d+)\n")
_PAUSE = 0.3  # seconds before a lost connection is made again
_HEAD_SECONDS = 10.0


class Listener:
    def __init__(self, given: dict[str, object], id: str) -> None:
        self._address = str(given["host"]), int(str(given["port"]))
        self._token = given.get("token")
        self.id = id
        self.runs: list[list[tuple[float, bytes]]] = []  # what came over each connection, and when
        self.last = str(given.get("last") or "")
        self.connection: socket.socket | None = None
        self.due = 0.0

    def connect(self) -> bool:
        """Asks for the stream, and waits for the head of the answer; False if there is none."""
        self.due = time.monotonic() + _PAUSE
        try:
            connection = socket.create_connection(self._address, timeout=_HEAD_SECONDS)
        except OSError:
            return False
        host, port = self._address
        head = [f"GET /api/subscriptions/{self.id}/stream HTTP/1.1", f"Host: {host}:{port}"]
        head += [f"Authorization: Bearer {self._token}"] if self._token else []
        head += [f"Last-Event-ID: {self.last}"] if self.last else []
        try:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                if not (chunk := connection.recv(1 << 16)):
                    raise OSError
                answer += chunk
        except OSError:
            connection.close()
            return False
        if b" 200 " not in answer.partition(b"\r\n")[0]:
            connection.close()
            return False
        connection.setblocking(False)
        self.connection = connection
        self.runs.append([(time.time(), answer)])
        return True

    def take(self) -> bool:
        """Keeps what has come; False if the connection has ended."""
        assert self.connection is not None
        try:
            chunk = self.connection.recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            chunk = b""
        if chunk:
            self.runs[-1].append((time.time(), chunk))
            return True
        self.connection.close()
        self.connection = None
        text = b"".join(chunk for _, chunk in self.runs[-1])
        whole = text[: text.rfind(b"\n\n") + 1]
        if numbers := _NUMBER.findall(whole):
            self.last = numbers[-1].decode()
        self.due = time.monotonic() + _PAUSE
        return False

    def received(self) -> tuple[list[int], list[float], int, int]:
        """The `seq` of all notifications in order, their seconds, how many came twice, and bytes."""
        seen: set[bytes] = set()
        order, seconds, twice, size = list[int](), list[float](), 0, 0
        for chunks in self.runs:
            held = b""
            for now, chunk in chunks:
                size += len(chunk)
                held += chunk
                end = held.rfind(b"\n\n")
                if end < 0:
                    continue
                for _, id, rest in _PIECE.findall(held, 0, end + 2):
                    if id in seen:
                        twice += 1
                        continue
                    seen.add(id)
                    seq, sent = _SEQ.search(rest), _SENT.search(rest)
                    assert seq is not None
                    assert sent is not None
                    order.append(int(seq[1]))
                    seconds.append(now - float(sent[1]))
                held = held[end + 2 :]
        return order, seconds, twice, size


def listen(listeners: list[Listener]) -> None:
    """Until standard input ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        away = list(listeners)
        is_ready = False
        while True:
            now = time.monotonic()
            for listener in [listener for listener in away if listener.due <= now]:
                if listener.connect():
                    away.remove(listener)
                    assert listener.connection is not None
                    selector.register(listener.connection, selectors.EVENT_READ, listener)
            if not away and not is_ready:
                is_ready = True
                print("ready", flush=True)
            for key, _ in selector.select(_PAUSE if away else None):
                if key.fileobj is sys.stdin:
                    if not sys.stdin.buffer.read1(1 << 10):
                        return
                    continue
                listener = key.data
                connection = listener.connection
                if not listener.take():
                    selector.unregister(connection)
                    away.append(listener)


def main() -> None:
    given = json.loads(sys.stdin.buffer.readline())
    listeners = [Listener(given, id) for id in given["subscriptions"]]
    with suppress(KeyboardInterrupt):
        listen(listeners)
    found = {listener.id: listener.received() for listener in listeners}
    json.dump(
        {
            "orders": {id: order for id, (order, _, _, _) in found.items()},
            "twice": sum(twice for _, _, twice, _ in found.values()),
            "bytes": sum(size for _, _, _, size in found.values()),
            "seconds": [second for _, seconds, _, _ in found.values() for second in seconds],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
