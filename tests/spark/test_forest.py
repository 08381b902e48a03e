"""The forest of containment as a Spark job is that of one process, and what it divides answers as before."""

from __future__ import annotations

import os
import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.containment_workloads import subscriptions
from benchmarks.workloads import Parameters
from tests.storage.test_divided import CODE, Family
from tidings import Engine, spark
from tidings.containment import forest
from tidings.model.event import to_table
from tidings.spark.divided import forest as job
from tidings.storage import versions
from tidings.storage.division import Placement

from .conftest import rows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _killed_once(mark: Path, task: Any, *given: Any) -> Any:
    """A task whose worker is killed the first time."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task(*given)


def test_patterns_and_equal_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, texts = subscriptions(Parameters(subscriptions=1500, shapes=50, overlap=0.5))
    engine = Engine()
    engine.subscribe_many([*texts, *((f"copy of {id}", text) for id, text in texts[:500])])
    expected = forest.parents(engine)
    monkeypatch.setattr(job, "_task", partial(_killed_once, tmp_path / "killed", job._task))
    assert np.array_equal(job.parents(spark, tmp_path, engine), expected)
    assert (expected >= 0).sum() > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["killed"]


def test_what_is_published_answers_as_the_undivided(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscriptions of all kinds, each of which is compared with others by the workers."""
    monkeypatch.setattr(job, "_FEW", 0)
    family = Family(random.Random(3))
    engine, events = family.engine(60), to_table(family.events(20))
    expected, parents = rows(engine.publish_many(events)), forest.parents(engine)
    version = publish(spark, tmp_path, engine, Placement("contain", 2))
    division = versions.division(tmp_path, version)
    assert division is not None
    assert sum(piece.subscriptions for piece in division.parts) == (parents >= 0).sum() > 5
    index = versions.open(tmp_path, version, operators=CODE)
    assert rows(index.publish_many(events)) == expected
    assert versions.division(tmp_path, publish(spark, tmp_path, engine, Placement("split", 1))) is None


publish = spark.publish
