"""What a filter means: slow, obvious, complete.

Oracle of the tests, baseline of the benchmarks, voice of `explain`. Any Boolean expression over attributes, with
the meaning of its forms in `conditions` and of its values in `values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.language.conditions import holds
from tidings.language.query import Condition


def matches(condition: Condition, attributes: Mapping[str, Any]) -> bool:
    """Whether an event with these attributes satisfies a filter."""
    return holds(condition, attributes)
