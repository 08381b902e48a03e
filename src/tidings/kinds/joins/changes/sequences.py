"""Sequences: refuses changes that arrive again or late.

A source numbers its changes upwards; the last number of each source is kept, and a change whose number is not above it
is refused. Several changes may have the same position in a database's log, so there an equal number is admitted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

NONE = -(2**63)  # the sequence of a change that has none: it is always taken


@dataclass(slots=True)
class Sequences:
    """The last sequence that was taken of each source."""

    last: dict[str, int] = field(default_factory=dict)

    def admit(self, source: str, sequence: int, ties: bool = False) -> bool:
        """Whether the change is to be applied; if so, it is the last of its source from now on."""
        if sequence == NONE:
            return True
        last = self.last.get(source, NONE)
        if sequence < last or (sequence == last and not ties):
            return False
        self.last[source] = sequence
        return True

    def admit_all(self, source: pa.Array, sequence: np.ndarray, ties: np.ndarray) -> np.ndarray:
        """`admit` for one change after another: whether each is to be applied."""
        admitted = np.ones(len(sequence), dtype=np.bool_)
        counted = np.flatnonzero(sequence != NONE)
        if not len(counted):
            return admitted
        encoded = source.take(pa.array(counted)).dictionary_encode()
        names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        for mine in np.split(counted[order], np.flatnonzero(np.diff(codes[order])) + 1):
            name = names[codes[np.searchsorted(counted, mine[0])]]
            reached = np.maximum.accumulate(np.append(self.last.get(name, NONE), sequence[mine]))
            admitted[mine] = (sequence[mine] > reached[:-1]) | (ties[mine] & (sequence[mine] == reached[:-1]))
            self.last[name] = int(reached[-1])
        return admitted
