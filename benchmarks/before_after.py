"""Ten bars, two of each kind, of this checkout beside those of another, in turn: python -m benchmarks.before_after FOLDER

FOLDER is a checkout of other code. Each side is measured five times, in processor seconds, in a process of its own; what
counts is the ratio of the medians. The first run of each side, which compiles loops, is not counted.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 5


def measured() -> dict[str, float]:
    """The bars of the checkout that this process imports; lower is better."""
    time.perf_counter = time.process_time  # type: ignore[assignment]  # before the benchmarks take it
    from benchmarks import bars, filter_bars, join_bars, network_bars, operator_bars
    from benchmarks.contenders import CLUSTER, per_publication, scaled
    from benchmarks.join_runs import lines, measure
    from benchmarks.tidings_index import Tidings
    from benchmarks.workloads import make

    workload = make(scaled(CLUSTER, 1.0))
    index = Tidings(workload)
    found = {
        "patterns, kernel, us": per_publication(index, workload) * 1e6,
        "patterns, bytes a subscription": index.nbytes / len(workload.subscriptions),
    }
    del index
    _, turtle = bars.documents(0.3)
    found["patterns, Turtle, us a document"] = 1e6 / _number(turtle.measured.partition("(")[2])
    batch, alone = filter_bars.rules(0.5)
    found["filters, JSON lines, us"] = 1e6 / _number(batch.measured)
    found["filters, one event, us"] = _number(alone.measured)
    _, _, batch, alone = network_bars.table_1_network(300)
    found["networks, batch, us"], found["networks, one event, us"] = map(
        _number, (batch.measured, alone.measured)
    )
    operator_bars.FEW = 5
    every, few, *_ = operator_bars.overhead(0.5)
    found["operators, all undecided, ms"] = _number(every.measured)
    found["operators, 1 % touched, ms"] = _number(few.measured)
    changes = join_bars.workload_of(0.3)
    found["joins, columns, us"] = 1e6 / measure(changes).per_second
    found["joins, JSON lines, us"] = 1e6 / measure(changes, form=lines).per_second
    return found


def _number(text: str) -> float:
    match = re.search(r"\d[\d,.]*", text)
    assert match is not None, text
    return float(match[0].replace(",", "").rstrip("."))


def _run(checkout: Path) -> dict[str, float]:
    """The bars of a checkout, which may not have this file."""
    path = os.pathsep.join(str(checkout / folder) for folder in ("src", "."))
    done = subprocess.run(
        [sys.executable, __file__],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    if len(sys.argv) < 2:
        print(json.dumps(measured()))
        return
    here, there = Path(__file__).resolve().parents[1], Path(sys.argv[1]).resolve()
    runs = [(_run(there), _run(here)) for _ in range(RUNS + 1)][1:]
    for name in runs[0][0]:
        before, after = (statistics.median(run[side][name] for run in runs) for side in (0, 1))
        print(f"{name:34}{before:10.2f}{after:10.2f}{after / before:8.2f} x")


if __name__ == "__main__":
    main()
