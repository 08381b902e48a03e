"""Route: of the answers of subscriptions that have a place in a network, those whose event gets there.

An event is published at the node that its `source` names. It is walked through each network once, however many
subscriptions wait there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidings.kinds.networks.network import Network
from tidings.language.query import Via

Attributes = Callable[[int], Mapping[str, Any] | None]


class Routes:
    """The ways of a batch's events: of a row, `source` is the node where it is published, and `attributes` gives its
    attributes, or None if they cannot be read."""

    def __init__(
        self, networks: Mapping[str, Network], source: Callable[[int], str | None], attributes: Attributes
    ) -> None:
        self._networks, self._source, self._attributes = networks, source, attributes
        self._reached: dict[tuple[int, str], set[int]] = {}

    def arrive(self, rows: np.ndarray, places: np.ndarray, of: Sequence[Via]) -> np.ndarray:
        """Whether the event of each row gets to its place, a number in `of`; -1 is nowhere in a network."""
        keep = places < 0
        waiting = np.flatnonzero(~keep).tolist()
        for name in {of[places[i]].network for i in waiting}:
            network = self._networks.get(name)
            if network is None:
                continue
            mine = [i for i in waiting if of[places[i]].network == name]
            self._walk(sorted({int(rows[i]) for i in mine}), name, network)
            for i in mine:
                node = of[places[i]].node
                keep[i] = node in network and network.number(node) in self._reached[int(rows[i]), name]
        return keep

    def _walk(self, rows: list[int], name: str, network: Network) -> None:
        """Walks the events of those rows that were not walked yet through a network."""
        walked: list[int] = []
        for row in rows:
            if (row, name) not in self._reached:
                self._reached[row, name] = set()
                source = self._source(row)
                if source is not None and source in network and self._attributes(row) is not None:
                    walked.append(row)
        sources = [self._source(row) or "" for row in walked]
        events, numbers = network.reached(sources, [self._attributes(row) or {} for row in walked])
        for event, number in zip(events.tolist(), numbers.tolist(), strict=True):
            self._reached[walked[event], name].add(number)
