"""Opens an index that version 0.1 has written.

It had the owners of rows in the folders of patterns and filters, a place in a network for each subscription, and no
conditions for later steps: those were parsed again while matching. Here they are read from the texts, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.arrays import folders
from tidings.arrays.bounds import refuse_unless
from tidings.engine.every_event import EveryEventBuilder
from tidings.engine.plan import EVERY_EVENT, RESIDUALS, Plan
from tidings.engine.segment import Owners
from tidings.engine.way_rows import WayRows
from tidings.kinds.operators.kind import OperatorChecker
from tidings.language.query import Via

if TYPE_CHECKING:
    from tidings.engine.index import SubscriptionIndex

PlanOf = Callable[[str], tuple[Plan, Mapping[str, str]]]
Arrays = Mapping[str, np.ndarray]


def is_version_01(arrays: Arrays) -> bool:
    return "program_first" in arrays


def load_version_01(
    index: SubscriptionIndex, root: Path, arrays: Arrays, facts: Mapping[str, Any], plan: PlanOf
) -> None:
    """Takes in rows and checkers; the subscriptions are there already."""
    count = len(index.subscriptions)
    rows = {"patterns": folders.load(root / "patterns")[0], "filters": folders.load(root / "filter_table")[0]}
    for name, stored in rows.items():
        index.base.builders[name] = index.finding[name].load(root / name)
        index.base.owners[name] = Owners(stored["row_owner"], stored["row_way"])
    always = arrays["unasked"].reshape(-1, 2)
    index.base.builders[EVERY_EVENT] = EveryEventBuilder(len(always))
    index.base.owners[EVERY_EVENT] = Owners(always[:, 0], always[:, 1])
    for name, owners in index.base.owners.items():
        refuse_unless(root / name, [("row_owner", owners.fits(len(index.base.builders[name]), count))])
    for name in ("place", "program_first"):
        refuse_unless(root / "subscriptions", [(name, len(arrays[name]) == count)])
    _take_places(index, arrays["place"], facts["places"])
    _take_programs(index, root, arrays, plan)
    _take_residuals(index, rows["patterns"], plan)


def _take_places(index: SubscriptionIndex, place: np.ndarray, places: list[list[str]]) -> None:
    checker = index.checkers["networks"]
    numbers = [checker.add(Via(*each), None) for each in places]
    ways = np.ones(len(place), dtype=np.int64)
    for owners in index.base.owners.values():
        owner, way = owners.arrays()
        np.maximum.at(ways, owner, way + 1)
    for subscription in np.flatnonzero(place >= 0).tolist():
        index.way_rows["networks"].add(subscription, [numbers[place[subscription]]] * int(ways[subscription]))


def _take_programs(index: SubscriptionIndex, root: Path, arrays: Arrays, plan: PlanOf) -> None:
    checker: OperatorChecker = index.checking["operators"].load(root / "operators")
    index.checkers["operators"] = checker
    rows = index.way_rows["operators"] = WayRows(arrays["program_first"], arrays["programs"])
    for owners in index.base.owners.values():
        fits = rows.fits(len(index.subscriptions), len(checker), *owners.arrays())
        refuse_unless(root / "subscriptions", [("programs", fits)])
    owner, way = _owners_of_rows(rows, len(checker))

    def parts() -> Iterator[tuple[Any, Any, Mapping[str, str]]]:
        for subscription, number in zip(owner.tolist(), way.tolist(), strict=True):
            planned, values = plan(index.subscriptions.text(subscription))
            part = dict(planned.ways[number].checks)["operators"]
            yield part.program, part.template, values

    checker.table.restore(parts())


def _owners_of_rows(rows: WayRows, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each row of a checker a subscription and a way that has it."""
    first = rows.first.all
    owners = np.flatnonzero(first >= 0)
    sizes = np.diff(first[owners], append=len(rows.rows))
    subscription = np.repeat(owners, sizes)
    way = np.arange(len(subscription)) - np.repeat(first[owners], sizes)
    used = rows.rows.all >= 0
    owner_of, way_of = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    owner_of[rows.rows.all[used]], way_of[rows.rows.all[used]] = subscription[used], way[used]
    return owner_of, way_of


def _take_residuals(index: SubscriptionIndex, patterns: Arrays, plan: PlanOf) -> None:
    later = patterns["later"][patterns["row_shape"]]
    checker = index.checkers[RESIDUALS]
    for subscription in np.unique(patterns["row_owner"][later]).tolist():
        planned, values = plan(index.subscriptions.text(subscription))
        parts = [dict(way.checks).get(RESIDUALS) for way in planned.ways]
        rows = [-1 if part is None else checker.add(part, checker.prepare(part, values)) for part in parts]
        index.way_rows[RESIDUALS].add(subscription, rows)
