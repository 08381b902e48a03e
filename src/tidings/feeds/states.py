"""Stores the state of each followed feed in one SQLite file: when it is due, its ETag, its error, the ids of its items,
and the hubs that it names.

A feed's row and the ids of its items change in one transaction. Ids are kept as long as the feed contains them, and
after that the latest `REMEMBERED` of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tidings.errors import TidingsError
from tidings.feeds.hubs import NamedHubs

REMEMBERED = 2000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS feeds (
    url TEXT PRIMARY KEY, address TEXT NOT NULL, etag TEXT, modified TEXT, due REAL NOT NULL,
    failures INTEGER NOT NULL, error TEXT, gone INTEGER NOT NULL, fetched REAL, followed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS items (
    url TEXT NOT NULL, id TEXT NOT NULL, shown REAL NOT NULL, PRIMARY KEY (url, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    url TEXT PRIMARY KEY, title TEXT NOT NULL, taken INTEGER NOT NULL, latest INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS hubs (url TEXT PRIMARY KEY, topic TEXT NOT NULL, hubs TEXT NOT NULL);
"""
_COLUMNS = "url, address, etag, modified, due, failures, error, gone, fetched"


@dataclass(frozen=True, slots=True)
class Feed:
    """One followed feed. `address` is where it permanently moved to; times are seconds since 1970."""

    url: str
    address: str
    etag: str | None
    modified: str | None
    due: float
    failures: int = 0  # in a row
    error: str | None = None  # of the last look, one sentence
    gone: bool = False  # the server said that it will not come back
    fetched: float | None = None  # when it was last read without an error


class FeedCounts(NamedTuple):
    """What a feed calls itself, and how many items were taken from it: in all, and new at the last fetch."""

    title: str = ""
    taken: int = 0
    latest: int = 0


class FeedStates:
    """The states of all feeds, for one thread. Another may read the file meanwhile, with `read_only`."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        path = Path(path).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(
                f"{path.as_uri()}?mode={'ro' if read_only else 'rwc'}", timeout=30, uri=True
            )
            if not read_only:
                self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise TidingsError(
                f"{path} does not hold the states of feeds: {error}; name another file"
            ) from None

    def close(self) -> None:
        self._db.close()

    def follow(self, urls: Sequence[str], now: float) -> None:
        """Exactly these are followed; one that was not before is due at once, and no longer gone."""
        with self._db:
            before = {url for (url,) in self._db.execute("SELECT url FROM feeds WHERE followed")}
            self._db.execute("UPDATE feeds SET followed = 0")
            for url in urls:
                self._db.execute(
                    "INSERT INTO feeds VALUES (?, ?, NULL, NULL, ?, 0, NULL, 0, NULL, 1)"
                    " ON CONFLICT (url) DO UPDATE SET followed = 1",
                    (url, url, now),
                )
                if url not in before:
                    self._db.execute("UPDATE feeds SET due = ?, gone = 0 WHERE url = ?", (now, url))

    def followed(self, among: Sequence[str] | None = None) -> list[Feed]:
        """The followed feeds; `among` some, if there are not too many for one query."""
        which = "" if among is None else f" AND url IN ({', '.join('?' * len(among))})"
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM feeds WHERE followed{which} ORDER BY rowid", among or ()
        )
        return [replace(feed, gone=bool(feed.gone)) for feed in (Feed(*row) for row in rows)]

    def hasten(self, url: str, now: float) -> None:
        """A feed is due now, even if it was gone."""
        with self._db:
            self._db.execute("UPDATE feeds SET due = ?, gone = 0 WHERE url = ? AND followed", (now, url))

    def counts(self, urls: Sequence[str]) -> dict[str, FeedCounts]:
        """By address, of those that were read before; if they are not too many for one query."""
        rows = self._db.execute(
            f"SELECT url, title, taken, latest FROM counts WHERE url IN ({', '.join('?' * len(urls))})", urls
        )
        return {url: FeedCounts(*counts) for url, *counts in rows}

    def known(self, url: str, ids: Iterable[str]) -> set[str]:
        """The ids among these that the feed has contained before."""
        found = (self._db.execute("SELECT id FROM items WHERE url = ? AND id = ?", (url, id)) for id in ids)
        return {row[0] for rows in found for row in rows}

    def save(self, feed: Feed, ids: Iterable[str], now: float, read: FeedCounts | None = None) -> None:
        """The feed's new state, and the items it shows now. `read` is what was taken from it now, if it could be read."""
        with self._db:
            values = [*astuple(feed)[1:], feed.url]
            names = [f"{name} = ?" for name in _COLUMNS.split(", ")[1:]]
            self._db.execute(f"UPDATE feeds SET {', '.join(names)} WHERE url = ?", values)
            self._take(feed.url, ids, now, read)

    def take(self, url: str, ids: Iterable[str], now: float, read: FeedCounts) -> None:
        """The items that a hub has pushed; the state of fetching is as it was."""
        with self._db:
            self._take(url, ids, now, read)

    def _take(self, url: str, ids: Iterable[str], now: float, read: FeedCounts | None) -> None:
        if read is not None:
            self._db.execute(
                "INSERT INTO counts VALUES (?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET"
                " title = coalesce(nullif(excluded.title, ''), title),"
                " taken = taken + excluded.taken, latest = excluded.latest",
                (url, *read),
            )
        rows = [(url, id, now) for id in ids]
        self._db.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", rows)
        self._db.execute(
            "DELETE FROM items WHERE url = ? AND shown < ? AND id NOT IN"
            " (SELECT id FROM items WHERE url = ? ORDER BY shown DESC LIMIT ?)",
            (url, now, url, REMEMBERED),
        )

    def name_hubs(self, url: str, named: NamedHubs | None) -> None:
        """Keeps what the feed names now."""
        with self._db:
            if named is None:
                self._db.execute("DELETE FROM hubs WHERE url = ?", (url,))
            else:
                row = (url, named.topic, "\n".join(named.hubs))
                self._db.execute("INSERT OR REPLACE INTO hubs VALUES (?, ?, ?)", row)

    def named_hubs(self, url: str | None = None) -> dict[str, NamedHubs]:
        """What the followed feeds name, by address: all of them, or one."""
        which, given = ("", ()) if url is None else (" AND url = ?", (url,))
        rows = self._db.execute(
            f"SELECT url, topic, hubs FROM hubs JOIN feeds USING (url) WHERE followed AND NOT gone{which}",
            given,
        )
        return {url: NamedHubs(topic, tuple(hubs.split("\n"))) for url, topic, hubs in rows}
