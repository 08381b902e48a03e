"""Opens the two stores: files of SQLite in the data folder, or tables of one PostgreSQL database."""

from __future__ import annotations

from sqlalchemy import URL

from tidings.service.settings import Settings
from tidings.service.store import mailbox, registry, tables
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry
from tidings.service.store.transactions import Database, StoreError, postgresql_url, sqlite_url

__all__ = ["StoreError", "open_mailbox", "open_registry", "open_stores"]


def open_stores(settings: Settings) -> tuple[Registry, Mailbox]:
    """Both stores, created or upgraded to this version; StoreError if the database is newer, or of another program."""
    opened = open_registry(settings)
    try:
        return opened, open_mailbox(settings)
    except BaseException:
        opened.close()
        raise


def open_registry(settings: Settings) -> Registry:
    return Registry(Database(_url(settings, "registry.db"), tables.REGISTRY, "registry", registry.HEAD))


def open_mailbox(settings: Settings) -> Mailbox:
    return Mailbox(Database(_url(settings, "mailbox.db"), tables.MAILBOX, "mailbox", mailbox.HEAD))


def _url(settings: Settings, file: str) -> URL:
    return sqlite_url(settings.data / file) if settings.store is None else postgresql_url(settings.store)
