"""Reads RSS 1.0 and 0.90, which are RDF: an event has the item's part of the graph, with all extension modules.

The part of an item is what can be reached from it without passing another item or a channel. A few triples are added in
the common form: dates are typed, members of a container are also values of the property that has the container, a
subject with an rdf:value is also that text.
"""

from __future__ import annotations

from collections import deque

import pyoxigraph as ox

from tidings.errors import EventError
from tidings.feeds import rss
from tidings.feeds.elements import Element
from tidings.feeds.facts import (
    DATES,
    DC,
    RSS,
    Facts,
    Node,
    Value,
    date_literal,
    iri,
    limit_size,
    make_event,
    make_node_name,
)
from tidings.formats.namespaces import RDF
from tidings.model.event import Event

_OLD = ("http://my.netscape.com/rdf/simple/0.9/", "http://channel.netscape.com/rdf/simple/0.9/")
_TYPE = ox.NamedNode(RDF + "type")
_ITEM, _CHANNEL, _ITEMS = (ox.NamedNode(RSS + word) for word in ("item", "channel", "items"))
_CONTAINERS = frozenset(ox.NamedNode(RDF + kind) for kind in ("Bag", "Seq", "Alt"))
_MEMBER = RDF + "_"

SHARED = 20_000  # triples that may be said in more than one item, beside one more time all

Said = tuple[Node, ox.NamedNode, Value]
Graph = dict[Value, list[Said]]  # by subject


def items(document: bytes, root: Element, source: str) -> list[Event]:
    base = iri(source)
    try:
        graph = _graph(document, base.value if base else None)
    except (SyntaxError, ValueError):
        return rss.items(root, source)  # as a document, not as a graph: less is kept, but no item is lost
    nodes = _typed(graph, _ITEM)
    channels = _typed(graph, _CHANNEL)
    if not nodes or not channels:
        return rss.items(root, source)
    apart: frozenset[Value] = frozenset([*nodes, *channels])
    budget = _TripleBudget(2 * sum(map(len, graph.values())) + SHARED)
    channel = _part(channels[0], "channel", graph, apart, budget)
    return limit_size(_event(node, channel, graph, apart, source, budget) for node in nodes)


def _event(
    node: Node, channel: Facts, graph: Graph, apart: frozenset[Value], source: str, budget: _TripleBudget
) -> Event:
    facts = _part(node, "item", graph, apart, budget)
    if not facts.values(RSS + "link") and isinstance(node, ox.NamedNode):
        facts.text(RSS + "link", node.value)
    if not facts.values(DC + "language"):
        facts.text(DC + "language", channel.first(DC + "language"))
    return make_event(facts, channel, facts.node.value, source or channel.node.value)


def _graph(document: bytes, base: str | None) -> Graph:
    """The triples by subject, in RSS 1.0's names and with typed dates."""
    graph: Graph = {}
    for quad in ox.parse(document, format=ox.RdfFormat.RDF_XML, base_iri=base):
        subject, predicate, value = quad.subject, _current_name(quad.predicate), quad.object
        if isinstance(subject, ox.Triple) or isinstance(value, ox.Triple):
            continue
        if predicate == _TYPE and isinstance(value, ox.NamedNode):
            value = _current_name(value)
        elif predicate.value in DATES and isinstance(value, ox.Literal):
            value = date_literal(value.value)
        graph.setdefault(subject, []).append((subject, predicate, value))
    return graph


def _current_name(node: ox.NamedNode) -> ox.NamedNode:
    for old in _OLD:
        if node.value.startswith(old):
            return ox.NamedNode(RSS + node.value[len(old) :])
    return node


def _typed(graph: Graph, kind: ox.NamedNode) -> list[Node]:
    return [
        triples[0][0] for triples in graph.values() if any(p == _TYPE and o == kind for _, p, o in triples)
    ]


class _TripleBudget:
    """Limits the triples of all events of one document: triples that many items lead to are repeated in each event."""

    def __init__(self, triples: int) -> None:
        self._triples = triples

    def take(self, triples: int) -> None:
        self._triples -= triples
        if self._triples < 0:
            raise EventError(
                "the items of the feed lead to so much in common that it cannot be said in each; cut it"
            )


def _part(node: Node, kind: str, graph: Graph, apart: frozenset[Value], budget: _TripleBudget) -> Facts:
    """All triples about `node`, and about the nodes that it leads to.

    Blank nodes are numbered as they are reached, so that reading the item again gives the same triples.
    """
    facts = Facts(_named(node, kind, graph), kind)
    names: dict[Node, Node] = {node: facts.node}

    def stable(term: Node) -> Node:
        if isinstance(term, ox.BlankNode):
            return names.setdefault(term, ox.BlankNode(f"{kind}{len(names)}"))
        return term

    reached, waiting = {node}, deque([node])
    while waiting:
        about = graph.get(waiting.popleft(), ())
        budget.take(len(about))
        for subject, predicate, value in about:
            if predicate == _ITEMS:
                continue  # the channel's list of all items; an event has its own item only
            for named in (value, *_shortcuts(predicate, value, graph)):
                known = named if isinstance(named, ox.Literal) else stable(named)
                facts.extend([ox.Triple(stable(subject), predicate, known)])
            if isinstance(value, Node) and value in graph and value not in reached and value not in apart:
                reached.add(value)
                waiting.append(value)
    return facts


def _named(node: Node, kind: str, graph: Graph) -> ox.NamedNode:
    """The node itself, or a name for one without an address, by what identifies it."""
    if isinstance(node, ox.NamedNode):
        return node
    words = {p.value: o.value for _, p, o in graph[node] if isinstance(o, ox.Literal)}
    link = words.get(RSS + "link", "")
    return iri(link) or make_node_name(kind, link, words.get(RSS + "title", ""))


def _shortcuts(predicate: ox.NamedNode, value: Value, graph: Graph) -> list[Value]:
    """Values said in one step: a container's members, the text of a structured subject."""
    about = graph.get(value, [])
    if any(p == _TYPE and o in _CONTAINERS for _, p, o in about):
        return [o for _, p, o in about if p.value.startswith(_MEMBER)]
    if predicate.value == DC + "subject":
        return [o for _, p, o in about if p.value == RDF + "value"]
    return []
