"""One small Spark session for all tests, and an index and events to go through it."""

import os
import subprocess
from pathlib import Path

import pytest

from tidings import Engine, Event
from tidings.spark import session
from tidings.storage import versions

TITLE = "http://purl.org/rss/1.0/title"
WORDS = ("alpha", "beta", "gamma")


@pytest.fixture(scope="session")
def spark():
    # Two cores as on the smallest machine; every test shares the JVM, whose start is the dearest part.
    spark = session("local[2,4]")
    yield spark
    spark.stop()


@pytest.fixture
def index(tmp_path):
    """An index with one subscription for each of the first two words."""
    engine = Engine()
    for word in WORDS[:2]:
        engine.subscribe(word, f"SELECT ?item WHERE (?item, <{TITLE}>, '{word}')")
    versions.publish(tmp_path / "index", engine)
    return tmp_path / "index"


def event(number: int, word: str) -> Event:
    triple = f'<http://example.org/{number}> <{TITLE}> "{word}" .\n'
    return Event(id=str(number), source="test", datacontenttype="application/n-triples", data=triple.encode())


def words(first: int, count: int) -> list[Event]:
    """Events numbered from `first`, one word each, in turn."""
    return [event(number, WORDS[number % len(WORDS)]) for number in range(first, first + count)]


BROKEN = Event(id="broken", source="test", datacontenttype="text/turtle", data=b"<no end")


def rows(table) -> list[tuple]:
    """Notifications in an order that does not depend on tasks."""
    return sorted(
        (row["event"], row["subscription"] or "", row["verdict"], tuple(dict(row["bindings"] or ()).items()))
        for row in table.to_pylist()
    )


def expected(index: Path, events: list[Event]) -> list[tuple]:
    """What one process says to the same events."""
    return rows(versions.open(index, versions.current(index)).publish_many(events))


def start(*command: str, **environment: str) -> subprocess.Popen:
    """A process in a group of its own."""
    return subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True)
