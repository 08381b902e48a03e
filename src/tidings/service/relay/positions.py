"""How far a relay has read its upstream services, in a small file.

It is written after the events are in the log, and never before: after a crash it may say less than the log has, and then some
events come again, which deduplication drops. A number counts in one upstream service; the last event is known to all of them.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tidings.storage.event_log import sync

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Positions:
    """`numbers` are the last of each upstream service, by its id; `event` is the last event, by source and id, and `at` when it
    came; `service` is the one that was read last."""

    numbers: dict[str, int] = field(default_factory=dict)
    event: tuple[str, str] | None = None
    at: float = 0.0
    service: str = ""


def read_positions(path: Path) -> Positions:
    """The positions; none if there is no such file, or no whole one."""
    try:
        read = json.loads(path.read_text())
        event = None if read["event"] is None else (str(read["event"][0]), str(read["event"][1]))
        numbers = {str(id): int(number) for id, number in read["numbers"].items()}
        return Positions(numbers, event, float(read["at"]), str(read.get("service", "")))
    except FileNotFoundError:
        return Positions()
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        logger.warning("%s does not say how far upstream was read (%s); reading on from now", path, error)
        return Positions()


def write_positions(path: Path, positions: Positions) -> None:
    aside = path.with_suffix(".writing")
    aside.write_text(json.dumps(asdict(positions)))
    sync(aside)  # after a power cut there is the old content or the new one
    aside.replace(path)
