"""Kinds of the user's own in Spark: workers get them from the call, by their module's name."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.engine import toy_kinds
from tests.engine.test_toy_kinds import ASKED, answers, engine_of, events, near, size
from tidings.model.event import to_table
from tidings.model.notification import Notification
from tidings.spark import match
from tidings.storage import versions


def test_toy_kinds_match_in_workers(spark: SparkSession, tmp_path: Path) -> None:
    """Base and tail; the one that keeps state is opened, and takes no part."""
    some = dict(list(ASKED.items())[:5]) | {"third": ASKED["third"]}
    versions.publish(tmp_path, engine_of(some))
    rest = [versions.Change(id, query) for id, query in ASKED.items() if id not in some]
    versions.append(tmp_path, rest, operators=[near, size], kinds=toy_kinds.KINDS)
    published = events(200)
    frame = spark.createDataFrame(to_table(published)).repartition(4)
    found = match(frame, tmp_path, operators=[near, size], kinds=toy_kinds.KINDS).toArrow()
    wanted = answers(engine_of(), published)
    matched: dict[str, dict[str, dict[str, str]]] = {event.id: {} for event in published}
    for notification in Notification.from_table(found):
        matched[notification.event][notification.subscription or ""] = notification.bindings
    assert matched == wanted
    assert any("all" in of_event for of_event in wanted.values())
