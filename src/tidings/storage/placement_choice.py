"""The place `auto`: an index is written whole, split, or divided by containment, whichever is matched fastest within the memory
that is allowed.

    replicate   every process holds the whole index, and an event is matched once
    split       an event is matched by every part
    contain     an event is matched by the front, then by the parts that it visits

Events of a sample are matched in each way, by stages, as on a cluster: the time is the sum over all processes. Of split, one part is made for
that; the others are like it. Without a sample, events are made that some of the subscriptions match.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.containment import forest
from tidings.containment.summaries import Summaries
from tidings.containment.witness import witness
from tidings.engine.engine import Engine
from tidings.engine.pipeline import find, notifications
from tidings.errors import IndexFileError, TidingsError
from tidings.model.batch import Batch
from tidings.model.event import to_table
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Placement, divide, size_of
from tidings.storage.part_layout import CountedMatches

_FILE = "placement.json"
_EVENTS, _RUNS = 200, 3
_FEW = 1_000  # subscriptions that are not worth a division, nor the time to measure it
_WHOLE = 0.9  # what is hardly faster than the whole index is not worth a division


class BuildFacts(NamedTuple):
    """What is known of an index beside its subscriptions: the forest of containment, events like those to come, how many bytes of it a
    process may have open, and the matches that were counted in its parts."""

    parents: np.ndarray | None = None
    sample: pa.Table | None = None
    memory: int | None = None
    counted: CountedMatches | None = None


NO_FACTS = BuildFacts()


class Choice(NamedTuple):
    """What was chosen, by the microseconds that an event takes with each place, and the bytes of the whole index. The placement is
    what was asked for: a new base is chosen for anew."""

    place: str
    parts: int
    merge: int
    apart: bool
    microseconds: dict[str, float]
    bytes: int
    memory: int | None

    @property
    def placement(self) -> Placement:
        return Placement("auto", self.parts, self.merge, self.apart)

    @property
    def reason(self) -> str:
        """In one sentence."""
        allowed = "" if self.memory is None else f" of {self.memory:,} that are allowed"
        if not self.microseconds:
            return f"replicate was chosen: the whole index has {self.bytes:,} bytes{allowed}, and fewer than {_FEW:,} subscriptions"
        times = ", ".join(f"{place} {taken:,.0f}" for place, taken in self.microseconds.items())
        return f"{self.place} was chosen: the whole index has {self.bytes:,} bytes{allowed}, and one event takes, in µs: {times}"

    @classmethod
    def read(cls, base: Path) -> Choice | None:
        """That of a base; None if its place was given."""
        try:
            fields = json.loads((base / _FILE).read_text())
            return cls(**{name: fields[name] for name in cls._fields})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise IndexFileError(
                f"{base / _FILE} cannot be read ({error!r:.200}); build the index anew"
            ) from None


def write_best(
    engine: Engine, base: Path, placement: Placement, summaries: Summaries | None, facts: BuildFacts
) -> Choice:
    """Writes an engine as a base with the place that is best."""
    parents, sample, memory, counted = facts
    engine.save(base)
    size = size_of(base)
    if len(engine) < _FEW and (memory is None or size <= memory):
        return _chosen(base, Choice("replicate", *placement[1:], {}, size, memory))
    events = sample.slice(0, _EVENTS) if sample is not None and len(sample) else made_events(engine)
    parents = forest.parents(engine) if parents is None else parents
    contain = placement._replace(place="contain")
    aside = base.with_name(base.name + "-contain")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        division = divide(engine, aside, contain, parents, summaries, counted)
        whole = _time(lambda: _find(engine, events))
        index = DividedIndex.open(aside, division, operators=engine.operators, kinds=engine.own_kinds)
        taken = {"replicate": whole, "split": _split(engine, placement.parts, events, whole)}
        taken["contain"] = _contain(index, events)
        if memory is not None:
            needed = division.front.bytes + max(piece.bytes for piece in division.parts)
            taken = {
                place: each
                for place, each in taken.items()
                if {"replicate": size, "contain": needed}.get(place, 0) <= memory
            }
        place = min(taken, key=lambda place: taken[place] * (_WHOLE if place == "replicate" else 1))
        if place != "replicate":
            shutil.rmtree(base)
        if place == "contain":
            aside.rename(base)
        elif place == "split":
            divide(engine, base, placement._replace(place="split"))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    count = max(1, len(events))
    times = {name: round(1e6 * each / count, 1) for name, each in taken.items()}
    return _chosen(base, Choice(place, *placement[1:], times, size, memory))


def _chosen(base: Path, choice: Choice) -> Choice:
    (base / _FILE).write_text(json.dumps(choice._asdict()))
    return choice


def _split(engine: Engine, parts: int, events: pa.Table, whole: float) -> float:
    """The seconds of all parts, and of what cannot be divided, which is matched by the front."""
    divisible = engine.index.divisible()
    chosen = np.zeros(len(divisible), dtype=np.bool_)
    chosen[np.flatnonzero(divisible)[::parts]] = True
    part = Engine(taxonomy=engine.taxonomy, prefixes=engine.prefixes)
    part.index.take_over(engine.index, chosen)
    part.index.fold()
    return parts * _time(lambda: _find(part, events)) + whole * float(
        (~divisible).sum() / max(1, len(divisible))
    )


def _contain(index: DividedIndex, events: pa.Table) -> float:
    """The seconds of the front, and of the parts with the events that visit them."""
    visits, taken = index.forwards(events), _time(lambda: _find(index, events))
    for number in np.unique(visits.part).tolist():
        visiting = events.take(pa.array(visits.event[visits.part == number]))
        taken += _time(partial(_find, index.part(number), visiting))
    return taken


def _find(engine: Engine, events: pa.Table) -> None:
    """Matches events, without operators and networks, which cost the same wherever subscriptions are."""
    index = engine.index_snapshot()
    for first in range(0, len(events), index.events_at_once):
        batch = Batch(events.slice(first, index.events_at_once))
        list(notifications(batch, index, find(batch, index)))


def _time(run: Callable[[], object]) -> float:
    run()
    taken = []
    for _ in range(_RUNS):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def made_events(engine: Engine) -> pa.Table:
    """Events that some of the subscriptions match; one that cannot match is left out."""
    live = np.flatnonzero(np.frombuffer(bytes(engine.index.subscriptions.live), dtype=np.bool_))
    chosen = np.random.default_rng(len(live)).permutation(live)[:_EVENTS]
    found = []
    for number in chosen.tolist():
        try:
            event = witness(engine.tree(engine.index.subscriptions.text(number)), engine.taxonomy)
        except TidingsError:
            continue  # one of a kind of the user's own
        found += [] if event is None else [event]
    return to_table(found)
