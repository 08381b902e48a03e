"""How a network and an evaluation lie in arrays: what every compiled loop of networks takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# What an entity's expression is to an evaluation that reaches it: removed, so no event passes; none, so every event
# passes; newer than the index, so it is asked elsewhere; or a row of the index.
GONE, ALWAYS, ASKED, INDEXED = range(4)
NOWHERE = -1
# What an evaluation knows of an entity, added to its epoch (a multiple of STEP): what is below was never met.
REACHED, VALID, SETTLED, STEP = 1, 2, 4, 8
LAST_EPOCH = 1 << 30
# Why a loop returned: all is found, enough is found for now, or entities in `asked` have to be decided first.
DONE, ENOUGH, ASKING = range(3)
SMALL = 64  # expressions that an evaluation runs breadth-first in any case
# Registers of an evaluation.
(
    FOUND,
    FOLLOWED,
    ASKS,
    SKIP,
    EPOCH,
    RETRIEVED,
    LOOKED,
    VERIFIED,
    PREFERRED,
    SOURCE,
    AT_ONCE,
    WAITING,
    EVENT,
    LISTS,
) = range(14)
REGISTERS = 14


class Graph(NamedTuple):
    """Entities by id, as in wiring.py. The rows of the index are the ids in `indexed`; row_of[i] is the row of id i,
    or of the next id that has one."""

    first: np.ndarray
    child: np.ndarray
    head: np.ndarray
    link_next: np.ndarray
    link_child: np.ndarray
    kind: np.ndarray
    group: np.ndarray
    indexed: np.ndarray
    row_of: np.ndarray


class Space(NamedTuple):
    """What an evaluation has found out.

    state[i] is epoch + REACHED + VALID + SETTLED for entity i; `found` are results in the order of their finding, whose
    children are to be looked at from FOLLOWED on; `asked` are reached, to be decided elsewhere; `marks` has a bit for
    each id, set for the first id of a group that is reached.
    """

    registers: np.ndarray
    state: np.ndarray
    found: np.ndarray
    asked: np.ndarray
    marks: np.ndarray
