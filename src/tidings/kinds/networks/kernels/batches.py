"""Evaluates many events, one after the other, in one call from Python."""

from __future__ import annotations

from tidings.arrays.compiled import compiled
from tidings.kinds.filters.kernels.running import enter, leave
from tidings.kinds.networks.kernels.layout import (
    ASKING,
    AT_ONCE,
    EPOCH,
    EVENT,
    FOLLOWED,
    FOUND,
    LAST_EPOCH,
    LISTS,
    LOOKED,
    PREFERRED,
    SOURCE,
    STEP,
)
from tidings.kinds.networks.kernels.walks import adaptive


@compiled
def reset(source, number, preferred, space, event):  # type: ignore[no-untyped-def]
    """Makes scratch ready for the event of that number."""
    registers, marks = space.registers, space.marks
    if registers[AT_ONCE] == 0:  # only then was anything marked
        for i in range(marks.shape[0]):
            marks[i] = 0
    epoch = registers[EPOCH] + STEP
    if epoch >= LAST_EPOCH:
        for i in range(space.state.shape[0]):
            space.state[i] = 0
        epoch = STEP
    for i in range(registers.shape[0]):
        registers[i] = 0
    registers[EPOCH], registers[EVENT] = epoch, number
    registers[SOURCE], registers[PREFERRED] = source, preferred
    registers[FOLLOWED], registers[AT_ONCE], registers[LISTS] = -1, 1, -1
    enter(event.pairs, number, event.slots)


@compiled
def reach_many(begin, sources, preferred, graph, filters, event, space, owner, first, numbers):  # type: ignore[no-untyped-def]
    """Writes the numbers of the nodes that each event reaches, from event `begin` on: numbers[first[e]:first[e + 1]].

    Returns the number of the event it stopped in, whose entities have to be asked or for which there may be no room, and
    the edges looked at.
    """
    looked = 0
    for e in range(begin, sources.shape[0]):
        filled = first[e]
        reset(sources[e], e, preferred, space, event)
        status = adaptive(owner.shape[0] + 1, graph, filters, event, space)
        leave(event.pairs, e, event.slots)
        registers, found = space.registers, space.found
        looked += registers[LOOKED]
        if status == ASKING or filled + registers[FOUND] > numbers.shape[0]:
            return e, looked
        for i in range(registers[FOUND]):
            if owner[found[i]] >= 0:
                numbers[filled] = owner[found[i]]
                filled += 1
        first[e + 1] = filled
    return sources.shape[0], looked
