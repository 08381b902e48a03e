"""Loops over linked chains: what one order of two chains costs more than the other, and the greedy path of chains.

A chain is a row's predicates from top to bottom, by ascending `key` (ties by number), so that two chains hold the
predicates that they share in the same order and one pass over both meets all of them. Sub-Order 4.2.4, 4.2.5.
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled, inlined


@inlined
def cost_difference(chain, i, i_end, other, j, j_end, key, p, cost):  # type: ignore[no-untyped-def]
    """Expected cost of chain[i:i_end] and then other[j:j_end], less that of the reverse order.

    At a shared predicate t, `shared` is the chance that t is reached by shared predicates alone; reach and spent are
    the chance that a chain's own predicates above t all hold, and their expected cost. Given that t is the first
    shared predicate that is false, a chain that reaches t spares the other all that is its own.
    """
    shared, difference = 1.0, 0.0
    reach_chain, spent_chain, reach_other, spent_other = 1.0, 0.0, 1.0, 0.0
    while i < i_end and j < j_end:
        s, t = chain[i], other[j]
        if s == t:
            difference += (1.0 - p[t]) * shared * (reach_other * spent_chain - reach_chain * spent_other)
            shared *= p[t]
            i += 1
            j += 1
        elif key[s] < key[t] or (key[s] == key[t] and s < t):
            spent_chain += reach_chain * cost[s]
            reach_chain *= p[s]
            i += 1
        else:
            spent_other += reach_other * cost[t]
            reach_other *= p[t]
            j += 1
    return difference


@compiled
def pair_difference(chain, other, key, p, cost):  # type: ignore[no-untyped-def]
    return cost_difference(chain, 0, chain.shape[0], other, 0, other.shape[0], key, p, cost)


@compiled
def walk_chains(first, member, p, cost, reach, spent):  # type: ignore[no-untyped-def]
    """For every position in a chain: the chance that all above it hold, and the expected cost of all above it."""
    for row in range(first.shape[0] - 1):
        chance, total = 1.0, 0.0
        for k in range(first[row], first[row + 1]):
            reach[k] = chance
            spent[k] = total
            total += chance * cost[member[k]]
            chance *= p[member[k]]


@compiled
def compare_neighbours(slot, row, first, member, key, p, cost, neighbours, source, target, saving):  # type: ignore[no-untyped-def]
    """Compares the chain of each slot with those of the next slots that hold the same predicate; returns how many
    edges were written: `source` before `target` saves more than 0.
    """
    edges = 0
    for i in range(slot.shape[0]):
        t, a = member[slot[i]], row[slot[i]]
        for k in range(i + 1, min(i + 1 + neighbours, slot.shape[0])):
            if member[slot[k]] != t:
                break
            b = row[slot[k]]
            difference = cost_difference(
                member, first[a], first[a + 1], member, first[b], first[b + 1], key, p, cost
            )
            if difference == 0.0:
                continue
            source[edges] = b if difference > 0.0 else a
            target[edges] = a if difference > 0.0 else b
            saving[edges] = abs(difference)
            edges += 1
    return edges


@compiled
def join_paths(edges, source, target, following, preceding, end):  # type: ignore[no-untyped-def]
    """Takes the edges one by one, each that leaves all rows on paths; `following` and `preceding` come as -1.

    `end` comes as each row itself. At either end of a path it is the other end, which is all that is needed to see
    a cycle: an edge from the last row of a path to a first one closes it if both are ends of the same path.
    """
    for edge in edges:
        u, v = source[edge], target[edge]
        if following[u] >= 0 or preceding[v] >= 0 or end[u] == v:
            continue
        following[u] = v
        preceding[v] = u
        head, tail = end[u], end[v]
        end[head] = tail
        end[tail] = head


@compiled
def average_paths(heads, following, weight, mean):  # type: ignore[no-untyped-def]
    for k in range(heads.shape[0]):
        total, size, row = 0.0, 0, heads[k]
        while row >= 0:
            total += weight[row]
            size += 1
            row = following[row]
        mean[k] = total / size


@compiled
def lay_paths(heads, following, order):  # type: ignore[no-untyped-def]
    filled = 0
    for head in heads:
        row = head
        while row >= 0:
            order[filled] = row
            filled += 1
            row = following[row]


@compiled
def compare_one(chain, is_its, first, member, key, p, cost, difference):  # type: ignore[no-untyped-def]
    """What every row costs more before the chain than after it; `difference` comes as zeros.

    is_its marks the chain's predicates: most rows share none, and it is cheaper to see that before the comparison.
    """
    size = chain.shape[0]
    for row in range(first.shape[0] - 1):
        for k in range(first[row], first[row + 1]):
            if is_its[member[k]] != 0:
                difference[row] = cost_difference(
                    member, first[row], first[row + 1], chain, 0, size, key, p, cost
                )
                break
