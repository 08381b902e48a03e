"""An index at an address, on Spark: in batch, in a stream, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.storage.caches import own_cache
from tidings import TidingsError
from tidings.model.event import to_table
from tidings.spark import match, notifications, run
from tidings.storage import versions
from tidings.storage.event_log import EventLog
from tidings.storage.versions import Change

from .conftest import rows
from .divided_index import engine, events

EVENTS = events(0, 40)


def test_a_frame_and_a_stream(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache(tmp_path / "cache")))
    address = f"file://{tmp_path}/far/index"
    first = versions.publish(address, engine(), placement=versions.Placement("split", 2))
    frame = spark.createDataFrame(to_table(EVENTS)).repartition(2)
    answered = rows(engine().publish_many(EVENTS))
    assert rows(match(frame, address).toArrow()) == answered
    log = EventLog(tmp_path / "log")
    log.append(EVENTS)
    places = tmp_path / "log", address, tmp_path / "out", tmp_path / "checkpoint"
    batches = []
    assert run(spark, *places, available_now=True, on_batch=batches.append).wait(120)
    # The index is changed where it is in a folder; the next micro-batch follows.
    second = versions.append(tmp_path / "far" / "index", [Change("n5", None), Change("more", "WHERE n = 1")])
    log.append(events(100, 20))
    assert run(spark, *places, available_now=True, on_batch=batches.append).wait(120)
    assert [batch.version for batch in batches] == [str(first), str(second)]
    changed = engine()
    changed.unsubscribe("n5")
    changed.subscribe("more", "WHERE n = 1")
    assert rows(notifications(tmp_path / "out")) == sorted(
        [*answered, *rows(changed.publish_many(events(100, 20)))]
    )
    assert rows(match(frame, (address, first)).toArrow()) == answered
    stream = spark.readStream.format("tidings").load(str(tmp_path / "log"))
    with pytest.raises(TidingsError, match="file://.* is an address; give a folder .*tidings.spark.run"):
        match(stream, address)
