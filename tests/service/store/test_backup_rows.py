"""The rows of a backup go from either database into either one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.postgresql import Server
from tests.service.store.batches import batch, event, notification_row, subscription
from tests.service.store.conftest import Stores
from tidings.service.backup.backup import backup
from tidings.service.backup.restore import restore
from tidings.service.model import Delivery, Role, Token
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.store.transactions import StoreError
from tidings.storage.event_log import EventLog


def test_rows_come_back_as_they_were(
    stores: Stores, kind: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each of the two databases into the other one."""
    monkeypatch.setattr("tidings.service.backup.rows._ROWS", 3)
    registry, mailbox, settings = stores.registry, stores.mailbox, stores.settings
    registry.add(subscription("a", public=True, title="Ünï 😀"))
    registry.add(subscription("b", valid_until=9.5))
    registry.add_token(Token("t", "desk", Role.ADMIN, "hash", 1.0))
    registry.set_delivery(Delivery("a", "https://example.org/", "whsec_", 3, failing_since=2.0))
    rows = [notification_row("a", f"e{n}", bindings=[("x", "1")], sequence=n) for n in range(8)]
    mailbox.record(*batch(0, rows, [event(f"e{n}", data=bytes(range(256))) for n in range(8)]))
    mailbox.record(*batch(1, [notification_row(None, "bad", verdict="error", message="what")]))
    with EventLog(settings.data / "log") as log:
        log.append([event("e0")])
    stream = io.BytesIO()
    backup(settings, stream)
    assert registry.add(subscription("c")) == 3  # it goes on

    store = server.create(f"restored_{settings.data.name.replace('-', '_')}") if kind == "sqlite" else None
    there = Settings(tmp_path / "there", store=store)
    stream.seek(0)
    restore(there, stream)
    again, box = open_stores(there)
    assert [again.find(id) for id in "ab"] == [registry.find(id) for id in "ab"]
    assert again.find("c") is None
    assert again.tokens() == registry.tokens()
    assert again.deliveries() == registry.deliveries()
    assert [(one.number, one.id) for one in again.changes()] == [
        (one.number, one.id) for one in registry.changes()
    ][:2]
    assert box.page(["a"], after=0) == mailbox.page(["a"], after=0)
    assert (box.reached(), box.faults(), box.totals()) == (
        mailbox.reached(),
        mailbox.faults(),
        mailbox.totals(),
    )
    assert box.last() > mailbox.last()
    assert not box.record(*batch(1, []))  # a batch that is there is not recorded again
    again.close()
    box.close()
    if store is not None:
        stream.seek(0)
        with pytest.raises(StoreError, match="holds a registry already; name an empty database"):
            restore(Settings(tmp_path / "second", store=store), stream)
        assert not (tmp_path / "second").exists()


def test_a_restoration_that_fails_leaves_an_empty_database(server: Server, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "here")
    for opened in open_stores(settings):
        opened.close()
    with EventLog(settings.data / "log") as log:
        log.append([event("e0")])
    stream = io.BytesIO()
    backup(settings, stream)
    store = server.create("half_restored")
    part = stream.getvalue()[: stream.getvalue().rindex(b"files/log")]
    with pytest.raises(Exception, match="take another"):
        restore(Settings(tmp_path / "there", store=store), io.BytesIO(part))
    stream.seek(0)
    restore(Settings(tmp_path / "there", store=store), stream)
    assert (tmp_path / "there" / "log").is_dir()
