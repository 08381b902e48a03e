"""Explains a filter as a tree: for each part whether it held, the values it saw, and whether it was decisive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

from tidings.language.conditions import holds, operand_values
from tidings.language.printer import condition_text
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Condition,
    Folded,
    Leaf,
    Not,
    Or,
    TextTest,
    leaves,
)
from tidings.model.attributes import has_path, values_at, with_element
from tidings.model.explanation import Clause
from tidings.model.search.expression import unsatisfied
from tidings.model.terms import Literal
from tidings.model.text_tests import is_search, search_language
from tidings.model.values import text_of

ALL, ANY, NOT = "all of", "any of", "not"
_MAX_VALUES, _MAX_TEXT = 5, 60


@dataclass(frozen=True, slots=True)
class ConditionPart:
    """An evaluated part of a condition; `inner` are the parts it consists of."""

    text: str
    held: bool | None
    evidence: str = ""
    inner: tuple[ConditionPart, ...] = ()
    fate: str = ""


def clauses(condition: Condition, attributes: Mapping[str, Any]) -> tuple[Clause, ...]:
    """The tree of a condition without triples, line by line."""
    return tree_clauses(build_tree(condition, attributes))


def tree_clauses(root: ConditionPart) -> tuple[Clause, ...]:
    """A tree as clauses, one for each line; the parts of a top-level AND are not indented."""
    # If every leaf is decisive, marking them would say nothing.
    found = list(_lines(root, 0, not _all_decide(root)))
    if root.text == ALL:
        return tuple(replace(clause, depth=clause.depth - 1) for clause in found[1:])
    return tuple(found)


def build_tree(condition: Condition, attributes: Mapping[str, Any]) -> ConditionPart:
    """The tree of a condition without triples."""
    match condition:
        case And(parts):
            inner = tuple(build_tree(part, attributes) for part in parts)
            return ConditionPart(ALL, all(part.held for part in inner), inner=inner)
        case Or(parts):
            inner = tuple(build_tree(part, attributes) for part in parts)
            return ConditionPart(ANY, any(part.held for part in inner), inner=inner)
        case Not(And() | Or() | Not() | AnyElement() as part):
            negated = build_tree(part, attributes)
            return ConditionPart(NOT, not negated.held, inner=(negated,))
        case AnyElement(name, attribute, inside):
            elements = values_at(attributes, attribute.path)
            trees = [build_tree(inside, with_element(attributes, name, element)) for element in elements]
            # The first element that satisfies the condition is shown; if none does, the first element.
            chosen = next((i for i, tree in enumerate(trees) if tree.held), 0)
            evidence = evidence_of(condition, attributes)
            if trees:
                evidence = f"{name} is {format_value(elements[chosen])}, {chosen + 1} of {len(elements)}"
            held = any(tree.held for tree in trees)
            return ConditionPart(
                f"any {name} in {attribute.path}", held, evidence, tuple(trees[chosen : chosen + 1])
            )
    return ConditionPart(
        condition_text(condition), holds(condition, attributes), evidence_of(condition, attributes)
    )


def _decides(inner: ConditionPart, part: ConditionPart) -> bool:
    """Whether an inner part is decisive: a false AND is decided by its false parts, a true OR by its true ones; else all."""
    if part.held is None:  # by what failed
        return inner.held is None and (inner.fate == "failed" or bool(inner.inner))
    return inner.fate != "spared" and (inner.held == part.held or part.text == NOT)


def _all_decide(part: ConditionPart) -> bool:
    return all(_decides(inner, part) and _all_decide(inner) for inner in part.inner)


def _lines(part: ConditionPart, depth: int, decides: bool) -> Iterator[Clause]:
    yield Clause(part.text, part.held, part.evidence, depth, decides and not part.inner, part.fate)
    for inner in part.inner:
        yield from _lines(inner, depth + 1, decides and _decides(inner, part))


def evidence_of(condition: Condition, attributes: Mapping[str, Any]) -> str:
    """The values that a condition was evaluated on: "age is 31"."""
    named = dict.fromkeys(name for leaf in leaves(condition) for name in _names(leaf))
    described = ", ".join(_describe_path(path, attributes) for path in named)
    return "; ".join(filter(None, [described, search_reasons(condition, attributes)]))


def search_reasons(
    condition: Condition, attributes: Mapping[str, Any], binding: Mapping[str, Any] | None = None
) -> str:
    """Which words are missing where a search does not hold, and which are excluded; of the text that lacks the least."""
    if not (isinstance(condition, TextTest) and is_search(condition.op)):
        return ""
    assert isinstance(condition.pattern, Literal)
    search, language = condition.pattern.text, search_language(condition.op)
    texts = [text_of(value) for value in operand_values(condition.operand, attributes, binding)]
    found = [unsatisfied(text, search, language) for text in texts if text is not None]
    fewest: list[str] = min(found, key=len, default=[])
    return ", ".join(fewest)


def _names(node: object) -> Iterator[str]:
    """The paths of the attributes in a leaf or an operand; those of an ANY's elements have no value outside it."""
    if isinstance(node, Attribute):
        yield node.path
    elif isinstance(node, AnyElement):
        yield node.attribute.path
    elif isinstance(node, Leaf | Arithmetic | Folded):
        for field in fields(node):  # type: ignore[arg-type]  # all of them are dataclasses
            yield from _names(getattr(node, field.name))


def _describe_path(path: str, attributes: Mapping[str, Any]) -> str:
    found = values_at(attributes, path)
    if not found:
        return f"{path} has no value" if has_path(attributes, path) else f"{path} is missing"
    more = f" and {len(found) - _MAX_VALUES:,} more" if len(found) > _MAX_VALUES else ""
    return f"{path} is {', '.join(map(format_value, found[:_MAX_VALUES]))}{more}"


def format_value(value: object) -> str:
    """A value as a subscription would write it, cut where it is long."""
    if isinstance(value, str):
        text = f"'{value[: _MAX_TEXT + 1]}'"
    elif isinstance(value, Mapping):
        text = f"{{{', '.join(list(map(str, value))[: _MAX_VALUES + 1])}}}"
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = value.isoformat() if isinstance(value, date) else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
