"""Plans the search for joined rows: from one table of a shape to all others, along the columns that they share.

A step adds one table, from the earlier table that shares the most columns with it. Columns that it shares with further
tables are compared when a row is chosen; only cyclic joins need that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidings.kinds.joins.schema.shape import JoinShape


class SearchStep(NamedTuple):
    slot: int
    parent: int  # the step that it goes on from
    key: tuple[int, ...]  # columns of its own table
    from_columns: tuple[int, ...]  # columns of the parent's table with the same values
    equals: tuple[tuple[int, int, int], ...]  # (step, its column, own column)


def plan(shape: JoinShape, start: int) -> list[SearchStep]:
    """The steps from a slot to all others; the slot itself is the first."""
    held = [dict[int, int]() for _ in shape.tables]  # of each slot: variable -> column
    for variable, refs in enumerate(shape.variables):
        for slot, column in refs:
            held[slot][variable] = column
    steps = [SearchStep(start, 0, (), (), ())]
    while len(steps) < len(shape.tables):
        done = [step.slot for step in steps]
        shared, parent, slot = max(
            (len(held[slot].keys() & held[before].keys()), -at, -slot)
            for at, before in enumerate(done)
            for slot in range(len(shape.tables))
            if slot not in done
        )
        assert shared
        slot, parent = -slot, -parent
        variables = sorted(held[slot].keys() & held[done[parent]].keys())
        equals = tuple(
            (at, held[done[at]][variable], held[slot][variable])
            for variable in sorted(held[slot].keys() - set(variables))
            if (at := _first_with(variable, done, held)) is not None
        )
        steps.append(
            SearchStep(
                slot,
                parent,
                tuple(held[slot][variable] for variable in variables),
                tuple(held[done[parent]][variable] for variable in variables),
                equals,
            )
        )
    return steps


def _first_with(variable: int, slots: Sequence[int], held: Sequence[dict[int, int]]) -> int | None:
    return next((at for at, slot in enumerate(slots) if variable in held[slot]), None)
