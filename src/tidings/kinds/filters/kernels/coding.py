"""Writes the code of expressions from their trees, and files them under nodes of their attributes.

The children of an AND are tried from the rarest on, those of an OR from the most frequent on. An expression is filed
under its cheapest access set: of an AND that of one child, of an OR those of all; a negated leaf accepts missing values,
so it has none.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels.layout import (
    AND,
    COVER,
    FALSE,
    INNER_SIZE,
    JUMP_SHIFT,
    LAST_BIT,
    LEAF_SIZE,
    NARROW_JUMP,
    NARROW_LIMIT,
    NEGATED,
    NEGATED_BIT,
    NO_CHECK,
    ONE_OF,
    OR,
    POINT,
    RANGE,
    REPEATS,
    SENSE_BIT,
    SMALL_LIMIT,
    SMALL_ONE_OF,
    SMALL_RANGE,
)
from tidings.kinds.filters.kernels.resolving import resolve

_MANY_CHILDREN = 64  # more are left in the order in which they were written
_NEVER_FILED = np.inf
_PAIRS = 20  # of an event: an assumption, because no event is known yet
_HALF, _BITS = np.uint64(0xFFFFFFFF), np.uint64(32)


@compiled
def write_code(rows, known, begin, nodes, out):  # type: ignore[no-untyped-def]
    """Code and access nodes of rows from `begin` on; returns how many rows are done.

    Stops at a row for which `out` may not have room; out.used tells where the next call goes on.
    """
    trees, tree_first, row_shape, slot_first, _ = rows
    narrow, wide, addresses = out.narrow, out.wide, out.at
    filed_node, filed_address, filed_check = out.filed_node, out.filed_address, out.filed_check
    no_check = np.int64(NO_CHECK) << 32 | NO_CHECK
    narrow_used, wide_used, filed = out.used[0], out.used[1], out.used[2]
    for row in range(begin, row_shape.shape[0]):
        words = tree_first[row_shape[row] + 1] - tree_first[row_shape[row]]
        most = 2 * words + 2 * (slot_first[row + 1] - slot_first[row]) + 4
        if (
            narrow_used + most > narrow.shape[0]
            or wide_used + most > wide.shape[0]
            or filed + most * COVER > filed_node.shape[0]
        ):
            out.used[0], out.used[1], out.used[2] = narrow_used, wide_used, filed
            return row
        count, widest = _read_tree(rows, row, known, nodes)
        _sum_up(nodes, count)
        is_filed = nodes.cost[0] < _NEVER_FILED
        nodes.marked[0] = is_filed
        _put_in_order(nodes, count)
        leaves = nodes.leaves[0]
        is_wide = widest >= NARROW_LIMIT or _longest_jump(nodes, leaves, True) >= NARROW_JUMP
        if is_wide:
            _longest_jump(nodes, leaves, False)
        header = row | REPEATS if _marked_leaves(nodes, leaves) > 1 else row
        if is_wide:
            address = wide_used * 2 + 1
            wide[wide_used] = header
            wide_used = _emit(wide, wide_used + 1, trees, nodes, leaves, False)
        else:
            address = narrow_used * 2
            narrow[narrow_used] = header & 0xFFFF
            narrow[narrow_used + 1] = header >> 16
            narrow_used = _emit(narrow, narrow_used + 2, trees, nodes, leaves, True)
        addresses[row] = address
        if is_filed:
            filed = _file(trees, nodes, leaves, known, address, out, filed)
        else:
            filed_node[filed], filed_address[filed], filed_check[filed] = 0, address, no_check
            filed += 1
    out.used[0], out.used[1], out.used[2] = narrow_used, wide_used, filed
    return row_shape.shape[0]


@inlined
def _read_tree(rows, row, known, nodes):  # type: ignore[no-untyped-def]
    """The nodes of a row's tree in prefix order; (how many, the largest number that its code has to hold)."""
    trees, tree_first, row_shape, slot_first, slots = rows
    parent, kind, span, leaves = nodes.parent, nodes.kind, nodes.span, nodes.leaves
    weight, cost, marked, test = nodes.weight, nodes.cost, nodes.marked, nodes.test
    operand_at, operand_count, operands = nodes.operand_at, nodes.operand_count, nodes.operands
    stack, stack_end = nodes.stack, nodes.stack_end
    word, end = tree_first[row_shape[row]], tree_first[row_shape[row] + 1]
    base = slot_first[row]
    count, depth, filled, widest = 0, 0, 0, 0
    while word < end:
        while depth > 0 and word >= stack_end[depth - 1]:
            depth -= 1
        parent[count] = stack[depth - 1] if depth else -1
        span[count], marked[count] = 1, False
        op = trees[word]
        if op <= OR:
            kind[count], leaves[count] = op, 0
            weight[count] = cost[count] = _NEVER_FILED if op == AND else 0.0
            stack[depth], stack_end[depth] = count, word + trees[word + 1]
            depth += 1
            word += INNER_SIZE
        else:
            kind[count], nodes.word[count], leaves[count] = 0, word, 1
            test[count], operand_count[count], rarity = resolve(
                trees, word, base, slots, known, operands, filled
            )
            operand_at[count] = filled
            for i in range(filled, filled + operand_count[count]):
                widest = max(widest, operands[i])
            widest = max(widest, trees[word + 1])
            filled += operand_count[count]
            negated = (op & NEGATED) != 0
            # Of all that is mentioned of the attribute; one that is seldom mentioned is seldom there.
            rarity /= max(np.float64(known.mentions[trees[word + 1]]), known.all_mentions / _PAIRS)
            weight[count] = 1.0 - rarity if negated else rarity
            cost[count] = _NEVER_FILED if negated else 0.0 if test[count] == FALSE else rarity
            word += LEAF_SIZE
        count += 1
    return count, widest


