"""Numbers an engine's evaluations, and the predicates on their answers, and keeps what was learnt of each.

An evaluation is an operator with its inputs: the unit of cost. A predicate is a call with the conditions on its
variables: the unit of selectivity. Both are identified by their texts, in which variables are numbered, so
`p(?x, ?y)` and `p(?a, ?b)` are one predicate and `p(?x, ?x)` is another of the same evaluation.
Sub-Order 3; numbers are given once and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays.growing import Growing
from tidings.arrays.vocabulary import Vocabulary, join_texts, thaw_texts
from tidings.errors import SubscriptionError
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.kernels.layout import Learnt
from tidings.kinds.operators.thresholds import Thresholds
from tidings.language.query import And, Call, Comparison, Condition, Constant, Variable, leaves
from tidings.model.terms import Iri, Literal

Find = Callable[[str], Operator]
BY_PREDICATE = ("hits", "trials", "moment", "wanted", "told", "held")
BY_EVALUATION = ("seconds", "calls", "failures")
BY_OPERATOR = ("operator_hits", "operator_trials", "operator_seconds")

_REMEMBERED = 100_000


class BoundCall(NamedTuple):
    """An operator with the inputs of one call, which are all known: what an evaluation calls."""

    operator: Operator
    inputs: tuple[Any, ...]


class Check(NamedTuple):
    """What a predicate requires of an answer: values or variables in its Out arguments, and conditions on them.

    `simple` is the same where each condition compares one value of a row with a constant: position, operator, constant.
    """

    outs: tuple[Variable | Constant, ...]
    conditions: tuple[Condition, ...]
    simple: list[tuple[int, str, Iri | Literal]] | None


@dataclass(slots=True)
class Unnumbered:
    """Counts of evaluations that bindings led to: their inputs were bound by triples or by other calls."""

    calls: int = 0
    hits: int = 0
    failures: int = 0
    seconds: float = 0.0


class Predicates:
    """Numbers for predicates, evaluations and operators, and beside each number what was learnt of it."""

    def __init__(self, find: Find) -> None:
        self._find = find
        # What predicates say and evaluations call, by the rows of the table that has them.
        self.condition_of: Callable[[int], Condition] = _unknown
        self.call_of: Callable[[int], Condition] = _unknown
        self.operators = Vocabulary()
        self._evaluations: dict[str, int] = {}
        self._predicates: dict[str, int] = {}
        self.evaluation_texts: list[str] = []
        self.texts: list[str] = []
        self.eval_operator = Growing(np.int32)
        self.pred_eval = Growing(np.int32)  # -1: a condition that is known at once
        self.checked: set[int] = set()
        """The evaluations of which a predicate wants more than any answer."""
        self._learnt = {name: Growing(np.float64) for name in Learnt._fields}
        self._bound_calls: dict[int, BoundCall] = {}
        self._checks: dict[int, Check | None] = {}
        self._known: dict[int, Condition] = {}
        self._fitting: set[str] = set()
        self._thresholds = Thresholds()
        self.events = 0.0
        """How many events have come by: the clock by which what was learnt grows old."""
        self.unnumbered: dict[str, Unnumbered] = {}
        """By operator what was evaluated under bindings, which has no numbers."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def learnt(self) -> Learnt:
        return Learnt(*(self._learnt[name].all for name in Learnt._fields))

    def fits(self, text: str) -> bool:
        """Whether a predicate is known to have constants that fit their operators."""
        return text in self._predicates or text in self._fitting

    def fit(self, text: str, condition: Condition) -> None:
        """Refuses a predicate with a constant that does not fit its operator."""
        for leaf in leaves(condition):
            if isinstance(leaf, Call):
                self._find(leaf.name).check(leaf)
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add(text)

    def number(self, text: str, evaluation: str | None) -> int:
        """The number of a predicate; without an evaluation it is a condition that is known at once."""
        number = self._predicates.get(text)
        if number is None:
            number = self._predicates[text] = len(self.texts)
            self.texts.append(text)
            self.pred_eval.append(-1 if evaluation is None else self._evaluation(evaluation))
            if evaluation not in (None, text):
                self.checked.add(int(self.pred_eval.all[number]))
            self._extend(BY_PREDICATE)
        return number

    def _evaluation(self, text: str) -> int:
        number = self._evaluations.get(text)
        if number is None:
            number = self._evaluations[text] = len(self.evaluation_texts)
            self.evaluation_texts.append(text)
            name = text[: text.index("(")]
            known = len(self.operators)
            operator = self.operators.number(name)
            if operator == known:
                self._extend(BY_OPERATOR)
                self._learnt["operator_seconds"].all[operator] = self._find(name).cost
            self.eval_operator.append(operator)
            self._extend(BY_EVALUATION)
        return number

    def _extend(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._learnt[name].append(0.0)

    def bound_call(self, evaluation: int) -> BoundCall:
        """The operator and inputs of an evaluation."""
        found = self._bound_calls.get(evaluation)
        if found is None:
            call = self.call_of(evaluation)
            assert isinstance(call, Call)
            operator = self._find(call.name)
            operator.check(call)
            if any(map(_is_variable, operator.inputs_of(call))):
                raise SubscriptionError(
                    f"{call.name} bound what is an input of {operator.signature} now; subscribe anew, "
                    "or give the operator that was there"
                )
            found = BoundCall(operator, operator.read_inputs(operator.inputs_of(call)))
            self._bound_calls[evaluation] = found
        return found

    def check(self, predicate: int) -> Check | None:
        """What a predicate requires of an answer; None if any answer satisfies it."""
        if predicate not in self._checks:
            condition = self.condition_of(predicate)
            call, *conditions = condition.parts if isinstance(condition, And) else (condition,)
            assert isinstance(call, Call)
            outs = self._find(call.name).outs_of(call)
            plain = not conditions and len(set(outs)) == len(outs) and all(map(_is_variable, outs))
            self._checks[predicate] = (
                None if plain else Check(outs, tuple(conditions), _simple(outs, conditions))
            )
        return self._checks[predicate]

    def truths(self, predicates: np.ndarray, rows: Sequence[tuple[Any, ...]]) -> np.ndarray:
        """The truths of predicates for an answer's rows, as far as they can be decided in bulk; 0 for the others."""
        self._thresholds.grow(len(self))
        for predicate in self._thresholds.unknown(predicates).tolist():
            check = self.check(predicate)
            self._thresholds.note(predicate, check.simple if check is not None else ())
        return self._thresholds.truths(predicates, rows)

    def condition(self, predicate: int) -> Condition:
        """The condition of a predicate that is known at once."""
        if predicate not in self._known:
            self._known[predicate] = self.condition_of(predicate)
        return self._known[predicate]

    def count(self, bound_call: BoundCall, outcome: Outcome, seconds: float) -> None:
        """Counts an evaluation that has no number."""
        counts = self.unnumbered.setdefault(bound_call.operator.name, Unnumbered())
        counts.calls += 1
        counts.hits += bool(outcome.rows)
        counts.failures += outcome.error is not None
        counts.seconds += seconds

    def recall(self, other: Predicates) -> None:
        """Takes over what another has learnt of the same predicates, evaluations and operators."""
        for names, own, known in (
            (BY_PREDICATE, self._predicates, other._predicates),
            (BY_EVALUATION, self._evaluations, other._evaluations),
            (BY_OPERATOR, self.operators.numbers, other.operators.numbers),
        ):
            for text in own.keys() & known.keys():
                for name in names:
                    self._learnt[name].all[own[text]] = other._learnt[name].all[known[text]]
        self.events = other.events

    @property
    def numbers(self) -> dict[str, int]:
        """The predicates by their texts."""
        return self._predicates

    @property
    def evaluation_numbers(self) -> dict[str, int]:
        """The evaluations by their texts."""
        return self._evaluations

    def kept(self, predicates: np.ndarray) -> Predicates:
        """A copy with these predicates only, numbered in this order; it keeps what was learnt of them."""
        made = Predicates(self._find)
        evaluations, pred_eval = renumbered(self.pred_eval.all[predicates])
        operators, eval_operator = renumbered(self.eval_operator.all[evaluations])
        names = list(self.operators.numbers)
        made._set_texts(
            [names[i] for i in operators.tolist()],
            [self.evaluation_texts[i] for i in evaluations.tolist()],
            [self.texts[i] for i in predicates.tolist()],
        )
        made._set_numbers(eval_operator, pred_eval)
        made._learnt = {
            name: Growing(np.float64, self._learnt[name].all[chosen])
            for columns, chosen in (
                (BY_PREDICATE, predicates),
                (BY_EVALUATION, evaluations),
                (BY_OPERATOR, operators),
            )
            for name in columns
        }
        made.events, made.unnumbered = self.events, self.unnumbered
        return made

    def freeze(self) -> dict[str, np.ndarray]:
        arrays = {name: column.all for name, column in self._learnt.items()}
        for name, texts in (
            ("operators", self.operators.numbers),
            ("evaluations", self.evaluation_texts),
            ("predicates", self.texts),
        ):
            arrays[f"{name}_blob"], arrays[f"{name}_start"] = join_texts(texts)
        arrays |= {"eval_operator": self.eval_operator.all, "pred_eval": self.pred_eval.all}
        return arrays | {"events": np.array([self.events])}

    @classmethod
    def thaw(cls, arrays: Mapping[str, np.ndarray], find: Find) -> Predicates:
        made = cls(find)

        def texts(name: str) -> list[str]:
            return thaw_texts({"blob": arrays[f"{name}_blob"], "start": arrays[f"{name}_start"]})

        made._set_texts(texts("operators"), texts("evaluations"), texts("predicates"))
        made._set_numbers(arrays["eval_operator"], arrays["pred_eval"])
        made._learnt = {name: Growing(np.float64, arrays[name]) for name in Learnt._fields}
        made.events = float(arrays["events"][0])
        return made

    def _set_texts(self, operators: list[str], evaluations: list[str], predicates: list[str]) -> None:
        self.operators = Vocabulary(operators)
        self.evaluation_texts, self.texts = evaluations, predicates
        self._evaluations = {text: i for i, text in enumerate(evaluations)}
        self._predicates = {text: i for i, text in enumerate(predicates)}

    def _set_numbers(self, eval_operator: np.ndarray, pred_eval: np.ndarray) -> None:
        self.eval_operator, self.pred_eval = Growing(np.int32, eval_operator), Growing(np.int32, pred_eval)
        for text, evaluation in zip(self.texts, pred_eval.tolist(), strict=True):
            if evaluation >= 0 and text != self.evaluation_texts[evaluation]:
                self.checked.add(evaluation)


def renumbered(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers in the order of their first appearance, and the position of each there; -1 stays -1."""
    used, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first + len(numbers) * (used < 0))  # what is -1 comes last
    new_numbers = np.where(numbers < 0, -1, np.argsort(order)[inverse])
    return used[order][: np.count_nonzero(used >= 0)], new_numbers


def _unknown(number: int) -> Condition:
    raise LookupError("only predicates that are in a table have a text")


def _is_variable(out: object) -> bool:
    return isinstance(out, Variable)


def _simple(
    outs: Sequence[Variable | Constant], conditions: Sequence[Condition]
) -> list[tuple[int, str, Iri | Literal]] | None:
    tests = []
    for position, out in enumerate(outs):
        if isinstance(out, Iri | Literal):
            tests.append((position, "=", out))
        elif out in outs[:position]:
            return None
    for condition in conditions:
        match condition:
            case Comparison(Variable() as variable, op, Iri() | Literal() as constant):
                tests.append((outs.index(variable), op, constant))
            case _:
                return None
    return tests
