"""The compiled loops of pattern matching: rank an event's terms, file rows, find and verify candidates.

An event's edges are chained by what a step may know of them: for mode m, the edges of one hash value form the
list head[m, h] -> next[m, e] -> …; a walk compares what is known, so a collision costs a step, never an answer.

A candidate is verified by joining its shape's steps with an explicit stack: cursor[i] is the edge that step i
stands on. Rows of one event are verified once, however many clauses lead to them (`seen`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import find_span, hash_span, mix
from tidings.arrays.lexical import LONG, YES, read_instant, read_number

ALL, O, P, PO, S, SO, SP, SPO = range(8)  # noqa: E741  (4 for a known subject + 2 for the property + 1)
REPEATED = 8  # added to a step's mode: a variable stands twice in its triple
POINT, RANGE, TEXT, ISA = range(8, 12)
KINDS = 12
# What an atom looks at: the value's rank, the text's rank, an IRI's number, any term's number, a text test,
# the classes a term belongs to, the language or datatype of a literal.
VALUE, WORDS, RESOURCE, TERM, TEST, CLASS, TAGGED = range(7)
MATCHED, EXHAUSTED = range(2)
LONG_EXPONENT = 1 << 20  # marks a constant that needs exact arithmetic
BLOCK = 6  # ranges are skipped in blocks of 2**BLOCK


class Programs(NamedTuple):
    """Shapes, end to end: shape i owns steps[step_first[i]:step_first[i + 1]], and so on."""

    step_first: np.ndarray
    steps: np.ndarray
    code_first: np.ndarray
    code: np.ndarray
    option_first: np.ndarray
    options: np.ndarray
    width: np.ndarray


class Rows(NamedTuple):
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
                   postings[first[i]:first[i + 1]]; a free place has key 0

    `used` tells which kinds of key exist at all (`by_test` if any by a test), `points` in which spaces. range_of[p] is the group of ranges of
    values of property p, range_of[p + half] that of texts; -1 for none.
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


# --------------------------------------------------------------------------- terms of a batch


@compiled
def number_terms(blob, low, high, hashes, known_blob, known_start, known_slots, out):  # type: ignore[no-untyped-def]
    """out[t] = the vocabulary's number of term t, or one above the vocabulary that is the term's own."""
    known = known_start.shape[0] - 1
    for t in range(low.shape[0]):
        found = find_span(hashes[t], blob, low[t], high[t], known_blob, known_start, known_slots)
        out[t] = found if found >= 0 else known + t


@compiled
def number_suffixes(blob, low, high, known_blob, known_start, known_slots, out):  # type: ignore[no-untyped-def]
    """out[t] = the vocabulary's number of the language or datatype of term t, or -1."""
    for t in range(low.shape[0]):
        out[t] = -1
        close = high[t] - 1
        if blob[low[t]] == 34 and blob[close] != 34:
            while blob[close] != 34:
                close -= 1
            h = hash_span(blob, close + 1, high[t])
            out[t] = find_span(h, blob, close + 1, high[t], known_blob, known_start, known_slots)


@compiled
def number_rank(mantissa, exponent, approximation, c):  # type: ignore[no-untyped-def]
    """The rank of a number among the constants, or -2 when only exact arithmetic can tell."""
    slack = abs(approximation) * 1e-14
    low, high = 0, c.approximation.shape[0]
    while low < high:
        middle = (low + high) // 2
        if c.approximation[middle] < approximation - slack:
            low = middle + 1
        else:
            high = middle
    i = low
    unsure = False
    while i < c.approximation.shape[0] and c.approximation[i] <= approximation + slack:
        if c.mantissa[i] == mantissa and c.exponent[i] == exponent:
            return 2 * i + 1
        unsure = True
        i += 1
    return -2 if unsure else 2 * low


@compiled
def _plain_order(blob, low, high, c, i):  # type: ignore[no-untyped-def]
    """Whether blob[low:high] comes before (-1), is (0) or comes after (1) the text constant i."""
    at, end = c.plain_start[i], c.plain_start[i + 1]
    while low < high and at < end:
        if blob[low] != c.plain_blob[at]:
            return -1 if blob[low] < c.plain_blob[at] else 1
        low += 1
        at += 1
    if low < high:
        return 1
    return -1 if at < end else 0


