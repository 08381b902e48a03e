"""Whether conditions on one value imply another condition on it. "No" where that is not certain.

What is known of the value of a variable are all conditions of the contained subscription on it together. An attribute may
have several values, so its conditions are about different ones: `x >= 10 AND x <= 30` holds for x = [5, 40] and says
nothing of `x BETWEEN 10 AND 30`. There each condition is known alone (`Known.of((condition,))`).

Conditions are *bare* here: the operand is IT, or IT folded, whatever variable or attribute it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from itertools import product
from typing import Any, TypeVar

from tidings.containment.value_sets import ValueSet, coincide, is_text, value_sets
from tidings.language import conditions
from tidings.language.query import (
    AnyElement,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    IsA,
    KindCondition,
    OneOf,
    TextTest,
    Variable,
    operands,
)
from tidings.model.search import expression as search
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal
from tidings.model.text_tests import is_search, like_pieces, network, search_language, text_holds
from tidings.model.values import NUMBER, RESOURCE, TEXT, constant_view, instant, number

IT = Variable("it")
_COMBINATIONS = 64  # of kinds that lists of mixed constants allow for one value; more are not looked at
Tree = TypeVar("Tree")
Alternative = dict[tuple[str, bool], ValueSet]
"""Sets by kind and case: the value has a view in each of them."""


def subject(condition: Condition) -> Variable | Attribute | None:
    """The one variable or attribute that a condition compares with constants; None if it is not of that form."""
    operand: Any = None
    if isinstance(condition, Comparison) and isinstance(condition.right, Iri | Literal):
        operand = condition.left
    elif isinstance(condition, Between | OneOf | TextTest | IsA):
        operand = condition.operand
    operand = operand.operand if isinstance(operand, Folded) else operand
    return operand if isinstance(operand, Variable | Attribute) else None


def replaced(tree: Tree, terms: Mapping[Any, Any]) -> Tree:
    """A condition with some of its variables, or attributes, replaced by other terms."""
    if isinstance(tree, Variable | Attribute):
        return terms.get(tree, tree)
    if isinstance(tree, tuple):
        return tuple(replaced(part, terms) for part in tree)  # type: ignore[return-value]
    if isinstance(tree, Iri | Literal | KindCondition) or not is_dataclass(tree):
        return tree
    parts = {name: replaced(getattr(tree, name), terms) for name in tree.__dataclass_fields__}
    return replace(tree, **parts)  # type: ignore[type-var]


def bare(condition: Condition, operand: Variable | Attribute) -> Condition:
    """The condition with IT for its operand."""
    return replaced(condition, {operand: IT})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one value: bare conditions that it satisfies, and the sets that its views must be in.

    `alternatives` are what remains possible; without any no value satisfies all conditions.
    """

    conditions: tuple[Condition, ...]
    alternatives: tuple[Alternative, ...]

    @classmethod
    def of(cls, known: Iterable[Condition]) -> Known:
        known = tuple(dict.fromkeys(known))
        possible: list[Alternative] = [{}]
        for condition in known:
            sets = value_sets(condition)
            if sets is None or len(possible) * len(sets) > _COMBINATIONS:
                continue  # less is known then, which is safe
            pairs = product(possible, sets)
            possible = [both for one, more in pairs if (both := _together(one, more)) is not None]
        return cls(known, tuple(possible))

    @property
    def is_contradictory(self) -> bool:
        return not self.alternatives

    @property
    def may_be_resource(self) -> bool:
        """Whether the value may be an IRI, or a blank node, as far as its views tell."""
        return any(all(kind == RESOURCE for kind, _ in alternative) for alternative in self.alternatives)

    @property
    def resource(self) -> Iri | None:
        """The IRI that the value must be, if it must be one: then it is that term and no other."""
        sets = [alternative.get((RESOURCE, False)) for alternative in self.alternatives]
        found = {key for keys in sets for key in (keys.points or () if keys else ())}
        certain = all(keys is not None and keys.points is not None for keys in sets)
        return Iri(found.pop()) if certain and len(found) == 1 else None

    def implies(self, condition: Condition, taxonomy: Taxonomy) -> bool:
        """Whether every value of which this is known satisfies a bare condition."""
        if condition in self.conditions:
            return True
        if isinstance(condition, IsA):
            return any(_is_a_implies(one, condition, taxonomy) for one in self.conditions)
        if isinstance(condition, TextTest):
            tests = [one for one in self.conditions if isinstance(one, TextTest)]
            if any(_text_implies(one, condition) for one in tests):
                return True
        if isinstance(condition, OneOf) and condition.negated:
            lists = [one for one in self.conditions if isinstance(one, OneOf) and one.negated]
            if any(_excludes_more(one, condition) for one in lists):
                return True
        return bool(self.alternatives) and all(
            any(_set_implies(one, condition) for one in alternative.values())
            for alternative in self.alternatives
        )


