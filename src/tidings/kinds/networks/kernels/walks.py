"""The paper's four algorithms and its two baselines, over one cursor, each a loop that can be left and entered again.

All of them follow results to their children; they differ in how a child becomes a result. `found` is both the
list of results and the queue, so that nothing recurses: updatePath of Figures 6 and 8 follows what was appended. A
loop returns when it has found enough, when entities newer than the index must be evaluated, or when all is done.

Beyond the paper: an entity without an expression is a result as soon as it is reached, and is not in the index; and
when a group is not reached, the walk goes to the next group that is reached, not only after a miss in it.
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.networks.kernels.bit_set import is_marked, mark, next_marked
from tidings.kinds.networks.kernels.cursor import accepts, count_candidates, seek
from tidings.kinds.networks.kernels.layout import (
    ALWAYS,
    ASKED,
    ASKING,
    ASKS,
    AT_ONCE,
    DONE,
    ENOUGH,
    EPOCH,
    EVENT,
    FOLLOWED,
    FOUND,
    INDEXED,
    LOOKED,
    PREFERRED,
    REACHED,
    RETRIEVED,
    SKIP,
    SMALL,
    SOURCE,
    VALID,
    VERIFIED,
)

_LIKELY = 2  # candidates cost as much as so many expressions that are run where they are reached


@inlined
def _reach(c, graph, filters, event, space, epoch, at_once):  # type: ignore[no-untyped-def]
    """An edge leads to c."""
    registers, state = space.registers, space.state
    known = state[c]
    if known < epoch:
        known = epoch
    if known & REACHED:
        return
    state[c] = known | REACHED
    kind = graph.kind[c]
    passes = kind == ALWAYS or known & VALID != 0
    if kind == INDEXED and not passes:
        if at_once:
            registers[VERIFIED] += 1
            passes = accepts(graph.row_of[c], filters, event)
            if passes:
                state[c] |= VALID
        else:
            mark(space.marks, graph.group[c])
    elif kind == ASKED:
        space.asked[registers[ASKS]] = c
        registers[ASKS] += 1
    if passes:
        space.found[registers[FOUND]] = c
        registers[FOUND] += 1


@compiled
def follow(u, graph, filters, event, space, at_once):  # type: ignore[no-untyped-def]
    """Reaches the children of u. At once: what is in the index is verified; otherwise its group is marked."""
    epoch = space.registers[EPOCH]
    child, link_child, link_next = graph.child, graph.link_child, graph.link_next
    looked = 0
    if u < graph.first.shape[0] - 1:
        for i in range(graph.first[u], graph.first[u + 1]):
            looked += 1
            if child[i] >= 0:
                _reach(child[i], graph, filters, event, space, epoch, at_once)
    link = graph.head[u]
    while link >= 0:
        looked += 1
        if link_child[link] >= 0:
            _reach(link_child[link], graph, filters, event, space, epoch, at_once)
        link = link_next[link]
    space.registers[LOOKED] += looked


@inlined
def _follow_all(limit, graph, filters, event, space, at_once):  # type: ignore[no-untyped-def]
    """Follows what was found, the publisher first; DONE unless there is enough or somebody has to be asked."""
    registers, found = space.registers, space.found
    if registers[FOLLOWED] < 0:
        registers[FOLLOWED] = 0
        follow(registers[SOURCE], graph, filters, event, space, at_once)
    while registers[FOLLOWED] < registers[FOUND]:
        if registers[FOUND] >= limit:
            return ENOUGH
        u = found[registers[FOLLOWED]]
        registers[FOLLOWED] += 1
        follow(u, graph, filters, event, space, at_once)
    return ASKING if registers[ASKS] > 0 else DONE


@inlined
def _retrieve(graph, filters, event, space):  # type: ignore[no-untyped-def]
    """The next id from SKIP on whose expression accepts the event, or -1."""
    registers = space.registers
    if registers[SKIP] < 0 or registers[SKIP] >= graph.row_of.shape[0]:
        return -1
    row = seek(graph.row_of[registers[SKIP]], filters, event, registers)
    if row < 0:
        return -1
    registers[RETRIEVED] += 1
    return graph.indexed[row]


@inlined
def _add_or_keep(n, graph, space, keep):  # type: ignore[no-untyped-def]
    """The index found n valid: a result if it is reached, otherwise perhaps kept until it is."""
    state, epoch = space.state, space.registers[EPOCH]
    if graph.kind[n] != INDEXED:  # it has changed since
        return
    known = state[n]
    if known < epoch:
        if keep:
            state[n] = epoch | VALID
    elif known & VALID == 0:
        state[n] = known | VALID
        space.found[space.registers[FOUND]] = n
        space.registers[FOUND] += 1


@compiled
def dag(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """Figure 3. Every edge leads to a larger id: what is not reached when its turn comes never will be."""
    registers = space.registers
    while True:
        status = _follow_all(limit, graph, filters, event, space, False)
        if status != DONE:
            return status
        n = _retrieve(graph, filters, event, space)
        if n < 0:
            return DONE
        _add_or_keep(n, graph, space, False)
        registers[SKIP] = n + 1


@compiled
def dag_skipping(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """Figure 5. The same, from one reached id to the next."""
    registers = space.registers
    while True:
        status = _follow_all(limit, graph, filters, event, space, False)
        if status != DONE:
            return status
        registers[SKIP] = next_marked(space.marks, registers[SKIP])
        n = _retrieve(graph, filters, event, space)
        if n < 0:
            return DONE
        _add_or_keep(n, graph, space, False)
        registers[SKIP] = n + 1


@compiled
def general(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """Figure 6. Right under any ids: what is valid is kept until it is reached."""
    registers = space.registers
    while True:
        status = _follow_all(limit, graph, filters, event, space, False)
        if status != DONE:
            return status
        n = _retrieve(graph, filters, event, space)
        if n < 0:
            return DONE
        _add_or_keep(n, graph, space, True)
        registers[SKIP] = n + 1


@inlined
def _by_groups(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    registers, marks, group = space.registers, space.marks, graph.group
    base = graph.first.shape[0] - 1
    while True:
        status = _follow_all(limit, graph, filters, event, space, False)
        if status != DONE:
            return status
        skip = registers[SKIP]
        if skip >= base:
            return DONE
        if not is_marked(marks, group[skip]):
            registers[SKIP] = skip = next_marked(marks, skip)
        n = _retrieve(graph, filters, event, space)
        if n < 0:
            return DONE
        if is_marked(marks, group[n]):
            _add_or_keep(n, graph, space, True)
            registers[SKIP] = n + 1
        else:
            registers[SKIP] = n


@compiled
def general_skipping(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """Figure 8. Kept are only those whose group is reached; other groups are passed over."""
    return _by_groups(limit, graph, filters, event, space)


@compiled
def breadth_first(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """The baseline without an index: every expression is run when it is reached."""
    return _follow_all(limit, graph, filters, event, space, True)


@compiled
def index_first(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """The baseline that takes all from the index before it looks at an edge."""
    registers = space.registers
    while registers[SKIP] >= 0:
        n = _retrieve(graph, filters, event, space)
        registers[SKIP] = n + 1 if n >= 0 else -1
        if n >= 0:
            _add_or_keep(n, graph, space, True)
    return _follow_all(limit, graph, filters, event, space, False)


@compiled
def adaptive(limit, graph, filters, event, space):  # type: ignore[no-untyped-def]
    """Breadth-first while it is small, or as long as that is PREFERRED (algorithm_choice.py); then Figure 8 with what is left.

    The children of the next node are counted before they are verified: many of them where the index has but a few
    candidates are not begun breadth-first at all.
    """
    registers, first, found = space.registers, graph.first, space.found
    base = first.shape[0] - 1
    while registers[AT_ONCE] != 0:
        if registers[FOLLOWED] == registers[FOUND]:
            return ASKING if registers[ASKS] > 0 else DONE
        if registers[FOLLOWED] >= 0 and registers[FOUND] >= limit:
            return ENOUGH
        u = registers[SOURCE] if registers[FOLLOWED] < 0 else found[registers[FOLLOWED]]
        if u < base:
            expected = registers[VERIFIED] + first[u + 1] - first[u]
            if expected > SMALL:
                if registers[PREFERRED] == 1:
                    registers[PREFERRED] = 2 + _LIKELY * count_candidates(
                        filters, event.pairs, registers[EVENT]
                    )
                if expected > registers[PREFERRED]:
                    registers[AT_ONCE] = 0
                    break
        if registers[FOLLOWED] < 0:
            registers[FOLLOWED] = 0
        else:
            registers[FOLLOWED] += 1
        follow(u, graph, filters, event, space, True)
    return _by_groups(limit, graph, filters, event, space)
