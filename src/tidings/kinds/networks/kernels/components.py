"""Strongly connected components in topological order, breadth-first inside, without recursion.

Tarjan's algorithm with its stack in an array: it finishes components in the reverse of a topological order. Graph
constraints 3.2.1 and 3.2.2.
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled


@compiled
def find_components(first, child, low, visit, at, path, open_, component):  # type: ignore[no-untyped-def]
    """The component of every node, numbered so that edges lead to the same or a lower number; returns how many.

    low, visit, at, path and open_ are scratch, one number for each node; `visit` (the order in which nodes are first
    visited) and `component` come as -1.
    """
    count, seen = 0, 0
    for root in range(first.shape[0] - 1):
        if visit[root] >= 0:
            continue
        depth, held = 0, 1
        path[0] = root
        visit[root] = low[root] = seen
        at[root] = first[root]
        seen += 1
        open_[0] = root
        while depth >= 0:
            u = path[depth]
            if at[u] < first[u + 1]:
                v = child[at[u]]
                at[u] += 1
                if visit[v] < 0:
                    visit[v] = low[v] = seen
                    at[v] = first[v]
                    seen += 1
                    open_[held] = v
                    held += 1
                    depth += 1
                    path[depth] = v
                elif component[v] < 0 and visit[v] < low[u]:
                    low[u] = visit[v]
                continue
            depth -= 1
            if depth >= 0 and low[u] < low[path[depth]]:
                low[path[depth]] = low[u]
            if low[u] == visit[u]:
                while True:
                    held -= 1
                    v = open_[held]
                    component[v] = count
                    if v == u:
                        break
                count += 1
    return count


@compiled
def order_nodes(first, child, component, begin, filled, entry, order):  # type: ignore[no-untyped-def]
    """Writes the nodes component by component, each breadth-first from the nodes where edges enter it.

    begin[c] is the position in `order` where component c begins; `filled` is a copy of it, `entry` comes as zeros.
    """
    nodes = first.shape[0] - 1
    for u in range(nodes):
        for i in range(first[u], first[u + 1]):
            if component[child[i]] != component[u]:
                entry[child[i]] = 1
    for u in range(nodes):
        if entry[u] != 0:
            order[filled[component[u]]] = u
            filled[component[u]] += 1
    for u in range(nodes):
        c = component[u]
        if filled[c] == begin[c]:
            order[filled[c]] = u
            filled[c] += 1
            entry[u] = 1
    for position in range(nodes):
        u = order[position]
        c = component[u]
        for i in range(first[u], first[u + 1]):
            v = child[i]
            if entry[v] == 0 and component[v] == c:
                entry[v] = 1
                order[filled[c]] = v
                filled[c] += 1