def implied_by_iri(iri: Iri, condition: Condition, types: Iterable[str], taxonomy: Taxonomy) -> bool:
    """Whether an IRI satisfies a bare condition in every event that gives it at least these types."""
    if isinstance(condition, IsA) and isinstance(condition.cls, Iri):
        return taxonomy.is_a(iri, condition.op, condition.cls.value, types)
    return subject(condition) == IT and conditions.holds(condition, {}, {IT.name: iri})


def gives_value(condition: Condition, attribute: Attribute) -> bool:
    """Whether a condition that holds shows that an attribute has a value."""
    if isinstance(condition, Comparison):
        sides = (condition.left, condition.right)
        return any(attribute in operands(side) for side in sides)
    if isinstance(condition, Between | OneOf | TextTest):
        return attribute in operands(condition.operand)
    return isinstance(condition, Exists | AnyElement) and condition.attribute == attribute


def _together(one: Alternative, more: ValueSet) -> Alternative | None:
    """What is known with one more set; None if no value can have views in all of them."""
    if not all(coincide(kind, more.kind) for kind, _ in one):
        return None
    languages = {kind for kind, _ in (*one, (more.kind, more.fold)) if is_text(kind) and kind != TEXT}
    if len(languages) > 1 or more.is_empty:
        return None
    key = more.kind, more.fold
    both = one[key].intersection(more) if key in one else more
    return None if both.is_empty else {**one, key: both}


def _set_implies(known: ValueSet, condition: Condition) -> bool:
    """Whether a value with a view in a set satisfies a condition."""
    if isinstance(condition, TextTest):
        fold = isinstance(condition.operand, Folded)
        is_tested = known.points is not None and (is_text(known.kind) or known.kind == RESOURCE)
        if not is_tested or (known.fold and not fold) or not isinstance(condition.pattern, Literal):
            return False
        return all(text_holds(key, condition.op, condition.pattern.text, fold) for key in known.points or ())
    wanted = value_sets(condition)
    if wanted is not None:
        return any(known.within(one) for one in wanted)
    return isinstance(condition, OneOf) and condition.negated and _avoids(known, condition)


def _avoids(known: ValueSet, condition: OneOf) -> bool:
    """Whether a value with a view in a set is comparable with an option of NOT IN and equal to none."""
    fold = isinstance(condition.operand, Folded)
    views = [view for option in condition.options if (view := _view(option, fold)) is not None]
    kinds = {kind for kind, _ in views}
    if known.kind not in kinds and not (is_text(known.kind) and TEXT in kinds):
        return False
    return not any(_may_have(known, kind, key, fold) for kind, key in views)


def _may_have(known: ValueSet, kind: str, key: Any, fold: bool) -> bool:
    """Whether a value with a view in a set may also have this view, such as a number the text that it is written as."""
    if not coincide(known.kind, kind):
        return False
    if known.kind == kind and known.fold == (fold and is_text(kind)):
        return known.has(key)
    if known.kind == NUMBER:
        read = number(key)
        return read is not None and known.has(read)
    if known.points is None or known.fold or not is_text(known.kind):
        return True
    if is_text(kind):
        return key in {text.casefold() if fold else text for text in known.points}
    return any((number(text) if kind == NUMBER else instant(text)) == key for text in known.points)


