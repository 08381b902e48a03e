"""How many cases a test makes up: few in `make test`, where they are the same every time, and many in `make bench`, where those of
Hypothesis are others every time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

THOROUGH = 1_000


def examples(few: int, **more: Any) -> settings:
    """`@examples(80)` in the place of `@settings(max_examples=80)`, which would hold in `make bench` too."""
    return settings(max_examples=max(few, THOROUGH) if is_thorough() else few, deadline=None, **more)


def is_thorough() -> bool:
    return settings().max_examples >= THOROUGH


def seeds(few: int, many: int) -> list[Any]:
    """Of random cases: the first ones in `make test`, the others in `make bench`."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]
