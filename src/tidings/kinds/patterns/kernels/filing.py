"""Files each row under the clause that it shares with the fewest others, and fills the tables from clauses to rows."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import mix
from tidings.kinds.patterns.kernels.layout import ALL, POINT, RANGE, SPO, TEST, WORDS, P


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
            _, key = _edge_key(programs.steps[i], base, rows.slots)
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
                    p, atom = (
                        rows.slots[base + programs.options[i, 2]],
                        rows.slots[base + programs.options[i, 3]],
                    )
                    cost += coverage[p + (coverage.shape[0] // 2 if atoms.space[atom] == WORDS else 0)]
                else:
                    cost += counts[_option_key(programs.options[i], base, rows.slots, atoms) & mask]
                i += 1
            if best < 0 or cost * 1.05 < best_cost:
                best, best_cost, best_kind = steps + first - programs.option_first[shape], cost * 1.05, kind
        chosen[r], about[r] = best, -1
        used[best_kind] = True
        if 0 <= best < steps:
            s_ref, p_ref, o_ref = (
                programs.steps[begin + best, 0],
                programs.steps[begin + best, 1],
                programs.steps[begin + best, 2],
            )
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
                _, keys[count] = _edge_key(
                    programs.steps[programs.step_first[shape] + chosen[r]], base, rows.slots
                )
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
def gather_rows(rows, widths, about, offsets, start, slots):  # type: ignore[no-untyped-def]
    """Copies the rows, each with the two numbers before it, to `slots` in the order of `about` (-1 or more), and
    notes their starts. A counting sort: `offsets`, zeros at first, is where the rows about each term go."""
    for r in range(about.shape[0]):
        offsets[about[r] + 2] += widths[rows.shape[r]] + 2
    for i in range(1, offsets.shape[0]):
        offsets[i] += offsets[i - 1]
    for r in range(about.shape[0]):
        old, size, at = rows.start[r] - 2, widths[rows.shape[r]] + 2, offsets[about[r] + 1]
        start[r] = at + 2
        for i in range(size):
            slots[at + i] = rows.slots[old + i]
        offsets[about[r] + 1] = at + size


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
                    p, atom = (
                        rows.slots[base + programs.options[i, 2]],
                        rows.slots[base + programs.options[i, 3]],
                    )
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
