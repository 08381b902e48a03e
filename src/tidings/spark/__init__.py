"""Tidings on Spark: the event log as a data source, matching as DataFrame -> DataFrame, and the stream of both.

    spark = session()
    events = spark.read.format("tidings").load("data/log")
    match(events, "data/index").show()

Names are loaded when first used: Spark plans in processes of their own, which need the data source and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.spark.divided.building import build_index
    from tidings.spark.divided.forest import publish
    from tidings.spark.jobs.backtesting import backtest
    from tidings.spark.joins.stream import correlate
    from tidings.spark.matching import match
    from tidings.spark.output import Batch, notifications
    from tidings.spark.settings import session
    from tidings.spark.source import register
    from tidings.spark.stream import run
    from tidings.spark.stream_handle import Stream

_HOMES = {
    "Batch": "output",
    "Stream": "stream_handle",
    "backtest": "jobs.backtesting",
    "build_index": "divided.building",
    "correlate": "joins.stream",
    "match": "matching",
    "notifications": "output",
    "publish": "divided.forest",
    "register": "source",
    "run": "stream",
    "session": "settings",
}
__all__ = [
    "Batch",
    "Stream",
    "backtest",
    "build_index",
    "correlate",
    "match",
    "notifications",
    "publish",
    "register",
    "run",
    "session",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings.spark' has no attribute {name!r}")
    return getattr(import_module(f"tidings.spark.{_HOMES[name]}"), name)