def _excludes_more(known: OneOf, wanted: OneOf) -> bool:
    fold = isinstance(known.operand, Folded)
    if fold != isinstance(wanted.operand, Folded):
        return False
    excluded = {view for option in known.options if (view := _view(option, fold)) is not None}
    fewer = {view for option in wanted.options if (view := _view(option, fold)) is not None}
    return fewer <= excluded and {kind for kind, _ in excluded} <= {kind for kind, _ in fewer}


def _view(option: object, fold: bool) -> tuple[str, Any] | None:
    return constant_view(option, fold) if isinstance(option, Iri | Literal) else None


def _is_a_implies(known: Condition, wanted: IsA, taxonomy: Taxonomy) -> bool:
    if not (isinstance(known, IsA) and isinstance(known.cls, Iri) and isinstance(wanted.cls, Iri)):
        return False
    below, above = known.cls, wanted.cls.value
    if wanted.op == "<=" and known.op in ("<=", "="):
        return _is_below(below, above, taxonomy)
    if wanted.op == ">=" and known.op == ">=":
        return _is_below(wanted.cls, below.value, taxonomy)
    return known.op == wanted.op and below.value == above


def _is_below(cls: Iri, above: str, taxonomy: Taxonomy) -> bool:
    # Not by `is_a`: a class may also be an instance, and its subclasses are no instances.
    return cls.value == above or above in taxonomy.classes_above(cls.value)


def _text_implies(known: TextTest, wanted: TextTest) -> bool:
    """STARTS 'ab' implies STARTS 'a' and CONTAINS 'b'; a network of addresses lies in one that is wider; a search for
    more words implies one for fewer."""
    if not (isinstance(known.pattern, Literal) and isinstance(wanted.pattern, Literal)):
        return False
    if known.op == wanted.op == "CIDR":
        inner, outer = network(known.pattern.text), network(wanted.pattern.text)
        return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]
    if is_search(wanted.op):
        return known.op == wanted.op and _search_implies(wanted.op, known.pattern.text, wanted.pattern.text)
    known_fold, fold = isinstance(known.operand, Folded), isinstance(wanted.operand, Folded)
    if known_fold and not fold:
        return False
    part = _plain_part(wanted, fold)
    if part is None:
        return False
    op, text = part
    for known_op, longer in _parts(known, fold):
        if op == "CONTAINS" and text in longer:
            return True
        if op == known_op == "STARTS" and longer.startswith(text):
            return True
        if op == known_op == "ENDS" and longer.endswith(text):
            return True
    return False


def _search_implies(op: str, known: str, wanted: str) -> bool:
    language = search_language(op)
    return search.implies(search.read_search(known, language), search.read_search(wanted, language))


def _parts(test: TextTest, fold: bool) -> list[tuple[str, str]]:
    """The texts that a text begins with, ends with or contains if it passes a test."""
    assert isinstance(test.pattern, Literal)
    pattern = test.pattern.text.casefold() if fold else test.pattern.text
    if test.op in ("STARTS", "ENDS", "CONTAINS"):
        return [(test.op, pattern)]
    pieces = like_pieces(pattern) if test.op == "LIKE" else None
    if pieces is None:
        return []
    return [("STARTS", pieces[0]), ("ENDS", pieces[-1]), *(("CONTAINS", piece) for piece in pieces)]


def _plain_part(test: TextTest, fold: bool) -> tuple[str, str] | None:
    """STARTS, ENDS or CONTAINS, and its text, if a test is one of them or a LIKE that means one."""
    if test.op != "LIKE":
        parts = _parts(test, fold)
        return parts[0] if parts else None
    assert isinstance(test.pattern, Literal)
    pieces = like_pieces(test.pattern.text.casefold() if fold else test.pattern.text)
    filled = [piece for piece in pieces or () if piece]
    if pieces is None or len(pieces) == 1 or len(filled) > 1:
        return None
    text = filled[0] if filled else ""
    return "STARTS" if pieces[0] else "ENDS" if pieces[-1] else "CONTAINS", text
