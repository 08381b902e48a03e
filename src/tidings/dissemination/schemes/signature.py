"""Signatures and semijoins: which tables are joined on which columns, without the ranges. Select-joins, 2.2 and 4.

A join signature is a connected graph whose nodes are tables and whose edges equate columns. A semijoin R^S lets those
rows of its base table R through that join a row of its filtering table S. Ranges are over one column of each table,
the same for all subscriptions of a signature (Appendix C says how to choose it); the subscriber applies the rest of a
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidings.kinds.joins.schema.shape import JoinShape


class Side(NamedTuple):
    """A table in a join: the equated columns, and the column that ranges select by, or None."""

    table: str
    join: tuple[int, ...]
    selection: int | None


class Semijoin(NamedTuple):
    """The form R^S: rows of `base` that join some row of `filtering`, both within the subscription's ranges."""

    base: Side
    filtering: Side

    def __str__(self) -> str:
        return f"{self.base.table}^{self.filtering.table}"


class Edge(NamedTuple):
    """Two tables, by their positions in the signature, and the columns of each that are equated."""

    left: int
    right: int
    left_columns: tuple[int, ...]
    right_columns: tuple[int, ...]


class Signature(NamedTuple):
    tables: tuple[str, ...]
    edges: tuple[Edge, ...]
    selections: tuple[int | None, ...]

    def semijoins(self, table: str) -> Iterator[Semijoin]:
        """The choices for a base table: one for each neighbour in the join graph."""
        slot = self.tables.index(table)
        for edge in self.edges:
            if slot in (edge.left, edge.right):
                ends = [(edge.left, edge.left_columns), (edge.right, edge.right_columns)]
                left, right = (Side(self.tables[at], columns, self.selections[at]) for at, columns in ends)
                yield Semijoin(left, right) if slot == edge.left else Semijoin(right, left)

    def __str__(self) -> str:
        return " ⋈ ".join(self.tables)


class LongSemijoin(NamedTuple):
    """The form R^R̄ of Appendix F: those rows of one table, given by its position, that occur in the whole join."""

    signature: Signature
    base: int

    def remainders(self) -> list[tuple[int, ...]]:
        """The connected parts of the join graph without the base table, as positions."""
        left, found = [slot for slot in range(len(self.signature.tables)) if slot != self.base], []
        while left:
            part = [left.pop(0)]
            for slot in part:  # which grows
                near = [{edge.left, edge.right} for edge in self.signature.edges]
                reached = [other for other in left if {slot, other} in near]
                part += reached
                left = [other for other in left if other not in reached]
            found.append(tuple(sorted(part)))
        return found

    def joined_to(self, slots: tuple[int, ...]) -> Signature:
        """The join of the base table, which comes first, with the tables of a remainder."""
        order = (self.base, *slots)
        tables, edges, selections = self.signature
        inner = (
            Edge(order.index(edge.left), order.index(edge.right), edge.left_columns, edge.right_columns)
            for edge in edges
            if edge.left in order and edge.right in order
        )
        return Signature(
            tuple(tables[slot] for slot in order), tuple(inner), tuple(selections[slot] for slot in order)
        )

    def __str__(self) -> str:
        return f"{self.signature.tables[self.base]} of {self.signature}"


def binary(left: Side, right: Side) -> Signature:
    """The signature of Example 2: R(A, B) ⋈ S(B, C)."""
    edge = Edge(0, 1, left.join, right.join)
    return Signature((left.table, right.table), (edge,), (left.selection, right.selection))


def signature_of(shape: JoinShape, choose: Callable[[int, tuple[int, ...]], int | None]) -> Signature:
    """The signature of a subscription's shape. Several equated columns are one composite (Appendix C); `choose` takes
    a slot and the columns that are selected on there, and says which of them the ranges look at."""
    edges = []
    for left in range(len(shape.tables)):
        for right in range(left + 1, len(shape.tables)):
            variables = [dict(variable) for variable in shape.variables]
            shared = [variable for variable in variables if left in variable and right in variable]
            if shared:
                columns = (tuple(variable[end] for variable in shared) for end in (left, right))
                edges.append(Edge(left, right, *columns))
    selected = [
        tuple(column for at, column in shape.selections if at == slot) for slot in range(len(shape.tables))
    ]
    chosen = tuple(choose(slot, columns) if columns else None for slot, columns in enumerate(selected))
    return Signature(shape.tables, tuple(edges), chosen)
