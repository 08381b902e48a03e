"""A write-ahead log of SQLite that a disk has torn after a kill: the transactions before the tear are there, each whole,
and the service starts and goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.service.store.batches import of_size, start, subscription
from tests.service.stores import opened
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.store.database import open_mailbox, open_stores

BATCHES, SIZE = 4, 60


def tear(folder: Path, name: str, share: float) -> None:
    """Leaves a share of a write-ahead log, and no shared memory, as after a power cut."""
    log = folder / f"{name}-wal"
    os.truncate(log, int(log.stat().st_size * share))
    (folder / f"{name}-shm").unlink(missing_ok=True)


@pytest.mark.parametrize("share", [0.05, 0.35, 0.6, 0.95, 0.999])
def test_a_torn_mailbox_has_whole_batches_and_goes_on_with_the_next(tmp_path: Path, share: float) -> None:
    settings = Settings(tmp_path / "killed")
    for store in opened(settings):
        store.close()
    with start(settings, "q", BATCHES + 1, SIZE, "stop") as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "middle\n"
        writer.kill()
    tear(settings.data, "mailbox.db", share)
    mailbox = open_mailbox(settings)
    last = mailbox.last_batch("q")
    kept = 0 if last is None else last + 1
    assert mailbox.last() == mailbox.totals()["notifications"] == kept * SIZE
    assert kept < BATCHES or share > 0.9
    for number in range(BATCHES + 1):  # what is recorded again is not doubled
        assert mailbox.record(*of_size("q", number, SIZE)) == (number >= kept)
    assert mailbox.last() == (BATCHES + 1) * SIZE
    told = mailbox.page([f"s{number}" for number in range(7)], after=0, limit=10_000)
    assert (
        len({(one.subscription, one.event and one.event.id) for one in told}) == len(told) == mailbox.last()
    )
    mailbox.close()


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_service_starts_with_a_torn_registry(tmp_path: Path, share: float) -> None:
    settings = Settings(tmp_path / "running")
    registry, mailbox = opened(settings)
    for number in range(30):
        registry.add(subscription(f"s{number:02d}", created=float(number)))
    killed = Settings(tmp_path / "killed")
    shutil.copytree(settings.data, killed.data)  # while it is open, as a kill leaves it
    registry.close()
    mailbox.close()
    tear(killed.data, "registry.db", share)
    service = Service(killed)
    service.start(driver=False)
    kept = [one.id for one in reversed(service.registry.page(owner=None, limit=100))]
    assert kept == [f"s{number:02d}" for number in range(len(kept))]
    assert 0 < len(kept) < 30
    service.index_writer.wait_for(service.registry.add(subscription("next")))
    service.stop()
    for store in (stores := open_stores(killed)):
        store.close()
    assert len(stores) == 2
