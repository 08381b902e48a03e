"""Evaluates many events of a network at once: reads them together, then walks in one compiled loop (kernels/batches.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tidings.kinds.networks.kernels.batches import reach_many
from tidings.kinds.networks.kernels.layout import PREFERRED
from tidings.kinds.networks.kernels.walks import adaptive
from tidings.kinds.networks.snapshot import NetworkSnapshot
from tidings.kinds.networks.walk import Walk

_ROOM = 1 << 16


def reach_all(
    snapshot: NetworkSnapshot, sources: Sequence[int], events: Sequence[Mapping[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that each event reaches from its own source, as two columns: (row of the event, number of the node)."""
    count = len(sources)
    first, numbers = np.zeros(count + 1, dtype=np.int64), np.empty(_ROOM, dtype=np.int32)
    if not count:
        return np.zeros(0, dtype=np.int64), numbers[:0]
    pairs, begun = snapshot.expression_index.read(events), perf_counter()
    space, entered = snapshot.begin(sources[0], pairs, 0, choose=True, single_event=False)
    way, looked, done = int(space.registers[PREFERRED]), 0, 0
    ids = np.array(sources, dtype=np.int64)
    while done < count:
        done, more = reach_many(
            done,
            ids,
            way,
            snapshot.graph,
            snapshot.filters,
            entered,
            space,
            snapshot.wiring.owner,
            first,
            numbers,
        )
        looked += more
        if done < count:  # out of room, or at an expression that is newer than the index
            walk = Walk(snapshot, sources[done], events[done], adaptive, read=(pairs, done))
            found = snapshot.node_numbers(walk.advance(snapshot.size))
            filled = first[done] + len(found)
            if filled + len(found) > len(numbers):
                numbers = np.concatenate([numbers, np.empty(len(numbers) + len(found), dtype=np.int32)])
            numbers[first[done] : filled] = found
            first[done + 1] = filled
            done += 1
    snapshot.end(space, entered)
    snapshot.choice.learn(bool(way), looked, perf_counter() - begun)
    return np.repeat(np.arange(count), np.diff(first)), numbers[: first[-1]]
