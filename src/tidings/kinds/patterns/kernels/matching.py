"""Finds the candidates of events and verifies them.

A candidate is verified by joining its shape's steps with an explicit stack: cursor[i] is the edge that step i
stands on. Rows of one event are verified once, however many clauses lead to them (`seen`).
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.patterns.kernels.candidates import find_candidates
from tidings.kinds.patterns.kernels.chains import chain, next_edge
from tidings.kinds.patterns.kernels.conditions import accepts
from tidings.kinds.patterns.kernels.layout import EXHAUSTED, MATCHED, REPEATED, SPO


@inlined
def _touch(slots, space, candidates):  # type: ignore[no-untyped-def]
    """Reads a little of every candidate, in advance of its verification.

    A row lies anywhere in memory. Touching all of them first lets the processor wait for many lines at once, not for one
    after the other: half the time at a million rows.
    """
    seen = space.seen
    touched, end_of_slots = 0, slots.shape[0] - 1
    for i in range(candidates):
        start = space.candidates[i]
        touched += (
            seen[slots[start - 2]]
            + slots[min(start + 14, end_of_slots)]
            + slots[min(start + 24, end_of_slots)]
        )
    space.touched[0] = touched


@inlined
def _write(found, count, event, row, verdict, bound, variables):  # type: ignore[no-untyped-def]
    """Answer number `count`, with its bindings if it matched."""
    found.event[count], found.row[count], found.verdict[count] = event, row, verdict
    at = found.first[count]
    for v in range(variables):
        found.binding[at + v] = bound[v] if verdict == MATCHED else -1
    found.first[count + 1] = at + variables


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
    _touch(slots, space, candidates)
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
                    e = next_edge(
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
                    if entry >= 0 and not accepts(
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
            _write(found, count, d, r, verdict, bound, variables)
            count += 1
            answers += 1
            if verdict == EXHAUSTED or not every:
                break
            level = last - 1
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
        edges, mask = chain(d, graphs, terms, index.modes, space)
        candidates = find_candidates(edges, index, terms, space, mask)
        count = _verify(d, candidates, index, terms, space, mask, found, count)
        if count < 0:
            return d, start
    return graphs.first.shape[0] - 1, count
