"""`import tidings` costs next to nothing, and everything it names is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidings

CODE = """
import sys, time
start = time.perf_counter()
import tidings
print(time.perf_counter() - start)
print(*sorted({"numba", "pyspark", "pyarrow", "numpy", "lark", "matplotlib"} & sys.modules.keys()))
"""


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_the_import_is_quick_and_light() -> None:
    best = min(float(run(CODE)[0]) for _ in range(3))
    assert best < 0.5
    assert run(CODE)[1] == ""


def test_using_the_library_starts_no_spark() -> None:
    code = """
import sys
from tidings import Engine, Event
engine = Engine()
engine.subscribe("s", "WHERE (?x, p, ?y)")
assert engine.publish(Event.from_rdf("<urn:a> <urn:tidings:p> 5 .", "turtle"))
print(*sorted({"pyspark", "py4j", "matplotlib", "httpx", "click", "rich"} & sys.modules.keys()))
"""
    assert run(code)[0] == ""


@pytest.mark.parametrize("name", tidings.__all__)
def test_public_names(name: str) -> None:
    found = getattr(tidings, name)
    assert found.__name__.rpartition(".")[2] == name
    assert found.__doc__ or found.__init__.__doc__


def test_a_network_asks_for_no_more_than_the_engine() -> None:
    code = """
import sys
from tidings import Engine, Event, Network
network = Network()
network.add_node("a")
network.add_node("b", "n > 1")
network.add_edge("a", "b")
engine = Engine(networks={"net": network})
engine.subscribe("s", "VIA net AT b")
assert engine.publish(Event("a", {"n": 2}))
print(*sorted({"pyspark", "matplotlib", "scipy", "pandas", "httpx", "click", "rich"} & sys.modules.keys()))
"""
    assert run(code)[0] == ""


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = tidings.Nothing  # type: ignore[attr-defined]


def test_errors_are_of_one_family() -> None:
    for error in (tidings.EventError, tidings.NetworkError, tidings.SubscriptionError, tidings.TaxonomyError):
        assert issubclass(error, tidings.TidingsError)


def test_names_that_are_imported_when_used_are_listed() -> None:
    assert {"Engine", "contains", "versions", "__version__"} <= set(dir(tidings))
    assert dir(tidings) == sorted(dir(tidings))
