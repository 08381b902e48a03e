"""The cheapest valid ways to entities, cheapest first: Dijkstra's algorithm, which tests an expression when an edge
first leads to it and can be left after any result.

The heap holds entities by (cost, id); where[c] is the position of entity c in it. Costs are never negative, so what is
taken from the heap is settled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.networks.kernels.cursor import accepts
from tidings.kinds.networks.kernels.layout import (
    ALWAYS,
    ASKED,
    ASKING,
    ASKS,
    DONE,
    ENOUGH,
    EPOCH,
    FOLLOWED,
    FOUND,
    INDEXED,
    LOOKED,
    REACHED,
    SETTLED,
    SOURCE,
    VALID,
    VERIFIED,
    WAITING,
)


class Costs(NamedTuple):
    """Of a network: the cost of each edge and link, the weight of each entity. Of an evaluation: the rest."""

    edge: np.ndarray
    link: np.ndarray
    weight: np.ndarray
    best: np.ndarray
    heap: np.ndarray
    where: np.ndarray


@inlined
def _before(a, b, best):  # type: ignore[no-untyped-def]
    return best[a] < best[b] or (best[a] == best[b] and a < b)


@compiled
def _lift(at, best, heap, where):  # type: ignore[no-untyped-def]
    c = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _before(c, heap[above], best):
            break
        heap[at] = heap[above]
        where[heap[at]] = at
        at = above
    heap[at] = c
    where[c] = at


@compiled
def push(c, costs, space):  # type: ignore[no-untyped-def]
    """An entity that accepts the event waits to be settled."""
    at = space.registers[WAITING]
    costs.heap[at] = c
    space.registers[WAITING] += 1
    space.state[c] |= VALID
    _lift(at, costs.best, costs.heap, costs.where)


@compiled
def _pop(costs, space):  # type: ignore[no-untyped-def]
    best, heap, where = costs.best, costs.heap, costs.where
    first = heap[0]
    space.registers[WAITING] -= 1
    count = space.registers[WAITING]
    if count > 0:
        c = heap[count]
        at = 0
        while True:
            below = 2 * at + 1
            if below >= count:
                break
            if below + 1 < count and _before(heap[below + 1], heap[below], best):
                below += 1
            if not _before(heap[below], c, best):
                break
            heap[at] = heap[below]
            where[heap[at]] = at
            at = below
        heap[at] = c
        where[c] = at
    return first


@inlined
def _relax(c, cost, graph, filters, event, space, costs, epoch):  # type: ignore[no-untyped-def]
    """A way to c costs so much before c itself."""
    state, registers = space.state, space.registers
    cost += costs.weight[c]
    known = state[c]
    if known < epoch:
        state[c] = epoch | REACHED
        costs.best[c] = cost
        kind = graph.kind[c]
        if kind == ASKED:
            space.asked[registers[ASKS]] = c
            registers[ASKS] += 1
        elif kind == ALWAYS:
            push(c, costs, space)
        elif kind == INDEXED:
            registers[VERIFIED] += 1
            if accepts(graph.row_of[c], filters, event):
                push(c, costs, space)
    elif known & VALID and not known & SETTLED and cost < costs.best[c]:
        costs.best[c] = cost
        _lift(costs.where[c], costs.best, costs.heap, costs.where)


@compiled
def _follow(u, cost, graph, filters, event, space, costs):  # type: ignore[no-untyped-def]
    epoch = space.registers[EPOCH]
    if u < graph.first.shape[0] - 1:
        for i in range(graph.first[u], graph.first[u + 1]):
            if graph.child[i] >= 0:
                space.registers[LOOKED] += 1
                _relax(graph.child[i], cost + costs.edge[i], graph, filters, event, space, costs, epoch)
    link = graph.head[u]
    while link >= 0:
        if graph.link_child[link] >= 0:
            space.registers[LOOKED] += 1
            c = graph.link_child[link]
            _relax(c, cost + costs.link[link], graph, filters, event, space, costs, epoch)
        link = graph.link_next[link]


@compiled
def cheapest(limit, graph, filters, event, space, costs):  # type: ignore[no-untyped-def]
    """Settles entities, cheapest first, until there are `limit`."""
    registers, found = space.registers, space.found
    while True:
        if registers[ASKS] > 0:
            return ASKING
        if registers[FOLLOWED] < 0:
            registers[FOLLOWED] = 0
            _follow(registers[SOURCE], 0.0, graph, filters, event, space, costs)
        elif registers[FOUND] >= limit:
            return ENOUGH
        elif registers[FOLLOWED] < registers[FOUND]:
            u = found[registers[FOLLOWED]]
            registers[FOLLOWED] += 1
            _follow(u, costs.best[u], graph, filters, event, space, costs)
        elif registers[WAITING] == 0:
            return DONE
        else:
            u = _pop(costs, space)
            space.state[u] |= SETTLED
            found[registers[FOUND]] = u
            registers[FOUND] += 1
