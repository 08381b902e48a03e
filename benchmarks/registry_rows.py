"""Fills a registry with subscriptions that come in groups, each of which an event matches whole.

A process of its own, which imports nothing that another version of Tidings may lack: a registry is made by the code that
is to open it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from secrets import token_hex

from tidings.service.model import Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores

MATCHES = 10


def fill(data: Path, groups: int, matches: int = MATCHES) -> None:
    """The registry, with nothing else beside it; made by the code that is to open it."""
    registry, mailbox = open_stores(Settings(data))
    now = time.time()
    registry.add_many(
        [
            Subscription(
                token_hex(12),
                f"WHERE topic = 't{group}' AND price < {1_000 + number} AND NOT old = 'yes'",
                "",
                "",
                "a hash that no ticket has",
                token_hex(12),
                now,
                None,
            )
            for group in range(groups)
            for number in range(matches)
        ]
    )
    registry.close()
    mailbox.close()


if __name__ == "__main__":
    fill(Path(sys.argv[1]), *map(int, sys.argv[2:]))
