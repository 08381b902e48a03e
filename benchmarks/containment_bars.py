"""The bars of the forest of containment: how long it takes beside matching, how few subscriptions stay in front, and what
one change costs.

The workload is that of RSS cluster, Section 5, with families of subscriptions (`containment_workloads.py`). The forest
is compared with matching, against the same index, as many graphs as there are subscriptions: the witnesses of all of them,
as N-Triples that are read and matched. On Spark both are jobs of workers that have the index open.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bars import Bar, show
from benchmarks.containment_workloads import subscriptions
from benchmarks.contenders import CLUSTER, scaled
from benchmarks.measure import best, context, write_json
from tidings import Engine, Event
from tidings.containment import forest
from tidings.formats.rdf import NTRIPLES
from tidings.language.query import TriplePattern, Variable
from tidings.model.terms import ntriples
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.versions import Change, Placement

_RUNS = 3
_MASTER = "local[2,4]"
_PARTS = 4
_CHANGES = 101
_TRIPLE = re.compile(r"\((\S+), (\S+), (\S+)\)")


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    bars = [bar for measure in BARS for bar in measure(scale)]
    show(bars)
    write_json(
        folder / "containment-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def forest_of_families(scale: float) -> Iterator[Bar]:
    """At 50 % overlap: the time of the forest, and the share of subscriptions that are roots; what a change costs then."""
    engine = _engine(scale, 0.5)
    count = len(engine)
    graphs = _graphs(engine)
    engine.publish_many(graphs.slice(0, 100))
    matching = best(lambda: engine.publish_many(graphs), _RUNS)
    found: list[np.ndarray] = []
    taken = best(lambda: found.append(forest.parents(engine)), _RUNS)
    yield _time_of_forest(f"forest of {count:,} patterns", count, taken, matching)
    front = float((found[0] < 0).mean())
    yield Bar(f"front of {count:,} patterns, 50 % overlap", "at most 0.55", f"{front:.3f}", front <= 0.55)
    with tempfile.TemporaryDirectory() as folder:
        yield _on_spark(engine, graphs, found[0], Path(folder))
        yield from _changes(engine, found[0], Path(folder))


def _time_of_forest(what: str, count: int, taken: float, matching: float) -> Bar:
    return Bar(
        what,
        f"at most 3 x the time of matching {count:,} such graphs",
        f"{taken / matching:.2f} x ({taken / count * 1e6:.1f} µs a subscription)",
        taken <= 3 * matching,
    )


def _on_spark(engine: Engine, graphs: pa.Table, expected: np.ndarray, folder: Path) -> Bar:
    """Both as jobs; the workers have opened the index before."""
    from tidings import spark
    from tidings.spark.divided.forest import parents

    versions.publish(folder / "whole", engine)
    pq.write_table(graphs, folder / "graphs.parquet", row_group_size=1 << 14)
    session = spark.session(_MASTER, preload=folder / "whole")
    try:
        frame = session.read.parquet(str(folder / "graphs.parquet"))
        job = spark.match(frame, folder / "whole")

        def match() -> None:
            job.write.format("noop").mode("overwrite").save()

        match()
        matching = best(match, _RUNS)
        found: list[np.ndarray] = []
        taken = best(lambda: found.append(parents(session, folder, engine)), _RUNS)
        assert np.array_equal(found[0], expected)
    finally:
        session.stop()
    return _time_of_forest(
        f"forest of {len(expected):,} patterns on Spark {_MASTER}", len(expected), taken, matching
    )


def _changes(engine: Engine, parents: np.ndarray, folder: Path) -> Iterator[Bar]:
    """One subscription added, removed or expired, wherever it is in the forest; in an open index, and in its folder."""
    root = folder / "divided"
    version = versions.publish(root, engine, placement=Placement("contain", _PARTS), parents=parents)
    ids = engine.index.subscriptions.id_list(range(len(parents)))
    text = engine.index.subscriptions.text(0)
    index = versions.open(root, version)
    assert isinstance(index, DividedIndex)
    has_children = np.isin(np.arange(len(parents)), parents)
    positions = {
        "root": np.flatnonzero((parents < 0) & has_children),
        "inner one": np.flatnonzero((parents >= 0) & has_children),
        "leaf": np.flatnonzero((parents >= 0) & ~has_children),
    }
    event = Event.from_rdf("<urn:a> <urn:b> <urn:c> .", "nt")
    index.publish(event)
    rng, count = np.random.default_rng(1), f"{len(parents):,}"
    opening = _median(
        lambda turn: index.subscribe("first", text), turns=1
    )  # a text is parsed, loops are loaded
    times = {
        "added": _median(lambda turn: index.subscribe(f"new {turn}", text)),
        "added, with its end": _median(
            lambda turn: index.subscribe(f"old {turn}", text, valid_until="2001-01-01")
        ),
    }
    for name, places in positions.items():
        chosen = [ids[place] for place in rng.permutation(places)[:_CHANGES].tolist()]
        if chosen:  # hardly any is an inner one, because the most general container is the parent
            times[f"removed, a{'n' if name[0] == 'i' else ''} {name}"] = _median(
                lambda turn, chosen=chosen: index.unsubscribe(chosen[turn]),  # type: ignore[misc]
                turns=len(chosen),
            )
    times["added to the folder, and synced"] = _median(
        lambda turn: versions.append(root, [Change(f"new {turn}", text)])
    )
    times["removed from the folder, and synced"] = _median(
        lambda turn: versions.append(root, [Change(ids[turn], None)])
    )
    for what, taken in times.items():
        yield Bar(
            f"one of {count} {what}", "at most 5 ms at the median", f"{taken * 1e3:.2f} ms", taken <= 5e-3
        )
    first = _median(
        lambda turn: index.publish(event), before=lambda turn: index.subscribe(f"again {turn}", text)
    )
    alone = _median(lambda turn: index.publish(event))
    yield Bar(
        f"first event after a change of {count}",
        "reported",
        f"{first * 1e3:.2f} ms, others {alone * 1e3:.2f} ms; first change of a process {opening * 1e3:.2f} ms",
        True,
    )


def _median(
    run: Callable[[int], object],
    before: Callable[[int], object] = lambda turn: None,
    turns: int = _CHANGES,
) -> float:
    times = []
    for turn in range(turns):
        before(turn)
        start = time.perf_counter()
        run(turn)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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

    @lru_cache(None)
    def node(text: str, is_property: bool = False) -> str:
        where = engine.tree(f"WHERE ({text}, {text}, ?o)").where
        assert isinstance(where, TriplePattern)
        term = where.property if is_property else where.subject
        return f"<urn:{term.name}>" if isinstance(term, Variable) else ntriples(term)  # type: ignore[arg-type]

    numbers = range(len(engine.index.subscriptions))
    contents = [
        "".join(
            f"{node(s)} {node(p, True)} {node(o)} .\n"
            for s, p, o in _TRIPLE.findall(engine.index.subscriptions.text(number))
        ).encode()
        for number in numbers
    ]
    return pa.table(
        {
            "id": [str(number) for number in numbers],
            "datacontenttype": [NTRIPLES] * len(contents),
            "data": pa.array(contents, pa.binary()),
        }
    )
