"""Pauses between attempts to deliver, for webhooks and for channels."""

from __future__ import annotations

import random

FIRST_RETRY = 2.0
LAST_RETRY = 600.0


def pause(chance: random.Random, failures: int, retry_after: float | None) -> float:
    """The pause after so many failures in a row: random, up to twice as long after each, so that many that failed together do
    not retry together. Never shorter than Retry-After."""
    longest = min(LAST_RETRY, FIRST_RETRY * 2.0 ** min(failures - 1, 30))
    return max(chance.uniform(1.0, longest), retry_after or 0.0)
