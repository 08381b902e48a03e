"""Stores the subscriptions of this service at hubs of other feeds (WebSub), in the file of the fetch states.

Each has a callback address and a secret of its own; a renewal is a new one, which replaces the one before when the hub has
verified it.

    asked ──verified──► active ──replaced, or not followed──► ending ──verified, or given up──► (deleted)
      └─not verified──► failed ──later──► (a new one asked)         denied: until the feed names another hub or topic
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS pushes (
    key TEXT PRIMARY KEY, url TEXT NOT NULL, hub TEXT NOT NULL, topic TEXT NOT NULL, secret TEXT NOT NULL,
    state TEXT NOT NULL, due REAL NOT NULL, until REAL NOT NULL, failures INTEGER NOT NULL, error TEXT, pushed REAL,
    checked INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS pushes_url ON pushes (url);
"""


class PushState(StrEnum):
    ASKED = "asked"
    ACTIVE = "active"
    ENDING = "ending"
    DENIED = "denied"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Push:
    """A subscription at a hub. Times are seconds since 1970."""

    key: str  # in the callback address
    url: str  # of the feed, as it is followed
    hub: str
    topic: str
    secret: str
    state: PushState
    due: float  # when something is to be done about it
    until: float = 0.0  # the end of the lease
    failures: int = 0  # in a row
    error: str | None = None  # one sentence
    pushed: float | None = None  # when the hub last pushed the feed
    checked: int = 0  # before its renewal the feed was fetched, to see whether it has moved


_COLUMNS = ", ".join(field.name for field in fields(Push))


class PushStates:
    """The subscriptions of all feeds, for one thread; any number of them may be open."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=30)

    def create(self) -> None:
        """Makes the table in a file that has none."""
        self._db.executescript(_SCHEMA)

    def __enter__(self) -> PushStates:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, push: Push) -> None:
        """Adds one that was asked for."""
        values = [getattr(push, field.name) for field in fields(Push)]
        with self._db:
            self._db.execute(
                f"INSERT INTO pushes ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})", values
            )

    def change(self, key: str, among: Sequence[PushState], **values: Any) -> bool:
        """Changes one if it is in one of these states; whether it was."""
        names = ", ".join(f"{name} = ?" for name in values)
        marks = ", ".join("?" * len(among))
        with self._db:
            return bool(
                self._db.execute(
                    f"UPDATE pushes SET {names} WHERE key = ? AND state IN ({marks})",
                    (*values.values(), key, *among),
                ).rowcount
            )

    def replace_others(self, push: Push, now: float) -> None:
        """Ends the others of the same feed: this one is active."""
        with self._db:
            self._db.execute(
                "UPDATE pushes SET state = ?, due = ?, failures = 0 WHERE url = ? AND key != ? AND state IN (?, ?)",
                (PushState.ENDING, now, push.url, push.key, PushState.ACTIVE, PushState.ASKED),
            )
            self._db.execute(
                "DELETE FROM pushes WHERE url = ? AND key != ? AND state IN (?, ?)",
                (push.url, push.key, PushState.FAILED, PushState.DENIED),
            )

    def remove(self, key: str) -> None:
        with self._db:
            self._db.execute("DELETE FROM pushes WHERE key = ?", (key,))

    def find(self, key: str) -> Push | None:
        found = self._read("WHERE key = ?", (key,))
        return found[0] if found else None

    def all(self) -> list[Push]:
        return self._read("ORDER BY rowid", ())

    def of(self, urls: Sequence[str]) -> list[Push]:
        """Those of these feeds, if there are not too many for one query."""
        return self._read(f"WHERE url IN ({', '.join('?' * len(urls))}) ORDER BY rowid", tuple(urls))

    def active(self, now: float) -> set[str]:
        """The addresses of the feeds that hubs push."""
        rows = self._db.execute(
            "SELECT url FROM pushes WHERE state = ? AND until > ?", (PushState.ACTIVE, now)
        )
        return {url for (url,) in rows}

    def _read(self, which: str, given: tuple[Any, ...]) -> list[Push]:
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM pushes {which}", given)
        return [replace(push, state=PushState(push.state)) for push in (Push(*row) for row in rows)]
