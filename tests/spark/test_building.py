"""An index that Spark's tasks build, a part each, answers as one that a process has built."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidings import Engine, Event
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.spark import build_index
from tidings.spark.joins import sequence_mark
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.versions import Change

EVENTS = [Event("t", {"topic": "oil", "price": price}, id=str(price)) for price in (1, 5, 50)]


def definitions() -> Engine:
    from tests.storage import version_01 as world

    tables = [Table(name, columns, key=key) for name, columns, key in world.TABLES]
    return Engine(prefixes={"ex": "urn:ex:"}, networks={"net": world.network()}, tables=tables)


def test_every_part_is_written_by_a_task(spark: SparkSession, tmp_path: Path) -> None:
    texts = {f"s{price}": f"WHERE topic = 'oil' AND price > {price}" for price in range(40)}
    texts |= {"pattern": "WHERE (?x, ex:p, ?y)", "at acme": "WHERE topic = 'oil' VIA net AT 'acme'"}
    texts |= {"rows": "FROM stocks WHERE per > 50", "7": "WHERE topic = 'oil'"}
    rows = [*texts.items(), ("twice", "WHERE a = 1"), ("twice", "WHERE a = 2"), ("bad", "WHERE a >")]
    frame = spark.createDataFrame(rows, "id string, text string").repartition(5)
    version, refused = build_index(frame, tmp_path / "index", 3, definitions=definitions())
    assert sorted(str(id) for id, _ in refused) == ["bad", "twice"]
    index = versions.open(tmp_path / "index", version)
    assert isinstance(index, DividedIndex)
    assert len(index) == 44
    assert len(index.joins) == 1
    apart = {"at acme", "rows"}
    assert all(index.part_with(id) is None for id in apart)
    assert {index.part_with(id) for id in texts.keys() - apart} == {0, 1, 2}
    model = definitions()
    for id, text in texts.items():
        model.subscribe(id, text)
    for event in EVENTS:
        assert {n.subscription for n in index.publish(event)} == {
            n.subscription for n in model.publish(event)
        }
    assert versions.verify(tmp_path / "index", version)
    changed = versions.append(tmp_path / "index", [Change("s3", None)])
    assert "s3" not in versions.open(tmp_path / "index", changed)
    assert len(versions.open(tmp_path / "index", versions.compact(tmp_path / "index"))) == 43
    assert not sequence_mark.are_kept(tmp_path / "index", tmp_path / "joins")  # the front has the tables


def test_more_parts_than_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(7, "WHERE topic = 'oil'")], "id int, text string")
    for given, expected in ((frame, ["7"]), (frame.filter("id > 7"), [])):
        version, refused = build_index(given, tmp_path / "index", 4)
        assert not refused
        found = versions.open(tmp_path / "index", version).publish(EVENTS[0])
        assert [notification.subscription for notification in found] == expected


def test_what_cannot_be_is_refused_before_any_job(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "WHERE topic = 'oil'")], "id string, words string")
    with pytest.raises(TidingsError, match="no column 'text'"):
        build_index(frame, tmp_path / "index", 2)
    with pytest.raises(TidingsError, match="cannot have 0 parts"):
        build_index(frame, tmp_path / "index", 0)
    assert not (tmp_path / "index").exists()
