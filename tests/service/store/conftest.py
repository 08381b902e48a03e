"""Every test of a store runs on SQLite and on a real PostgreSQL; tables are made once and copied."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgresql import Server, programs
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry


class Stores(NamedTuple):
    settings: Settings
    registry: Registry
    mailbox: Mailbox


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb on this machine")
    server = Server(folder)
    yield server
    server.close()


@pytest.fixture(scope="session")
def made_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for store in open_stores(Settings(folder)):
        store.close()
    return folder


@pytest.fixture(scope="session")
def made_database(server: Server) -> str:
    for store in open_stores(Settings(Path(), store=server.create("made"))):
        store.close()
    return "made"


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Settings:
    """Where no store has been yet."""
    if kind == "sqlite":
        return Settings(tmp_path)
    server: Server = request.getfixturevalue("server")
    return Settings(tmp_path, store=server.create(_name(tmp_path)))


@pytest.fixture
def settings(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Settings:
    """Where there are tables, with nothing in them."""
    if kind == "sqlite":
        shutil.copytree(request.getfixturevalue("made_files"), tmp_path, dirs_exist_ok=True)
        return Settings(tmp_path)
    template = request.getfixturevalue("made_database")
    server: Server = request.getfixturevalue("server")
    return Settings(tmp_path, store=server.create(_name(tmp_path), f"TEMPLATE {template}"))


@pytest.fixture
def stores(settings: Settings) -> Iterator[Stores]:
    registry, mailbox = open_stores(settings)
    yield Stores(settings, registry, mailbox)
    registry.close()
    mailbox.close()


@pytest.fixture
def registry(stores: Stores) -> Registry:
    return stores.registry


@pytest.fixture
def mailbox(stores: Stores) -> Mailbox:
    return stores.mailbox


def _name(folder: Path) -> str:
    return "d_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name.lower())[-50:]