@inlined
def _sum_up(nodes, count):  # type: ignore[no-untyped-def]
    """What nodes are by those below them: leaves, size, how often they hold, and what it costs to file under them."""
    parent, kind, weight, cost = nodes.parent, nodes.kind, nodes.weight, nodes.cost
    leaves, span = nodes.leaves, nodes.span
    for i in range(count - 1, 0, -1):
        p = parent[i]
        leaves[p] += leaves[i]
        span[p] += span[i]
        if kind[p] == AND:
            weight[p], cost[p] = min(weight[p], weight[i]), min(cost[p], cost[i])
        else:
            weight[p], cost[p] = weight[p] + weight[i], cost[p] + cost[i]


@inlined
def _put_in_order(nodes, count):  # type: ignore[no-untyped-def]
    """The order of leaves in code, where each goes on when it is true or false, and which leaves the row is filed
    under, if its root is marked."""
    kind, span, cost, marked, leaves = nodes.kind, nodes.span, nodes.cost, nodes.marked, nodes.leaves
    begin, on_true, on_false, children = nodes.begin, nodes.on_true, nodes.on_false, nodes.children
    begin[0], on_true[0], on_false[0] = 0, -1, -1
    for i in range(count):
        if kind[i] == 0:
            nodes.in_order[begin[i]] = i
            continue
        many, child, cheapest = 0, i + 1, -1
        while child < i + span[i]:
            children[many] = child
            many += 1
            if cheapest < 0 or cost[child] < cost[cheapest]:
                cheapest = child
            child += span[child]
        if marked[i]:
            if kind[i] == AND:
                marked[cheapest] = True
            else:
                for j in range(many):
                    marked[children[j]] = True
        if many <= _MANY_CHILDREN:
            _sort_children(nodes, many, kind[i])
        at = begin[i]
        for j in range(many):
            child = children[j]
            begin[child] = at
            at += leaves[child]
            on_true[child], on_false[child] = on_true[i], on_false[i]
            if j + 1 < many:
                if kind[i] == AND:
                    on_true[child] = at
                else:
                    on_false[child] = at


@inlined
def _sort_children(nodes, many, kind):  # type: ignore[no-untyped-def]
    children, weight, marked = nodes.children, nodes.weight, nodes.marked
    for j in range(1, many):
        child = children[j]
        k = j
        while k > 0 and _comes_before(child, children[k - 1], kind, weight, marked):
            children[k] = children[k - 1]
            k -= 1
        children[k] = child


@inlined
def _marked_leaves(nodes, leaves):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(leaves):
        count += nodes.marked[nodes.in_order[k]]
    return count


@inlined
def _file(trees, nodes, leaves, known, address, out, filed):  # type: ignore[no-untyped-def]
    """Files the row whose code is at `address` under its marked leaves; how much is filed by then."""
    test, operand_at, operand_count, operands = (
        nodes.test,
        nodes.operand_at,
        nodes.operand_count,
        nodes.operands,
    )
    filed_node, filed_address, filed_check = out.filed_node, out.filed_address, out.filed_check
    for k in range(leaves):
        i = nodes.in_order[k]
        if not nodes.marked[i] or test[i] == FALSE:
            continue
        attribute = trees[nodes.word[i] + 1]
        root, height = known.base[attribute], np.int64(known.height[attribute])
        at = operand_at[i]
        check = _checks(trees, nodes, known, i)
        begin = filed
        if test[i] == POINT or test[i] == ONE_OF:
            low = at if test[i] == POINT else at + 1
            for j in range(low, at + operand_count[i]):
                filed_node[filed] = root + (1 << height) + operands[j]
                filed += 1
        elif test[i] == RANGE:
            low, high = operands[at], operands[at + 1]
            level = 0
            while (high >> level) - (low >> level) >= COVER:
                level += 1
            for j in range(low >> level, (high >> level) + 1):
                filed_node[filed] = root + (1 << (height - level)) + j
                filed += 1
        else:
            filed_node[filed] = root + 1
            filed += 1
        for j in range(begin, filed):
            filed_address[j], filed_check[j] = address, check
    return filed


