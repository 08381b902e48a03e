"""Networks like the advertising exchange of Graph constraints, Table 1, and the expressions and queries of 4.2 and 4.3.

The bow-tie: publishers feed networks; most networks form one component, the core, some lead into it, some out of it,
some stand apart (four of them in a component); networks feed advertisers, and so do publishers directly. A network's
size is log-normal and decides its edges from publishers and to others alike, because few large ones make the exchange.
Numbers of edges by kind fit Table 1; a graph k times as large has k times as many nodes and edges of each kind.

Expressions are DNFs over six attributes whose values are not equally frequent, drawn so that the mean probability
of holding is the asked selectivity. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import network_kernels

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PUBLISHER, NETWORK, ADVERTISER = range(3)
_LETTERS = ("pub", "net", "adv")

# Table 1, and the counts that follow from its averages.
PUBLISHERS, NETWORKS, ADVERTISERS = 60_011, 282, 10_804
TO_NETWORK, BETWEEN_NETWORKS, TO_ADVERTISER, DIRECT = 58_880, 4_420, 7_460, 17_039
CYCLE = 4  # networks in the small component


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of the bow-tie: networks in the core, into it and out of it; publishers that face it and that face
    other networks; advertisers behind it and those of the networks apart; how uneven networks are (the standard
    deviation of the logarithm of their size)."""

    core: int
    into: int
    out_of: int
    facing: int
    aside: int
    behind: int
    own: int
    sizes: float


# Table 1: of 60,011 publishers 48,069 reach the core and what is behind it, so that 4,802 of 5,998 come out.
EXCHANGE = Shape(126, 40, 70, facing=48_069, aside=6_000, behind=5_785, own=900, sizes=1.2)
# 4.3 keeps the averages only: fewer networks apart, all of about one size.
GENERATED = Shape(240, 20, 18, facing=54_000, aside=200, behind=7_100, own=40, sizes=0.5)

