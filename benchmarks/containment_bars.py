"""The bars of the forest of containment: how long it takes beside matching, and how few subscriptions stay in front.

The workload is that of RSS cluster, Section 5, with families of subscriptions (`containment_workloads.py`). The forest
is compared with matching, against the same index, as many graphs as there are subscriptions: the witnesses of all of them,
as N-Triples that are read and matched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.bars import Bar, show
from benchmarks.containment_workloads import subscriptions
from benchmarks.contenders import CLUSTER, scaled
from benchmarks.measure import best, context, write_json
from tidings import Engine
from tidings.containment import forest
from tidings.formats.rdf import NTRIPLES
from tidings.language.query import And, Query, TriplePattern, Variable
from tidings.model.terms import ntriples

_RUNS = 3


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measure in BARS for bar in measure(scale)]
    show(bars)
    write_json(
        folder / "containment-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def forest_of_families(scale: float) -> Iterator[Bar]:
    """At 50 % overlap: the time of the forest, and the share of subscriptions that are roots."""
    engine = _engine(scale, 0.5)
    count = len(engine)
    graphs = _graphs(engine)
    engine.publish_many(graphs.slice(0, 100))
    matching = best(lambda: engine.publish_many(graphs), _RUNS)
    found: list[np.ndarray] = []
    taken = best(lambda: found.append(forest.parents(engine)), _RUNS)
    yield Bar(
        f"forest of {count:,} patterns",
        f"at most 3 x the time of matching {count:,} such graphs",
        f"{taken / matching:.2f} x ({taken / count * 1e6:.1f} µs a subscription)",
        taken <= 3 * matching,
    )
    front = float((found[0] < 0).mean())
    yield Bar(f"front of {count:,} patterns, 50 % overlap", "at most 0.55", f"{front:.3f}", front <= 0.55)


def forest_of_ranges(scale: float) -> Iterator[Bar]:
    """Where nearly every subscription contains nearly every other one, the time must not grow with the square."""
    times = []
    for count in (max(1_000, round(scale * 5_000)), max(4_000, round(scale * 20_000))):
        engine = Engine()
        bounds = np.random.default_rng(1).permutation(count)
        for bound in bounds.tolist():
            engine.subscribe(f"s{bound}", f"WHERE (?offer, price, ?x) AND ?x > {bound}")
        engine.index.fold()
        start = time.perf_counter()
        roots = int((forest.parents(engine) < 0).sum())
        times.append((time.perf_counter() - start) / count)
    yield Bar(
        f"forest of {count:,} ranges of one property",
        "at most 4 x the time each of a quarter of them",
        f"{times[1] / times[0]:.2f} x ({times[1] * 1e6:.0f} µs each, {roots} root)",
        times[1] <= 4 * times[0] and roots == 1,
    )


BARS: tuple[Callable[[float], Iterator[Bar]], ...] = (forest_of_families, forest_of_ranges)


def _engine(scale: float, overlap: float) -> Engine:
    _, texts = subscriptions(replace(scaled(CLUSTER, scale), overlap=overlap))
    engine = Engine()
    assert not engine.subscribe_many(texts)
    engine.index.fold()
    return engine


def _graphs(engine: Engine) -> pa.Table:
    """The triples of all subscriptions as events, with a node for each variable."""
    numbers = range(len(engine.index.subscriptions))
    contents = [_graph(engine.tree(engine.index.subscriptions.text(number))) for number in numbers]
    return pa.table(
        {
            "id": [str(number) for number in numbers],
            "datacontenttype": [NTRIPLES] * len(contents),
            "data": pa.array(contents, pa.binary()),
        }
    )


def _graph(query: Query) -> bytes:
    assert isinstance(query.where, And)
    lines = []
    for part in query.where.parts:
        if isinstance(part, TriplePattern):
            nodes = (part.subject, part.property, part.object)
            terms = [f"<urn:{n.name}>" if isinstance(n, Variable) else ntriples(n) for n in nodes]  # type: ignore[arg-type]
            lines.append(f"{' '.join(terms)} .\n")
    return "".join(lines).encode()
