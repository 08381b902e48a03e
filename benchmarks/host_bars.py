"""What must hold on several hosts: one to seven Spark workers, each in a network namespace of its own, and a divided index that they fetch.

The hosts share the cores of one machine, so that the times say what another host costs, not what it gains. Needs root; elsewhere nothing
is measured, and the reason is printed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.bars import Bar, show
from benchmarks.measure import context, write_json
from tests.spark.cluster import why_no_hosts
from tests.spark.conftest import rows
from tests.spark.hosts_trial import Job, Trial, play
from tests.spark.hosts_workload import EVENTS, engine

COUNTS = (1, 2, 4, 7)
PARTS = 8
PLACES = (Job("split", "split"), Job("contain", "contain"))
# A second time, with all files fetched and all workers started; then with a host less each.
AGAIN = (Job("split again", "split"), Job("contain again", "contain"))
KILLED = (Job("front killed", "contain", kill=1), Job("part killed", "split", kill=2))


def run(scale: float, folder: Path) -> bool:
    """Measures every bar, prints and keeps the table; whether all hold."""
    if reason := why_no_hosts():
        click.echo(f"not measured: {reason}")
        return True
    trials = {}
    for count in COUNTS if scale >= 1 else COUNTS[:2]:
        with tempfile.TemporaryDirectory() as place:
            trials[count] = play(Path(place), count, PARTS, [*PLACES, *AGAIN], pause=0.0)
    most = max(trials)
    with tempfile.TemporaryDirectory() as place:
        killed = play(Path(place), most, PARTS, [*PLACES, *KILLED][: 2 + most // 2], pause=1.0)
    bars = [*_bars(trials), *_killed_bars(most, killed)]
    show(bars)
    write_json(
        folder / "host-bars.json", {"scale": scale, "bars": [asdict(bar) for bar in bars], **context()}
    )
    return all(bar.holds for bar in bars)


def _bars(trials: dict[int, Trial]) -> Iterator[Bar]:
    answered = rows(engine().publish_many(EVENTS))
    one = trials[min(trials)]
    for count, trial in trials.items():
        equal = sum(found == answered for found in trial.answers.values())
        times = ", ".join(
            f"{job.place} {trial.seconds[job.name] / one.seconds[job.name]:.2f} x" for job in AGAIN
        )
        yield Bar(
            f"{count} hosts, {PARTS} parts",
            "the answers of one process",
            f"{equal} of {len(trial.answers)} jobs; the time on one host: {times}",
            equal == len(trial.answers),
        )
        files = [trial.fetched_by(host) for host in trial.hosts]
        often = max(count for found in files for count in found.values())
        yield Bar(
            f"{count} hosts, what they fetch",
            "each file once",
            f"at most {often} times; {_parts(files)} of {PARTS} split parts on the host with the most",
            often == 1,
        )


def _parts(files: list[dict[str, int]]) -> int:
    """The parts of the split index on the host that has the most of them."""
    marks = ({path.split("/")[3] for path in found if "/split/v1/part-" in path} for found in files)
    return max(map(len, marks))


def _killed_bars(count: int, trial: Trial) -> Iterator[Bar]:
    answered = rows(engine().publish_many(EVENTS))
    for job in KILLED[: trial.killed]:
        yield Bar(
            f"one of {count} hosts killed in stage {job.kill}",
            "the same answers, nothing twice",
            f"{len(trial.answers[job.name]):,} notifications, {len(answered):,} of one process",
            trial.answers[job.name] == answered,
        )
