"""Join subscriptions with wrong values are refused when they are opened, or they run: no loop leaves its arrays.

The damage is done in a process of its own, which a loop out of bounds would end. With NUMBA_BOUNDSCHECK=1 and an empty
NUMBA_CACHE_DIR every access is checked instead of only those that hit a page that is not there.
"""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.kinds.patterns.test_bounds import damaged
from tidings import Engine, Event, Table
from tidings.errors import IndexFileError

ROOT = Path(__file__).parents[4]
TABLES = [
    Table("r", {"k": "integer", "a": "integer", "name": "text"}),
    Table("s", {"k": "integer", "c": "number", "m": "integer"}),
    Table("t", {"m": "integer", "k": "integer", "d": "date"}),
]
TEXTS = (
    "SELECT * FROM r JOIN s USING (k) WHERE a BETWEEN {0} AND {1} AND c >= {0}",
    "SELECT * FROM r JOIN s USING (k) JOIN t ON s.m = t.m WHERE name >= 'long text {0}' AND t.d > 2004-01-31",
    "SELECT * FROM r JOIN s ON r.k = s.k JOIN t ON s.m = t.m AND r.k = t.k WHERE a IN ({0}, {1})",
    "FROM r WHERE name = 'long text {0}'",
)


def _events(rng: random.Random) -> list[Event]:
    events = []
    for _ in range(25):
        k, m, n = rng.randrange(3), rng.randrange(3), rng.randrange(8)
        events += [
            Event.insert("r", {"k": k, "a": n, "name": f"long text {n}"}),
            Event.insert("s", {"k": k, "c": n, "m": m}),
            Event.insert("t", {"k": k, "m": m, "d": "2020-01-01"}),
        ]
    return events


def run(folder: Path, seed: int) -> None:
    """Damages every array of the folder in turn and opens it, then publishes; called in a process of its own."""
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    events = _events(random.Random(seed))
    for part in ("index", "subscriptions"):
        for path in sorted((folder / "joins" / part).glob("*.npy")):
            whole, array = path.read_bytes(), np.load(path)
            for kind in ("all", "one", "moved", "near") if array.size else ():
                path.unlink()  # not into the file: an engine may have it mapped
                np.save(path, damaged(array, kind, rng))
                try:
                    Engine.load(folder).correlate(events)
                    outcomes["ran"] += 1
                except IndexFileError:
                    outcomes["refused"] += 1
            path.unlink()
            path.write_bytes(whole)
    print(outcomes["refused"], outcomes["ran"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_damage_is_refused_or_harmless(tmp_path: Path, seed: int) -> None:
    engine = Engine(tables=TABLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(280):
            low = number % 9
            engine.subscribe(str(number), TEXTS[number % 4].format(low, low + 3))
    engine.correlate(_events(random.Random(seed))[:30])
    engine.save(tmp_path)
    code = f"from pathlib import Path; from tests.kinds.joins.index.test_integrity import run; run(Path({str(tmp_path)!r}), {seed})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, ran = map(int, done.stdout.split())
    assert refused > 30
    assert ran > 0
