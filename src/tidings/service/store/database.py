"""Opens the two stores: files of SQLite in the data folder, or tables of one PostgreSQL database."""

from __future__ import annotations

from sqlalchemy import URL

from tidings.service.settings import Settings
from tidings.service.store import mailbox, registry, tables
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry
from tidings.service.store.transactions import Database, StoreError, postgresql_url, sqlite_url

__all__ = ["HEADS", "StoreError", "open_database", "open_mailbox", "open_registry", "open_stores"]

HEADS = {"registry": registry.HEAD, "mailbox": mailbox.HEAD}


def open_stores(settings: Settings) -> tuple[Registry, Mailbox]:
    """Both stores, created or upgraded to this version; StoreError if the database is newer, or of another program."""
    opened = open_registry(settings)
    try:
        return opened, open_mailbox(settings)
    except BaseException:
        opened.close()
        raise


def open_registry(settings: Settings) -> Registry:
    return Registry(open_database(settings, "registry"))


def open_mailbox(settings: Settings) -> Mailbox:
    return Mailbox(open_database(settings, "mailbox"))


def open_database(settings: Settings, name: str, *, new: bool = False) -> Database:
    """The database of the registry or of the mailbox."""
    metadata = {"registry": tables.REGISTRY, "mailbox": tables.MAILBOX}[name]
    return Database(_url(settings, f"{name}.db"), metadata, name, HEADS[name], new=new)


def _url(settings: Settings, file: str) -> URL:
    return sqlite_url(settings.data / file) if settings.store is None else postgresql_url(settings.store)
