"""Two services over real HTTP for all tests of WebSub: one whose hub pushes, and one that follows feeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tests.service.websub.callbacks import Callbacks, callbacks_server

ALLOWED = ("127.0.0.0/8",)
numbers = count()


@pytest.fixture(scope="package")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that may call this machine."""
    with Running(data=tmp_path_factory.mktemp("hub"), allowed=ALLOWED) as served:
        served.service.websub_hub._distribution._between = 0.0
        yield served


@pytest.fixture(scope="package")
def following(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Another one."""
    with Running(data=tmp_path_factory.mktemp("follower"), allowed=ALLOWED) as served:
        yield served


@pytest.fixture
def callbacks() -> Iterator[Callbacks]:
    with callbacks_server() as callbacks:
        yield callbacks


def new_feed(served: Served, format: str = "atom", **more: Any) -> tuple[str, str]:
    """The topic of a new subscription, and a word that its events have."""
    word = f"word{next(numbers)}"
    made = served.subscribe(f"WHERE topic = '{word}'", **more)
    name = {"atom": "atom", "rss": "rss2", "rdf": "rss1", "json": "json_feed"}[format]
    return made["feeds"][name], word


def source_of(served: Served, url: str) -> dict[str, Any] | None:
    """A followed feed, as the interface shows it."""
    items = served.http.get("/api/sources", params={"limit": 200}).json()["items"]
    return next((item for item in items if item["url"] == url), None)
