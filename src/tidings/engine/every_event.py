"""Ways that every event is a candidate for, because only checkers can refuse it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidings.language.query import KindCondition
from tidings.model.batch import Batch
from tidings.model.pairs import Found


class EveryEvent:
    """The kind of way that has nothing to be found by."""

    name, role = "every_event", "find"
    conditions: tuple[type[KindCondition], ...] = ()

    def builder(self) -> EveryEventBuilder:
        return EveryEventBuilder(0)

    def load(self, folder: Path) -> EveryEventBuilder:
        return EveryEventBuilder(int(json.loads((folder / "rows.json").read_text())))


class EveryEventBuilder:
    """A number of rows, and their finder."""

    several = False
    binds = False

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def prepare(self, part: Any, values: Mapping[str, str]) -> None:
        return None

    def add(self, part: Any, prepared: None) -> int:
        self._count += 1
        return self._count - 1

    def add_many(self, part: Any, columns: Any, count: int) -> int:
        self._count += count
        return self._count - count

    def extend(self, other: EveryEventBuilder, rows: np.ndarray) -> None:
        self._count += len(rows)

    def finder(self) -> EveryEventBuilder:
        return EveryEventBuilder(self._count)

    def find(self, batch: Batch) -> Found:
        event = np.repeat(np.arange(len(batch), dtype=np.int32), self._count)
        return Found.certain(event, np.tile(np.arange(self._count, dtype=np.int32), len(batch)))

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "rows.json").write_text(json.dumps(self._count))
