"""Match functions over labels, as conditions over one attribute of the event that has many values.

A node has a set of labels L, the event a set Q. Graph constraints 2: "subset" wants L within Q, "superset" Q within
L, "overlap" a label in both. Labels are texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.kinds.networks.faults import NetworkError
from tidings.language.query import And, Attribute, Comparison, Condition, Exists, Not, OneOf
from tidings.model.terms import Literal


def subset(attribute: Attribute, labels: tuple[Literal, ...]) -> Condition | None:
    equal = tuple(Comparison(attribute, "=", label) for label in labels)
    if not equal:
        return None
    return equal[0] if len(equal) == 1 else And(equal)


def overlap(attribute: Attribute, labels: tuple[Literal, ...]) -> Condition | None:
    if not labels:  # nothing is in both
        return And((Exists(attribute), Not(Exists(attribute))))
    return OneOf(attribute, labels)


def superset(attribute: Attribute, labels: tuple[Literal, ...]) -> Condition | None:
    # "Some label of the event is none of these" is what NOT IN says of many values.
    return Not(OneOf(attribute, labels, negated=True) if labels else Exists(attribute))


_FUNCTIONS: dict[str, Callable[[Attribute, tuple[Literal, ...]], Condition | None]] = {
    "subset": subset,
    "superset": superset,
    "overlap": overlap,
}
MATCHES = ("expression", *_FUNCTIONS)


def labels_condition(match: str, attribute: str, labels: Iterable[str]) -> Condition | None:
    """The condition of a node with these labels; None if it accepts every event."""
    distinct = sorted(set(labels), key=str)
    for label in distinct:
        if not isinstance(label, str):
            raise NetworkError(f"a label is a text, not {label!r}; write it as one")
    return _FUNCTIONS[match](Attribute(attribute), tuple(map(Literal, distinct)))
