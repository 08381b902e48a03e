"""Sets of values of one kind: what a comparison with constants says about a value.

A value has at most one view of each kind (model/values.py), so two conditions on the same value that speak about one kind
can be intersected. Keys of texts are folded where the condition ignores case, and only there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidings.language.query import Between, Comparison, Condition, Folded, OneOf
from tidings.model.terms import Iri, Literal
from tidings.model.values import INSTANT, NUMBER, ORDERED, TEXT, constant_view

_NOTHING: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The keys of `kind` between two bounds, those of `excluded` left out; or just `points`, if there are any given.

    A bound is None where there is none, or (key, whether it is included).
    """

    kind: str
    fold: bool = False
    points: frozenset[Any] | None = None
    low: tuple[Any, bool] | None = None
    high: tuple[Any, bool] | None = None
    excluded: frozenset[Any] = _NOTHING

    def has(self, key: Any) -> bool:
        if self.points is not None:
            return key in self.points
        if self.low is not None and not (key > self.low[0] or (key == self.low[0] and self.low[1])):
            return False
        if self.high is not None and not (key < self.high[0] or (key == self.high[0] and self.high[1])):
            return False
        return key not in self.excluded

    @property
    def is_empty(self) -> bool:
        return self.points is not None and not self.points

    def within(self, other: ValueSet) -> bool:
        """Whether a value with a view in this set has one in the other. False where that is not certain."""
        if self.kind.startswith(f"{TEXT}@") and other.kind == TEXT:
            return self._as(TEXT).within(other)  # a text in a language is also that text
        if self.kind != other.kind:
            return False
        if other.fold and not self.fold and self.points is not None:
            return all(other.has(key.casefold()) for key in self.points)
        if self.fold != other.fold:
            return False
        if self.points is not None:
            return all(map(other.has, self.points))
        if other.points is not None or any(map(self.has, other.excluded)):
            return False
        return _reaches(other.low, self.low, 1) and _reaches(other.high, self.high, -1)

    def intersection(self, other: ValueSet) -> ValueSet:
        """Of two sets of the same kind and the same case."""
        if self.points is not None or other.points is not None:
            points, rest = (self.points, other) if self.points is not None else (other.points, self)
            return self._with(points=frozenset(filter(rest.has, points or ())))
        low = self.low if _reaches(other.low, self.low, 1) else other.low
        high = self.high if _reaches(other.high, self.high, -1) else other.high
        return _normal(self._with(low=low, high=high, excluded=self.excluded | other.excluded))

    def _as(self, kind: str) -> ValueSet:
        return ValueSet(kind, self.fold, self.points, self.low, self.high, self.excluded)

    def _with(self, **parts: Any) -> ValueSet:
        return ValueSet(self.kind, self.fold, **parts)


def _reaches(bound: tuple[Any, bool] | None, inner: tuple[Any, bool] | None, side: int) -> bool:
    """Whether `bound` lets everything pass that `inner` lets pass; side 1 for lower bounds, -1 for upper ones."""
    if bound is None:
        return True
    if inner is None:
        return False
    if bound[0] == inner[0]:
        return bound[1] or not inner[1]
    return bool(bound[0] < inner[0] if side == 1 else bound[0] > inner[0])


def _normal(found: ValueSet) -> ValueSet:
    """An interval of one key, or of none, as points."""
    low, high = found.low, found.high
    if low is None or high is None or low[0] < high[0]:
        return found
    points = frozenset({low[0]}) if low == high and low[1] else _NOTHING
    return ValueSet(found.kind, found.fold, points - found.excluded)


def value_sets(condition: Condition) -> list[ValueSet] | None:
    """The sets of which one has a view of every value that satisfies `condition`, and of no other value.

    None if the condition is not of this sort; no sets if nothing can satisfy it.
    """
    if isinstance(condition, Comparison) and isinstance(condition.right, Iri | Literal):
        return _compared(condition.op, condition.right, isinstance(condition.left, Folded))
    if isinstance(condition, Between):
        fold = isinstance(condition.operand, Folded)
        if not (isinstance(condition.low, Iri | Literal) and isinstance(condition.high, Iri | Literal)):
            return None
        above, below = _compared(">=", condition.low, fold), _compared("<=", condition.high, fold)
        if not above or not below or above[0].kind != below[0].kind:
            return []
        return [found] if not (found := above[0].intersection(below[0])).is_empty else []
    if isinstance(condition, OneOf):
        return _listed(condition)
    return None


def _compared(op: str, constant: Iri | Literal, fold: bool) -> list[ValueSet]:
    view = constant_view(constant, fold)
    if view is None or (op not in ("=", "!=") and view[0] not in ORDERED):
        return []
    kind, key = view
    fold = fold and is_text(kind)
    if op in ("=", "!="):
        points = frozenset({key})
        return [ValueSet(kind, fold, points) if op == "=" else ValueSet(kind, fold, excluded=points)]
    bound = (key, op in ("<=", ">="))
    return [ValueSet(kind, fold, low=bound) if op in (">", ">=") else ValueSet(kind, fold, high=bound)]


def _listed(condition: OneOf) -> list[ValueSet] | None:
    fold = isinstance(condition.operand, Folded)
    kinds: dict[str, set[Any]] = {}
    for option in condition.options:
        if not isinstance(option, Iri | Literal):
            return None
        if (view := constant_view(option, fold)) is not None:
            kinds.setdefault(view[0], set()).add(view[1])
    if condition.negated:
        if len(kinds) > 1:
            return None  # which kind a value has, and which other view beside it, is then open
        return [ValueSet(k, fold and is_text(k), excluded=frozenset(keys)) for k, keys in kinds.items()]
    return [ValueSet(k, fold and is_text(k), frozenset(keys)) for k, keys in kinds.items()]


def is_text(kind: str) -> bool:
    return kind == TEXT or kind.startswith(f"{TEXT}@")


def coincide(kind: str, other: str) -> bool:
    """Whether one value may have views of both kinds."""
    pair = {kind, other}
    if len(pair) == 1:
        return True
    return TEXT in pair and all(k in (NUMBER, INSTANT) or is_text(k) for k in pair)
