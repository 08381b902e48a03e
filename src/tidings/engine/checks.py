"""Pairs that only operators can decide: collected from filters and patterns, decided together, told as notifications.

A pair is an event and a way to satisfy a subscription whose cheap parts hold. All pairs of an event, whatever layer and
kind they come from, are decided in one docket, so that an evaluation is done once an event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.engine.layer import Layer
from tidings.engine.plan import alternatives
from tidings.kinds.operators.checking import Checker, Decided
from tidings.kinds.operators.kernels.layout import TRUE, UNKNOWN
from tidings.kinds.operators.naive import Binding
from tidings.kinds.operators.program import Program, compile_program
from tidings.kinds.patterns import naive
from tidings.language.parser import parse
from tidings.language.query import Leaf
from tidings.model.event import Event
from tidings.model.notification import NOTIFICATION_SCHEMA, to_table
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Blank, Iri, Literal, Triple, plain

_REMEMBERED = 10_000
_UNBOUND: tuple[Binding, ...] = ({},)
Bindings = Callable[[], Sequence[Binding]]


class Programs:
    """The programs of subscriptions with their constants, made when they are needed and remembered."""

    def __init__(self, checker: Checker, prefixes: Mapping[str, str]) -> None:
        self.checker, self._prefixes = checker, prefixes
        self._known: dict[int, tuple[Program, tuple[str, ...] | None]] = {}

    def find(self, row: int, layer: Layer, owner: int, way: int) -> tuple[Program, tuple[str, ...] | None]:
        """A row's program, and the variables that its subscription selects, None for all."""
        if row not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            query = parse(layer.text(owner), self._prefixes)
            chosen = alternatives(query)[way]
            assert chosen.calls is not None
            program = compile_program(chosen.calls, chosen.bound, self.checker.table.find, query.select)
            names = None if query.select is None else tuple(variable.name for variable in query.select)
            self._known[row] = program, names
        return self._known[row]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of one layer, by ascending event; patterns have found `bindings` for some, by their places."""

    layer: Layer
    event: np.ndarray
    owner: np.ndarray
    way: np.ndarray
    bindings: Mapping[int, Bindings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of one pair."""

    layer: Layer
    owner: int
    event: int
    verdict: str
    bindings: dict[str, str]
    message: str | None


class Checks:
    """The check stage of one batch of events."""

    def __init__(
        self,
        programs: Programs,
        taxonomy: Taxonomy,
        event: Callable[[int], Event],
        attributes: Callable[[int], Mapping[str, Any] | None],
    ) -> None:
        self.programs, self.taxonomy, self.event, self.attributes = programs, taxonomy, event, attributes
        self.candidates: list[Candidates] = []
        self.graphs: dict[int, Callable[[], Iterable[Triple]]] = {}
        """The triples of events that a pattern has looked at."""

    def decide(
        self,
        events: range,
        always: Callable[[int], Iterable[Candidates]],
        told: Callable[[Layer, int, int], bool],
        every: bool,
    ) -> Iterator[Told]:
        """What is said of pairs: the candidates collected so far, and for each event those that it `always` has.

        `told` says whether a pair has been answered without operators.
        """
        for decided in self.programs.checker.check(self._cases(events, always, told, every), every):
            yield from self._told(decided, every)

    def _cases(
        self,
        events: range,
        always: Callable[[int], Iterable[Candidates]],
        told: Callable[[Layer, int, int], bool],
        every: bool,
    ) -> Iterator[_Case]:
        for row in events:
            parts = [part for some in self.candidates if (part := _Part.of(some, row)) is not None]
            parts += [_Part(some, 0, some.owner, some.way) for some in always(row)]
            parts = [left for part in parts if len((left := part.without(told, row, every)).owner)]
            if parts and self.attributes(row) is not None:
                yield _Case(self, row, parts, every)

    def _told(self, decided: Decided, every: bool) -> Iterator[Told]:
        case = decided.case
        assert isinstance(case, _Case)
        matched: set[tuple[int, int]] = set()
        for place in np.flatnonzero(decided.truth == TRUE).tolist():
            layer, owner, _ = case.find(place)
            if (id(layer), owner) in matched and not every:
                continue
            matched.add((id(layer), owner))
            found = case.bindings(place)
            found = decided.solutions.get(place, found if every else found[:1])
            names = case.selected(place) if found is not _UNBOUND and place not in decided.told else None
            for binding in found:
                bindings = {n: value_text(v) for n, v in binding.items() if names is None or n in names}
                yield Told(layer, owner, case.row, "match", bindings, None)
        for place in np.flatnonzero(decided.truth == UNKNOWN).tolist():
            layer, owner, _ = case.find(place)
            if (id(layer), owner) not in matched:
                matched.add((id(layer), owner))
                yield Told(layer, owner, case.row, "undecided", {}, decided.messages[place])


