"""Defines what a filter means: slow, obvious, complete.

The tests compare the index with it, the benchmarks use it as a baseline, and `explain` evaluates with it. A filter is
any Boolean expression over attributes; language/conditions.py defines its forms, model/values.py its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.language.conditions import holds
from tidings.language.query import Condition


def matches(condition: Condition, attributes: Mapping[str, Any]) -> bool:
    """Whether an event with these attributes satisfies a filter."""
    return holds(condition, attributes)
