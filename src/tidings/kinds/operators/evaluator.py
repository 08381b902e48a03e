"""Decides the pairs of an event and a subscription that only operators can decide.

Every event has a docket. A scheduler chooses what to evaluate next, the caller calls the operators, and their answers
decide rows, until none is left. Several events are evaluated at once where operators are async or take batches; an
evaluation is done once an event, for all rows that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidings.errors import SubscriptionError
from tidings.kinds.operators.binding_join import Joiner, Unasked
from tidings.kinds.operators.functions.caller import Answer, Caller, Request
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.functions.signature import OperatorError
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.naive import Binding, Solution, join, truth_of
from tidings.kinds.operators.predicates import BoundCall, Check
from tidings.kinds.operators.program import Program
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.scheduling.schedulers import Scheduler
from tidings.kinds.operators.table import OperatorTable
from tidings.language.query import Call, Leaf
from tidings.model import values
from tidings.model.event import Event

EVENTS_AT_ONCE = 64
FRONTIER = 128
_FEW = 8


class Case(Protocol):
    """An event and the rows of programs that decide it; `program` and `bindings` take the position of a row among them."""

    event: Event
    rows: np.ndarray

    @property
    def twins(self) -> Sequence[Sequence[int]]:
        """Groups of rows that need no more evaluations as soon as one row of the group is true."""

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        """Decides conditions without calls."""

    def program(self, position: int) -> Program:
        """A row's program with its constants."""

    def bindings(self, position: int) -> Sequence[Binding]:
        """What triples have bound, in one way or several."""


class Decided(NamedTuple):
    """`truth` of each row; bindings of those that are true and have variables, of some (`selected`) only those that the
    subscription selects; errors of those that are unknown."""

    case: Any  # the one that was given
    truth: np.ndarray
    solutions: dict[int, list[Binding]]
    messages: dict[int, str]
    selected: set[int]


class Evaluator:
    """Decides cases for one engine."""

    def __init__(self, table: OperatorTable, scheduler: Scheduler, caller: Caller) -> None:
        self.table, self.scheduler, self.caller = table, scheduler, caller
        self._checking = False

    def check(self, cases: Iterable[Case], every: bool = False) -> Iterator[Decided]:
        """Decides cases, in the order in which they are done; `every`: all bindings, not the first."""
        if self._checking:  # it would take the answers that the other check waits for
            raise OperatorError(
                "an operator cannot publish to the engine that calls it; give it an engine of its own"
            )
        self._checking = True
        try:
            yield from self._check(iter(cases), every)
        finally:
            self._checking = False

    def _check(self, waiting: Iterator[Case], every: bool) -> Iterator[Decided]:
        at_once = EVENTS_AT_ONCE if self.table.is_concurrent else 1
        active: set[CaseEvaluation] = set()
        asked: list[Request] = []  # of several events together: a batch may hold them all
        while True:
            while len(active) < at_once and (case := next(waiting, None)) is not None:
                evaluation = CaseEvaluation(self, case)
                if self._goes_on(evaluation, asked):
                    active.add(evaluation)
                else:
                    yield evaluation.decided(every)
            if not active:
                return
            self.caller.submit(asked)
            asked.clear()
            arrived: dict[CaseEvaluation, list[Answer]] = {}
            for answer in self.caller.collect():
                arrived.setdefault(answer.token[0], []).append(answer)
            for evaluation, answers in arrived.items():
                if evaluation in active:  # and not left over from a check that was interrupted
                    evaluation.take(answers)
                    if not self._goes_on(evaluation, asked):
                        active.discard(evaluation)
                        yield evaluation.decided(every)

    def _goes_on(self, evaluation: CaseEvaluation, asked: list[Request]) -> bool:
        """Calls what an evaluation needs next, or adds it to `asked`; False when it needs nothing."""
        while not evaluation.outstanding:
            requests = evaluation.requests()
            if not requests:
                return False
            if all(request.operator.is_plain for request in requests):
                evaluation.take(self.caller.run(requests))
            else:
                asked += requests
        return True


