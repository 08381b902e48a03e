"""Route: of the answers of subscriptions that have a place in a network, those whose event gets there.

An event is published at the node that its `source` names. It is walked through each network once, however many
subscriptions wait there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidings.language.query import Via
from tidings.network.network import Network

Attributes = Callable[[int], Mapping[str, Any] | None]


class Routes:
    """The ways of a batch's events: of a row, `source` is the node where it is published, and `attributes` gives its
    attributes, or None if they cannot be read."""

    def __init__(
        self, networks: Mapping[str, Network], source: Callable[[int], str | None], attributes: Attributes
    ) -> None:
        self._networks, self._source, self._attributes = networks, source, attributes
        self._reached: dict[tuple[int, str], frozenset[int]] = {}

    def arrive(self, rows: np.ndarray, places: np.ndarray, of: Sequence[Via]) -> np.ndarray:
        """Whether the event of each row gets to its place, a number in `of`; -1 is nowhere in a network."""
        keep = places < 0
        for i in np.flatnonzero(~keep).tolist():
            via = of[places[i]]
            network = self._networks.get(via.network)
            if network is not None and via.node in network:
                keep[i] = network.number(via.node) in self._walk(int(rows[i]), via.network, network)
        return keep

    def _walk(self, row: int, name: str, network: Network) -> frozenset[int]:
        found = self._reached.get((row, name))
        if found is None:
            source, attributes = self._source(row), self._attributes(row)
            found = frozenset()
            if attributes is not None and source is not None and source in network:
                found = frozenset(network.evaluate(source, attributes).numbers().tolist())
            self._reached[row, name] = found
        return found
