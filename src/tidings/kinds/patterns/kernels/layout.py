"""How an index, a batch and their scratch lie in arrays: what every compiled loop of patterns takes.

Tuples of arrays, passed whole; a loop takes the arrays it needs into locals, because a tuple is taken apart anew
at every use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

# How an edge is found by what is known of it, and how it files a row by its constants.
ALL, O, P, PO, S, SO, SP, SPO = range(8)  # noqa: E741  (4 for a known subject + 2 for the property + 1)
REPEATED = 8  # added to a step's mode: a variable stands twice in its triple
# How a test on the object of an edge with a known property files a row.
POINT, RANGE, TEXT, ISA = range(8, 12)
KINDS = 12
ACCEPT, REJECT = -1, -2  # where the code of a step's tests ends
# What an atom looks at: the value's rank, the text's rank, an IRI's number, any term's number, a text test,
# the classes a term belongs to, the language or datatype of a literal.
VALUE, WORDS, RESOURCE, TERM, TEST, CLASS, TAGGED = range(7)
MATCHED, EXHAUSTED = range(2)
BLOCK = 6  # ranges are skipped in blocks of 2**BLOCK
HEADER = 2  # before a row's slots stand its number and its shape, so that one line of memory says all of it


class Programs(NamedTuple):
    """Shapes, end to end: shape i owns steps[step_first[i]:step_first[i + 1]], and so on."""

    step_first: np.ndarray
    steps: np.ndarray
    code_first: np.ndarray
    code: np.ndarray
    option_first: np.ndarray
    options: np.ndarray
    width: np.ndarray


class PatternRows(NamedTuple):
    """Row r has the slots slots[start[r]:]; before them stand its number and its shape. A loop that has the start
    has all, which is why postings hold starts."""

    shape: np.ndarray
    start: np.ndarray
    slots: np.ndarray


class Atoms(NamedTuple):
    """Atom a holds for a term whose rank r in space[a] has low[a] <= r <= high[a] and r != hole[a]."""

    space: np.ndarray
    low: np.ndarray
    high: np.ndarray
    hole: np.ndarray


class Access(NamedTuple):
    """Where rows are filed: postings by hashed key, ranges by property, and those that must always be tried.

        table      open-addressed (key, where): the start of the only row if >= 0, else ~i for those of
                   postings[first[i]:first[i + 1]]; a free row of the table has key 0

    `used` tells which kinds of key exist at all (`by_test` if any by a test), `points` in which spaces. range_of[p] is
    the group of ranges of values of property p, range_of[p + half] that of texts; -1 for none.
    """

    by_test: bool
    used: np.ndarray
    points: np.ndarray
    table: np.ndarray
    first: np.ndarray
    postings: np.ndarray
    range_of: np.ndarray
    range_first: np.ndarray
    range_low: np.ndarray
    range_high: np.ndarray
    range_row: np.ndarray
    range_block: np.ndarray
    always: np.ndarray


class Classes(NamedTuple):
    """The taxonomy, by number of term: which classes a term stands for and belongs to."""

    type_property: int
    number: np.ndarray
    typed_first: np.ndarray
    typed: np.ndarray
    label_first: np.ndarray
    label: np.ndarray
    interval_first: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray
    parent_first: np.ndarray
    parents: np.ndarray


class Terms(NamedTuple):
    """What a batch's terms are to one index: their number in its vocabulary, ranks and satisfied text tests."""

    number: np.ndarray
    suffix: np.ndarray
    value: np.ndarray
    words: np.ndarray
    is_iri: np.ndarray
    test_first: np.ndarray
    tests: np.ndarray


class Graphs(NamedTuple):
    """A batch's triples, of batch-wide term numbers."""

    subjects: np.ndarray
    properties: np.ndarray
    objects: np.ndarray
    first: np.ndarray


class Constants(NamedTuple):
    """The constants that tests compare with, sorted; constant i has rank 2 i + 1, what lies between is even."""

    mantissa: np.ndarray
    exponent: np.ndarray
    approximation: np.ndarray
    instants: np.ndarray
    text_blob: np.ndarray
    text_start: np.ndarray
    text_slots: np.ndarray
    plain_blob: np.ndarray
    plain_start: np.ndarray
    texts_ordered: bool


class Index(NamedTuple):
    """Everything that matching reads and no event changes."""

    programs: Programs
    rows: PatternRows
    atoms: Atoms
    access: Access
    classes: Classes
    modes: np.ndarray  # which chains the steps walk
    variables: np.ndarray  # of each shape
    every: np.ndarray  # of each shape: whether all its bindings are wanted
    budget: int  # steps a pair may take
    limit: int  # bindings a pair may have


class Space(NamedTuple):
    """Scratch for one event at a time."""

    head: np.ndarray  # [mode, hash] -> first edge, or -1
    next: np.ndarray  # [mode, edge] -> next edge of the same hash
    edge: np.ndarray  # [3, edge] -> the terms of an edge, numbered in the batch
    known: np.ndarray  # [3, edge] -> their numbers in the vocabulary
    bound: np.ndarray  # variable -> term of the batch
    register: np.ndarray  # variables, then slots of the row -> number in the vocabulary
    cursor: np.ndarray  # step -> edge
    seen: np.ndarray  # row -> the last event it was verified for, or the last look (below zero) that met it
    looks: np.ndarray  # the number of the last look, in [0]
    keys: np.ndarray  # edge -> its key of one kind
    candidates: np.ndarray  # starts of the rows to verify
    touched: np.ndarray  # keeps a loop from being optimised away
    stack: np.ndarray  # classes still to be looked at
    visited: np.ndarray  # class -> the last look that met it; the looks are counted in [-1]


class AnswerArrays(NamedTuple):
    """Answers: (event, row, verdict), with the bindings of answer i at binding[first[i]:first[i + 1]]."""

    event: np.ndarray
    row: np.ndarray
    verdict: np.ndarray
    first: np.ndarray
    binding: np.ndarray


def gather(kind: Any, arrays: Mapping[str, np.ndarray], prefix: str, **rest: Any) -> Any:
    """A tuple of the arrays whose names are its fields behind a prefix."""
    return kind(**rest, **{name: arrays[prefix + name] for name in kind._fields if name not in rest})


def narrow(array: np.ndarray) -> np.ndarray:
    """Integers in four bytes, if they fit."""
    fits = array.max(initial=0) <= np.iinfo(np.int32).max
    return array.astype(np.int32) if fits else array.copy()


def starts(sizes: Iterable[int]) -> np.ndarray:
    """Where each of several lists starts that stand end to end, and where the last one ends."""
    return narrow(np.concatenate([[0], np.cumsum(np.fromiter(sizes, dtype=np.int64))]).astype(np.int64))
