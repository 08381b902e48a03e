"""Compiles every loop and keeps the machine code on disk: `python -m tidings.cli.warm`.

Without it the first event waits for the compiler. `tidings serve` has it done in the background while Spark starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from tidings.arrays import loop_cache
from tidings.containment.forest import parents
from tidings.dissemination.schemes import SCHEMES, Change, Server, Side, binary
from tidings.engine.engine import Engine
from tidings.formats.kernels.json import lines as find_lines
from tidings.formats.namespaces import RDF
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.evaluation import ALGORITHMS
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.operator import Out, operator
from tidings.kinds.operators.scheduling.schedulers import Adaptive, Naive, Sequential, SubOrder
from tidings.model.event import Event

_NICE = 5  # while a service starts
_EVENT = f"""<urn:a> <urn:p> "1" ; <urn:q> "x" ; <urn:r> "x"@en ; <{RDF}_1> <urn:b> ."""


_PATTERNS = (
    "WHERE (<urn:a>, <urn:p>, <urn:b>)",
    "WHERE (?x, <urn:p>, ?y) AND ?y BETWEEN 0 AND 2",
    "WHERE (?x, <urn:q>, ?y) AND ?y >= 'a' AND ?y CONTAINS 'x' AND ?y SEARCH 'x' AND ?y ISA <urn:x>",
    "WHERE (?x, <urn:r>, ?y) AND ?y != 'y'@en",
)
_FILTERS = (
    "WHERE a = 1 AND b STARTS WITH 'x' AND NOT c > 2004-01-31",
    "WHERE a + 1 > 1 OR b = 'X' IGNORE CASE OR b SEARCH 'x'",
)
_CALLS = (
    "WHERE near('a') AND size(?n) AND ?n > 3",
    "WHERE near('b') AND size(?n) AND length(?m) AND ?n > ?m",
    "WHERE near('c') OR (a = 1 AND NOT near('d'))",
    "WHERE ((?x, <urn:p>, ?y) AND near('a')) OR ((?x, <urn:q>, ?y) AND near('c'))",
)
_TABLES = (
    Table("a", {"k": "integer", "x": "number", "t": "text"}, key=["k"]),
    Table("b", {"k": "integer", "y": "integer", "t": "text"}),
    Table("c", {"y": "integer", "x": "number"}),
)
_JOINS = (
    "SELECT * FROM b WHERE y > 0",
    "SELECT * FROM a JOIN b USING (k) WHERE x > 1 AND y IN (1, 2) AND a.t >= 'x'",
    "SELECT * FROM a JOIN b USING (k) JOIN c ON b.y = c.y AND a.x = c.x",
)
_MANY = "SELECT * FROM a JOIN b USING (k) WHERE x >= $low AND y < $high"


@operator
def near(event: Event, place: str) -> bool:
    return place != "d"


@operator
def size(event: Event, n: Out[int]) -> Iterator[int]:
    yield 5


@operator
def length(event: Event, m: Out[int]) -> Iterator[int]:
    yield 4


def _warm_patterns() -> None:
    engine = Engine()
    for number, text in enumerate(_PATTERNS):
        engine.subscribe(str(number), text)
    engine.publish(Event.from_rdf(_EVENT, "turtle"), all_bindings=True)
    engine.publish(Event.from_rdf(_EVENT, "turtle"))
    parents(engine)
    _reopened(engine)


def _warm_filters() -> None:
    engine = Engine()
    for number, text in enumerate(_FILTERS):
        engine.subscribe(str(number), text)
    event = Event(attributes={"a": 1, "b": ["x\n", "y"], "c": "2004-01-31"})
    engine.publish(event)
    engine.publish_many([event])
    engine.publish_many(pa.table({"a": [1], "b": ["x"], "attributes": ["{}"]}))
    find_lines(b"{}\n")
    engine = _reopened(engine)
    engine.subscribe("new", _FILTERS[0])
    engine.unsubscribe("0")
    _reopened(engine).publish(event)


def _warm_network() -> None:
    network = Network()
    for name, where in (("a", None), ("b", "x = 1"), ("c", "x > 0"), ("d", None)):
        network.add_node(name, where)
    for source, target in ("ab", "bc", "cd"):
        network.add_edge(source, target)
    for algorithm in ALGORITHMS:
        list(network.evaluate("a", {"x": 1}, algorithm))
    network.reached(["a"], [{"x": 1}])
    list(network.top("a", {"x": 1}))
    network.path("a", {"x": 1}, "d")
    network.frontier("a", {"x": 2}, "d")
    network.set_where("d", "x < 2")
    network.add_edge("d", "a")
    network.rebuild()
    Network.from_tables(pa.table({"id": ["a", "b"]}), pa.table({"source": ["a"], "target": ["b"]}))
    with TemporaryDirectory() as folder:
        network.save(folder)
        list(Network.load(folder).evaluate("a", {"x": 1}))


def _warm_operators() -> None:
    for scheduler in (Adaptive(), Naive(), Sequential(), SubOrder()):
        engine = Engine(operators=[near, size, length], scheduler=scheduler)
        for number, text in enumerate(_CALLS):
            engine.subscribe(str(number), text)
        engine.publish(Event(attributes={"a": 1}))
        engine.publish(Event.from_rdf(_EVENT, "turtle"))
        _reopened(engine)


def _warm_joins() -> None:
    engine = Engine(tables=_TABLES)
    for number, text in enumerate(_JOINS):
        engine.subscribe(str(number), text)
    table = pa.table({"id": [f"t{i}" for i in range(100)], "low": range(100), "high": range(100)})
    for _ in range(2):
        events = [
            Event.insert("a", {"k": 1, "x": 5.0, "t": "y"}),
            *(Event.insert("b", {"k": 1, "y": y, "t": "x"}) for y in range(300)),
            Event.insert("c", {"y": 2, "x": 5.0}),
            Event.update("a", {"k": 1, "x": 6.0, "t": "x"}),
        ]
        engine.publish_many(events)
        engine.publish(Event.delete("a", {"k": 1}), joined=True)
        engine.snapshot("2")
        engine.subscribe_table(_MANY, table)
        engine.publish(Event.insert("a", {"k": 1, "x": 5.0}))
        engine = _reopened(engine)
        engine.publish(Event(attributes={"table": "a"}, type="tidings.truncate"))


def _warm_schemes() -> None:
    server = Server(_TABLES)
    ends = np.arange(100), np.arange(2, 102)
    server.subscribe(binary(Side("c", (0,), 0), Side("b", (0,), 1)), [ends, ends])
    server.load("b", [(1, y, None) for y in range(5)])
    for scheme in SCHEMES.values():
        scheme(server).messages(Change("c", new=(1, 5.0)))
        scheme(server).messages(Change("c", old=(1, 5.0)))


def _warm_simulator() -> None:
    from tidings.dissemination.simulator.runs import run
    from tidings.dissemination.simulator.scenario import Overlay, Scenario
    from tidings.dissemination.simulator.workload import Workload

    small = Workload(subscriptions=200, r_rows=50, s_rows=50, join_values=5, changes=5)
    run(Scenario(schemes=("Ref-SJ-Clu+",), network=Overlay(nodes=5, routers=10), workload=small))


def _reopened(engine: Engine) -> Engine:
    with TemporaryDirectory() as folder:
        engine.save(folder)
        return Engine.load(folder, operators=[near, size, length])


PARTS: dict[str, Callable[[], None]] = {
    "filters": _warm_filters,
    "network": _warm_network,
    "operators": _warm_operators,
    "schemes": _warm_schemes,
    "simulator": _warm_simulator,
    "joins": _warm_joins,
    "patterns": _warm_patterns,
}
"""From both ends: filters and patterns are needed first."""


def warm() -> None:
    """Matches events with indexes and a network that use every loop."""
    for part in PARTS.values():
        part()


@contextmanager
def ahead() -> Iterator[None]:
    """Has everything compiled in the background, if it is not yet, so that what needs it soon waits less."""
    if loop_cache.is_complete() or not loop_cache.is_kept():
        yield
        return
    command = [sys.executable, "-m", "tidings.cli.warm", "--quiet"]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def main(arguments: list[str]) -> None:
    """Warms the parts that are named; without any, all of them, from both ends in two processes that share the work."""
    loop_cache.before_compiling(lambda: None)
    names = [name for name in arguments if name in PARTS]
    if names:
        for name in names:
            PARTS[name]()
        return
    if loop_cache.is_complete():
        return
    if "--quiet" in arguments:
        os.nice(_NICE)
    else:
        print("compiling the matching loops, once; this may take two minutes", file=sys.stderr)
    aside = subprocess.Popen([sys.executable, "-m", "tidings.cli.warm", *reversed(PARTS)])
    warm()
    if code := aside.wait():
        sys.exit(code)
    with suppress(OSError):
        loop_cache.complete_mark().touch()


if __name__ == "__main__":
    main(sys.argv[1:])
