"""Subscriptions of which many contain others, and events, for clusters of hosts."""

from __future__ import annotations

import random

from tidings import Engine, Event

TOPICS = 20


def texts() -> dict[str, str]:
    """For each topic one that contains the others."""
    found = {f"t{topic}": f"WHERE topic = 't{topic}'" for topic in range(TOPICS)}
    for topic in range(TOPICS):
        for n in range(20):
            found[f"t{topic} over {n}"] = f"WHERE topic = 't{topic}' AND n > {n}"
    return found


def engine() -> Engine:
    made = Engine()
    for id, text in texts().items():
        made.subscribe(id, text)
    return made


def events(count: int, seed: int = 1) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(
            id=str(number),
            source="test",
            attributes={"topic": f"t{chance.randrange(2 * TOPICS)}", "n": chance.randrange(24)},
        )
        for number in range(count)
    ]


EVENTS = events(3_000)
