"""`tidings bench`: see on this machine what the alternatives send and cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from tidings.cli import terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from benchmarks.select_joins.workload import Workload


@click.group()
def bench() -> None:
    """Measure alternatives side by side, on generated workloads."""


@bench.command()
@click.option(
    "--subscriptions",
    type=click.IntRange(1, 2_000_000),
    default=10_000,
    show_default=True,
    metavar="N",
    help="The number of subscriptions, each to a join of two tables.",
)
@click.option(
    "--events",
    type=click.IntRange(1, 1_000_000),
    default=500,
    show_default=True,
    metavar="N",
    help="The number of rows that are inserted and deleted.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the table to this file as well, as .png or .svg.",
)
def joins(subscriptions: int, events: int, output: Path | None) -> None:
    """Compare the schemes that notify join subscriptions of a change.

    Generates the workload of the paper on select-joins (a table of 16,000 rows and one of 5,100, with ranges on both), and
    prints for each of the nine schemes the bytes and messages that the server sends for a change, and the time. The last
    line is the rate at which an engine finds the exact deltas of every subscription.

    \b
    Examples:
      tidings bench joins
      tidings bench joins --subscriptions 100000 --events 1000 -o schemes.png
    """
    _find_benchmarks()
    from benchmarks.select_joins import drawing
    from benchmarks.select_joins.trial import Trial
    from benchmarks.select_joins.workload import Parameters, make
    from tidings.dissemination.schemes import SCHEMES

    if output is not None:
        drawing.check(output)
    workload = make(Parameters(subscriptions=subscriptions, events=2 * events))
    trial, schemes = Trial(workload), list(SCHEMES.values())
    with terminal.err.status("sending changes, scheme by scheme"):
        # First for what is compiled or loaded by the first call, then for the clock.
        trial.run(schemes, trial.changes(0, events))
        tallies = trial.run(schemes, trial.changes(events, 2 * events))
    table = Table(box=None, pad_edge=False)
    table.add_column("scheme")
    for name in ("bytes a change", "messages", "description", "µs a change"):
        table.add_column(name, justify="right")
    for scheme, tally in tallies.items():
        table.add_row(
            scheme,
            f"{tally.each(tally.bytes):,.0f}",
            f"{tally.each(tally.messages):,.2f}",
            f"{tally.description:,.1f}" if tally.skylines else "",
            f"{tally.each(tally.seconds) * 1e6:,.0f}",
        )
    terminal.out.print(table)
    with terminal.err.status("finding the exact deltas of every subscription"):
        rate, deltas = _deltas(workload, events)
    terminal.out.print(
        f"\nexact deltas of {terminal.counted(subscriptions, 'subscription')}: {rate:,.0f} changes/s, "
        f"{deltas:,.1f} deltas each"
    )
    if output is not None:
        drawing.draw(tallies, subscriptions, output)
        terminal.out.print(f"{output}: bytes and time of a change, by scheme")


def _find_benchmarks() -> None:
    """Makes the folder `benchmarks` of a checkout importable; the installed package has none."""
    checkout = Path(__file__).resolve().parents[4]
    if not (checkout / "benchmarks" / "select_joins").is_dir():
        raise TidingsError(
            "the benchmarks are not installed; run this from a checkout: .venv/bin/tidings bench joins"
        )
    if str(checkout) not in sys.path:
        sys.path.append(str(checkout))


def _deltas(workload: Workload, warm: int) -> tuple[float, float]:
    """Changes per second of an engine, and deltas per change, after a warm-up."""
    import time

    from tidings.engine.engine import Engine

    engine = Engine(tables=workload.declared())
    for place in range(len(workload.tables)):
        engine.correlate(workload.loading(place))
    for group in workload.groups:
        engine.subscribe_table(group.template, group.arrow())
    engine.correlate(workload.events(0, warm))
    changes, seconds, found = len(workload.stream) - warm, 0.0, 0
    for first in range(warm, len(workload.stream), 1_000):
        events = workload.events(first, min(first + 1_000, len(workload.stream)))
        start = time.perf_counter()
        deltas = engine.correlate(events)
        deltas.table_of_deltas()
        seconds += time.perf_counter() - start
        found += len(deltas)
    return changes / seconds, found / changes