# Tables 2 and 3: how many of the 11,086 networks and advertisers are valid at each selectivity, on average.
SELECTIVITIES = {
    "1/16": 693 / 11_086,
    "1/8": 1_336 / 11_086,
    "1/4": 3_081 / 11_086,
    "1/2": 7_064 / 11_086,
    "1": 1.0,
}
QUARTER = 2_751 / 11_086  # of Table 3

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "gender": ("f", "m"),
    "device": ("phone", "desktop", "tablet"),
    "adsize": ("300x250", "728x90", "160x600", "320x50"),
    "age": ("13-17", "18-24", "25-34", "35-49", "50-64", "65+"),
    "geo": ("CA", "NY", "TX", "FL", "IL", "WA", "MA", "NV"),
    "topic": tuple("sports finance news travel music food cars games health home style science".split()),
}
_SKEW = 0.9  # values are as frequent as Zipf's law with this exponent says
_POOL = 2000  # different expressions of a network


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes are numbered by kind: publishers, networks, advertisers."""

    kind: npt.NDArray[np.int8]
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.kind)

    def names(self) -> list[str]:
        """pub0 …, net0 …, adv0 …"""
        counts = np.bincount(self.kind, minlength=3).tolist()
        return [
            f"{letters}{i}" for letters, count in zip(_LETTERS, counts, strict=True) for i in range(count)
        ]

    def by_source(self) -> tuple[Longs, Ints]:
        """(first, targets): the edges of node n are targets[first[n] : first[n + 1]]."""
        order = np.argsort(self.source, kind="stable")
        return np.searchsorted(self.source[order], np.arange(len(self) + 1)), self.target[order]


@dataclass(frozen=True, slots=True)
class Expressions:
    """Different expressions with what they say about every event: truth[event, expression]."""

    texts: Sequence[str]
    truth: Bools


@dataclass(frozen=True, slots=True)
class Exchange:
    """A graph, the expression of each node (-1: none) and queries: publishers with the numbers of their events."""

    graph: Graph
    expressions: Expressions
    expression: Ints
    publishers: Ints
    events: Longs

    def node_table(self) -> pa.Table:
        """id, where; where is null for a node that lets everything pass."""
        texts = pa.array(list(self.expressions.texts), pa.string())
        wanted = pa.array(self.expression, mask=self.expression < 0)
        return pa.table({"id": pa.array(self.graph.names()), "where": texts.take(wanted)})

    def edge_table(self) -> pa.Table:
        """source, target."""
        names = pa.array(self.graph.names())
        return pa.table(
            {
                "source": names.take(pa.array(self.graph.source)),
                "target": names.take(pa.array(self.graph.target)),
            }
        )

    def queries(self) -> list[tuple[str, dict[str, str]]]:
        """(publisher, attributes of its event)."""
        names = self.graph.names()
        return [
            (names[publisher], event_attributes(event))
            for publisher, event in zip(self.publishers.tolist(), self.events.tolist(), strict=True)
        ]

    def sizes(self) -> dict[str, float]:
        """What Tables 2 and 3 count, on average: valid, reachable, result and edges out of the result."""
        first, target = self.graph.by_source()
        out = np.zeros((len(self.publishers), 3), np.int64)
        network_kernels.search_all(
            self.publishers,
            self.events,
            first,
            target,
            self.expression,
            self.expressions.truth,
            np.zeros(len(self.graph), np.int32),
            np.zeros(len(self.graph) + 1, np.int64),
            out,
        )
        used = self.expression[self.graph.kind != PUBLISHER]
        counts = np.bincount(used[used >= 0], minlength=len(self.expressions.texts))
        valid = self.expressions.truth[self.events] @ counts + (used < 0).sum()
        reachable, results, edges = out.mean(axis=0).tolist()
        return {"valid": float(valid.mean()), "reachable": reachable, "result": results, "edges": edges}


def make(selectivity: float, queries: int = 1000, seed: int = 2011) -> Exchange:
    """The exchange of Table 1 with expressions of a selectivity, for Table 2."""
    rng = np.random.default_rng(seed)
    return _with_expressions(make_graph(EXCHANGE, 1, rng), selectivity, queries, rng)


def make_generated(times: int, queries: int = 1000, seed: int = 2011) -> Exchange:
    """A graph `times` as large as Table 1 says, for Table 3."""
    rng = np.random.default_rng(seed)
    return _with_expressions(make_graph(GENERATED, times, rng), QUARTER, queries, rng)


def make_large(
    nodes: int = 1_000_000,
    edges: int = 3_000_000,
    component: int = 100_000,
    queries: int = 100,
    seed: int = 2011,
) -> Exchange:
    """A random network in which one strongly connected component is large."""
    rng = np.random.default_rng(seed)
    rank = np.arange(nodes)
    first = (nodes - component) // 2
    members = np.arange(first, first + component)
    rank[members] = first
    ring = rng.permutation(members)
    parts = [(ring, np.roll(ring, 1))]
    parts.append(_distinct(component, lambda n: (rng.choice(members, n), rng.choice(members, n)), parts))

    def forward(count: int) -> tuple[Longs, Longs]:
        ends = np.sort(rng.integers(0, nodes, (count, 2)), axis=1)
        ends = ends[rank[ends[:, 0]] < rank[ends[:, 1]]]
        return ends[:, 0], ends[:, 1]

    parts.append(_distinct(edges - 2 * component, forward, parts))
    source, target = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    fed, feeding = (np.bincount(ends, minlength=nodes) > 0 for ends in (target, source))
    kind = np.where(~fed, PUBLISHER, np.where(feeding, NETWORK, ADVERTISER)).astype(np.int8)
    order = np.argsort(kind, kind="stable")
    number = np.empty(nodes, np.int32)
    number[order] = np.arange(nodes)
    graph = Graph(kind[order], number[source], number[target])
    return _with_expressions(graph, SELECTIVITIES["1/2"], queries, rng)


def _with_expressions(graph: Graph, selectivity: float, queries: int, rng: np.random.Generator) -> Exchange:
    expressions = make_expressions(selectivity, rng)
    expression = np.full(len(graph), -1, np.int32)
    others = graph.kind != PUBLISHER
    if expressions.texts:
        expression[others] = rng.integers(0, len(expressions.texts), int(others.sum()))
    publishers = rng.integers(0, int((~others).sum()), queries).astype(np.int32)
    return Exchange(graph, expressions, expression, publishers, draw_events(queries, rng))


def make_graph(shape: Shape, times: int, rng: np.random.Generator) -> Graph:
    """A bow-tie with the numbers of Table 1, `times` as large."""
    publishers, networks, advertisers = PUBLISHERS * times, NETWORKS * times, ADVERTISERS * times
    net = publishers + np.arange(networks)
    adv = publishers + networks + np.arange(advertisers)
    center, before, after, apart = np.split(
        net, np.cumsum([shape.core * times, shape.into * times, shape.out_of * times])
    )
    behind, own, alone = np.split(adv, np.cumsum([shape.behind * times, shape.own * times]))
    order = rng.permutation(publishers)
    to_core, to_aside, straight = np.split(order, np.cumsum([shape.facing * times, shape.aside * times]))
    members = np.concatenate([center, before, after])
    size = np.zeros(publishers + networks)
    normal = [NormalDist().inv_cdf((i + 0.5) / networks) for i in range(networks)]
    size[net] = np.exp(
        shape.sizes * np.array(normal[::-1])
    )  # quantiles, because one giant more changes everything
    size[members] = size[rng.permutation(members)]  # only those apart are small

    def sample(nodes: Longs, count: int) -> Longs:
        return rng.choice(nodes, count, p=size[nodes] / size[nodes].sum())

    def more(
        count: int, draw: Callable[[int], tuple[Longs, Longs]], edges: list[tuple[Longs, Longs]]
    ) -> None:
        edges.append(_distinct(count - sum(len(source) for source, _ in edges), draw, edges))

    inward, outward = np.concatenate([center, before]), np.concatenate([center, after])
    to_network = [(to_core, sample(inward, len(to_core)))]
    to_network.append((to_aside, rng.choice(np.concatenate([after, apart]), len(to_aside))))
    more(TO_NETWORK * times, lambda n: (rng.choice(to_core, n), sample(inward, n)), to_network)

    ring, small = rng.permutation(center), apart[:CYCLE]
    between = [(ring, np.roll(ring, 1)), (small, np.roll(small, 1))]
    between += [(before, sample(center, len(before))), (sample(center, len(after)), after)]
    between.append(_distinct(5 * len(before), lambda n: (sample(before, n), sample(center, n)), between))
    between.append(_distinct(4 * len(after), lambda n: (sample(center, n), sample(after, n)), between))
    more(BETWEEN_NETWORKS * times, lambda n: (sample(center, n), sample(center, n)), between)

    down = [(sample(outward, len(behind)), behind), (sample(apart, len(own)), own)]
    down.append(_distinct(len(own) // 9, lambda n: (sample(apart, n), rng.choice(own, n)), down))
    more(TO_ADVERTISER * times, lambda n: (sample(members, n), rng.choice(behind, n)), down)

    # Every publisher and every advertiser has an edge.
    direct = [(straight, rng.choice(np.concatenate([behind, own]), len(straight)))]
    direct.append((rng.choice(order, len(alone)), alone))
    more(DIRECT * times, lambda n: (rng.choice(order, n), rng.choice(adv, n)), direct)
    edges = [*to_network, *between, *down, *direct]
    kind = np.repeat(np.arange(3, dtype=np.int8), [publishers, networks, advertisers])
    source = np.concatenate([part[0] for part in edges]).astype(np.int32)
    target = np.concatenate([part[1] for part in edges]).astype(np.int32)
    shuffled = rng.permutation(len(source))
    return Graph(kind, source[shuffled], target[shuffled])


def _distinct(
    count: int,
    draw: Callable[[int], tuple[Longs, Longs]],
    existing: Sequence[tuple[Longs, Longs]],
) -> tuple[Longs, Longs]:
    """`count` new edges between different nodes, none twice and none of those there already."""
    shift = np.int64(1) << 32
    taken = np.unique(np.concatenate([source * shift + target for source, target in existing]))
    found = np.empty(0, np.int64)
    while len(found) < count:
        source, target = draw(count)
        keys = (source * shift + target)[source != target]
        keys = keys[~np.isin(keys, taken)]
        _, first = np.unique(np.concatenate([found, keys]), return_index=True)
        found = np.concatenate([found, keys])[np.sort(first)]
    found = found[:count]
    return found // shift, found % shift


_SHARES = [1.0 / np.arange(1, len(values) + 1) ** _SKEW for values in ATTRIBUTES.values()]
_FREQUENCIES: list[Floats] = [share / share.sum() for share in _SHARES]
_SIZES = tuple(len(values) for values in ATTRIBUTES.values())
_EVENTS = int(np.prod(_SIZES))  # an event is a number: one value of each attribute


def draw_events(count: int, rng: np.random.Generator) -> Longs:
    """Numbers of random events."""
    values = [rng.choice(len(share), count, p=share) for share in _FREQUENCIES]
    return np.ravel_multi_index(values, _SIZES)


def event_attributes(event: int) -> dict[str, str]:
    """The attributes of an event's number."""
    values = np.unravel_index(event, _SIZES)
    return {name: ATTRIBUTES[name][int(value)] for name, value in zip(ATTRIBUTES, values, strict=True)}


