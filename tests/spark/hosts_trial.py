"""Matches events on a cluster of hosts with a divided index in a store that is reached over HTTP, and kills hosts meanwhile."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.feather as feather

from tests.storage.http_store import fetched
from tidings.storage import versions
from tidings.storage.versions import Placement

from .cluster import HUB, Host, host_cluster, hosts, running, wait_until
from .conftest import rows
from .hosts_workload import engine

_ROOT = Path(__file__).parents[2]
_STORE = f"http://{HUB}:8000"
_CORES = 2  # of a host: two processes of it need the same files at once
_SECONDS = 300.0  # within which a job comes to its next step


@dataclass(frozen=True)
class Job:
    """A job with the index of this place; `kill` is the stage during which a host dies. Without a place, subscriptions are in a
    DataFrame."""

    name: str
    place: str = ""
    kill: int | None = None


@dataclass
class Trial:
    """What came of the jobs, by their names, and how often each host had fetched each file before one was killed."""

    hosts: list[Host]
    answers: dict[str, list[tuple]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    fetched: Counter[tuple[str, str]] = field(default_factory=Counter)
    killed: int = 0

    def fetched_by(self, host: Host) -> dict[str, int]:
        return {path: count for (client, path), count in self.fetched.items() if client == host.address}


def play(folder: Path, count: int, parts: int, jobs: Sequence[Job], pause: float) -> Trial:
    """Runs the jobs, one after the other, on so many hosts, which see neither the driver's folder nor the store. Tasks wait for
    `pause` seconds first. Jobs in which a host dies come last."""
    store, drive, counts = folder / "store", folder / "driver", folder / "counts"
    drive.mkdir()
    for place in {job.place for job in jobs if job.place}:
        versions.publish(store / place, engine(), placement=Placement(place, parts))
    with ExitStack() as stack:
        hub, others = stack.enter_context(hosts(folder / "hosts", count, hidden=(store, drive)))
        trial = Trial(others)
        master = stack.enter_context(host_cluster(hub, others, _CORES))
        server = str(_ROOT / "tests" / "storage" / "http_store.py")
        serve = hub.command(sys.executable, server, str(store), HUB, "8000", str(counts))
        stack.enter_context(running(*serve))
        given = [f"{job.name}={f'{_STORE}/{job.place}' if job.place else ''}" for job in jobs]
        script = ("-m", "tests.spark.hosts_driver", str(drive), master, str(count * _CORES), str(pause))
        command = hub.command(sys.executable, *script, *given)
        driver = stack.enter_context(running(*command, PYTHONPATH=str(_ROOT), **hub.environment))
        for job in jobs:
            done = drive / f"{job.name}.arrow"
            if job.kill is not None:
                mark = drive / f"{job.name}.stage-{job.kill}"
                wait_until(mark.exists, driver, f"{mark.name} takes too long", _SECONDS)
                trial.fetched = trial.fetched or fetched(counts)
                assert not done.exists()
                assert others[trial.killed].kill() > 2  # a worker, an executor, a Python daemon
                trial.killed += 1
            wait_until(done.exists, driver, f"{job.name} takes too long", _SECONDS)
            trial.answers[job.name] = rows(feather.read_table(done))
            trial.seconds[job.name] = float((drive / f"{job.name}.seconds").read_text())
        trial.fetched = trial.fetched or fetched(counts)
    return trial
