"""`tidings network`: shows and draws a network of publishers, intermediaries and subscribers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from tidings.cli import compiling, terminal
from tidings.errors import TidingsError

NETWORK = click.argument("network", type=click.Path(exists=True, path_type=Path), metavar="NETWORK")


@click.group()
def network() -> None:
    """Show and draw a network of publishers, intermediaries and subscribers.

    NETWORK is a folder with nodes.csv and edges.csv (or one of them), the same as .parquet, a .graphml file, or a folder
    that Network.save has written. Nodes have the columns id, where and cost; edges have source, target, where and cost.
    The columns where and cost are optional, and so is the file of nodes: without it the nodes are those that edges name.
    An event passes a node or an edge if it satisfies the expression in the column where, and the labels in a column that is
    named after a match function: overlap, subset or superset, with labels as 'sport; news' held against the event's
    attribute labels, or overlap:topics for its attribute topics.
    """


@network.command()
@NETWORK
def show(network: Path) -> None:
    """Show the size of NETWORK, its expressions and its components.

    \b
    Example:
      tidings network show examples/exchange
    """
    compiling.choose([network])
    from tidings.kinds.networks.drawing.summary import summarise
    from tidings.kinds.networks.files.sources import read_network

    facts = summarise(read_network(network))
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    rows = [
        ("nodes", f"{facts.nodes:,}, {facts.nodes_with_expression:,} with an expression"),
        ("edges", f"{facts.edges:,}, {facts.edges_with_expression:,} with an expression"),
        ("distinct expressions", f"{facts.distinct_expressions:,}"),
        ("publishers", f"{facts.publishers:,} that no edge leads to"),
        ("subscribers", f"{facts.subscribers:,} that no edge leaves"),
        ("alone", f"{facts.alone:,}"),
        (
            "components",
            f"{facts.components:,} strongly connected, the largest of {facts.largest_component:,}",
        ),
    ]
    for name, most in (("most edges out", facts.most_edges_out), ("most edges in", facts.most_edges_in)):
        if most is not None:
            rows.append((name, f"{most[1]:,}: {terminal.brief(most[0])}"))
    for row in rows:
        table.add_row(*row)
    terminal.out.print(table)


@network.command()
@NETWORK
@click.option("--around", metavar="NODE", help="Draw only this node and those near it.")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="With --around, how many edges away.",
)
@click.option(
    "--event",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Colour the nodes by whether the first event of this file reaches them.",
)
@click.option(
    "--from", "source", metavar="NODE", help="Where the event is published; without it, the event's source."
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file for the picture, .svg or .png.",
)
def draw(
    network: Path, around: str | None, depth: int, event: Path | None, source: str | None, output: Path
) -> None:
    """Draw NETWORK, or what is around one of its nodes.

    Columns go from publishers to subscribers. With an event, nodes are coloured: reached along a path whose every
    node and edge accepts the event; reachable, but refusing it; valid, accepting it but not reachable; neither.

    \b
    Examples:
      tidings network draw examples/exchange -o exchange.svg
      tidings network draw examples/exchange --event examples/exchange/event.json -o course.png
      tidings network draw large.parquet --around 'open exchange' --depth 1 -o near.svg
    """
    compiling.choose([network])
    from tidings.kinds.networks.drawing import picture
    from tidings.kinds.networks.files.sources import read_network

    if source is not None and event is None:
        raise click.UsageError("--from says where an event is published; give one with --event FILE.")
    graph = read_network(network)
    attributes: dict[str, Any] | None = None
    title = ""
    if event is not None:
        attributes, id, published = _event(event)
        source = source or published
        if source not in graph:
            raise TidingsError(
                f"the event's source {source!r} is no node of {network}; name one with --from NODE"
                if source
                else f"the event in {event} has no source; name a node with --from NODE"
            )
        title = f"event {id} from {source}"
    part = picture.draw(
        graph, output, around=around, depth=depth, source=source, event=attributes, title=title
    )
    drawn = f"{terminal.counted(len(part.nodes), 'node')} and {terminal.counted(len(part.edges), 'edge')}"
    terminal.out.print(f"{output}: {drawn}")


def _event(path: Path) -> tuple[dict[str, Any], str, str]:
    """The attributes, id and source of the first event of a file."""
    from tidings.cli import events as event_files
    from tidings.model.batch import attributes_of_row
    from tidings.model.event import to_table

    for portion in event_files.read(str(path)):
        for event in portion:
            return attributes_of_row(to_table([event]), 0), terminal.brief(event.id), event.source
    raise TidingsError(f"no event could be read from {path}; give a JSON object with its attributes")
