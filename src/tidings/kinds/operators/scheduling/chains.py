"""Linked chains: orders the rows, and the predicates of each row, for evaluation. Sub-Order 4.2.

A chain is a row's predicates by ascending cost / (1 - p), ties by number: the order that is cheapest for the row
alone, and the same for all rows, so that two chains hold what they share in one order. Evaluating u before v saves
the difference of both orders' expected costs, which is not 0 only where they share a predicate. The greedy path of
4.2.5 takes such edges by saving, largest first, while every row has at most one row before and one after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kinds.operators.kernels import chains as kernels

# For each predicate, its chains stand in the order of P / C there (the chance to reach it over the cost to get there)
# and each is compared with so many of the next ones: a predicate of all rows costs no more comparisons than others.
# Measured on 2,000 rows over 1,000 predicates with p around 0.2, uniform and Zipf, equal and unequal costs: 4, 16 or
# 64 neighbours took 0 to 5 % more evaluations than one; distant or random others instead of the next no fewer.
NEIGHBOURS = 1


class Chains(NamedTuple):
    """Row r has the predicates member[first[r] : first[r + 1]], from top to bottom; `order` is all rows, first to last."""

    first: np.ndarray
    member: np.ndarray
    order: np.ndarray


def order_chains(first: np.ndarray, member: np.ndarray, p: np.ndarray, cost: np.ndarray) -> Chains:
    """The rows in the order of Sub-Order; p is the chance that a predicate holds, cost what evaluating it takes.

    How the paths follow each other is not in the paper: here by the average precedence of their rows. As measured for
    NEIGHBOURS, that saves 4 to 11 % against a random order of the rows, and paths in the order of their rows only 2 %.
    (Rows sorted by precedence alone, without paths, would save 6 to 14 %; then it would not be Sub-Order.)
    """
    member = sort_members(first, member, p, cost)
    reach, spent = np.empty(len(member)), np.empty(len(member))
    kernels.walk_chains(first, member, p, cost, reach, spent)
    row = _rows(first)
    source, target, saving = _edges(
        first, member, p, cost, row, np.lexsort((np.arctan2(spent, reach), member))
    )
    following, preceding = np.full(len(first) - 1, -1, np.int32), np.full(len(first) - 1, -1, np.int32)
    end = np.arange(len(first) - 1, dtype=np.int32)
    kernels.join_paths(np.argsort(-saving, kind="stable"), source, target, following, preceding, end)
    heads = np.flatnonzero(preceding < 0).astype(np.int32)
    mean = np.empty(len(heads))
    kernels.average_paths(heads, following, _precedence(row, member, p, reach, spent, len(first) - 1), mean)
    order = np.empty(len(first) - 1, np.int32)
    kernels.lay_paths(heads[np.argsort(-mean, kind="stable")], following, order)
    return Chains(first, member, order)


def sort_members(first: np.ndarray, member: np.ndarray, p: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The members of every row from the top of its chain to the bottom."""
    sorted_member: np.ndarray = member[np.lexsort((member, _key(p, cost)[member], _rows(first)))]
    return sorted_member


def difference(first: np.ndarray, second: np.ndarray, p: np.ndarray, cost: np.ndarray) -> float:
    """Expected cost of evaluating chain `first` and then `second`, less that of `second` and then `first`. Sub-Order 4.2.4.

    The sum over the shared predicates t of (1 - p_t) (P_two C_one - P_one C_two): P is the product of all p above t
    in a chain, C the expected cost of those above t that the chains do not share, as if there were no others. The
    printed form, which has 1 for C at the top, does not agree with enumeration; this one does. With unequal costs
    only C changes: a shared predicate costs the same in both orders.
    """
    return float(kernels.pair_difference(first, second, _key(p, cost), p, cost))


def find_position(chains: Chains, chain: np.ndarray, p: np.ndarray, cost: np.ndarray) -> int:
    """The position of a new chain in the order: where the differences to all chains that share with it sum to the least.

    At the end if it shares nothing. p and cost are those by which the chains were sorted, longer for new predicates.
    """
    is_its = np.zeros(len(p), np.uint8)
    is_its[chain] = 1
    after = np.zeros(len(chains.order))
    kernels.compare_one(chain, is_its, chains.first, chains.member, _key(p, cost), p, cost, after)
    totals = np.append(0.0, np.cumsum(after[chains.order]))
    return len(totals) - 1 - int(np.argmin(totals[::-1]))


def insert(chains: Chains, members: np.ndarray, p: np.ndarray, cost: np.ndarray) -> Chains:
    """The chains with one row more, the last by number, at its position in the order; all others keep their order."""
    chain = sort_members(np.array([0, len(members)]), members.astype(np.int32, copy=False), p, cost)
    return Chains(
        first=np.append(chains.first, chains.first[-1] + len(chain)),
        member=np.concatenate((chains.member, chain)),
        order=np.insert(chains.order, find_position(chains, chain, p, cost), len(chains.order)),
    )


def _key(p: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The sort key of predicates in a chain; one that always holds is at the bottom."""
    return np.divide(cost, 1.0 - p, out=np.full(len(p), np.inf), where=p < 1.0)


def _rows(first: np.ndarray) -> np.ndarray:
    """The row of every member."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))


def _edges(
    first: np.ndarray, member: np.ndarray, p: np.ndarray, cost: np.ndarray, row: np.ndarray, slot: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sparse sharing graph: source, target and what it saves to evaluate the source first."""
    room = len(slot) * NEIGHBOURS
    source, target, saving = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    count = kernels.compare_neighbours(
        slot, row, first, member, _key(p, cost), p, cost, NEIGHBOURS, source, target, saving
    )
    return source[:count], target[:count], saving[:count]


def _precedence(
    row: np.ndarray, member: np.ndarray, p: np.ndarray, reach: np.ndarray, spent: np.ndarray, rows: int
) -> np.ndarray:
    """P / C of a whole row, as an angle: what it saves if it comes before all rows that share with it, over what it
    costs them if it comes before them. Sums over each predicate's rows give both without comparing any pair; where
    two rows share several predicates, C counts the shared ones too.
    """
    falls = 1.0 - p[member]
    others_spent = np.bincount(member, spent, len(p))[member] - spent
    others_reach = np.bincount(member, reach, len(p))[member] - reach
    saved = np.bincount(row, falls * reach * others_spent, rows)
    lost = np.bincount(row, falls * spent * others_reach, rows)
    return np.arctan2(saved, lost)
