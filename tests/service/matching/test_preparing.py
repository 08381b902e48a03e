"""Subscribing while the index is prepared: nobody waits, and the index has everything before anything is matched."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tidings.service.matching import index_writer as module
from tidings.service.model import Subscription
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.storage import versions


def subscription(id: str) -> Subscription:
    return Subscription(id, "WHERE topic = 'oil'", id, "", "", id, 0.0, None)


def ids(data: Path) -> set[str]:
    engine = versions.open(data / "index", versions.current(data / "index"))
    return {id for id in ("before", "meanwhile", "after") if id in engine}


def test_what_comes_meanwhile_is_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(Settings(tmp_path))
    service.registry.add(subscription("before"))
    building, go_on = threading.Event(), threading.Event()
    publish = versions.publish

    def slow(*arguments: object, **options: object) -> object:
        building.set()
        assert go_on.wait(30)
        return publish(*arguments, **options)

    monkeypatch.setattr(module.versions, "publish", slow)
    starting = threading.Thread(target=lambda: service.start(driver=False))
    starting.start()
    assert building.wait(30)
    # What the index is built of was read before this one came.
    service.index_writer.wait_for(service.registry.add(subscription("meanwhile")), timeout=0.0)
    go_on.set()
    starting.join(30)
    try:
        assert {"before", "meanwhile"} == ids(tmp_path)
        service.index_writer.wait_for(service.registry.add(subscription("after")), timeout=10.0)
        assert "after" in ids(tmp_path)
    finally:
        service.stop()
