"""Many listeners of server-sent events in one process, which checks and times what comes.

    python -m benchmarks.relays.listeners    with {"host", "port", "subscriptions": [ids], "token"} on standard input

It prints "ready" when all are connected, and when standard input ends what they have got, as JSON: for each subscription the
`seq` of its events in order, how many notifications came twice by their ids, and the seconds from `sent` to here. A listener
whose connection ends comes again with the last id that it saw.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

_PIECE = re.compile(rb'id: (\d+)\nevent: notification\ndata: \{"id":"([^"]+)"([^\n]*)\n')
_SEQ, _SENT = re.compile(rb'"seq":(\d+)'), re.compile(rb'"sent":([0-9.e+]+)')


class Listener:
    def __init__(self, given: dict[str, object], id: str) -> None:
        self._host, self._port, self._token = given["host"], given["port"], given.get("token")
        self.id, self.last = id, str(given.get("last") or "")
        self.seen: dict[str, None] = {}
        self.order: list[int] = []
        self.seconds: list[float] = []
        self.twice = 0
        self.bytes = 0
        self.connected = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                await self._listen()
            except (OSError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.3)

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        head = [f"GET /api/subscriptions/{self.id}/stream HTTP/1.1", f"Host: {self._host}:{self._port}"]
        head += [f"Authorization: Bearer {self._token}"] if self._token else []
        head += [f"Last-Event-ID: {self.last}"] if self.last else []
        writer.write("\r\n".join([*head, "", ""]).encode())
        try:
            status = await reader.readline()
            if b" 200 " not in status:
                await asyncio.sleep(0.5)
                return
            self.connected.set()
            held = b""
            while chunk := await reader.read(1 << 16):
                self.bytes += len(chunk)
                held = self._take(held + chunk)
        finally:
            writer.close()

    def _take(self, held: bytes) -> bytes:
        now = time.time()
        end = held.rfind(b"\n\n")
        if end < 0:
            return held
        for number, id, rest in _PIECE.findall(held, 0, end + 2):
            self.last = number.decode()
            if (key := id.decode()) in self.seen:
                self.twice += 1
                continue
            self.seen[key] = None
            seq, sent = _SEQ.search(rest), _SENT.search(rest)
            assert seq is not None
            assert sent is not None
            self.order.append(int(seq[1]))
            self.seconds.append(now - float(sent[1]))
        return held[end + 2 :]


async def main() -> None:
    given = json.loads(sys.stdin.readline())
    listeners = [Listener(given, id) for id in given["subscriptions"]]
    tasks = []
    for at, listener in enumerate(listeners):
        tasks.append(asyncio.create_task(listener.run()))
        if at % 50 == 49:
            await asyncio.gather(*(one.connected.wait() for one in listeners[: at + 1]))
    await asyncio.gather(*(listener.connected.wait() for listener in listeners))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    json.dump(
        {
            "orders": {listener.id: listener.order for listener in listeners},
            "twice": sum(listener.twice for listener in listeners),
            "bytes": sum(listener.bytes for listener in listeners),
            "seconds": [seconds for listener in listeners for seconds in listener.seconds],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    asyncio.run(main())
