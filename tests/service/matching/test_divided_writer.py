"""The index of a service that is told to divide it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidings import Event
from tidings.errors import IndexFileError
from tidings.service.matching.compaction import Compaction
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.model import Subscription
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.store.database import open_registry
from tidings.service.store.registry import Registry
from tidings.storage import versions
from tidings.storage.division import Division
from tidings.storage.event_log import EventLog


def _started(settings: Settings, registry: Registry) -> Division | None:
    """How the index is divided after a start."""
    writer = IndexWriter(settings, registry)
    writer.prepare()
    version = versions.current(writer.root)
    index = versions.open(writer.root, version)
    assert len(index.publish(Event("test", {"topic": "oil"}))) == len(index)
    return versions.division(writer.root, version)


def test_the_index_is_divided_as_the_service_is_started(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data")
    registry = open_registry(settings)
    try:
        for id in "abcd":
            registry.add(Subscription(id, "WHERE topic = 'oil'", id, "", "", f"feed-{id}", 1.0, None))
        assert _started(settings, registry) is None
        for parts in (2, 3):
            division = _started(replace(settings, parts=parts, place="split"), registry)
            assert division is not None
            assert division.placement == versions.Placement("split", parts)
            assert division.front.subscriptions == 0
        kept = _started(settings, registry)  # it stays as it is
        assert kept is not None
        assert kept.placement == versions.Placement("split", 3)
        assert _started(replace(settings, parts=1), registry) is None
    finally:
        registry.close()


def test_mergers_are_made_at_the_start_and_at_each_fold(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data", parts=2, place="contain", merge=80, apart=True)
    registry = open_registry(settings)
    try:
        for n in range(8):
            registry.add(Subscription(f"s{n}", _pattern(n), "", "", "", f"feed-{n}", 1.0, None))
        writer = IndexWriter(settings, registry)
        writer.prepare()
        started = _division(writer.root)
        assert (started.placement, started.mergers) == (versions.Placement("contain", 2, 80, True), 1)
        assert started.loads == (), "the log has no events"
        log = EventLog(settings.data / "log")
        for item in (1, 2):
            log.append([Event.from_rdf(f"<urn:{item}> <urn:topic> <urn:oil> ; <urn:in> <urn:3> .", "ttl")])
        log.close()
        versions.append(writer.root, [versions.Change("s8", _pattern(8))])
        Compaction(settings, registry)._fold()
        folded = _division(writer.root)
        assert (folded.placement, folded.mergers) == (started.placement, 1)
        assert (folded.front.subscriptions, sum(piece.subscriptions for piece in folded.parts)) == (0, 9)
        assert max(folded.loads) == 1, "the events of the log are the sample"
    finally:
        registry.close()


def _pattern(number: int) -> str:
    return f"WHERE (?i, <urn:topic>, <urn:oil>), (?i, <urn:in>, <urn:{number}>)"


def _division(root: Path) -> Division:
    found = versions.division(root, versions.current(root))
    assert found is not None
    return found


def test_a_start_refuses_an_index_that_needs_more_than_the_memory(tmp_path: Path) -> None:
    for memory, refused in ((5_000, True), (10_000_000, False)):
        service = Service(Settings(tmp_path / "data", memory=memory))
        try:
            if refused:
                with pytest.raises(
                    IndexFileError, match=r"needs .* and 5,000 are allowed; build it with --parts"
                ):
                    service.start(driver=False)
            else:
                service.start(driver=False)
        finally:
            service.stop()