def make_expressions(selectivity: float, rng: np.random.Generator) -> Expressions:
    """Random DNFs that hold with probability `selectivity` on average; none at all for 1."""
    if selectivity == 1:
        return Expressions((), np.zeros((_EVENTS, 0), np.bool_))
    likelihood = np.ones(1)
    for share in _FREQUENCIES:
        likelihood = np.outer(likelihood, share).ravel()
    tests = _tests(rng)
    texts: list[str] = []
    truths, chances = [], []
    while len(texts) < 2 * _POOL:
        text, truth = _dnf(tests, rng)
        chance = float(likelihood[truth].sum())
        if selectivity / 3 <= chance <= 3 * selectivity:
            texts.append(text)
            truths.append(truth)
            chances.append(chance)
    chosen = _with_mean(np.array(chances), selectivity, _POOL, rng).tolist()
    return Expressions([texts[i] for i in chosen], np.stack([truths[i] for i in chosen], axis=1))


def _tests(rng: np.random.Generator) -> list[list[tuple[str, Bools]]]:
    """For each attribute a hundred predicates, = or IN with up to half of the values, and their truth."""
    of_event = np.unravel_index(np.arange(_EVENTS), _SIZES)
    tests = []
    for (name, options), frequency, values in zip(ATTRIBUTES.items(), _FREQUENCIES, of_event, strict=True):
        own = []
        for _ in range(100):
            count = int(rng.integers(1, len(options) // 2 + 1))
            chosen = np.sort(rng.choice(len(options), count, replace=False, p=frequency))
            listed = ", ".join(f"'{options[i]}'" for i in chosen.tolist())
            text = f"{name} = {listed}" if count == 1 else f"{name} IN ({listed})"
            own.append((text, np.isin(values, chosen)))
        tests.append(own)
    return tests


def _dnf(tests: list[list[tuple[str, Bools]]], rng: np.random.Generator) -> tuple[str, Bools]:
    """One to three conjunctions of one to three predicates."""
    terms, truth = [], np.zeros(_EVENTS, np.bool_)
    for _ in range(int(rng.integers(1, 4))):
        attributes = np.sort(rng.permutation(len(_SIZES))[: int(rng.integers(1, 4))]).tolist()
        chosen = [tests[attribute][int(rng.integers(0, 100))] for attribute in attributes]
        truth |= np.logical_and.reduce([holds for _, holds in chosen])
        terms.append(" AND ".join(text for text, _ in chosen))
    return " OR ".join(f"({term})" for term in terms) if len(terms) > 1 else terms[0], truth


def _with_mean(chances: Floats, mean: float, count: int, rng: np.random.Generator) -> Longs:
    """`count` of the chances, drawn with weights exp(t * chance) such that their mean is as asked."""
    low, high = -40 / mean, 40 / mean
    for _ in range(60):
        tilt = (low + high) / 2
        weights = np.exp(tilt * (chances - chances.mean()))
        low, high = (low, tilt) if (weights * chances).sum() / weights.sum() > mean else (tilt, high)
    chosen = rng.choice(len(chances), (50, count), p=weights / weights.sum())
    return np.asarray(chosen[np.abs(chances[chosen].mean(axis=1) - mean).argmin()])