class CaseEvaluation:
    """A case with its docket."""

    def __init__(self, evaluator: Evaluator, case: Case) -> None:
        self.table, self.scheduler, self.caller = evaluator.table, evaluator.scheduler, evaluator.caller
        self.case, self.event, rows = case, case.event, case.rows
        self.outstanding = 0
        self._confirmed = False
        predicates = self.table.predicates
        predicates.events += 1.0
        self.docket = Docket(self.table, rows, self.scheduler.shared)
        self.scheduler.open(self.docket)
        self._answered: dict[int, Outcome] = {}  # by evaluation
        self._rows: dict[int, tuple[Any, ...]] = {}  # by predicate the first row that it wants
        self._outcomes: dict[
            object, Outcome
        ] = {}  # by the key of a bound call; also those of `_answered` that were looked up
        self._keyed = 0
        self._waiting: dict[tuple[int, int], BoundCall] = {}  # gates of rows, and what they wait for
        # Of gates, what is known of them, and the bindings that wait for a bound call, by its key.
        self._hanging: dict[tuple[int, int], tuple[int, dict[object, tuple[BoundCall, list[Binding]]]]] = {}
        known = self.docket.known_at_once()
        if len(known):
            ids = self.docket.arrays.pred_id[known].tolist()
            truths = [TRUE if truth_of(predicates.condition(k), {}, self.case.holds) else FALSE for k in ids]
            self.docket.know(known, np.array(truths))
        self._twins = list(case.twins)
        self._confirm()

    def requests(self) -> list[Request]:
        """What is needed next; nothing if all is decided."""
        docket = self.docket
        if not docket.undecided:
            return []
        # An answer for one twin may spare a call for another.
        limit = 1 if self._twins else FRONTIER
        evs = self.scheduler.next(docket, limit)
        # A scheduler that follows an order may have skipped a leaf that a confirmation now needs.
        while not len(evs) and (self._confirm(again=True) or self._confirmed):
            self._confirmed = False
            docket.rewind()
            evs = self.scheduler.next(docket, limit)
        bound_call = self.table.predicates.bound_call
        if len(evs):
            numbers = docket.arrays.ev_id[evs].tolist()
            asked = [
                Request(operator, self.event, inputs, (self, ev))
                for (operator, inputs), ev in zip(map(bound_call, numbers), evs.tolist(), strict=True)
            ]
        else:
            wanted = dict.fromkeys(q for row_gate, q in self._waiting.items() if docket.waits(*row_gate))
            asked = [Request(q.operator, self.event, q.inputs, (self, q)) for q in wanted]
        self.outstanding = len(asked)
        return asked

    def take(self, answers: Sequence[Answer]) -> None:
        """Takes in what was answered."""
        self.outstanding -= len(answers)
        evs, truths, seconds = [], [], []
        ids, news = self.docket.arrays.ev_id, False
        checked = self.table.predicates.checked
        for (_, asked), outcome, took in answers:
            if isinstance(asked, BoundCall):
                self._outcomes[key_of(asked)] = outcome
                self.table.predicates.count(asked, outcome, took)
                news = True
                continue
            number = int(ids[asked])
            self._answered[number] = outcome
            truth = UNKNOWN if outcome.error is not None else TRUE if outcome.rows else FALSE
            if truth == TRUE and number in checked:
                self._tell_apart(asked, outcome)
                truth = 0
            evs.append(asked)
            truths.append(truth)
            seconds.append(took)
        if evs:
            self.docket.settle(np.array(evs, np.int32), np.array(truths, np.int32), np.array(seconds))
        self._confirm(again=news)

    def decided(self, every: bool) -> Decided:
        """What was decided."""
        docket = self.docket
        truth = docket.verdicts
        assert not docket.undecided, "a row has nothing left to evaluate and is not decided"
        decided = Decided(self.case, truth, {}, {}, set())
        for row in np.flatnonzero((truth == TRUE) & self.table.binds[docket.rows]).tolist():
            if not every and (binding := self._own_bindings(row)) is not None:
                decided.solutions[row] = [binding]
                decided.selected.add(row)
                continue
            found = self._complete(row, every)
            decided.solutions[row] = [solution.binding for solution in found if solution.doubt is None]
        for row in np.flatnonzero(truth == UNKNOWN).tolist():
            decided.messages[row] = self._doubt(row)
        return decided

    def _own_bindings(self, row: int) -> Binding | None:
        """What the calls of a true row have bound, if each binds its own variables and triples bind none."""
        plain = self.table.plain(int(self.docket.rows[row]))
        if plain is None or self.case.bindings(row) != ({},):
            return None
        bound: dict[str, Any] = {}
        for predicate, names in plain:
            if any(names):
                bound.update(zip(names, self._first_row(int(predicate)), strict=True))
        bound.pop("", None)
        return bound

    def _doubt(self, row: int) -> str:
        """Why a row is unknown."""
        pred_eval = self.table.predicates.pred_eval.all
        for predicate, _ in self.table.plain(int(self.docket.rows[row])) or ():
            outcome = self._answered.get(int(pred_eval[predicate]))
            if outcome is not None and outcome.error is not None:
                return outcome.error
        return next((s.doubt for s in self._complete(row, False) if s.doubt), "an operator failed")

    def _first_row(self, predicate: int) -> tuple[Any, ...]:
        """The first row of an answer that a predicate wants."""
        if predicate not in self._rows:
            predicates = self.table.predicates
            outcome = self._answered[int(predicates.pred_eval.all[predicate])]
            check = predicates.check(predicate)
            wanted = (row for row in outcome.rows if check is None or self._wants(check, row))
            self._rows[predicate] = next(wanted)
        return self._rows[predicate]

    def _complete(self, row: int, every: bool) -> list[Solution]:
        """The solutions of a decided row, all or up to the first certain one; the calls that they lack are made."""
        condition = self.case.program(row).condition
        while True:
            found: list[Solution] = []
            missing: dict[object, BoundCall] = {}
            for binding in self.case.bindings(row):
                try:
                    for solution in self._joiner().solve(condition, binding):
                        found.append(solution)
                        if not every and solution.doubt is None:
                            return found
                except Unasked as unasked:
                    missing[key_of(unasked.bound_call)] = unasked.bound_call
            if not missing:
                return found
            needed = list(missing.items()) if every else list(missing.items())[:1]
            requests = [
                Request(bound_call.operator, self.event, bound_call.inputs) for _, bound_call in needed
            ]
            for (key, bound_call), answer in zip(needed, self.caller.run(requests), strict=True):
                self._outcomes[key] = answer.outcome
                self.table.predicates.count(bound_call, answer.outcome, answer.seconds)

    def _tell_apart(self, ev: int, outcome: Outcome) -> None:
        """Gives each predicate of an evaluation its own truth."""
        pred, preds = self.docket.arrays.pred, self.docket.predicates(ev)
        ids = self.docket.arrays.pred_id[preds]
        truths = self.table.predicates.truths(ids, outcome.rows)
        for position in np.flatnonzero(truths == 0).tolist():
            check = self.table.predicates.check(int(ids[position]))
            truths[position] = (
                TRUE if check is None or any(self._wants(check, row) for row in outcome.rows) else FALSE
            )
        pred["truth"][preds] = truths

    def _wants(self, check: Check, row: tuple[Any, ...]) -> bool:
        """Whether a row of an answer is one that a predicate wants."""
        if check.simple is not None:
            return all(values.compare(row[position], op, constant) for position, op, constant in check.simple)
        joined = join(check.outs, row, {})
        return joined is not None and all(
            truth_of(condition, joined.binding, self.case.holds) for condition in check.conditions
        )

    def _confirm(self, again: bool = False) -> bool:
        """Confirms the gates that wait for it, as far as the answers go; whether any was decided."""
        progress = False
        row_gates = [*self.docket.awaiting(), *(self._waiting if again else ())]
        while row_gates:
            for row_gate in row_gates:
                if not self.docket.waits(*row_gate):
                    self._waiting.pop(row_gate, None)
                    continue
                truth = self._truth(*row_gate)
                if isinstance(truth, BoundCall):
                    self._waiting[row_gate] = truth
                    continue
                self._waiting.pop(row_gate, None)
                row, gate = row_gate
                self.docket.confirm(row, gate, truth)
                progress = self._confirmed = True
            row_gates = list(self.docket.awaiting())
        if self._twins:
            self._dismiss()
        return progress

    def _dismiss(self) -> None:
        """Drops the twins of rows that are true."""
        truth = self.docket.verdicts
        for rows in [rows for rows in self._twins if TRUE in truth[rows]]:
            self._twins.remove(rows)
            for row in rows:
                self.docket.dismiss(row)

    def _truth(self, row: int, gate: int) -> int | BoundCall:
        """The truth of a gate by the definition, or the bound call that it waits for."""
        condition = self.case.program(row).gates[gate].condition
        best, hanging = self._hanging.pop((row, gate), (FALSE, {}))
        if not hanging:
            # What triples bind is known to the root; a gate below it stands for itself.
            bindings = self.case.bindings(row) if gate == 0 else ({},)
        else:
            # Another answer than the one it waits for may decide a binding; while they are few, all are tried.
            ready = [key for key in hanging if len(hanging) <= _FEW or self._known(key) is not None]
            bindings = [binding for key in ready for binding in hanging.pop(key)[1]]
        for binding in bindings:
            try:
                found = self._joiner().verdict(condition, binding)
            except Unasked as unasked:
                hanging.setdefault(key_of(unasked.bound_call), (unasked.bound_call, []))[1].append(binding)
                continue
            if found.verdict == "match":
                return TRUE
            if found.verdict == "undecided":
                best = UNKNOWN
        if not hanging:
            return best
        self._hanging[row, gate] = best, hanging
        return next(iter(hanging.values()))[0]

    def _joiner(self) -> Joiner:
        return Joiner(self.table.find, self._answer, self.case.holds)

    def _answer(self, call: Call, inputs: tuple[Any, ...]) -> Outcome:
        """What an operator has answered; `Unasked` if it was not called."""
        operator = self.table.find(call.name)
        try:
            bound_call = BoundCall(operator, operator.read_inputs(inputs))
        except SubscriptionError:
            return Outcome()  # like a comparison with a value of another type
        found = self._known(key_of(bound_call))
        if found is None:
            raise Unasked(bound_call)
        return found

    def _known(self, key: object) -> Outcome | None:
        """The answer to a bound call, if there is one."""
        if self._keyed < len(self._answered):
            for number in list(self._answered)[self._keyed :]:
                self._outcomes[key_of(self.table.predicates.bound_call(number))] = self._answered[number]
            self._keyed = len(self._answered)
        return self._outcomes.get(key)


def key_of(bound_call: BoundCall) -> object:
    """Equal for equal calls: 1, 1.0 and True are not equal."""
    return bound_call.operator.name, *[(type(value), value) for value in bound_call.inputs]
