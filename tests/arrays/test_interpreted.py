"""Loops that Python runs answer as machine code does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tidings.arrays import hashing
from tidings.arrays.interpreted import interpreted

ROOT = Path(__file__).parents[2]
QUICK = (
    "patterns/test_fixture.py",
    "networks/test_figures.py",
    "joins/test_deltas.py",
    *(
        f"contract/test_contract.py::test_some_match_and_some_do_not[{kind}-0]"
        for kind in ("filters", "operators")
    ),
)


def test_arithmetic_is_that_of_machine_code() -> None:
    limits = np.array([0, 1, 255, 2**31 - 1, -1, -(2**31)], dtype=np.int32)
    mix, widened = interpreted(hashing.mix.py_func), interpreted(_widened)
    for value in limits:
        assert mix(np.uint64(7), value) == hashing.mix(np.uint64(7), value)
    out = np.zeros(len(limits), dtype=np.int64)
    widened(limits, out)
    assert out.tolist() == [10 * int(value) + 5 for value in limits]
    assert out[2] == 2555  # not what an int8 or int32 would make of it


def _widened(numbers, out):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        out[i] = numbers[i] * 10 + np.uint8(5 + 256)


def run(*tests: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *tests]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_samples_of_the_kinds_hold() -> None:
    run(*(f"tests/kinds/{test}" for test in QUICK))


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_all_of_the_kinds_holds() -> None:
    run("tests/kinds", "tests/formats", "tests/engine")
