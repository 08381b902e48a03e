"""Why an event reaches a node of a network, or where it was stopped, in clauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.kinds.networks.network import Network
from tidings.language.query import Via
from tidings.model.explanation import Clause

MAX_CUTS = 20


def route(via: Via, network: Network | None, source: str, attributes: Mapping[str, Any]) -> Iterator[Clause]:
    """The valid path to a place, or the frontier where every path to it was cut."""
    text = f"VIA {via.network} AT '{via.node}'"
    if network is None or via.node not in network:
        yield Clause(text, False, "there is no such place any more")
    elif source not in network:
        yield Clause(text, False, f"the event's source {source!r} is no node of this network")
    elif steps := network.path(source, attributes, via.node):
        yield Clause(text, True, " → ".join([source, *(step.node for step in steps)]))
        before = source
        for step in steps:
            if step.edge_where:
                yield Clause(step.edge_where, True, f"the edge {before} → {step.node}", 1)
            if step.node_where:
                yield Clause(step.node_where, True, step.node, 1)
            before = step.node
    else:
        cuts = network.frontier(source, attributes, via.node)
        yield Clause(text, False, "every path is cut" if cuts else f"no path leads there from {source}")
        for cut in cuts[:MAX_CUTS]:
            edge = isinstance(cut.place, tuple)
            position = f"the edge {cut.place[0]} → {cut.place[1]}" if edge else f"{cut.place}"
            yield Clause(cut.where, False, f"cut at {position}", 1)
        if len(cuts) > MAX_CUTS:
            yield Clause(f"… and {len(cuts) - MAX_CUTS:,} more", None, "", 1)
