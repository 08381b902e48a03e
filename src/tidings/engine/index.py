"""The index of an engine: subscriptions by number, their rows in base and tail, and the checkers of both.

A change goes to the tail, whose finders are made anew when the next event comes; when the tail has grown large it is
folded into the base, without what was removed.

    ROOT/subscriptions     ids, texts, validity; of each finder's row its subscription and way; rows in checkers
    ROOT/filters, …        what each kind has saved, by its name; kinds of the user's own are under ROOT/kinds
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from tidings.arrays import folders
from tidings.arrays.bounds import refuse_unless
from tidings.engine.contracts import Builder, Checker, Compiling, Kind
from tidings.engine.every_event import EveryEvent
from tidings.engine.kind_registry import BUILT_IN
from tidings.engine.plan import EVERY_EVENT, RESIDUALS, Plan
from tidings.engine.residual import ResidualChecker, Residuals
from tidings.engine.segment import OwnedFinder, Owners, Segment
from tidings.engine.snapshot import OwnedChecker, Snapshot
from tidings.engine.subscriptions import Subscriptions
from tidings.engine.templates import Template
from tidings.engine.version_01 import PlanOf, is_version_01, load_version_01
from tidings.engine.way_rows import WayRows

FOLD_AT_LEAST = 1_000
FOLD_SHARE = 0.25
EVENTS_AT_ONCE = 1 << 14  # fewer would pay more often for what is paid by the batch
_PAIRS_AT_ONCE = 1 << 20  # where every event is a candidate for many ways
_PLAIN = {"filters", "networks"}
DIVISIBLE = frozenset({"filters", "patterns", RESIDUALS})


class SubscriptionIndex:
    """Subscriptions of the kinds that find and check."""

    def __init__(self, kinds: Sequence[Compiling], residuals: Residuals) -> None:
        self.kinds = kinds
        self.finding: dict[str, Kind] = {kind.name: kind for kind in kinds if kind.role == "find"} | {
            EVERY_EVENT: EveryEvent()
        }
        self.checking: dict[str, Kind] = {residuals.name: residuals} | {
            k.name: k for k in kinds if k.role == "check"
        }
        self.subscriptions = Subscriptions()
        self.base, self.tail = self._segment(), self._segment()
        self.checkers: dict[str, Checker] = {name: kind.builder() for name, kind in self.checking.items()}
        self.way_rows = {name: WayRows() for name in self.checking}
        self._snapshot: Snapshot | None = None
        self.keeps_numbers = False
        """Whether a large tail stays one, because somebody refers to subscriptions by their numbers."""
        self.reads: frozenset[str] = frozenset()
        """The kinds that read every event even if they have no rows here: they report what cannot be read."""

    def _segment(self, first: int = 0) -> Segment:
        builders: dict[str, Builder] = {name: kind.builder() for name, kind in self.finding.items()}
        return Segment(builders, first)

    def add(self, id: str, text: str, plan: Plan, values: Mapping[str, str], until: float) -> None:
        """One subscription: a plan and the N-Triples texts of its parameters. Refused, it leaves nothing behind."""
        builders = self.tail.builders
        # All is prepared before anything is added.
        ready = [builders[way.finder].prepare(way.part, values) for way in plan.ways]
        checks = [
            {name: self.checkers[name].prepare(part, values) for name, part in way.checks}
            for way in plan.ways
        ]
        number = len(self.subscriptions)
        with self._adding(1):
            for way, planned in enumerate(plan.ways):
                self.tail.add(planned.finder, planned.part, ready[way], (number, way))
            if plan.has_checks:
                self._add_checks(plan, checks, number)
        self.subscriptions.add(id, text, until)

    def _add_checks(self, plan: Plan, prepared: list[dict[str, Any]], number: int) -> None:
        for name in dict.fromkeys(name for ready in prepared for name in ready):
            rows = [-1] * len(plan.ways)
            for way, (planned, ready) in enumerate(zip(plan.ways, prepared, strict=True)):
                if name in ready:
                    rows[way] = self.checkers[name].add(dict(planned.checks)[name], ready[name])
            self.way_rows[name].add(number, rows)

    def add_table(self, template: Template, plan: Plan) -> None:
        """A subscription for each row of a template."""
        count, first = len(template), len(self.subscriptions)
        names = dict.fromkeys(name for way in plan.ways for name, _ in way.checks)
        rows = {name: np.full((count, len(plan.ways)), -1, dtype=np.int32) for name in names}
        # Checkers first, who may refuse; their rows alone do no harm.
        for way, planned in enumerate(plan.ways):
            for name, part in planned.checks:
                rows[name][:, way] = self.checkers[name].add_many(part, template.columns, count)
        with self._adding(count):
            for way, planned in enumerate(plan.ways):
                numbers = np.arange(first, first + count)
                self.tail.add_many(planned.finder, planned.part, template.columns, numbers, way)
            for name, of_ways in rows.items():
                self.way_rows[name].add_many(first, of_ways)
        self.subscriptions.add_template(template)

    @contextmanager
    def _adding(self, count: int) -> Iterator[None]:
        """While rows of the next subscriptions are added: if that fails, their numbers are nobody's."""
        self._snapshot = None
        try:
            yield
        except BaseException:
            self.subscriptions.skip(count)
            raise

    def snapshot(self) -> Snapshot:
        """What events are matched against now."""
        if self._snapshot is None:
            tail = len(self.subscriptions) - self.tail.first
            if not self.keeps_numbers and tail > max(FOLD_AT_LEAST, FOLD_SHARE * self.tail.first):
                self.fold()
            self._snapshot = self._freeze()
        return self._snapshot

    def _freeze(self) -> Snapshot:
        segments = (self.base, self.tail)
        finders = [finder for name in self.finding for finder in self._finders(name)]
        used = {name for segment in segments for name in segment.finders}
        checkers = {name: rows for name, rows in self.way_rows.items() if rows}
        base = self.base.ways(self.tail.first)
        tail = self.tail.ways(len(self.subscriptions) - self.tail.first)
        always = sum(len(segment.builders[EVERY_EVENT]) for segment in segments)
        limit = max(1, _PAIRS_AT_ONCE // always) if always else EVENTS_AT_ONCE
        return Snapshot(
            self.subscriptions,
            tuple(finders),
            tuple(OwnedChecker(name, self.checkers[name], rows) for name, rows in checkers.items()),
            (base[0], tail[0]) if base[0].any() or tail[0].any() else None,
            any(finder.finder.several for finder in finders),
            self._mixed(base, tail),
            is_plain=not self.reads and used | checkers.keys() <= _PLAIN,
            events_at_once=min(EVENTS_AT_ONCE, limit),
        )

    def _finders(self, name: str) -> list[OwnedFinder]:
        """Those of a kind in base and tail; one without rows if it has to read events for others."""
        found = [each.finders[name] for each in (self.base, self.tail) if name in each.finders]
        if not found and name in self.reads:
            found = [OwnedFinder(self.base.builders[name].finder(), *self.base.owners[name].arrays())]
        return found

    def _mixed(
        self, base: tuple[np.ndarray, np.ndarray], tail: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of subscriptions with several ways whether one of them is found without bindings, or bound by a checker."""
        (in_base, unbound_in_base), (in_tail, unbound_in_tail) = base, tail
        if not in_base.any() and not in_tail.any():
            return in_base, in_tail
        asks = np.zeros(len(self.subscriptions), dtype=np.bool_)
        for name, rows in self.way_rows.items():
            if rows and self.checkers[name].binds:
                asks |= rows.has(len(asks))
        first = self.tail.first
        return in_base & (unbound_in_base | asks[:first]), in_tail & (unbound_in_tail | asks[first:])

    def fold(self) -> None:
        """Makes base and tail one base, without what was removed."""
        live = np.frombuffer(bytes(self.subscriptions.live), dtype=np.bool_)
        if live.all() and not self.tail.first:
            self.base = self.tail
        elif len(live) > self.tail.first or not live.all():
            numbers = np.cumsum(live) - 1
            folded = self._segment()
            folded.extend(self.base, live, numbers)
            folded.extend(self.tail, live, numbers)
            subscriptions = self.subscriptions.kept()
            for name, rows in self.way_rows.items():
                if rows:
                    self.way_rows[name], used = rows.kept(live)
                    self.checkers[name].keep(used)
            self.base, self.subscriptions = folded, subscriptions
        self.tail = self._segment(len(self.subscriptions))
        self._snapshot = None

    def divisible(self) -> np.ndarray:
        """Of each subscription whether it may be apart from others: it is found by its filters or patterns, and nothing
        but residual conditions has to be checked."""
        found = np.frombuffer(bytes(self.subscriptions.live), dtype=np.bool_).copy()
        for segment in (self.base, self.tail):
            for name, owners in segment.owners.items():
                if name not in DIVISIBLE:
                    found[owners.arrays()[0]] = False
        for name, rows in self.way_rows.items():
            if name not in DIVISIBLE:
                found &= ~rows.has(len(found))
        return found

    def take_over(self, other: SubscriptionIndex, chosen: np.ndarray) -> None:
        """Adds the chosen subscriptions of another index, a mask; they are divisible."""
        first, numbers = len(self.subscriptions), len(self.subscriptions) + np.cumsum(chosen) - 1
        self._snapshot = None
        for segment in (other.base, other.tail):
            self.tail.extend(segment, chosen, numbers)
        rows, used = other.way_rows[RESIDUALS].kept(chosen)
        if len(used):
            checker = cast(ResidualChecker, self.checkers[RESIDUALS])
            self.way_rows[RESIDUALS].extend(first, rows, len(checker))
            checker.extend(cast(ResidualChecker, other.checkers[RESIDUALS]), used)
        self.subscriptions.extend(other.subscriptions, np.flatnonzero(chosen))

    def used_kinds(self) -> set[str]:
        """The names of the kinds that have rows."""
        found = [name for s in (self.base, self.tail) for name, owners in s.owners.items() if len(owners)]
        return {*found, *(name for name, rows in self.way_rows.items() if rows)}

    def save(self, root: Path) -> None:
        """Folds, and writes everything to a folder."""
        self.fold()
        arrays = self.subscriptions.freeze()
        used = self.used_kinds()
        for name, owners in self.base.owners.items():
            if name in used or name in BUILT_IN:
                arrays[f"{name}_owner"], arrays[f"{name}_way"] = owners.arrays()
                save_kind(self.base.builders[name], root, name)
        for name, rows in self.way_rows.items():
            if name in used or name in BUILT_IN:
                arrays[f"{name}_first"], arrays[f"{name}_rows"] = rows.first.all, rows.rows.all
                save_kind(self.checkers[name], root, name)
        folders.save(root / "subscriptions", arrays, {"count": len(self.subscriptions)})

    def load(self, root: Path, plan: PlanOf) -> None:
        """Takes in what `save` wrote; its arrays are mapped into memory. `plan` gives the plan of a text and its
        constants: version 0.1 has left to its texts what is stored now."""
        arrays, facts = folders.load(root / "subscriptions")
        self.subscriptions = Subscriptions.thaw(root / "subscriptions", arrays, facts["count"])
        count = len(self.subscriptions)
        self.base, self.tail = self._segment(), self._segment(count)
        self._snapshot = None
        if is_version_01(arrays):
            load_version_01(self, root, arrays, facts, plan)
            return
        for name, kind in self.finding.items():
            if f"{name}_owner" not in arrays:
                continue
            self.base.builders[name] = kind.load(kind_folder(root, name))
            owners = self.base.owners[name] = Owners(arrays[f"{name}_owner"], arrays[f"{name}_way"])
            fits = owners.fits(len(self.base.builders[name]), count)
            refuse_unless(root / "subscriptions", [(f"{name}_owner", fits)])
        for name, checking in self.checking.items():
            if f"{name}_first" not in arrays:
                continue
            self.checkers[name] = checking.load(kind_folder(root, name))
            self.way_rows[name] = WayRows(arrays[f"{name}_first"], arrays[f"{name}_rows"])
            self._check_rows(root, name, count)

    def _check_rows(self, root: Path, name: str, count: int) -> None:
        rows = self.way_rows[name]
        most = len(self.checkers[name])
        for owners in self.base.owners.values():
            fits = rows.fits(count, most, *owners.arrays())
            refuse_unless(root / "subscriptions", [(f"{name}_rows", fits)])


def kind_folder(root: Path, name: str) -> Path:
    """Where a kind saves its rows."""
    return root / name if name in BUILT_IN else root / "kinds" / name


def save_kind(part: Any, root: Path, name: str) -> None:
    """Lets a kind save its rows there."""
    folder = kind_folder(root, name)
    folder.mkdir(parents=True, exist_ok=True)
    part.save(folder)
