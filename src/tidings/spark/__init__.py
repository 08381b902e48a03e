"""Tidings on Spark: the event log as a data source, matching as DataFrame -> DataFrame, and the stream of both.

spark = session()
events = spark.read.format("tidings").load("data/log")
match(events, "data/index").show()
"""

from tidings.spark.matching import match
from tidings.spark.output import Batch, notifications
from tidings.spark.settings import session
from tidings.spark.source import register
from tidings.spark.stream import Stream, run

__all__ = ["Batch", "Stream", "match", "notifications", "register", "run", "session"]
