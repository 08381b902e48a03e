"""How times are taken and kept: best of five, beside a fixed loop's time, with commit, seed and machine.

The calibration loop does the same work on every machine: dependent reads all over 64 MB and integer mixing. Two
machines are compared by dividing their times by it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays.compiled import compiled

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
RUNS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """One reproduced figure: series over numbers, or over names. Values are ratios to `reference`, a measurement of the same run."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: list[float] | list[str]
    series: dict[str, list[float]]
    reference: str
    published: str
    published_series: dict[str, list[float | None]] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    note: str = ""
    seed: int = 2007
    spread: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """The lowest and the highest value of each point, where several seeds were run."""


def best(
    run: Callable[[], object], runs: int = RUNS, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of the fastest of `runs`."""
    times = []
    for _ in range(runs):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


@cache
def calibration() -> float:
    """Seconds of the fixed loop, best of five."""
    table = np.random.default_rng(1).permutation(1 << 23).astype(np.int64)
    _loop(table, 1)
    return best(lambda: _loop(table, 2_000_000))


@compiled
def _loop(table, steps):  # type: ignore[no-untyped-def]
    at, total = 0, 0
    for i in range(steps):
        at = (table[at] ^ i) & (table.shape[0] - 1)
        total += at
    return total


def context() -> dict[str, Any]:
    """What a result file says about where it comes from."""
    return {
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "numba": version("numba"),
            "pyoxigraph": version("pyoxigraph"),
        },
        "calibration_ms": round(calibration() * 1e3, 2),
        "runs": RUNS,
    }


def keep(figure: Figure, folder: Path) -> Path:
    """Writes the figure as JSON and PNG; returns the path of the PNG."""
    from benchmarks.charts import draw

    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{figure.name}.json", {**asdict(figure), **context()})
    path = folder / f"{figure.name}.png"
    draw(figure, path)
    return path


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def ratios(values: list[float], reference: float) -> list[float]:
    """Values as multiples of `reference`, to four digits."""
    return [float(f"{value / reference:.4g}") for value in values]


def _commit() -> str:
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
