"""Decomposes joins of many tables into binary semijoins, one for each table. Select-joins, 4.

A table is filtered by one of its neighbours in the join graph; the choice only affects the cost, because the client
joins the rows it receives and any neighbour admits every row that takes part in a result. All semijoins of one form are
one group, and a group costs as much as one of its semijoins times their number. So the cheapest neighbour of each table
is best, whatever the others choose (Appendix E).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.dissemination.schemes.signature import Semijoin, Signature

Cost = Callable[[Semijoin], float]
Decomposition = dict[Signature, tuple[Semijoin, ...]]


def decompose(signatures: Iterable[Signature], cost: Cost) -> Decomposition:
    """For each signature its semijoins, one for each table in order; none where there is a single table.

    Table by table, the cheapest form first: all signatures that have it take it, unless they took one before.
    """
    wanted = list(dict.fromkeys(signatures))
    tables = dict.fromkeys(table for signature in wanted for table in signature.tables)
    chosen: dict[tuple[Signature, str], Semijoin] = {}
    for table in tables:
        having: dict[Semijoin, list[Signature]] = {}
        for signature in wanted:
            if table in signature.tables:
                for form in signature.semijoins(table):
                    having.setdefault(form, []).append(signature)
        for form in sorted(having, key=lambda form: (cost(form), str(form))):
            for signature in having[form]:
                chosen.setdefault((signature, table), form)
    return {
        signature: tuple(
            chosen[signature, table] for table in signature.tables if (signature, table) in chosen
        )
        for signature in wanted
    }
