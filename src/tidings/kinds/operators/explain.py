"""Explains a condition with calls as a tree: what each call answered, or why it was spared.

naive.py decides each part from the answers, together with the parts of its AND that bind its variables. A call was
spared because of the nearest part that decided the condition around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tidings.errors import SubscriptionError
from tidings.kinds.operators.binding_join import Unasked
from tidings.kinds.operators.dry_run import DryRun
from tidings.kinds.operators.functions.caller import Answer
from tidings.kinds.operators.naive import Binding, Unknown, check_inputs
from tidings.kinds.operators.statistics import duration
from tidings.language.condition_tree import (
    ALL,
    ANY,
    NOT,
    ConditionPart,
    build_tree,
    evidence_of,
    format_value,
)
from tidings.language.printer import condition_text
from tidings.language.query import And, Call, Condition, Not, Or, Variable, conjuncts, has_calls, variables
from tidings.model.terms import Blank, Iri, Literal, plain

MAX_BINDINGS = 1000
_MAX_VALUES, _MAX_TEXT = 5, 60
# Where no single part settles it.
_OTHERWISE = {
    True: "what holds is enough",
    False: "what was answered does not go together",
    None: "nothing hangs on it",
}


def call_tree(
    condition: Condition,
    trial: DryRun,
    attributes: Mapping[str, Any],
    bindings: Sequence[Binding],
    *,
    held: bool | None,
    solution: Binding | None,
    spared: str,
) -> ConditionPart:
    """The tree of a condition that was decided as `held`, by this solution if it is a match.

    `spared` says why no call was made, if none was.
    """
    root, _ = _TreeBuilder(trial, attributes, solution).build_tree(condition, bindings)
    if root.fate != "spared":
        root = replace(root, held=held)
    return _with_reasons(root, condition, spared or _OTHERWISE[held])


class _Evaluated(NamedTuple):
    """Whether a part holds under some bindings, None if that is not known, and those under which it does."""

    held: bool | None
    bindings: list[Binding]


class _TreeBuilder:
    def __init__(self, trial: DryRun, attributes: Mapping[str, Any], solution: Binding | None) -> None:
        self.trial, self.attributes, self.solution = trial, attributes, solution

    def build_tree(
        self, condition: Condition, bindings: Sequence[Binding]
    ) -> tuple[ConditionPart, Sequence[Binding]]:
        """A part under the bindings of those before it, and the bindings for those after it."""
        if not has_calls(condition) and not variables(condition):
            return build_tree(condition, self.attributes), bindings
        # Parts of an OR bind different variables.
        reached = [binding for binding in bindings if self._is_reached(condition, binding)]
        judged = self._judge(condition, reached) if reached else _Evaluated(None, [])
        after = judged.bindings or bindings
        if isinstance(condition, Call):
            return self._call(condition, reached, judged), after
        inner = self._inner(condition, reached or bindings)
        evidence = "" if inner or not reached else self._values(condition, reached, judged)
        return ConditionPart(_head(condition), judged.held, evidence, inner), after

    def _conjunction(self, condition: And, bindings: Sequence[Binding]) -> tuple[ConditionPart, ...]:
        """The parts of an AND in written order; each is evaluated when the variables it needs are bound."""
        parts = conjuncts(condition)
        found: dict[int, ConditionPart] = {}
        while len(found) < len(parts):
            position = min(
                (i for i in range(len(parts)) if i not in found),
                key=lambda i: self._turn(parts[i], bindings[0]),
            )
            found[position], bindings = self.build_tree(parts[position], bindings)
        return tuple(found[position] for position in range(len(parts)))

    def _turn(self, part: Condition, binding: Binding) -> tuple[int, bool]:
        """The order of the definition: a test that can be decided may spare a call."""
        turn = self.trial.joiner().turn(part, binding) if self._is_reached(part, binding) else 9
        return turn, has_calls(part)

    def _inner(self, condition: Condition, bindings: Sequence[Binding]) -> tuple[ConditionPart, ...]:
        if isinstance(condition, And):
            return self._conjunction(condition, bindings)
        if isinstance(condition, Or):
            return tuple(self.build_tree(part, bindings)[0] for part in condition.parts)
        if isinstance(condition, Not) and not _is_leaf(condition.part):
            return (self.build_tree(condition.part, bindings)[0],)
        return ()

    def _judge(self, condition: Condition, bindings: Sequence[Binding]) -> _Evaluated:
        certain: list[Binding] = []
        doubtful: list[Binding] = []
        complete = True
        for binding in bindings:
            try:
                for solution in self.trial.joiner().solve(condition, binding):
                    (certain if solution.doubt is None else doubtful).append(solution.binding)
                    if len(certain) >= MAX_BINDINGS:
                        break
            except Unasked:
                complete = False
        agreeing = [binding for binding in certain if self._agrees(binding)]
        if certain:
            return _Evaluated(
                True, agreeing[:1] if self.solution is not None and agreeing else certain[:MAX_BINDINGS]
            )
        return _Evaluated(None if doubtful or not complete else False, doubtful[:MAX_BINDINGS])

    def _agrees(self, binding: Binding) -> bool:
        solution = self.solution or {}
        return all(solution[name] == value for name, value in binding.items() if name in solution)

    def _is_reached(self, condition: Condition, binding: Binding) -> bool:
        try:
            check_inputs(condition, frozenset(binding), self.trial.find)
        except SubscriptionError:
            return False
        return all(name in binding for name in self._needs(condition))

    def _needs(self, condition: Condition) -> frozenset[str]:
        """The variables that have to be bound outside."""
        if isinstance(condition, Call):
            inputs = self.trial.find(condition.name).inputs_of(condition)
            return frozenset(i.name for i in inputs if isinstance(i, Variable))
        if isinstance(condition, And) and has_calls(condition):
            parts = conjuncts(condition)
            calls = [part for part in parts if isinstance(part, Call)]
            own = {
                o.name for c in calls for o in self.trial.find(c.name).outs_of(c) if isinstance(o, Variable)
            }
            return frozenset().union(*map(self._needs, parts)) - own
        if isinstance(condition, Or) and has_calls(condition):
            return frozenset().union(*map(self._needs, condition.parts))
        if isinstance(condition, Not) and has_calls(condition):
            return self._needs(condition.part)
        return frozenset(variable.name for variable in variables(condition))

    def _binds(self, condition: Condition) -> frozenset[str]:
        if isinstance(condition, Call):
            outs = self.trial.find(condition.name).outs_of(condition)
            return frozenset(o.name for o in outs if isinstance(o, Variable))
        if isinstance(condition, And | Or):
            parts = map(self._binds, condition.parts)
            together = frozenset.union if isinstance(condition, And) else frozenset.intersection
            return together(*parts)
        return frozenset()

    # -- what was seen

    def _call(self, call: Call, bindings: Sequence[Binding], judged: _Evaluated) -> ConditionPart:
        text, answers = condition_text(call), self._answers(call, bindings)
        unknown = [b[v.name] for b in bindings for v in variables(call) if isinstance(b.get(v.name), Unknown)]
        if not answers:
            evidence = "spared: what it is asked with is unknown" if unknown else ""
            return ConditionPart(text, None, evidence, fate="spared")
        took = duration(sum(answer.seconds for answer in answers))
        errors = [answer.outcome.error for answer in answers if answer.outcome.error is not None]
        if judged.held is None and errors:
            error = errors[0].removeprefix(f"{call.name} failed: ")
            return ConditionPart(text, None, f"failed: {error}, {took}", fate="failed")
        times = "" if len(answers) == 1 else f" {len(answers):,} times"
        said = self._answer_text(call, bindings, judged, answers)
        return ConditionPart(text, judged.held, f"ran{times}: {said}, {took}", fate="ran")

    def _answers(self, call: Call, bindings: Sequence[Binding]) -> list[Answer]:
        """The answers to a call under the bindings, one for each evaluation."""
        found: dict[str, Answer] = {}
        for binding in bindings:
            inputs = tuple(
                binding[i.name] if isinstance(i, Variable) else i
                for i in self.trial.find(call.name).inputs_of(call)
            )
            if not any(isinstance(value, Unknown) for value in inputs):
                answer = self.trial.answer(call, inputs)
                if answer is not None:
                    found[repr(inputs)] = answer
        return list(found.values())

    def _answer_text(
        self, call: Call, bindings: Sequence[Binding], judged: _Evaluated, answers: Sequence[Answer]
    ) -> str:
        outs = self.trial.find(call.name).outs_of(call)
        rows = [row for answer in answers for row in answer.outcome.rows]
        if not outs or (judged.held and not rows):
            return "true" if judged.held else "false"
        if not rows:
            return "nothing"
        new = [o.name for o in outs if isinstance(o, Variable) and o.name not in bindings[0]]
        if judged.held is not True or not new:
            several = [
                _value(row[0]) if len(row) == 1 else f"({', '.join(map(_value, row))})" for row in rows
            ]
            fits = (
                "" if judged.held is not False else "; that does not fit" if len(rows) == 1 else "; none fits"
            )
            return _listed(several) + fits
        pairs = [
            f"?{name} = {_listed(_value(b[name]) for b in judged.bindings)}" for name in dict.fromkeys(new)
        ]
        of = f" (1 of {len(rows):,})" if len(judged.bindings) == 1 < len(rows) else ""
        return ", ".join(pairs) + of

    def _values(self, condition: Condition, bindings: Sequence[Binding], judged: _Evaluated) -> str:
        """The values that a test was evaluated on."""
        looked = evidence_of(condition, self.attributes)
        if judged.held:
            return looked
        names = dict.fromkeys(v.name for v in variables(condition))
        known = [
            f"?{name} = {_listed(_value(b[name]) for b in bindings)}"
            for name in names
            if not any(isinstance(b.get(name), Unknown) for b in bindings)
        ]
        if judged.held is None:
            return "unknown"
        return ", ".join(
            filter(None, [f"does not hold for {', '.join(known)}" if known else "does not hold", looked])
        )


def _with_reasons(part: ConditionPart, condition: Condition, reason: str) -> ConditionPart:
    """The tree with a reason at each spared call: the nearest part that decided the condition around it."""
    if not part.inner:
        if part.fate != "spared" or part.evidence:
            return part
        return replace(part, evidence=f"spared: {reason}")
    if isinstance(condition, Not):
        return replace(part, inner=(_with_reasons(part.inner[0], condition.part, reason),))
    parts = conjuncts(condition) if isinstance(condition, And) else getattr(condition, "parts", ())
    if len(parts) != len(part.inner):  # a tree without calls
        return part
    settles = part.text == ANY
    for inner_part, inner_condition in zip(part.inner, parts, strict=True):
        if inner_part.held is settles:
            reason = _settled(inner_part, inner_condition)
            break
    inner = tuple(
        _with_reasons(inner_part, inner_condition, reason)
        for inner_part, inner_condition in zip(part.inner, parts, strict=True)
    )
    return replace(part, inner=inner)


def _settled(part: ConditionPart, condition: Condition) -> str:
    text = condition_text(condition)
    text = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
    if part.held:
        return f"the OR holds by {text}"
    return f"{text} is false" if isinstance(condition, Call) else f"{text} does not hold"


def _head(condition: Condition) -> str:
    if isinstance(condition, And | Or):
        return ALL if isinstance(condition, And) else ANY
    return NOT if isinstance(condition, Not) and not _is_leaf(condition.part) else condition_text(condition)


def _is_leaf(condition: Condition) -> bool:
    return not isinstance(condition, And | Or | Not | Call)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    return plain(value) if isinstance(value, Iri | Literal | Blank) else format_value(value)


def _listed(values: Iterable[str]) -> str:
    several = list(dict.fromkeys(values))
    more = f" and {len(several) - _MAX_VALUES:,} more" if len(several) > _MAX_VALUES else ""
    return ", ".join(several[:_MAX_VALUES]) + more