@compiled
def rank_terms(blob, low, high, c, value, words, is_iri, unsure):  # type: ignore[no-untyped-def]
    """Ranks of a batch's terms: in `value` among numbers, instants and truth values, in `words` among texts.

    -1 stands for none. Terms that need more than 18 digits or an unescaped text are flagged `unsure`.
    """
    numbers = c.approximation.shape[0]
    instants = c.instants.shape[0]
    first_instant = 2 * numbers + 1
    first_truth = first_instant + 2 * instants + 1
    for t in range(low.shape[0]):
        value[t], words[t] = -1, -1
        is_iri[t] = blob[low[t]] == 60
        if blob[low[t]] != 34:
            continue
        begin, end = low[t] + 1, high[t]
        close = end - 1
        if blob[close] != 34:
            while blob[close] != 34:
                close -= 1
        tagged = close + 1 < end and blob[close + 1] == 64
        typed = close + 1 < end and not tagged
        if not typed:
            at = find_span(hash_span(blob, begin, close), blob, begin, close, c.text_blob, c.text_start, c.text_slots)
            if at >= 0:
                words[t] = 2 * at + 1
            elif not c.texts_ordered:
                words[t] = 0
            else:
                for i in range(begin, close):
                    if blob[i] == 92:
                        unsure[t] = True
                lower, upper = 0, c.plain_start.shape[0] - 1
                while lower < upper:
                    middle = (lower + upper) // 2
                    if _plain_order(blob, begin, close, c, middle) > 0:
                        lower = middle + 1
                    else:
                        upper = middle
                words[t] = 2 * lower
        if tagged or begin == close:
            continue
        kind = 0  # 0: untyped, 1: a number, 2: an instant, 3: a truth value, 4: anything else
        if typed:
            kind = _datatype(blob, close + 4, end - 1)
        if kind == 0 or kind == 1:
            status, mantissa, exponent, approximation = read_number(blob, begin, close)
            if status == LONG:
                unsure[t] = True
            elif status == YES:
                rank = number_rank(mantissa, exponent, approximation, c)
                if rank == -2:
                    unsure[t] = True
                value[t] = rank
                continue
        if kind == 0 or kind == 2:
            ok, micros = read_instant(blob, begin, close)
            if ok:
                i = np.searchsorted(c.instants, micros)
                hit = i < instants and c.instants[i] == micros
                value[t] = first_instant + 2 * i + (1 if hit else 0)
        if kind == 3:
            if close - begin == 1 and (blob[begin] == 48 or blob[begin] == 49):
                value[t] = first_truth + (blob[begin] - 48)
            elif close - begin == 4 and blob[begin] == 116 and blob[begin + 1] == 114 and blob[begin + 2] == 117:
                value[t] = first_truth + (1 if blob[begin + 3] == 101 else -first_truth - 1)
            elif close - begin == 5 and blob[begin] == 102 and blob[begin + 1] == 97 and blob[begin + 2] == 108:
                value[t] = first_truth if blob[begin + 3] == 115 and blob[begin + 4] == 101 else -1


_XSD = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#", dtype=np.uint8).copy()
_TYPES = [
    ("integer", 1), ("decimal", 1), ("float", 1), ("double", 1), ("long", 1), ("int", 1), ("short", 1), ("byte", 1),
    ("nonNegativeInteger", 1), ("positiveInteger", 1), ("nonPositiveInteger", 1), ("negativeInteger", 1),
    ("unsignedLong", 1), ("unsignedInt", 1), ("unsignedShort", 1), ("unsignedByte", 1), ("gYear", 1),
    ("date", 2), ("dateTime", 2), ("dateTimeStamp", 2), ("boolean", 3), ("string", 0),
]  # fmt: skip
_TYPE_BLOB = np.frombuffer("".join(name for name, _ in _TYPES).encode(), dtype=np.uint8).copy()
_TYPE_START = np.cumsum([0] + [len(name) for name, _ in _TYPES])
_TYPE_KIND = np.array([kind for _, kind in _TYPES], dtype=np.int64)


