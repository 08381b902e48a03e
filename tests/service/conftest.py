"""A service over real HTTP on a port of its own, everything in it real but for Spark: the stream is that of a relay."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from tidings.service.matching.local_stream import LocalStream
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.web.app import create_app
from tidings.service.web.connections import configuration


@dataclass
class Served:
    """A running service, and a client of it."""

    service: Service
    stream: LocalStream
    http: httpx.Client

    @property
    def url(self) -> str:
        return self.service.settings.address

    def subscribe(self, text: str = "WHERE topic = 'sport'", **more: Any) -> dict[str, Any]:
        answer = self.http.post("/api/subscriptions", json={"text": text, **more})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def publish(self, *events: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.post("/api/events", json=list(events))
        assert answer.status_code == 202, answer.text
        return answer.json()

    def notifications(self, id: str, count: int = 1, seconds: float = 30.0) -> list[dict[str, Any]]:
        """What a subscription was told, once it is as much."""
        deadline = time.monotonic() + seconds
        while True:
            items = self.http.get(f"/api/subscriptions/{id}/notifications").json()["items"]
            if len(items) >= count or time.monotonic() > deadline:
                assert len(items) == count
                return items
            time.sleep(0.02)


class Running:
    """`with Running(settings) as served`"""

    def __init__(self, **settings: Any) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.settings = Settings(**{"host": "127.0.0.1", "port": port, **settings})

    def __enter__(self) -> Served:
        service = Service(self.settings)
        service.feed_poller._host_interval = 0.0  # all feeds of these tests are on one host
        service.start(driver=self.settings.matching == "process")
        if isinstance(service.supervisor, LocalStream):
            stream = service.supervisor
        else:
            stream = LocalStream(self.settings.data, service.mailbox, service.preview.engine.operators)
            service.log_writer.on_append = stream.wake
            stream.start()
            stream.go()
        self._server = uvicorn.Server(configuration(create_app(service), graceful_seconds=10))
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        url = f"http://127.0.0.1:{self.settings.port}"
        self._served = Served(service, stream, httpx.Client(base_url=url, timeout=20, verify=False))
        return self._served

    def __exit__(self, *error: object) -> None:
        self._served.http.close()
        self._served.service.begin_to_stop()
        self._server.should_exit = True
        self._thread.join(timeout=20)
        self._served.stream.stop()
        self._served.service.stop()
        self._listener.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Open to everybody on this machine, as `tidings serve` is."""
    with Running(data=tmp_path_factory.mktemp("data")) as served:
        yield served


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Only for those with a token."""
    with Running(data=tmp_path_factory.mktemp("guarded"), open=False) as served:
        yield served


@pytest.fixture
def running(tmp_path: Path) -> Callable[..., Running]:
    """A service of one's own settings."""

    def make(**settings: Any) -> Running:
        return Running(**{"data": tmp_path / "data", **settings})

    return make
