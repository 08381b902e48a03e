"""Shortest paths from one router to all others: Dijkstra's algorithm with a binary heap that may hold a router twice.

first, beside, delay    a router's links: where they begin, the routers at their other ends, milliseconds
heap, key               routers to look at, and how far each was when it was put there; room for every link and one more
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled, inlined


@inlined
def push(heap, key, size, router, distance):  # type: ignore[no-untyped-def]
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if key[above] <= distance:
            break
        heap[at], key[at] = heap[above], key[above]
        at = above
    heap[at], key[at] = router, distance


@inlined
def pop(heap, key, size):  # type: ignore[no-untyped-def]
    """Moves the last entry to the top's place; `size` is without it."""
    router, distance = heap[size], key[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and key[below + 1] < key[below]:
            below += 1
        if key[below] >= distance:
            break
        heap[at], key[at] = heap[below], key[below]
        at = below
    heap[at], key[at] = router, distance


@compiled
def shortest(first, beside, delay, start, heap, key, out):  # type: ignore[no-untyped-def]
    """out[router]: the least milliseconds from `start`; infinite where no path leads."""
    for router in range(len(out)):
        out[router] = float("inf")
    out[start] = 0.0
    heap[0], key[0] = start, 0.0
    size = 1
    while size > 0:
        router, distance = heap[0], key[0]
        size -= 1
        pop(heap, key, size)
        if distance > out[router]:
            continue
        for at in range(first[router], first[router + 1]):
            there = distance + delay[at]
            if there < out[beside[at]]:
                out[beside[at]] = there
                push(heap, key, size, beside[at], there)
                size += 1


@compiled
def account(visits, latency, size, stress, depth, arrival):  # type: ignore[no-untyped-def]
    """Adds what a message of one size costs along its way: bytes that each node sends; the number of links that it crosses.

    depth and arrival: links and milliseconds from the injection to each visit. A node that follows itself costs nothing;
    without a topology `latency` is empty.
    """
    hops = 0
    depth[0] = 0
    arrival[0] = 0.0
    for at in range(1, len(visits.nodes)):
        parent = visits.parents[at]
        sender, receiver = visits.nodes[parent], visits.nodes[at]
        depth[at] = depth[parent]
        arrival[at] = arrival[parent]
        if sender != receiver:
            hops += 1
            stress[sender] += size
            depth[at] += 1
            if len(latency):
                arrival[at] += latency[sender, receiver]
    return hops