@compiled
def _datatype(blob, low, high):  # type: ignore[no-untyped-def]
    """What a literal of the datatype blob[low:high] is compared as; see `rank_terms`."""
    if high - low <= _XSD.shape[0]:
        return 4
    for i in range(_XSD.shape[0]):
        if blob[low + i] != _XSD[i]:
            return 4
    begin = low + _XSD.shape[0]
    for k in range(_TYPE_KIND.shape[0]):
        if _TYPE_START[k + 1] - _TYPE_START[k] == high - begin:
            same = True
            for i in range(high - begin):
                if blob[begin + i] != _TYPE_BLOB[_TYPE_START[k] + i]:
                    same = False
                    break
            if same:
                return _TYPE_KIND[k]
    return 4


@compiled
def read_constants(blob, start, kind, mantissa, exponent, approximation):  # type: ignore[no-untyped-def]
    """Constants by what they are compared as: 0 nothing, 1 number, 2 instant, 3 truth value, 4 text, 5 IRI,
    6 a literal of another datatype or a language. Instants and truth values are left in `mantissa`."""
    for i in range(start.shape[0] - 1):
        low, high = start[i], start[i + 1]
        if blob[low] == 60:
            kind[i] = 5
            continue
        close = high - 1
        while blob[close] != 34:
            close -= 1
        if close == high - 1:
            kind[i] = 4
            continue
        kind[i] = 6
        if blob[close + 1] == 64:
            continue
        datatype = _datatype(blob, close + 4, high - 1)
        if datatype == 1:
            status, m, e, f = read_number(blob, low + 1, close)
            kind[i] = 1 if status != 0 else 0
            mantissa[i], exponent[i], approximation[i] = m, e if status == YES else LONG_EXPONENT, f
        elif datatype == 2:
            ok, micros = read_instant(blob, low + 1, close)
            kind[i] = 2 if ok else 0
            mantissa[i] = micros
        elif datatype == 3:
            kind[i] = 3
            mantissa[i] = 1 if blob[low + 1] == 116 or blob[low + 1] == 49 else 0


# --------------------------------------------------------------------------- filing rows


@compiled
def access_key(kind, a, b, c):  # type: ignore[no-untyped-def]
    return mix(mix(mix(np.uint64(kind) * np.uint64(0x9E3779B97F4A7C15), a), b), c) | np.uint64(1)


@inlined
def _edge_key(step, base, slots):  # type: ignore[no-untyped-def]
    """(kind, key) of an edge by its constants; the kind is ALL when it has none."""
    a = slots[base + step[0]] if step[0] >= 0 else np.int32(-1)
    b = slots[base + step[1]] if step[1] >= 0 else np.int32(-1)
    c = slots[base + step[2]] if step[2] >= 0 else np.int32(-1)
    kind = 4 * (a >= 0) + 2 * (b >= 0) + (c >= 0)
    return kind, access_key(kind, a, b, c)


@inlined
def _option_key(option, base, slots, atoms):  # type: ignore[no-untyped-def]
    """The key under which an access option, a test on the object of an edge, files a row."""
    kind, p, atom = option[1], slots[base + option[2]], slots[base + option[3]]
    if kind == RANGE:
        return access_key(kind, p, -1, -1)
    if kind == POINT:
        return access_key(kind, p, atoms.space[atom], atoms.low[atom])
    return access_key(kind, p, atoms.low[atom], -1)


@compiled
def count_keys(programs, rows, atoms, counts):  # type: ignore[no-untyped-def]
    """How many rows could be filed under each key, in buckets: two keys that share one look more popular."""
    mask = np.uint64(counts.shape[0] - 1)
    for r in range(rows.shape.shape[0]):
        shape, base = rows.shape[r], rows.start[r]
        for i in range(programs.step_first[shape], programs.step_first[shape + 1]):
            kind, key = _edge_key(programs.steps[i], base, rows.slots)
            counts[key & mask] += 1
        for i in range(programs.option_first[shape], programs.option_first[shape + 1]):
            counts[_option_key(programs.options[i], base, rows.slots, atoms) & mask] += 1


