"""The index of expressions as the walks see it: the next row that accepts an event, and whether a row does."""

from __future__ import annotations

from tidings.arrays.compiled import inlined


@inlined
def accepts(row, filters, event):  # type: ignore[no-untyped-def]
    return event[row] != 0


@inlined
def seek(row, filters, event):  # type: ignore[no-untyped-def]
    while row < event.shape[0]:
        if event[row] != 0:
            return row
        row += 1
    return -1
