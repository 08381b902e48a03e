"""Compiled loops over networks as arrays: a plain search along valid nodes, the oracle of every statistic."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled


@compiled
def search(start, first, target, expression, truth, seen, mark, queue):
    """Searches from `start` along valid nodes; truth[e] says whether expression e holds, an expression below 0 always
    does. Returns how many nodes are reachable, how many of these are valid, and how many edges leave the valid ones."""
    reachable = results = edges = 0
    head, tail = 0, 1
    queue[0] = start
    while head < tail:
        node = queue[head]
        head += 1
        for at in range(first[node], first[node + 1]):
            other = target[at]
            if seen[other] == mark:
                continue
            seen[other] = mark
            reachable += 1
            if expression[other] < 0 or truth[expression[other]]:
                results += 1
                edges += first[other + 1] - first[other]
                queue[tail] = other
                tail += 1
    return reachable, results, edges


@compiled
def search_all(starts, events, first, target, expression, truths, seen, queue, out):
    """`search` from each start, for the event beside it: one row of `truths`."""
    for i in range(starts.shape[0]):
        truth = truths[events[i]]
        out[i, 0], out[i, 1], out[i, 2] = search(
            starts[i], first, target, expression, truth, seen, i + 1, queue
        )
    return np.int64(0)


@compiled
def components(first, target, number, low, stack, path, edge):
    """Strongly connected components after Tarjan, without recursion: low[n] is the same for all nodes of one and for
    no other; returns how many there are. `number` is 0 at first, the others are scratch."""
    n = first.shape[0] - 1
    count = found = 0
    on_stack = on_path = 0
    for root in range(n):
        if number[root]:
            continue
        path[0], on_path = root, 1
        while on_path:
            node = path[on_path - 1]
            if number[node] == 0:
                count += 1
                number[node] = low[node] = count
                edge[node] = first[node]
                stack[on_stack] = node
                on_stack += 1
            if edge[node] < first[node + 1]:
                other = target[edge[node]]
                edge[node] += 1
                if number[other] == 0:
                    path[on_path] = other
                    on_path += 1
                elif number[other] > 0 and low[other] < low[node]:
                    low[node] = low[other]
                continue
            on_path -= 1
            if on_path and low[node] < low[path[on_path - 1]]:
                low[path[on_path - 1]] = low[node]
            if low[node] == number[node]:
                found += 1
                while True:
                    on_stack -= 1
                    member = stack[on_stack]
                    low[member] = -found
                    number[member] = -1  # done: its number no longer counts
                    if member == node:
                        break
    return found