@compiled
def choose_options(programs, rows, atoms, counts, coverage, chosen, about, used):  # type: ignore[no-untyped-def]
    """chosen[r] = how row r meets the fewest others: the number of a step of its shape, or behind these the first
    option of a group; -1 when it has neither. about[r] = the subject of that edge, else its object or property.
    The kinds that are chosen are marked in `used`.

    A range is expected to be met as often as ranges of its property overlap: `coverage` of them. What knows less
    of an edge than all of it is met by more edges of an event, and costs a little more at the same count.
    """
    mask = np.uint64(counts.shape[0] - 1)
    for r in range(rows.shape.shape[0]):
        shape, base = rows.shape[r], rows.start[r]
        begin, steps = programs.step_first[shape], programs.step_first[shape + 1] - programs.step_first[shape]
        best, best_cost, best_kind = -1, 0.0, ALL
        for i in range(steps):
            kind, key = _edge_key(programs.steps[begin + i], base, rows.slots)
            cost = float(counts[key & mask]) * (1.0 if kind == SPO else 1.5 if kind == P else 1.05)
            if kind != ALL and (best < 0 or cost < best_cost):
                best, best_cost, best_kind = i, cost, kind
        i, last = programs.option_first[shape], programs.option_first[shape + 1]
        while i < last:
            group, first, cost, kind = programs.options[i, 0], i, 0.0, programs.options[i, 1]
            while i < last and programs.options[i, 0] == group:
                if kind == RANGE:
                    p, atom = rows.slots[base + programs.options[i, 2]], rows.slots[base + programs.options[i, 3]]
                    cost += coverage[p + (coverage.shape[0] // 2 if atoms.space[atom] == WORDS else 0)]
                else:
                    cost += counts[_option_key(programs.options[i], base, rows.slots, atoms) & mask]
                i += 1
            if best < 0 or cost * 1.05 < best_cost:
                best, best_cost, best_kind = steps + first - programs.option_first[shape], cost * 1.05, kind
        chosen[r], about[r] = best, -1
        used[best_kind] = True
        if 0 <= best < steps:
            s_ref, p_ref, o_ref = programs.steps[begin + best, 0], programs.steps[begin + best, 1], programs.steps[begin + best, 2]
            about[r] = rows.slots[base + (s_ref if s_ref >= 0 else o_ref if o_ref >= 0 else p_ref)]
        elif best >= steps:
            about[r] = rows.slots[base + programs.options[programs.option_first[shape] + best - steps, 2]]


@compiled
def file_rows(programs, rows, atoms, chosen, keys, posted):  # type: ignore[no-untyped-def]
    """Writes (key, start of the row) for every row's choice, ranges left out; returns how many. With empty `keys`
    it only counts."""
    count = 0
    write = keys.shape[0] > 0
    for r in range(rows.shape.shape[0]):
        shape, base = rows.shape[r], rows.start[r]
        steps = programs.step_first[shape + 1] - programs.step_first[shape]
        if 0 <= chosen[r] < steps:
            if write:
                kind, keys[count] = _edge_key(programs.steps[programs.step_first[shape] + chosen[r]], base, rows.slots)
                posted[count] = base
            count += 1
        elif chosen[r] >= steps:
            i, last = programs.option_first[shape] + chosen[r] - steps, programs.option_first[shape + 1]
            group = programs.options[i, 0]
            while i < last and programs.options[i, 0] == group and programs.options[i, 1] != RANGE:
                if write:
                    keys[count] = _option_key(programs.options[i], base, rows.slots, atoms)
                    posted[count] = base
                count += 1
                i += 1
    return count


@compiled
def gather_rows(rows, widths, about, place, start, slots):  # type: ignore[no-untyped-def]
    """Copies the rows, each with the two numbers before it, to `slots` in the order of `about` (-1 or more), and
    notes their starts. A counting sort: `place`, zeros at first, is where the rows about each term go."""
    for r in range(about.shape[0]):
        place[about[r] + 2] += widths[rows.shape[r]] + 2
    for i in range(1, place.shape[0]):
        place[i] += place[i - 1]
    for r in range(about.shape[0]):
        old, size, at = rows.start[r] - 2, widths[rows.shape[r]] + 2, place[about[r] + 1]
        start[r] = at + 2
        for i in range(size):
            slots[at + i] = rows.slots[old + i]
        place[about[r] + 1] = at + size


@compiled
def list_ranges(programs, rows, atoms, terms, chosen, out):  # type: ignore[no-untyped-def]
    """Writes (group, low, high, start of the row) of the ranges that rows could be filed under, or of the `chosen` ones;
    returns how many. With an empty `out` it only counts."""
    count = 0
    for r in range(rows.shape.shape[0]):
        shape, base = rows.shape[r], rows.start[r]
        i, last = programs.option_first[shape], programs.option_first[shape + 1]
        if chosen.shape[0] > 0:
            steps = programs.step_first[shape + 1] - programs.step_first[shape]
            i = i + chosen[r] - steps if chosen[r] >= steps else last
            last = min(last, i + 1)
        while i < last:
            if programs.options[i, 1] == RANGE:
                if out.shape[0] > 0:
                    p, atom = rows.slots[base + programs.options[i, 2]], rows.slots[base + programs.options[i, 3]]
                    out[count, 0] = p + (terms if atoms.space[atom] == WORDS else 0)
                    out[count, 1], out[count, 2] = atoms.low[atom], atoms.high[atom]
                    out[count, 3] = base
                count += 1
            i += 1
    return count


@compiled
def mark_texts(programs, rows, atoms, looked):  # type: ignore[no-untyped-def]
    """Marks the properties whose objects a text test may look at; returns whether any term may be looked at."""
    anywhere = False
    for r in range(rows.shape.shape[0]):
        shape, base = rows.shape[r], rows.start[r]
        for i in range(programs.code_first[shape], programs.code_first[shape + 1]):
            if atoms.space[rows.slots[base + programs.code[i, 1]]] != TEST:
                continue
            marked = False
            for j in range(programs.step_first[shape], programs.step_first[shape + 1]):
                if programs.steps[j, 2] == ~programs.code[i, 0] and programs.steps[j, 1] >= 0:
                    looked[rows.slots[base + programs.steps[j, 1]]] = True
                    marked = True
            anywhere = anywhere or not marked
    return anywhere


@compiled
def key_table(keys, first, postings, table):  # type: ignore[no-untyped-def]
    """Fills the table of keys; `table` must be free and not full."""
    mask = np.uint64(table.shape[0] - 1)
    for i in range(keys.shape[0]):
        at = (keys[i] >> np.uint64(1)) & mask
        while table[at, 0] != 0:
            at = (at + np.uint64(1)) & mask
        table[at, 0] = keys[i]
        single = first[i + 1] - first[i] == 1
        table[at, 1] = np.uint64(np.int64(postings[first[i]]) if single else ~np.int64(i))


# --------------------------------------------------------------------------- matching


class Index(NamedTuple):
    """Everything that matching reads and no event changes."""

    programs: Programs
    rows: Rows
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


class Found(NamedTuple):
    """Answers: (event, row, verdict), with the bindings of answer i at binding[first[i]:first[i + 1]]."""

    event: np.ndarray
    row: np.ndarray
    verdict: np.ndarray
    first: np.ndarray
    binding: np.ndarray


@inlined
def _bucket(mode, s, p, o, mask):  # type: ignore[no-untyped-def]
    """Where edges of these terms are chained, by the terms the mode knows. Without a branch: which mode a step has
    is not to be guessed, and a wrong guess costs more than the multiplications."""
    h = np.uint64(s * ((mode >> 2) & 1)) * np.uint64(0x9E3779B97F4A7C15)
    h += np.uint64(p * ((mode >> 1) & 1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    h += np.uint64(o * (mode & 1)) * np.uint64(0x165667B19E3779F9)
    return np.int64((h >> np.uint64(32)) & mask)


@inlined
def _chain(d, graphs, terms, modes, space):  # type: ignore[no-untyped-def]
    """Chains the distinct edges of event d; returns (number of edges, mask of the buckets)."""
    low, high = graphs.first[d], graphs.first[d + 1]
    buckets = 8
    while buckets < 2 * (high - low):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    for mode in range(8):
        if modes[mode]:
            space.head[mode, :buckets] = -1
    count = 0
    for e in range(low, high):
        s, p, o = graphs.subjects[e], graphs.properties[e], graphs.objects[e]
        gs, gp, go = terms.number[s], terms.number[p], terms.number[o]
        at = space.head[SPO, _bucket(SPO, gs, gp, go, mask)]
        while at >= 0 and not (space.known[0, at] == gs and space.known[1, at] == gp and space.known[2, at] == go):
            at = space.next[SPO, at]
        if at >= 0:
            continue
        space.edge[0, count], space.edge[1, count], space.edge[2, count] = s, p, o
        space.known[0, count], space.known[1, count], space.known[2, count] = gs, gp, go
        for mode in range(8):
            if modes[mode]:
                h = _bucket(mode, gs, gp, go, mask)
                space.next[mode, count] = space.head[mode, h]
                space.head[mode, h] = count
        count += 1
    return count, mask


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
    e = space.head[SP, _bucket(SP, number, classes.type_property, 0, mask)]
    while e >= 0:
        if space.known[0, e] == number and space.known[1, e] == classes.type_property:
            typed = space.known[2, e]
            if typed < classes.number.shape[0] and classes.number[typed] >= 0:
                if _related(classes.number[typed], False, op, cls, classes):
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
def _accepts(entry, base, code, slots, atoms, terms, classes, space, mask):  # type: ignore[no-untyped-def]
    """Runs the tests that start at instruction `entry`; the jumps are relative to `code`."""
    at = entry
    while at >= 0:
        if _holds(slots[base + code[at, 1]], space.bound[code[at, 0]], atoms, terms, classes, space, mask):
            at = code[at, 2]
        else:
            at = code[at, 3]
    return at == -1


@inlined
def _next_edge(mode, s, p, o, e, head, following, known, mask):  # type: ignore[no-untyped-def]
    """The edge after e that agrees with what the mode knows, or the first one when e is -2; -1 for none."""
    by_s, by_p, by_o = -((mode >> 2) & 1), -((mode >> 1) & 1), -(mode & 1)
    e = head[mode, _bucket(mode, s, p, o, mask)] if e == -2 else following[mode, e]
    while e >= 0:
        if ((known[0, e] ^ s) & by_s) | ((known[1, e] ^ p) & by_p) | ((known[2, e] ^ o) & by_o) == 0:
            break
        e = following[mode, e]
    return e


@compiled
def _verify(d, candidates, index, terms, space, mask, found, count):  # type: ignore[no-untyped-def]
    """Writes the answers of the first `candidates` rows for event d; returns the count of answers so far, or -1
    when there is no room.

    Steps first..last-1 of a part are joined from `level` on: a step that finds an edge goes on to the next, one
    that finds none goes back. Parts are settled one after the other; where all bindings are wanted they are one.
    """
    # Locals, because a tuple's arrays are taken apart at every use.
    steps, step_first = index.programs.steps, index.programs.step_first
    code, code_first = index.programs.code, index.programs.code_first
    slots = index.rows.slots
    atoms, classes = index.atoms, index.classes
    head, following, edge, known = space.head, space.next, space.edge, space.known
    bound, register, cursor, seen = space.bound, space.register, space.cursor, space.seen
    widths = index.programs.width
    # A row lies anywhere in memory. Touching all of them first lets the processor wait for many lines at once,
    # not for one after the other: half the time at a million rows.
    touched, end_of_slots = 0, slots.shape[0] - 1
    for i in range(candidates):
        start = space.candidates[i]
        touched += slots[start] + slots[min(start + 14, end_of_slots)]
    space.touched[0] = touched
    for i in range(candidates):
        base = space.candidates[i]
        r, shape = slots[base - 2], slots[base - 1]
        if seen[r] == d:
            continue
        seen[r] = d
        begin, end = step_first[shape], step_first[shape + 1]
        every, variables, tests = index.every[shape], index.variables[shape], code_first[shape]
        first, level, budget, answers = begin, begin, index.budget, 0
        last = end if every or begin == end else begin + steps[begin, 5]
        cursor[0] = -2
        for j in range(widths[shape]):
            register[variables + j] = slots[base + j]
        while level >= first:
            verdict = MATCHED
            if level < last:
                budget -= 1
                if budget >= 0:
                    s_ref, p_ref, o_ref = steps[level, 0], steps[level, 1], steps[level, 2]
                    s_at = variables + s_ref if s_ref >= 0 else ~s_ref
                    p_at = variables + p_ref if p_ref >= 0 else ~p_ref
                    o_at = variables + o_ref if o_ref >= 0 else ~o_ref
                    mode = np.int64(steps[level, 3])
                    e = _next_edge(
                        mode & 7, register[s_at], register[p_at], register[o_at], cursor[level - first], head,
                        following, known, mask,
                    )  # fmt: skip
                    cursor[level - first] = e
                    if e < 0:
                        level -= 1
                        continue
                    if mode & 7 != SPO:
                        if s_ref < 0:
                            bound[s_at], register[s_at] = edge[0, e], known[0, e]
                        if p_ref < 0:
                            bound[p_at], register[p_at] = edge[1, e], known[1, e]
                        if o_ref < 0:
                            bound[o_at], register[o_at] = edge[2, e], known[2, e]
                        if mode >= REPEATED and (
                            (s_ref == o_ref and known[0, e] != known[2, e])
                            or (s_ref == p_ref and known[0, e] != known[1, e])
                            or (p_ref == o_ref and known[1, e] != known[2, e])
                        ):
                            continue
                    entry = steps[level, 4]
                    if entry >= 0 and not _accepts(
                        entry, base, code[tests:], slots, atoms, terms, classes, space, mask
                    ):
                        continue
                    level += 1
                    cursor[level - first] = -2
                    continue
                verdict = EXHAUSTED
            elif last < end:
                first = level = last
                last = begin + steps[first, 5]
                cursor[0] = -2
                continue
            if count + 1 >= found.event.shape[0] or found.first[count] + variables > found.binding.shape[0]:
                return -1
            if answers == index.limit:
                verdict = EXHAUSTED
            found.event[count], found.row[count], found.verdict[count] = d, r, verdict
            at = found.first[count]
            for v in range(variables):
                found.binding[at + v] = bound[v] if verdict == MATCHED else -1
            found.first[count + 1] = at + variables
            count += 1
            answers += 1
            if verdict == EXHAUSTED or not every:
                break
            level = last - 1
    return count


@compiled
def _without_repeats(slots, space, count):  # type: ignore[no-untyped-def]
    """Takes repeated candidates out, to make room; returns how many are left: no more than there are rows."""
    space.looks[0] -= 1
    left = 0
    for i in range(count):
        r = slots[space.candidates[i] - 2]
        if space.seen[r] != space.looks[0]:
            space.seen[r] = space.looks[0]
            space.candidates[left] = space.candidates[i]
            left += 1
    return left


@inlined
def _posted(key, table, first, postings, slots, space, count):  # type: ignore[no-untyped-def]
    """Adds the rows filed under `key` to the candidates. A row that several clauses lead to is added several times
    and told apart when it is verified: to look at it here would mean to wait for its memory."""
    mask = np.uint64(table.shape[0] - 1)
    at = (key >> np.uint64(1)) & mask
    while table[at, 0] != key:
        if table[at, 0] == 0:
            return count
        at = (at + np.uint64(1)) & mask
    where, room = np.int64(table[at, 1]), space.candidates.shape[0]
    if where >= 0:
        if count == room:
            count = _without_repeats(slots, space, count)
        space.candidates[count] = where
        return count + 1
    low, high = first[~where], first[~where + 1]
    if count + high - low > room:
        count = _without_repeats(slots, space, count)
    for j in range(low, high):
        space.candidates[count] = postings[j]
        count += 1
    return count


@compiled
def _in_range(group, rank, access, slots, space, count):  # type: ignore[no-untyped-def]
    """Adds the rows of a group of ranges that hold `rank`.

    Ranges are sorted by their low end, and among equals by their high end, largest first. So those that begin
    at or below the rank are a prefix, in which a block whose high ends all lie below the rank is skipped.
    """
    begin, low, high = access.range_first[group], access.range_first[group], access.range_first[group + 1]
    while low < high:
        middle = (low + high) // 2
        if access.range_low[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    i = begin
    while i < low:
        if i & ((1 << BLOCK) - 1) == 0 and access.range_block[i >> BLOCK] < rank:
            i += 1 << BLOCK
            continue
        if access.range_high[i] >= rank:
            if count == space.candidates.shape[0]:
                count = _without_repeats(slots, space, count)
            space.candidates[count] = access.range_row[i]
            count += 1
        i += 1
    return count


@inlined
def _push(cls, space, top):  # type: ignore[no-untyped-def]
    if space.visited[cls] == space.visited[-1]:
        return top
    space.visited[cls] = space.visited[-1]
    space.stack[top] = cls
    return top + 1


@compiled
def _of_class(p, term, index, terms, space, mask, count):  # type: ignore[no-untyped-def]
    """Adds the rows filed under property p and a class that `term` belongs to: its own classes, and upwards."""
    access, classes, number, top = index.access, index.classes, terms.number[term], 0
    space.visited[-1] += 1
    if number < classes.number.shape[0]:
        if classes.number[number] >= 0:
            top = _push(classes.number[number], space, top)
        for i in range(classes.typed_first[number], classes.typed_first[number + 1]):
            top = _push(classes.typed[i], space, top)
    if terms.words[term] & 1 and terms.words[term] > 0:
        text = terms.words[term] // 2
        for i in range(classes.label_first[text], classes.label_first[text + 1]):
            top = _push(classes.label[i], space, top)
    e = space.head[SP, _bucket(SP, number, classes.type_property, 0, mask)]
    while e >= 0:
        if space.known[0, e] == number and space.known[1, e] == classes.type_property:
            typed = space.known[2, e]
            if typed < classes.number.shape[0] and classes.number[typed] >= 0:
                top = _push(classes.number[typed], space, top)
        e = space.next[SP, e]
    while top > 0:
        top -= 1
        cls = space.stack[top]
        key = access_key(ISA, p, cls, -1)
        count = _posted(key, access.table, access.first, access.postings, index.rows.slots, space, count)
        for i in range(classes.parent_first[cls], classes.parent_first[cls + 1]):
            top = _push(classes.parents[i], space, top)
    return count


@inlined
def _candidates(edges, index, terms, space, mask):  # type: ignore[no-untyped-def]
    """Collects the rows that a clause of the chained event leads to; returns how many."""
    access = index.access
    table, first, postings, slots = access.table, access.first, access.postings, index.rows.slots
    half = access.range_of.shape[0] // 2
    count = access.always.shape[0]
    for i in range(access.always.shape[0]):
        space.candidates[i] = access.always[i]
    mask_of_table, touched = np.uint64(table.shape[0] - 1), np.uint64(0)
    for kind in range(1, 8):
        if not access.used[kind]:
            continue
        # All keys first: the places of the table they lead to are then fetched side by side (see `_verify`).
        for e in range(edges):
            a = space.known[0, e] if kind & 4 else np.int32(-1)
            b = space.known[1, e] if kind & 2 else np.int32(-1)
            c = space.known[2, e] if kind & 1 else np.int32(-1)
            space.keys[e] = access_key(kind, a, b, c)
            touched += table[(space.keys[e] >> np.uint64(1)) & mask_of_table, 0]
        for e in range(edges):
            count = _posted(space.keys[e], table, first, postings, slots, space, count)
    space.touched[0] = np.int64(touched)
    if not access.by_test:
        return count
    for e in range(edges):
        p, o, term = space.known[1, e], space.known[2, e], space.edge[2, e]
        if access.used[POINT]:
            for what in range(4):
                if not access.points[what] or (what == RESOURCE and not terms.is_iri[term]):
                    continue
                rank = terms.value[term] if what == VALUE else terms.words[term] if what == WORDS else o
                if rank >= 0:
                    key = access_key(POINT, p, what, rank)
                    count = _posted(key, table, first, postings, slots, space, count)
        if access.used[RANGE] and p < half:
            if access.range_of[p] >= 0 and terms.value[term] >= 0:
                count = _in_range(access.range_of[p], terms.value[term], access, slots, space, count)
            if access.range_of[p + half] >= 0 and terms.words[term] >= 0:
                count = _in_range(access.range_of[p + half], terms.words[term], access, slots, space, count)
        if access.used[TEXT]:
            for i in range(terms.test_first[term], terms.test_first[term + 1]):
                key = access_key(TEXT, p, terms.tests[i], -1)
                count = _posted(key, table, first, postings, slots, space, count)
        if access.used[ISA]:
            count = _of_class(p, term, index, terms, space, mask, count)
    return count


@compiled
def match_graphs(begin, graphs, terms, index, space, found):  # type: ignore[no-untyped-def]
    """Matches events begin, begin + 1, …; returns (the event it stopped before, answers).

    It stops early when `found` is full: the caller takes the answers of whole events and goes on with more
    room. `seen` must not hold the number of an event that is still to be matched.
    """
    count = 0
    for d in range(begin, graphs.first.shape[0] - 1):
        start = count
        edges, mask = _chain(d, graphs, terms, index.modes, space)
        candidates = _candidates(edges, index, terms, space, mask)
        count = _verify(d, candidates, index, terms, space, mask, found, count)
        if count < 0:
            return d, start
    return graphs.first.shape[0] - 1, count
