"""The nodes and edges of a network as columns, in the order in which they were given.

Node i is the name with the number node[i]; edge j leads from node source[j] to node target[j]. An expression is a
number among the network's expressions, -1 for none. Files hold these columns, and ids are computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Columns:
    node: np.ndarray
    node_where: np.ndarray
    node_cost: np.ndarray
    source: np.ndarray
    target: np.ndarray
    edge_where: np.ndarray
    edge_cost: np.ndarray

    @classmethod
    def empty(cls) -> Columns:
        numbers, costs = np.zeros(0, dtype=np.int32), np.zeros(0)
        return cls(numbers, numbers, costs, numbers, numbers, numbers, costs)