@inlined
def _checks(trees, nodes, known, leaf):  # type: ignore[no-untyped-def]
    """The two rarest other leaves that have to hold too wherever filing under `leaf` leads to a match.

    Such are the children of all ANDs above it: were one of them false, some other child of an OR would have to hold, and
    that has a filing of its own.
    """
    first = second = np.int64(NO_CHECK)
    rarest = next_rarest = _NEVER_FILED
    below, node = leaf, nodes.parent[leaf]
    while node >= 0:
        if nodes.kind[node] == AND:
            child = node + 1
            while child < node + nodes.span[node]:
                test = nodes.test[child]
                if (
                    child != below
                    and nodes.kind[child] == 0
                    and (test == POINT or test == RANGE or test == ONE_OF)
                    and not trees[nodes.word[child]] & NEGATED
                    and trees[nodes.word[child] + 1] < NARROW_LIMIT
                ):
                    attribute = np.int64(trees[nodes.word[child] + 1])
                    at, count = nodes.operand_at[child], nodes.operand_count[child]
                    low = nodes.operands[at + 1] if test == ONE_OF else nodes.operands[at]
                    high = nodes.operands[at + count - 1]
                    # Several options are checked as all that lies between them.
                    weight = nodes.weight[child] * (1 if test != ONE_OF else 1 + (high - low) / (2.0 * count))
                    shift = known.shift[attribute]
                    check = attribute << 16 | (low >> shift) << 8 | high >> shift
                    if weight < rarest:
                        second, next_rarest = first, rarest
                        first, rarest = check, weight
                    elif weight < next_rarest:
                        second, next_rarest = check, weight
                child += nodes.span[child]
        below, node = node, nodes.parent[node]
    return first << 32 | second


@inlined
def _comes_before(child, other, kind, weight, marked):  # type: ignore[no-untyped-def]
    """The order among children. In an AND the one it is filed under comes last: it is most likely known to hold."""
    if kind == AND:
        if marked[child] != marked[other]:
            return marked[other]
        return weight[child] < weight[other]
    return weight[child] > weight[other]


@inlined
def _is_small(nodes, i):  # type: ignore[no-untyped-def]
    """Whether a leaf's positions fit into a byte each; they ascend."""
    at, count = nodes.operand_at[i], nodes.operand_count[i]
    if nodes.test[i] == RANGE or nodes.test[i] == ONE_OF:
        return nodes.operands[at + count - 1] < SMALL_LIMIT and count < SMALL_LIMIT
    return False


@inlined
def _longest_jump(nodes, leaves, narrow):  # type: ignore[no-untyped-def]
    """Lays the leaves out: where each begins; returns how far the longest jump goes."""
    in_order, offset = nodes.in_order, nodes.offset
    length, longest = 0, 0
    for k in range(leaves):
        i = in_order[k]
        offset[k] = length
        count = nodes.operand_count[i]
        if narrow and _is_small(nodes, i):
            count = 1 if nodes.test[i] == RANGE else (count + 1) // 2
        length += 2 + count
    for k in range(leaves - 1):
        i = in_order[k]
        target = nodes.on_false[i] if nodes.on_true[i] == k + 1 else nodes.on_true[i]
        if target >= 0:
            longest = max(longest, offset[target] - offset[k])
    return longest


@inlined
def _emit(code, at, trees, nodes, leaves, narrow):  # type: ignore[no-untyped-def]
    in_order, offset, operands = nodes.in_order, nodes.offset, nodes.operands
    for k in range(leaves):
        i = in_order[k]
        word = nodes.word[i]
        small = narrow and _is_small(nodes, i)
        control = nodes.test[i]
        if small:
            control = SMALL_RANGE if nodes.test[i] == RANGE else SMALL_ONE_OF
        if trees[word] & NEGATED:
            control |= NEGATED_BIT
        if k + 1 == leaves:
            control |= LAST_BIT
        else:
            target = nodes.on_true[i]
            if target == k + 1:
                target = nodes.on_false[i]
            else:
                control |= SENSE_BIT
            if target >= 0:
                control |= (offset[target] - offset[k]) << JUMP_SHIFT
        code[at], code[at + 1] = trees[word + 1], control
        at += 2
        first, count = nodes.operand_at[i], nodes.operand_count[i]
        if small:
            for j in range(first, first + count, 2):
                code[at] = operands[j] | operands[min(j + 1, first + count - 1)] << 8
                at += 1
        else:
            for j in range(first, first + count):
                code[at] = operands[j]
                at += 1
    return at


@compiled
def sort_entries(filed_node, filed_address, filed_check, first, entries):  # type: ignore[no-untyped-def]
    """Counting sort by node; `first` comes with the counts behind each node and leaves with the starts."""
    total = 0
    for n in range(first.shape[0]):
        count = first[n]
        first[n] = total
        total += count
    for i in range(filed_node.shape[0]):
        n = filed_node[i]
        entries[3 * first[n]] = filed_address[i]
        entries[3 * first[n] + 1] = filed_check[i] >> _BITS
        entries[3 * first[n] + 2] = filed_check[i] & _HALF
        first[n] += 1
    for n in range(first.shape[0] - 1, 0, -1):
        first[n] = first[n - 1]
    first[0] = 0
