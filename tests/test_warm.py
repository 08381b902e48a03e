"""Whatever is matched after warming, nothing is left to be compiled: not in a worker, and not in several at once."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import pkgutil, sys, tempfile, warnings
from importlib import import_module
import pyarrow as pa
import tidings.arrays, tidings.patterns.kernels
from tidings import Engine, Event, Taxonomy
from tidings.warm import warm

def compiled():
    return {
        (name, signature)
        for package in (tidings.arrays, tidings.patterns.kernels)
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
print(*sorted(str(new) for new in compiled() - before), sep="\\n")
"""


def test_nothing_is_left_to_be_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
