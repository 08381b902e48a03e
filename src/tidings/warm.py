"""Compiles every loop once and keeps the machine code on disk: `python -m tidings.warm`.

Without it the first event waits for the compiler, half a minute or so. It has to run in one process before several
start, because two that compile at once can spoil each other's files.
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

from tidings.engine import Engine
from tidings.event import Event
from tidings.terms import RDF

_EVENT = f"""<urn:a> <urn:p> "1" ; <urn:q> "x" ; <urn:r> "x"@en ; <{RDF}_1> <urn:b> ."""


def warm() -> None:
    """Runs an event through an index that has a use for every loop."""
    engine = Engine()
    for number, text in enumerate(
        (
            "WHERE (<urn:a>, <urn:p>, <urn:b>)",
            "WHERE (?x, <urn:p>, ?y) AND ?y BETWEEN 0 AND 2",
            "WHERE (?x, <urn:q>, ?y) AND ?y >= 'a' AND ?y CONTAINS 'x' AND ?y ISA <urn:x>",
            "WHERE (?x, <urn:r>, ?y) AND ?y != 'y'@en",
        )
    ):
        engine.subscribe(str(number), text)
    engine.publish(Event.from_rdf(_EVENT, "turtle"), all_bindings=True)
    engine.publish(Event.from_rdf(_EVENT, "turtle"))
    with TemporaryDirectory() as folder:
        engine.save(folder)
        Engine.load(folder)


if __name__ == "__main__":
    print("compiling the matching loops, once; this takes half a minute or so", file=sys.stderr)
    warm()
