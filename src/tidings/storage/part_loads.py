"""Keeps beside an index how many matches streams have counted in each part, until its tail is folded: the parts of the next base are
balanced by them.

    ROOT/visits/QUERY-v3.json     the counts of a stream since base 3 was written (part_visits.py), by one writer

Counts are a statistic: answers do not depend on them, they are not synced, and a micro-batch that is replayed after a crash counts twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from tidings.arrays import folders
from tidings.engine.engine import Engine
from tidings.storage.division import Division, id_hash
from tidings.storage.part_layout import CountedMatches
from tidings.storage.part_visits import PartVisits, no_visits, total

_FOLDER = "visits"


def add_visits(root: Path, query: str, base: int, visits: PartVisits) -> None:
    """Adds what a stream has counted with a base of the index. A folder that cannot be written to, or a full disk, costs the counts alone."""
    path = root / _FOLDER / f"{query}-v{base}.json"
    if not visits:
        return
    with suppress(OSError):
        counts = total([_read(path), visits]).to_lists()
        path.parent.mkdir(exist_ok=True)
        aside = path.with_suffix(".writing")
        aside.write_text(json.dumps(counts))
        aside.replace(path)


def counted_matches(root: Path, base: int, engine: Engine) -> CountedMatches | None:
    """What streams have counted since a base was written, for an engine with its subscriptions; None if they have counted no match."""
    division = Division.read(root / f"v{base}")
    if division is None:
        return None
    visits = total([no_visits(len(division.parts)), *map(_read, _files(root, base))])
    matches, table = np.array(visits["matches"]), folders.load(root / f"v{base}" / "ids")[0]
    matches = matches[: len(division.parts)]
    if not matches.any() or not len(table["hash"]):
        return None
    subscriptions = engine.index.subscriptions
    live = np.flatnonzero(np.frombuffer(bytes(subscriptions.live), dtype=np.bool_))
    ids = subscriptions.id_list(live.tolist())
    hashes = np.fromiter(map(id_hash, ids), dtype=np.uint64, count=len(ids))
    at = np.minimum(np.searchsorted(table["hash"], hashes), len(table["hash"]) - 1)
    part = np.where(table["hash"][at] == hashes, table["part"][at], -1)
    return CountedMatches(part, matches)


def forget_visits(root: Path, base: int) -> None:
    for path in _files(root, base):
        path.unlink(missing_ok=True)


def _files(root: Path, base: int) -> Iterator[Path]:
    return (root / _FOLDER).glob(f"*-v{base}.json")


def _read(path: Path) -> PartVisits:
    """Nothing of a file that cannot be read: it will be counted again."""
    try:
        return PartVisits.from_lists(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, OverflowError):
        return PartVisits()
