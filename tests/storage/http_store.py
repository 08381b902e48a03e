"""A folder served over HTTP, which counts what each client has fetched: the store of an index at an address.

http_store.py FOLDER HOST PORT COUNTS    serves until it is killed; COUNTS gets a line "CLIENT PATH" for each file
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *given: Any, counts: Path, **named: Any) -> None:
        self._counts = counts
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        with self._counts.open("a") as file:
            file.write(f"{self.client_address[0]} {self.path}\n")
        super().do_GET()

    def log_message(self, *about: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a client opens many connections at once


def fetched(counts: Path) -> Counter[tuple[str, str]]:
    """How often each client has fetched each file."""
    lines = counts.read_text().splitlines() if counts.exists() else []
    return Counter((client, path) for client, path in (line.split(" ", 1) for line in lines))


def _server(folder: Path, host: str, port: int, counts: Path) -> ThreadingHTTPServer:
    handler = partial(_Handler, directory=str(folder), counts=counts)
    return _Server((host, port), handler)  # type: ignore[arg-type]


@contextmanager
def served(folder: Path, counts: Path) -> Iterator[str]:
    """Its address on the loopback."""
    with _server(folder, "127.0.0.1", 0, counts) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    root, host, port, counts = sys.argv[1:]
    _server(Path(root), host, int(port), Path(counts)).serve_forever()
