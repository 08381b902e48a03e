"""The cache of compiled loops: processes and clones share it, and what is stale is compiled again."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
from loops import total

for kind in sys.argv[1:]:
    assert total(np.ones(3, kind)) == 3, kind
print(sum(total.stats.cache_misses.values()))
"""
LOOPS = """
from tidings.arrays.compiled import compiled


@compiled
def total(numbers):
    found = numbers[0]
    for number in numbers[1:]:
        found += number
    return found
"""
KINDS = "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split()


@pytest.mark.slow
def test_processes_take_turns(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start(*kinds):
        command = [sys.executable, "program.py", *kinds]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)

    both = [start(*KINDS[:6]), start(*KINDS[:3:-1])]
    assert [process.wait(120) for process in both] == [0, 0]
    # Whoever comes later compiles nothing, and every kind has its own machine code.
    later = start(*KINDS)
    assert later.communicate()[0] == "0\n"
    assert later.returncode == 0


TUPLES = """
from typing import NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled


class Columns(NamedTuple):
    numbers: np.ndarray


@compiled
def first(columns):
    return columns.numbers[0]


print(first(Columns(np.full(2, 7))), sum(first.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_a_cache_that_names_a_class_that_is_gone_is_stale(tmp_path):
    (tmp_path / "program.py").write_text("import loops")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run():
        command = [sys.executable, "-B", "program.py"]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True, timeout=120)

    (tmp_path / "loops.py").write_text(TUPLES)
    assert run() == "7 1\n"
    (tmp_path / "loops.py").write_text(TUPLES.replace("Columns", "Arrays"))
    assert run() == "7 1\n"
    assert run() == "7 0\n"


CALLER = """
try:
    from inner import twice
except ImportError:
    from renamed import twice
from tidings.arrays.compiled import compiled


@compiled
def four_times(x):
    return twice(twice(x))


print(four_times(3), sum(four_times.stats.cache_misses.values()))
"""
INNER = """
from tidings.arrays.compiled import compiled


@compiled
def twice(x):
    return x + x
"""


def test_a_cache_that_names_a_module_that_is_gone_is_stale(tmp_path):
    (tmp_path / "program.py").write_text("import loops")
    (tmp_path / "loops.py").write_text(CALLER)
    (tmp_path / "inner.py").write_text(INNER)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run():
        command = [sys.executable, "-B", "program.py"]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True, timeout=120)

    assert run() == "12 1\n"
    assert run() == "12 0\n"
    (tmp_path / "inner.py").rename(tmp_path / "renamed.py")
    assert run() == "12 1\n"


OUTER = """
from inner import twice
from tidings.arrays.compiled import compiled


@compiled
def four_times(x):
    return twice(twice(x))


@compiled
def one_more(x):
    return x + 1


print(four_times(3), one_more(3), sum(four_times.stats.cache_misses.values()))
"""


def test_a_loop_is_compiled_again_if_what_it_calls_has_changed(tmp_path):
    home = tmp_path / "home"
    environment = {**os.environ, "XDG_CACHE_HOME": str(home)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(clone):
        command = [sys.executable, "-B", "outer.py"]
        return subprocess.check_output(command, cwd=clone, env=environment, text=True, timeout=120)

    def cloned(name, inner=INNER):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "outer.py").write_text("import loops")
        (folder / "loops.py").write_text(OUTER)
        (folder / "inner.py").write_text(inner)
        (folder / "other.py").write_text("unrelated = 1")
        return folder

    one = cloned("one")
    assert run(one) == "12 4 1\n"
    assert run(cloned("two")) == "12 4 0\n"  # another clone of the same
    (one / "other.py").write_text("unrelated = 2")
    assert run(one) == "12 4 0\n"
    (one / "inner.py").write_text(INNER.replace("x + x", "x + x + x"))
    assert run(one) == "27 4 1\n"
    assert run(tmp_path / "two") == "12 4 0\n"  # which has its own still
    assert (home / "tidings" / "loops").stat().st_mode & 0o777 == 0o700


def test_another_order_of_fields_is_another_type(tmp_path):
    """The class comes from a module that the loop's does not import."""
    (tmp_path / "program.py").write_text("import passed, loops\nprint(loops.low(passed.Pair(low=1, high=2)))")
    (tmp_path / "loops.py").write_text(
        "from tidings.arrays.compiled import compiled\n\n\n@compiled\ndef low(pair):\n    return pair.low\n"
    )
    pair = "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    low: int\n    high: int\n"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for source in (pair, pair.replace("low", "x").replace("high", "low").replace("x", "high")):
        (tmp_path / "passed.py").write_text(source)
        command = [sys.executable, "-B", "program.py"]
        assert (
            subprocess.check_output(command, cwd=tmp_path, env=environment, text=True, timeout=120) == "1\n"
        )
