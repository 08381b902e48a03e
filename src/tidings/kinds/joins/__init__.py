"""Joins: subscriptions over tables, and what each gains and loses with every change of a row."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.joins.replica import Replica
    from tidings.joins.table import Table

_HOMES = {"Replica": "replica", "Table": "table"}
__all__ = ["Replica", "Table"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings.joins' has no attribute {name!r}")
    return getattr(import_module(f"tidings.joins.{_HOMES[name]}"), name)