class _Part:
    """The candidates of one event among those of a layer, from `first` on."""

    def __init__(self, candidates: Candidates, first: int, owner: np.ndarray, way: np.ndarray) -> None:
        self.candidates, self.first, self.owner, self.way = candidates, first, owner, way
        self.places: np.ndarray | None = None

    @classmethod
    def of(cls, some: Candidates, row: int) -> _Part | None:
        if not some.event[0] <= row <= some.event[-1]:
            return None
        first, end = np.searchsorted(some.event, [row, row + 1]).tolist()
        return cls(some, first, some.owner[first:end], some.way[first:end]) if end > first else None

    def without(self, told: Callable[[Layer, int, int], bool], row: int, every: bool) -> _Part:
        """The part without pairs that have been answered; those with bindings stay if `every` one is to be told."""
        layer, several = self.candidates.layer, self.candidates.layer.several_ways
        if several is None:
            return self
        more = layer.operators.binds[self.rows] & every
        owners = self.owner.tolist()
        asked = np.flatnonzero(several[self.owner] & ~more).tolist()
        kept = np.delete(np.arange(len(owners)), [i for i in asked if told(layer, row, owners[i])])
        made = _Part(self.candidates, self.first, self.owner[kept], self.way[kept])
        made.places = kept
        return made

    @property
    def rows(self) -> np.ndarray:
        return self.candidates.layer.program_rows(self.owner, self.way)

    def bindings(self, place: int) -> Sequence[Binding]:
        place = self.first + (place if self.places is None else int(self.places[place]))
        found = self.candidates.bindings.get(place)
        return _UNBOUND if found is None else found()


class _Case:
    """One event and all that it may match."""

    def __init__(self, checks: Checks, row: int, parts: list[_Part], every: bool) -> None:
        self.checks, self.row, self.parts = checks, row, parts
        self.event = checks.event(row)
        self.starts = np.cumsum([0, *(len(part.owner) for part in parts)]).tolist()
        self.rows = np.concatenate([part.rows for part in parts]).astype(np.int32)
        self.twins: list[list[int]] = [] if every else self._twins()
        self._graph: list[Triple] | None = None
        self._bindings: dict[int, Sequence[Binding]] = {}

    def _twins(self) -> list[list[int]]:
        """The rows of subscriptions that have several here."""
        rows: dict[tuple[int, int], list[int]] = {}
        for part, start in zip(self.parts, self.starts, strict=False):
            several = part.candidates.layer.several_ways
            if several is not None:
                for place in np.flatnonzero(several[part.owner]).tolist():
                    rows.setdefault((id(part.candidates.layer), int(part.owner[place])), []).append(
                        start + place
                    )
        return [some for some in rows.values() if len(some) > 1]

    def find(self, place: int) -> tuple[Layer, int, int]:
        """The layer, the subscription and the way of a row."""
        part, place = self._part(place)
        return part.candidates.layer, int(part.owner[place]), int(part.way[place])

    def _part(self, place: int) -> tuple[_Part, int]:
        number = bisect_right(self.starts, place) - 1
        return self.parts[number], place - self.starts[number]

    def program(self, place: int) -> Program:
        return self.checks.programs.find(int(self.rows[place]), *self.find(place))[0]

    def selected(self, place: int) -> tuple[str, ...] | None:
        return self.checks.programs.find(int(self.rows[place]), *self.find(place))[1]

    def bindings(self, place: int) -> Sequence[Binding]:
        found = self._bindings.get(place)
        if found is None:
            part, within = self._part(place)
            found = self._bindings[place] = part.bindings(within)
        return found

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        if self._graph is None:
            self._graph = list(self.checks.graphs.get(self.row, tuple)())
        attributes = self.checks.attributes(self.row)
        return naive.holds(leaf, binding, self._graph, self.checks.taxonomy, attributes or {})


def value_text(value: object) -> str:
    """What a variable is bound to, for people to read."""
    if isinstance(value, Iri | Literal | Blank):
        return plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def notifications(told: Iterable[Told], events: pa.Table) -> pa.Table:
    """As notifications are told."""
    rows = list(told)
    at = pa.array([one.event for one in rows], pa.int64())

    def taken(name: str) -> pa.Array:
        return (
            events[name].take(at).cast(pa.string())
            if name in events.column_names
            else pa.nulls(len(rows), pa.string())
        )

    columns = {
        "subscription": pa.array([one.layer.ids[one.owner] for one in rows], pa.string()),
        "source": taken("source"),
        "event": taken("id"),
        "verdict": pa.array([one.verdict for one in rows], pa.string()),
        "bindings": pa.array(
            [list(one.bindings.items()) for one in rows], NOTIFICATION_SCHEMA.field("bindings").type
        ),
        "message": pa.array([one.message for one in rows], pa.string()),
    }
    return to_table(columns)
