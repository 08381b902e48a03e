"""Operators as a kind: they take the tests of a way that have calls, or variables that only calls bind.

All pairs of an event that are left to operators, whatever kind has found them, are decided together, so that an
evaluation is done once an event. What the event's attributes must be so that a test with calls can hold at all is
left to the kinds before, which are cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tidings.arrays import folders
from tidings.kinds.operators.evaluator import Decided, Evaluator
from tidings.kinds.operators.functions.caller import Caller
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.integrity import refuse_damage
from tidings.kinds.operators.kernels.layout import TRUE, UNKNOWN
from tidings.kinds.operators.learning import Learning, LearningRecorder, learn
from tidings.kinds.operators.program import Program, compile_program
from tidings.kinds.operators.scheduling.schedulers import Scheduler
from tidings.kinds.operators.table import OperatorTable, Texts
from tidings.kinds.operators.undecided_pairs import EventCase, Solutions
from tidings.language.alternatives import Way
from tidings.language.query import And, Condition, KindCondition, Or, conjuncts, has_calls, variables
from tidings.language.stored_conditions import StoredConditions, Template
from tidings.model.batch import Batch
from tidings.model.pairs import NONE, Pairs
from tidings.model.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """What operators have to decide of a way: its program, and the conditions that it was made of."""

    program: Program
    template: Template


class Operators:
    """The kind of condition that calls functions of the user's own."""

    name, role = "operators", "check"
    conditions: tuple[type[KindCondition], ...] = ()

    def __init__(
        self,
        catalogue: Catalogue,
        scheduler: Scheduler,
        taxonomy: Taxonomy,
        known: tuple[type[KindCondition], ...] = (),
    ) -> None:
        """`known` are the conditions of other kinds that may stand beside calls."""
        self.catalogue, self.scheduler, self.taxonomy, self.known = catalogue, scheduler, taxonomy, known

    def compile(self, way: Way) -> tuple[OperatorPart | None, Way]:
        condition, rest = split_calls(way)
        if condition is None:
            return None, way
        bound = way.bound
        self.catalogue.check_query(condition, bound)
        outer = tuple(sorted(bound, key=lambda variable: variable.name))
        template = Template((condition,), outer, way.select)
        program = compile_program(condition, bound, self.catalogue.find, way.select)
        left = replace(way, tests=rest, joins=way.joins or program.joins)
        return OperatorPart(program, template), left

    def builder(self) -> OperatorChecker:
        return OperatorChecker(OperatorTable(self.catalogue.find), self.scheduler, self.taxonomy)

    def load(self, folder: Path) -> OperatorChecker:
        arrays, _ = folders.load(folder)
        refuse_damage(folder, arrays)
        stored = folder / "conditions"
        conditions = StoredConditions.thaw(folders.load(stored)[0], self.known) if stored.is_dir() else None
        table = OperatorTable.thaw(arrays, self.catalogue.find, conditions)
        return OperatorChecker(table, self.scheduler, self.taxonomy)


def split_calls(way: Way) -> tuple[Condition | None, tuple[Condition, ...]]:
    """What operators have to decide of a way, None if nothing; and the tests that are left."""
    if not any(map(has_calls, way.tests)):
        return None, way.tests
    calls = [test for test in way.tests if has_calls(test) or not way.bound.issuperset(variables(test))]
    rest = [test for test in way.tests if test not in calls]
    rest += [access for test in calls if (access := _access(test)) is not None]
    return calls[0] if len(calls) == 1 else And(tuple(calls)), tuple(rest)


def _access(condition: Condition) -> Condition | None:
    """What has to hold of an event's attributes so that a condition with calls can; None if nothing has to."""
    if not has_calls(condition):
        return None if variables(condition) else condition
    if isinstance(condition, And):
        parts = tuple(access for part in conjuncts(condition) if (access := _access(part)) is not None)
        return None if not parts else parts[0] if len(parts) == 1 else And(parts)
    if isinstance(condition, Or):
        ways = [_access(part) for part in condition.parts]
        return None if None in ways else Or(tuple(ways))  # type: ignore[arg-type]
    return None


