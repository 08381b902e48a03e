"""Join subscriptions under the clock, through the product: rows first, then subscriptions, then changes in batches.

A change's time runs from typed Arrow columns, or from JSON lines, to the deltas of its batch as an Arrow table. Times are
those of this process, of all its threads. `python -m benchmarks.join_runs` measures many subscriptions in a process of
its own, whose memory counts.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.join_workloads import DELETE, Group, Parameters, Workload, make
from tidings import Engine
from tidings.formats.json_lines import read_lines
from tidings.kinds.joins.deltas import Deltas

BATCH = 1_000
WARM = 200  # changes before the clock starts: what is compiled or built is not measured
_WORDS = ("insert", "update", "delete")
Batch = pa.Table | bytes


@dataclass(slots=True)
class Rate:
    """Some changes and what they did."""

    changes: int = 0
    seconds: float = 0.0
    deltas: int = 0

    @property
    def per_second(self) -> float:
        return self.changes / self.seconds

    @property
    def each(self) -> float:
        """Deltas of a change."""
        return self.deltas / self.changes


def engine_of(workload: Workload) -> Engine:
    """Rows, then subscriptions."""
    engine = Engine(tables=workload.declared())
    for table_number in range(len(workload.tables)):
        assert not engine.correlate(workload.loading(table_number)).errors
    for group in workload.groups:
        engine.subscribe_table(group.template, group.arrow())
    return engine


def lines(workload: Workload, first: int, last: int) -> bytes:
    """The changes as JSON lines."""
    stream, rows = workload.stream[first:last], {}
    for table_number, table in enumerate(workload.tables):
        mine = stream.table == table_number
        numbers = np.unique(np.concatenate([stream.new[mine], stream.old[mine]]))
        numbers = numbers[numbers >= 0]
        for number, row in zip(numbers.tolist(), table.taken(numbers).to_pylist(), strict=True):
            rows[table_number, number] = row
    found = []
    for table_number, op, new, old in zip(
        *(part.tolist() for part in (stream.table, stream.op, stream.new, stream.old)), strict=True
    ):
        event = {
            _WORDS[op]: workload.tables[table_number].name,
            "row": rows[table_number, old if op == DELETE else new],
        }
        if new >= 0 and old >= 0:
            event["before"] = rows[table_number, old]
        found.append(json.dumps(event))
    return ("\n".join(found) + "\n").encode()


def tell(engine: Engine, batch: Batch) -> Deltas:
    """One batch, to the end: what is timed."""
    deltas = engine.correlate(read_lines(batch) if isinstance(batch, bytes) else batch)
    deltas.table_of_deltas()
    return deltas


def measure(
    workload: Workload,
    engine: Engine | None = None,
    form: Callable[[Workload, int, int], Batch] = Workload.events,
    end: int | None = None,
) -> Rate:
    """The changes of a workload after the first few."""
    engine = engine or engine_of(workload)
    tell(engine, form(workload, 0, WARM))
    return timed(engine, workload, WARM, len(workload.stream) if end is None else end, form)


def timed(
    engine: Engine,
    workload: Workload,
    first: int,
    end: int,
    form: Callable[[Workload, int, int], Batch] = Workload.events,
    clock: Callable[[], float] = time.process_time,
) -> Rate:
    """Some changes in batches, which are made before the clock starts."""
    rate = Rate()
    for at in range(first, end, BATCH):
        last = min(at + BATCH, end)
        given = form(workload, at, last)
        start = clock()
        deltas = tell(engine, given)
        rate.seconds += clock() - start
        assert not deltas.errors, next(iter(deltas.errors.values()))
        rate.changes += last - at
        rate.deltas += len(deltas)
    return rate


def texts_of(group: Group) -> Iterator[str]:
    """Subscriptions as people write them, one by one."""
    for values in zip(*(column.tolist() for column in group.columns.values()), strict=True):
        given = dict(zip(group.columns, map(str, values), strict=True))
        yield re.sub(r"\$(\w+)", lambda name, given=given: given[name[1]], group.template)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Seconds of adding and of removing a subscription, on average, with what the next change pays for it."""

    count: int
    add: float
    remove: float
    add_call: float
    remove_call: float


def renew(engine: Engine, workload: Workload, first: int, texts: list[str]) -> Renewal:
    """Between any two of the changes from `first` on a subscription is added, then one removed; what a change takes
    when nothing happens before it is subtracted. Each change is a batch of its own: the dearest way."""
    clock, change = time.process_time, iter(range(first, len(workload.stream)))

    def publish() -> float:
        at = next(change)
        event = workload.events(at, at + 1)
        start = clock()
        tell(engine, event)
        return clock() - start

    def call(action: Callable[..., object], *words: str) -> float:
        start = clock()
        action(*words)
        return clock() - start

    taken = np.zeros((len(texts), 5))
    for number, text in enumerate(texts):
        calm = publish()
        add = call(engine.subscribe, f"late {number}", text)
        added = publish()
        remove = call(engine.unsubscribe, f"q{number}")
        taken[number] = calm, add, added, remove, publish()
    calm, add, added, remove, removed = taken.mean(axis=0)
    return Renewal(len(texts), add + added - calm, remove + removed - calm, add, remove)


def peak_memory() -> int:
    """Bytes. Not ru_maxrss: a process begins with its parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) * 1024


def main(subscriptions: int, events: int, renewals: int) -> None:
    """Prints rate, memory and what a subscription more or less costs."""
    changes = WARM + events + 3 * renewals
    workload = make(Parameters(subscriptions=subscriptions, events=changes))
    start = time.perf_counter()
    engine = engine_of(workload)
    tell(engine, workload.events(0, 0))
    built = time.perf_counter() - start
    rate = measure(workload, engine, end=WARM + events)
    memory = peak_memory()
    others = make(Parameters(subscriptions=max(1, renewals), events=40, seed=1)).groups[0]
    renewal = renew(engine, workload, WARM + events, list(texts_of(others))[:renewals])
    print(
        json.dumps(
            {"built": built, "memory": memory, "rate": asdict(rate), "renewal": asdict(renewal)}
            | {"memory_at_the_end": peak_memory()}
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
