"""`tidings dissemination`: simulate a network of many nodes that messages of joins, or events, pass through."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from tidings.cli import terminal

if TYPE_CHECKING:
    from tidings.dissemination.simulator.results import Result
    from tidings.dissemination.simulator.scenario import Scenario


@click.group()
def dissemination() -> None:
    """Simulate networks that carry one message to many subscribers."""


@dissemination.command()
@click.argument(
    "scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="SCENARIO.toml"
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the results to this file as well, as .png or .svg.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each line of the table.")
@click.option(
    "--spark", "on_spark", is_flag=True, help="Run the values of a sweep as tasks of a local Spark."
)
def simulate(scenario: Path, output: Path | None, as_json: bool, on_spark: bool) -> None:
    """Simulate the network and the schemes that SCENARIO.toml describes, or a network of [events].

    Prints for each scheme what a change costs on average: traffic (bytes times links between nodes), packets, the bytes that the server
    and the busiest node send, and how far a subscriber's node is, in links and milliseconds. For events also the sizes of forwarding tables.

    \b
    Examples:
      tidings dissemination simulate examples/dissemination.toml
      tidings dissemination simulate examples/event-network.toml
      tidings dissemination simulate examples/dissemination.toml -o network.png
    """
    from tidings.dissemination.simulator import drawing
    from tidings.dissemination.simulator.scenario import read

    if output is not None:
        drawing.check(output)
    wanted = read(scenario)
    results = _on_spark(wanted) if on_spark else _here(wanted)
    if as_json:
        for result in results:
            click.echo(json.dumps(asdict(result)))
    else:
        terminal.out.print(_table(results, wanted))
    if output is not None:
        drawn = wanted.workload if wanted.events is None else wanted.events
        title = f"{drawn.subscriptions:,} subscriptions, {wanted.network.nodes:,} nodes"
        drawing.draw(results, title, wanted.sweep[0] if wanted.sweep else None, output)
        sides = "stress and latency by scheme" if wanted.events is None else "forwarding tables by network"
        terminal.note(f"{output}: traffic, packets, {sides}")


def _here(scenario: Scenario) -> list[Result]:
    from tidings.dissemination.simulator.runs import run

    results: list[Result] = []
    with terminal.progress() as bar:
        for value, variant in scenario.runs():
            task = bar.add_task("preparing", total=None)

            def show(done: int, total: int, what: str, task: object = task) -> None:
                bar.update(task, completed=done, total=total, description=what)  # type: ignore[arg-type]

            results += run(variant, value, show)
            bar.remove_task(task)
    return results


def _on_spark(scenario: Scenario) -> list[Result]:
    from tidings.spark import session
    from tidings.spark.joins.simulation_sweep import sweep

    spark = session()
    try:
        return sweep(spark, scenario)
    finally:
        spark.stop()


_COSTS = {"traffic": "traffic", "hops": "packets", "server_stress": "server"}
_WAYS = {"latency_hops": "links", "latency_ms": "ms"}
_OF_JOINS = {**_COSTS, "node_stress": "busiest", **_WAYS, "fetches": "fetches"}
_OF_EVENTS = {**_COSTS, **_WAYS, "filters": "filters", "largest": "largest", "registrations": "updates"}


def _table(results: list[Result], scenario: Scenario) -> Table:
    table = Table(box=None, pad_edge=False)
    swept = scenario.sweep[0] if scenario.sweep else None
    table.add_column("scheme" if scenario.events is None else "network", no_wrap=True)
    names = _OF_JOINS if scenario.events is None else _OF_EVENTS
    for name in (*([swept.split(".")[1]] if swept else []), *names.values()):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        numbers = [getattr(result, name) for name in names]
        shown = [f"{value:,.0f}" if value >= 100 else f"{value:,.2f}" for value in numbers]
        table.add_row(result.scheme, *([str(result.value)] if swept else []), *shown)
    return table
