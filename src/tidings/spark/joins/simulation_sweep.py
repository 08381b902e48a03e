"""Runs the values of a scenario's sweep as tasks of a Spark job, one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from tidings.dissemination.simulator.results import Result
from tidings.dissemination.simulator.runs import run
from tidings.dissemination.simulator.scenario import Scenario


def sweep(spark: SparkSession, scenario: Scenario) -> list[Result]:
    """The results of all values, in their order."""
    runs = scenario.runs()
    found = spark.sparkContext.parallelize(runs, len(runs)).map(_task).collect()
    return [result for results in found for result in results]


def _task(one: tuple[Any, Scenario]) -> Sequence[Result]:
    value, scenario = one
    return run(scenario, value)
