"""`Network`, the public class: a graph of publishers, intermediaries and subscribers.

Nodes have names; a node and an edge may have an expression, which an event has to satisfy to pass, and a cost. A
network may change while it is evaluated: a running evaluation continues on the network as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.arrays.vocabulary import join_texts
from tidings.kinds.networks.algorithm_choice import AlgorithmChoice
from tidings.kinds.networks.batch import reach_all
from tidings.kinds.networks.evaluation import Evaluation
from tidings.kinds.networks.expressions import NONE, Expressions
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.storage import load_network, save_network
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.index.filing import ExpressionIndex, choose_rows
from tidings.kinds.networks.index.names import NodeNames
from tidings.kinds.networks.index.tail import Tail
from tidings.kinds.networks.index.wiring import Wiring
from tidings.kinds.networks.kernels.layout import NOWHERE
from tidings.kinds.networks.labels import MATCHES, labels_condition
from tidings.kinds.networks.paths import Cut, PathStep, find_frontier, find_path
from tidings.kinds.networks.ranking import Ranking
from tidings.kinds.networks.snapshot import NetworkSnapshot
from tidings.language.query import Condition

if TYPE_CHECKING:
    import pyarrow as pa

Where = str | Condition | Iterable[str] | None


class Network:
    """Publishers, intermediaries and subscribers, and the edges between them; each may have a condition on events."""

    def __init__(self, match: str = "expression", labels: str = "labels") -> None:
        """`match` other than "expression": nodes have labels, held against the event's attribute `labels`."""
        if match not in MATCHES:
            raise NetworkError(f"a network cannot match by {match!r}; give one of {', '.join(MATCHES)}")
        self.match, self.labels = match, labels
        self._lock = RLock()
        self._journal: list[tuple[str, tuple[Any, ...]]] | None = None  # changes during a rebuild
        self._fill(NodeNames(*join_texts(())), Expressions(), Columns.empty())

    @classmethod
    def from_tables(
        cls, nodes: pa.Table, edges: pa.Table, *, match: str = "expression", labels: str = "labels"
    ) -> Network:
        """A network of any size: nodes with columns id, where?, cost? (labels? for a match function), edges with
        source, target, where?, cost?."""
        from tidings.kinds.networks.files.tables import read_tables

        network = cls(match, labels)
        network._fill(*read_tables(nodes, edges, match, labels))
        return network

    @classmethod
    def load(cls, folder: str | Path) -> Network:
        """A network that was saved; an `IndexFileError` says what is wrong with the folder."""
        names, expressions, columns, facts = load_network(Path(folder))
        network = cls(facts["match"], facts["labels"])
        network._fill(names, expressions, columns)
        return network

    def save(self, folder: str | Path) -> None:
        """Writes the network as arrays that `load` reads."""
        with self._lock:
            columns, facts = self._wiring.columns(), {"match": self.match, "labels": self.labels}
            save_network(Path(folder), self._names, self._expressions, columns, facts)

    def _fill(self, names: NodeNames, expressions: Expressions, columns: Columns) -> None:
        self._names, self._expressions = names, expressions
        self._count = len(columns.node)
        self._tail = Tail(expressions, self._lock)
        self._choice = AlgorithmChoice()
        self._number(columns)

    def _number(self, columns: Columns) -> None:
        """Ids for everything; the index of expressions is made when an event comes."""
        self._wiring = Wiring(columns)
        self._expression_index: ExpressionIndex | None = None
        self._snapshot: NetworkSnapshot | None = None

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        """The number of nodes."""
        return self._count

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._wiring.node(self._names.find(name)) != NOWHERE

    def __repr__(self) -> str:
        return f"<Network of {self._count:,} nodes>"

    def nodes(self) -> Iterator[tuple[str, str | None]]:
        """Every node's name and the text of its expression."""
        wiring, text = self._wiring, self._expressions.text
        for number, name in enumerate(self._names):
            if (entity := wiring.node(number)) != NOWHERE:
                yield name, text(int(wiring.where[entity]))

    def edges(self) -> Iterator[tuple[str, str, str | None]]:
        """Every edge: source, target, and the text of its expression."""
        wiring, names, text = self._wiring, self._names, self._expressions.text
        edges = wiring.edges()
        where = (
            np.where(edges.entity >= 0, wiring.where[edges.entity], NONE)
            if len(edges.entity)
            else edges.entity
        )
        owners = wiring.owner[edges.source].tolist(), wiring.owner[edges.target].tolist()
        for source, target, number in zip(*owners, where.tolist(), strict=True):
            yield names[source], names[target], text(number)

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """All nodes and edges as rows that `network_of_rows` reads: {"nodes": [{"id", "where"?, "cost"?}, …], "edges": …}."""
        with self._lock:
            columns, names, text = self._wiring.columns(), self._names, self._expressions.text
            nodes = zip(columns.node, columns.node_where, columns.node_cost, strict=True)
            edges = zip(columns.source, columns.target, columns.edge_where, columns.edge_cost, strict=True)
            return {
                "nodes": [_row({"id": names[node]}, text(int(where)), cost) for node, where, cost in nodes],
                "edges": [
                    _row({"source": names[source], "target": names[target]}, text(int(where)), cost)
                    for source, target, where, cost in edges
                ],
            }

    # ------------------------------------------------------------------ evaluation

    def evaluate(self, source: str, event: Mapping[str, Any], algorithm: str = "auto") -> Evaluation:
        """The names of the nodes that an event reaches from `source`, given while it is evaluated."""
        with self._lock:
            return Evaluation(self._now(), self._id(source), event, algorithm)

    def reached(
        self, sources: Sequence[str], events: Sequence[Mapping[str, Any]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Many events, each published at the source beside it, read at once: columns of answers, the place of the
        event in `events` and the number of a node that it reaches."""
        with self._lock:
            return reach_all(self._now(), [self._id(source) for source in sources], events)

    def top(self, source: str, event: Mapping[str, Any], k: int | None = None) -> Iterator[tuple[str, float]]:
        """The nodes reached at the least cost with that cost, cheapest first: k of them, or as many as are taken."""
        if k is not None and k < 0:
            raise NetworkError(f"k is {k}; give how many nodes you want, from 0 on")
        with self._lock:
            return islice(Ranking(self._now(), self._id(source), event), k)

    @property
    def has_costs(self) -> bool:
        """Whether a node or an edge has a cost."""
        with self._lock:
            return self._now().has_costs

    def costs(self, source: str, event: Mapping[str, Any], nodes: Iterable[str]) -> dict[str, float]:
        """The cost of the cheapest valid path to each of these nodes that the event reaches."""
        with self._lock:
            ranking = Ranking(self._now(), self._id(source), event)
        return ranking.until(set(nodes))

    def path(self, source: str, event: Mapping[str, Any], node: str) -> list[PathStep] | None:
        """The steps of a valid path by which the event gets to the node; None if there is none."""
        with self._lock:
            return find_path(self._now(), self._id(source), event, self._id(node))

    def frontier(self, source: str, event: Mapping[str, Any], node: str) -> list[Cut]:
        """The nodes and edges that stopped the event on its ways to the node; none if it gets there, or if there
        are no ways."""
        with self._lock:
            return find_frontier(self._now(), self._id(source), event, self._id(node))

    def number(self, name: str) -> int:
        """A node's number, which it keeps for good."""
        self._id(name)
        return self._names.find(name)

    def name(self, number: int) -> str:
        """The name of a node by its number."""
        return self._names[number]

    def _file(self, wiring: Wiring) -> ExpressionIndex:
        with self._lock:
            rows = choose_rows(self._expressions.table, wiring.indexed_where)
        return ExpressionIndex(rows, wiring.indexed_where)

    def _now(self) -> NetworkSnapshot:
        """A snapshot of the network, renumbered first if most of it is newer than its ids."""
        if self._wiring.changes > self._wiring.base:
            self.rebuild()
        if self._expression_index is None:
            self._expression_index = self._file(self._wiring)
        if self._snapshot is None:
            self._snapshot = NetworkSnapshot(
                self._wiring, self._expression_index, self._tail, self._choice, self._names, self._expressions
            )
        return self._snapshot

    # ------------------------------------------------------------------ changing

    def add_node(self, name: str, where: Where = None, cost: float = 0.0) -> None:
        """A new node. `where` is an expression, or labels for a network that matches by labels."""
        with self._lock:
            description = f"node {name!r}"
            if not isinstance(name, str):
                raise NetworkError(f"a node's name is a text, not {name!r}; write it as one")
            if name in self:
                raise NetworkError(f"the {description} is there already; set_where changes its expression")
            expression, cost = self._read(where, description), checked_cost(cost, description)
            self._changing("add_node", name, self._expressions.text(expression), cost)
            self._wiring.add_node(self._names.number(name), expression, cost)
            self._count += 1

    def add_edge(self, source: str, target: str, where: Where = None, cost: float = 0.0) -> None:
        """A new edge between two nodes that are there."""
        with self._lock:
            description = f"edge {source!r} -> {target!r}"
            ends = self._id(source), self._id(target)
            if self._wiring.find_edge(*ends) is not None:
                raise NetworkError(f"the {description} is there already; set_where changes its expression")
            expression, cost = self._read(where, description), checked_cost(cost, description)
            self._changing("add_edge", source, target, self._expressions.text(expression), cost)
            self._wiring.add_edge(*ends, expression, cost)

    def remove_node(self, name: str) -> None:
        """Removes a node, with every edge from and to it."""
        with self._lock:
            self._id(name)
            self._changing("remove_node", name)
            self._wiring.remove_node(self._names.find(name))
            self._count -= 1

    def remove_edge(self, source: str, target: str) -> None:
        """Removes the edge between two nodes."""
        with self._lock:
            self._edge(source, target)
            self._changing("remove_edge", source, target)
            self._wiring.remove_edge(*self._edge(source, target))

    def set_where(self, node_or_edge: str | tuple[str, str], where: Where) -> None:
        """Changes the expression of a node, or of an edge given by its two nodes."""
        with self._lock:
            if isinstance(node_or_edge, str):
                self._id(node_or_edge)
                expression = self._read(where, f"node {node_or_edge!r}")
            else:
                self._edge(*node_or_edge)
                expression = self._read(where, f"edge {node_or_edge[0]!r} -> {node_or_edge[1]!r}")
            self._changing("set_where", node_or_edge, self._expressions.text(expression))
            if isinstance(node_or_edge, str):
                self._wiring.set_where(self._id(node_or_edge), expression)
            else:
                self._wiring.set_edge_where(self._id(node_or_edge[0]), self._id(node_or_edge[1]), expression)

    def rebuild(self) -> None:
        """Ids and groups as if everything had been given at once."""
        with self._lock:
            self._number(self._wiring.columns())

    def rebuild_aside(self) -> Thread:
        """Rebuilds in a separate thread; the network can be evaluated and changed meanwhile."""
        with self._lock:
            columns, self._journal = self._wiring.columns(), []
        thread = Thread(target=self._rebuild_from, args=(columns, self._journal), name="tidings-network")
        thread.start()
        return thread

    def _rebuild_from(self, columns: Columns, journal: list[tuple[str, tuple[Any, ...]]]) -> None:
        wiring = Wiring(columns)
        expression_index = self._file(wiring)
        with self._lock:
            if self._journal is not journal:  # another one has begun since, and knows more
                return
            self._journal = None
            self._wiring, self._expression_index, self._snapshot = wiring, expression_index, None
            self._count = len(columns.node)
            for method, arguments in journal:
                getattr(self, method)(*arguments)

    def _changing(self, method: str, *arguments: Any) -> None:
        """Before a change: the wiring becomes another one if a walk is under way over it."""
        if self._journal is not None:
            self._journal.append((method, arguments))
        if self._snapshot is not None:
            if self._snapshot.walking:
                self._wiring = self._wiring.copy()
            self._snapshot = None

    def _id(self, name: str) -> int:
        entity = self._wiring.node(self._names.find(name)) if isinstance(name, str) else NOWHERE
        if entity == NOWHERE:
            raise NetworkError(f"the network has no node {name!r}; add it first")
        return entity

    def _edge(self, source: str, target: str) -> tuple[np.ndarray, int]:
        found = self._wiring.find_edge(self._id(source), self._id(target))
        if found is None:
            raise NetworkError(f"the network has no edge {source!r} -> {target!r}; add it first")
        return found

    def _read(self, where: Where, description: str) -> int:
        """The number of the expression that `where` gives."""
        if where is None:
            return NONE
        if self.match != "expression" and not isinstance(where, str) and isinstance(where, Iterable):
            return self._expressions.number(labels_condition(self.match, self.labels, where), description)
        if isinstance(where, str) or not isinstance(where, Iterable):
            return self._expressions.number(where, description)
        raise NetworkError(
            f"the expression of {description} is a text or a condition; labels need Network(match=…)"
        )


def _row(names: dict[str, Any], where: str | None, cost: float) -> dict[str, Any]:
    more = {"where": where, "cost": float(cost) or None}
    return names | {name: value for name, value in more.items() if value is not None}


def checked_cost(cost: float, description: str) -> float:
    if not isinstance(cost, int | float) or not 0 <= cost < float("inf"):
        raise NetworkError(f"the cost of {description} is {cost!r}; give a number from 0 up")
    return float(cost)
