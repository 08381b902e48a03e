"""A database that starts at the same time as the service: it is waited for; one that refuses is not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.postgresql import Server
from tidings.service import service as service_module
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.store.transactions import StoreError, StoreUnreachable


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_STORE_PAUSE", 0.2)


@pytest.mark.usefixtures("quick")
def test_a_store_that_starts_later_is_waited_for(tmp_path: Path, server: Server) -> None:
    settings = Settings(tmp_path, store=server.create("starting"))
    opened = []
    starting = threading.Thread(target=lambda: opened.append(Service(settings)))
    with server.stopped():
        starting.start()
        starting.join(1.0)
        assert starting.is_alive()
    starting.join(30)
    assert opened
    opened[0].stop()


@pytest.mark.usefixtures("quick")
def test_a_store_that_never_answers_is_an_error_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "_STORE_SECONDS", 0.5)
    with pytest.raises(StoreUnreachable, match="does not answer"):
        Service(Settings(tmp_path, store=f"postgresql://nobody@/none?host={tmp_path}"))


def test_a_store_that_refuses_is_an_error_at_once(tmp_path: Path, server: Server) -> None:
    with pytest.raises(StoreError, match="name another"):
        Service(Settings(tmp_path, store=f"postgresql://tidings@/none?host={server.home}"))
