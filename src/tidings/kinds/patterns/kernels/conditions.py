"""Checks the conditions on bound variables: comparisons of ranks, text tests, is-a."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.patterns.kernels.chains import bucket
from tidings.kinds.patterns.kernels.layout import CLASS, RESOURCE, SP, TAGGED, TERM, TEST, VALUE, WORDS


@compiled
def _below(lower, cls, classes):  # type: ignore[no-untyped-def]
    """Whether class `lower` is `cls` or below it: classes are numbered so that those are a few intervals."""
    low, end = classes.interval_first[cls], classes.interval_first[cls + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if classes.interval_high[middle] < lower:
            low = middle + 1
        else:
            high = middle
    return low < end and classes.interval_low[low] <= lower


@compiled
def _related(base, is_class, op, cls, classes):  # type: ignore[no-untyped-def]
    """Whether something that is (or is an instance of) class `base` is a `cls`; op 0 <=, 1 >=, 2 =."""
    if op == 0:
        return _below(base, cls, classes)
    if op == 1:
        return _below(cls, base, classes)
    if not is_class:
        return base == cls
    for i in range(classes.parent_first[base], classes.parent_first[base + 1]):
        if classes.parents[i] == cls:
            return True
    return False


@compiled
def _is_a(term, cls, op, terms, classes, space, mask):  # type: ignore[no-untyped-def]
    number = terms.number[term]
    if number < classes.number.shape[0]:
        if classes.number[number] >= 0 and _related(classes.number[number], True, op, cls, classes):
            return True
        for i in range(classes.typed_first[number], classes.typed_first[number + 1]):
            if _related(classes.typed[i], False, op, cls, classes):
                return True
    if terms.words[term] & 1 and terms.words[term] > 0:
        text = terms.words[term] // 2
        for i in range(classes.label_first[text], classes.label_first[text + 1]):
            if _related(classes.label[i], True, op, cls, classes):
                return True
    e = space.head[SP, bucket(SP, number, classes.type_property, 0, mask)]
    while e >= 0:
        if space.known[0, e] == number and space.known[1, e] == classes.type_property:
            typed = space.known[2, e]
            base = classes.number[typed] if typed < classes.number.shape[0] else -1
            if base >= 0 and _related(base, False, op, cls, classes):
                return True
        e = space.next[SP, e]
    return False


@inlined
def _holds(atom, term, atoms, terms, classes, space, mask):  # type: ignore[no-untyped-def]
    what, low = atoms.space[atom], atoms.low[atom]
    if what == VALUE:
        rank = terms.value[term]
    elif what == WORDS:
        rank = terms.words[term]
    elif what == RESOURCE:
        rank = terms.number[term] if terms.is_iri[term] else np.int32(-1)
    elif what == TERM:
        rank = terms.number[term]
    elif what == TEST:
        at, end = terms.test_first[term], terms.test_first[term + 1]
        while at < end and terms.tests[at] < low:
            at += 1
        return at < end and terms.tests[at] == low
    elif what == CLASS:
        return _is_a(term, low, atoms.high[atom], terms, classes, space, mask)
    elif what == TAGGED:
        return terms.suffix[term] == low and terms.number[term] != atoms.hole[atom]
    else:
        return False
    return rank >= 0 and low <= rank <= atoms.high[atom] and rank != atoms.hole[atom]


@compiled
def accepts(entry, base, code, slots, atoms, terms, classes, space, mask):  # type: ignore[no-untyped-def]
    """Runs the tests that start at instruction `entry`; the jumps are relative to `code`."""
    at = entry
    while at >= 0:
        if _holds(slots[base + code[at, 1]], space.bound[code[at, 0]], atoms, terms, classes, space, mask):
            at = code[at, 2]
        else:
            at = code[at, 3]
    return at == -1
