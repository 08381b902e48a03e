"""Whatever is matched after warming, nothing is left to be compiled: not in a worker, and not in several at once."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import pkgutil, random, sys, tempfile, warnings
import numpy as np
import tidings
from importlib import import_module
import pyarrow as pa
import tidings.arrays, tidings.kinds.filters.kernels, tidings.kinds.joins.kernels, tidings.kinds.networks.kernels
import tidings.kinds.operators.kernels, tidings.kinds.patterns.kernels, tidings.formats.kernels, tidings.dissemination.kernels
from tidings import Engine, Event, Taxonomy
from tests.kinds.joins.cases import some_query, some_row, some_tables
from tests.dissemination.schemes.worlds import binary_server, changes
from tidings.dissemination.schemes import SCHEMES
from tidings.kinds.networks.network import Network
from tidings.cli.warm import warm

def compiled():
    return {
        (name, signature)
        for package in (
            tidings.arrays, tidings.kinds.patterns.kernels, tidings.kinds.filters.kernels, tidings.kinds.networks.kernels,
            tidings.kinds.operators.kernels, tidings.kinds.joins.kernels, tidings.formats.kernels, tidings.dissemination.kernels,
        )
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
        for name, loop in vars(import_module(module.name)).items()
        for signature in getattr(loop, "signatures", ())
    }

warm()
before = compiled()
warnings.simplefilter("ignore")
taxonomy = Taxonomy()
taxonomy.add_class("urn:low", ["urn:high"], "low")
taxonomy.add_property("urn:q", ["urn:p"])
engine = Engine(taxonomy=taxonomy)
engine.subscribe("class", "WHERE (?x, <urn:p>, ?y) AND ?y ISA <urn:high> AND ?y NOT IN (1, 'b')")
engine.subscribe("edges", "WHERE (?x, ?p, ?y), (?y, <urn:p>, 2004-01-31) AND ?x != ?y")
event = Event.from_rdf('<urn:a> <urn:q> "low", "é\\\\n", 1e400, _:b . _:b <urn:q> 5 .', "turtle")
engine.publish(event)
engine.publish(Event.from_rdf("<urn:a> <urn:p> 5 .", "turtle"))
with tempfile.TemporaryDirectory() as folder:
    engine.save(folder)
    engine = Engine.load(folder)
    engine.publish(event)
    table = pa.table({"id": ["1", "2"], "p": ["<urn:p>", "<urn:q>"], "v": [1, 2]})
    engine.subscribe_table("SELECT ?x WHERE (?x, $p, ?y) AND ?y > $v", table)
    assert engine.publish(event)

network = Network.from_tables(
    pa.table({"id": ["p", "n", "m"], "where": [None, "a > 1", "t CONTAINS 'x'"], "cost": [0.0, 1.0, 2.0]}),
    pa.table({"source": ["p", "n", "m"], "target": ["n", "m", "n"], "where": [None, "a < 9", None]}),
)
engine = Engine(networks={"net": network})
engine.subscribe("place", "WHERE a BETWEEN 1 AND 5 AND t LIKE '%x%' AND u.v NOT IN (1, 'b') VIA net AT 'm'")
engine.subscribe("many", "WHERE a IN (" + ", ".join(map(str, range(70000))) + ") OR MISSING b OR c = true")
engine.subscribe("element", "WHERE ANY i IN items SATISFIES (i.price < 10 AND i.colour = 'red')")
event = Event(source="p", attributes={
    "a": [2, 12345678901234567890123, 1e300], "t": "ax\\u00e9", "u": {"v": 2}, "d": "2004-01-31T10:00:00Z",
    "items": [{"price": 5, "colour": "red"}],
})
assert len(engine.publish(event)) == 3
columns = pa.table({
    "a": pa.array([2, 3], pa.int32()), "t": pa.array(["x", None], pa.large_string()), "source": ["p", "q"],
    "items": [[{"price": 1.5, "colour": "red"}], []], "attributes": ['{"c": true}', '{"c": tru'],
})
assert len(engine.publish_many(columns)) == 3
with tempfile.TemporaryDirectory() as folder:
    engine.save(folder)
    engine = Engine.load(folder)
    assert len(engine.publish(event)) == 3
    table = pa.table({"id": ["1", "2"], "w": ["x", "y"], "v": [1, 2]})
    engine.subscribe_table("WHERE t STARTS WITH $w AND a > $v", table)
    engine.unsubscribe("many")
    assert engine.publish_many(columns)
    engine.save(folder)
list(engine.networks["net"].top("p", {"a": 2, "t": "x"}, 2))
engine.networks["net"].add_node("q", "a = 1")
engine.networks["net"].add_edge("q", "p")
list(engine.networks["net"].evaluate("q", {"a": 2, "t": "x"}))

@tidings.operator
def count(event, what: str, n: tidings.Out[int]):
    yield len(what)

engine = Engine(operators=[count])
for i in range(100):
    engine.subscribe(str(i), f"WHERE (count('x{i}', ?n) AND NOT count('y{i % 7}', {i % 5}) AND ?n > {i % 3}) OR a = {i}")
engine.subscribe("both", "WHERE (?x, <urn:p>, ?y) AND count(?y, ?n) AND count(q, ?m) AND ?n != ?m")
engine.publish(Event(attributes={"a": 5}))
engine.publish_many([Event.from_rdf("<urn:a> <urn:p> 'abc' .", "turtle"), Event(attributes={"a": 5})])
with tempfile.TemporaryDirectory() as folder:
    engine.save(folder)
    assert Engine.load(folder, operators=[count]).publish(Event(attributes={"a": 5}))

rng = random.Random(7)
tables = some_tables(rng, 5)
engine = Engine(tables=tables)
for change in range(3):
    for i in range(40):
        engine.subscribe(f"{change} {i}", some_query(rng, tables).text)
    text = "SELECT * FROM t0 JOIN t1 USING (whole) WHERE t0.whole >= $a AND t1.whole BETWEEN $a AND $b"
    columns = pa.table({"id": [f"row {i}" for i in range(2000)], "a": range(2000), "b": range(2000)})
    engine.subscribe_table(text, columns)
    ids = iter(range(1000 * change, 9999))
    rows = [(t, some_row(rng, t)) for t in tables for _ in range(3)]
    rows += [(t, {"whole": n}) for t in tables for n in range(100)]
    events = [Event.insert(t.name, {**row, **{"id": next(ids) for k in t.key if k == "id"}}) for t, row in rows]
    assert len(engine.publish_many(events, joined=change == 1)) > 50
    engine.publish_lines('{"truncate": "t0"}\\n{"delete": "t1", "row": {"whole": 1}}')
    for id in [f"row {i}" for i in range(1500)]:
        engine.unsubscribe(id)
    engine.publish(Event.snapshot("row 1999"))
    engine.correlate([Event.insert("t0", some_row(rng, tables[0]))])
    engine.snapshot("row 1999")
    with tempfile.TemporaryDirectory() as folder:
        engine.save(folder)
        engine = Engine.load(folder)
for scheme in SCHEMES.values():
    for subscriptions in (3, 300):
        server = binary_server(subscriptions, subscriptions)
        for change in changes(np.random.default_rng(1), server, 30):
            scheme(server).messages(change)
print(*sorted(str(new) for new in compiled() - before), sep="\\n")
"""


def test_nothing_is_left_to_be_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