class OperatorChecker:
    """The programs of subscriptions, a row each, and what was learnt of the predicates in them."""

    binds = True

    def __init__(self, table: OperatorTable, scheduler: Scheduler, taxonomy: Taxonomy) -> None:
        self.evaluator = Evaluator(table, scheduler, Caller())
        self.taxonomy = taxonomy
        self._recorder, self._unreported = LearningRecorder(table.predicates), Learning()

    def __len__(self) -> int:
        return len(self.table)

    @property
    def table(self) -> OperatorTable:
        return self.evaluator.table

    def prepare(self, part: OperatorPart, values: Mapping[str, str]) -> tuple[Texts, Mapping[str, str]]:
        return self.table.read(part.program, values), values

    def add(self, part: OperatorPart, prepared: tuple[Texts, Mapping[str, str]]) -> int:
        texts, values = prepared
        return self.table.add(part.program, texts, part.template, values)

    def add_many(
        self, part: OperatorPart, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> np.ndarray:
        values = [{name: texts[codes[i]] for name, (codes, texts) in columns.items()} for i in range(count)]
        ready = [self.prepare(part, each) for each in values]  # all first: one that is refused leaves nothing
        return np.array([self.add(part, each) for each in ready], dtype=np.int32)

    def keep(self, rows: np.ndarray) -> None:
        if len(rows) < len(self.table):
            self._unreported = self._unreported.then(self._recorder.take())
            self.evaluator.table = self.table.kept(rows)
            self._recorder = LearningRecorder(self.table.predicates)

    def save(self, folder: Path) -> None:
        folders.save(folder, self.table.freeze(), {})
        folders.save(folder / "conditions", self.table.conditions.freeze(), {})

    def learnt(self) -> Learning:
        """What was learnt of operators since the last call."""
        found, self._unreported = self._unreported.then(self._recorder.take()), Learning()
        return found

    def learn(self, learning: Learning) -> None:
        """Takes in what operators have shown to others."""
        self._unreported = self.learnt()
        learn(self.table.predicates, learning)
        self._recorder = LearningRecorder(self.table.predicates)

    def check(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Pairs:
        asked = (rows >= 0) & (pairs.doubt < 0)
        if not asked.any():
            return pairs
        passed, places = pairs.take(~asked), np.flatnonzero(asked)
        answered = passed.key[passed.doubt < 0]
        if len(answered):
            # For what has matched in another way nothing is called, unless all bindings are wanted and it has some.
            again = np.isin(pairs.key[places], answered)
            places = places[~again | (self.table.binds[rows[places]] & batch.every)]
        solutions = Solutions()
        decided = list(self._decided(batch, pairs.take(places), rows[places], solutions))
        first = batch.bindings.add(solutions)
        columns = np.array(decided, dtype=np.int64).reshape(-1, 5)
        columns[:, 4] += first
        found = Pairs(*(columns[:, i].astype(column.dtype) for i, column in enumerate(pairs.columns)))
        return Pairs.concat([passed, found])

    def _decided(
        self, batch: Batch, pairs: Pairs, rows: np.ndarray, solutions: Solutions
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Event, subscription, way, doubt and solution of what is true or unknown."""
        cases = self._cases(batch, pairs, rows)
        for decided in self.evaluator.check(cases, batch.every):
            yield from _answers(batch, decided, solutions)

    def _cases(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Iterator[EventCase]:
        if not len(pairs):
            return
        order = np.argsort(pairs.event, kind="stable")
        pairs, rows = pairs.take(order), rows[order]
        ends = np.append(np.flatnonzero(np.diff(pairs.event)) + 1, len(pairs)).tolist()
        for first, end in zip([0, *ends], ends, strict=False):
            event = int(pairs.event[first])
            if batch.attributes(event) is not None:
                yield EventCase(self, batch, pairs.take(slice(first, end)), rows[first:end])


def _answers(
    batch: Batch, decided: Decided, solutions: Solutions
) -> Iterator[tuple[int, int, int, int, int]]:
    case: EventCase = decided.case
    matched: set[int] = set()
    for pair in np.flatnonzero(decided.truth == TRUE).tolist():
        subscription, way = case.owner(pair)
        if subscription in matched and not batch.every:
            continue
        matched.add(subscription)
        for solution in case.solutions(decided, pair):
            yield case.number, subscription, way, NONE, solutions.add(solution)
    for pair in np.flatnonzero(decided.truth == UNKNOWN).tolist():
        subscription, way = case.owner(pair)
        if subscription not in matched:
            matched.add(subscription)
            doubt = batch.doubt(decided.messages[pair])
            yield case.number, subscription, way, doubt, solutions.add({})
