"""`tidings define`: changes what the subscriptions of a running service refer to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidings.cli import terminal
from tidings.cli.remote.service_options import connect, of_service

if TYPE_CHECKING:
    from tidings.client import Definition

_FORMATS = {".nt": "nt", ".rdf": "rdfxml", ".xml": "rdfxml", ".owl": "rdfxml", ".jsonld": "jsonld"}
_ACTIONS = ("add_node", "add_edge", "remove_node", "remove_edge", "set_where")


_SERVICE = of_service("An admin's")
_REPLACES = click.option(
    "--replaces",
    type=click.IntRange(0),
    metavar="VERSION",
    help="Change nothing unless this is the current version.",
)


@click.group()
def define() -> None:
    """Change the taxonomy, the prefixes or a network of a running service.

    Each change makes a new version, which is used for all events that are published after the command has ended. A
    subscription that needs a prefix or a network that was removed is paused, with the status 'unanswerable', until there
    is one again.
    """


@define.command("list")
@_SERVICE
def list_(service: str, token: str | None) -> None:
    """List the taxonomy, the prefixes and the networks, with their versions."""
    with connect(service, token) as client:
        found = client.definitions()
    if not found:
        terminal.note("There is neither a taxonomy nor a network, and no prefix but the built-in ones.")
    for definition in found:
        terminal.out.print(f"{_named(definition)}, {definition.origin}", highlight=False)


@define.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_REPLACES
@_SERVICE
def taxonomy(file: Path, replaces: int | None, service: str, token: str | None) -> None:
    """Replace the taxonomy by the one in FILE.

    FILE is RDFS, in the RDF syntax of its file extension, or else in Turtle.

    \b
    Example:
      tidings define taxonomy taxonomy.ttl
      tidings define taxonomy taxonomy.ttl --service https://tidings.example.org --replaces 3
    """
    format = _FORMATS.get(file.suffix.lower(), "turtle")
    with connect(service, token) as client:
        _report(client.set_taxonomy(file.read_bytes(), format=format, replaces=replaces))


@define.command()
@click.argument("prefixes", nargs=-1, metavar="[NAME=IRI]...")
@_REPLACES
@_SERVICE
def prefixes(prefixes: tuple[str, ...], replaces: int | None, service: str, token: str | None) -> None:
    """Replace all prefixes except the built-in ones.

    \b
    Example:
      tidings define prefixes ex=http://example.org/ shop=http://example.org/shop#
    """
    from tidings.cli.subscriptions import prefix_options

    with connect(service, token) as client:
        _report(client.set_prefixes(prefix_options(prefixes), replaces=replaces))


@define.command()
@click.argument("name")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@_REPLACES
@_SERVICE
def network(name: str, path: Path, replaces: int | None, service: str, token: str | None) -> None:
    """Add the network at PATH under NAME, or replace the one with this NAME.

    PATH is as for 'tidings network'.

    \b
    Example:
      tidings define network exchange examples/exchange
    """
    from tidings.kinds.networks.files.sources import read_network

    read = read_network(path)
    with connect(service, token) as client:
        _report(client.set_network(name, read, replaces=replaces))


@define.command()
@click.argument("name")
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("arguments", nargs=-1, required=True)
@click.option(
    "--cost", type=click.FloatRange(0), metavar="COST", help="The cost of the node or edge that is added."
)
@_REPLACES
@_SERVICE
def change(
    name: str,
    action: str,
    arguments: tuple[str, ...],
    cost: float | None,
    replaces: int | None,
    service: str,
    token: str | None,
) -> None:
    """Change the network NAME.

    \b
    ARGUMENTS:
      add_node     NODE [EXPRESSION]
      add_edge     SOURCE TARGET [EXPRESSION]
      remove_node  NODE
      remove_edge  SOURCE TARGET
      set_where    NODE EXPRESSION, or SOURCE TARGET EXPRESSION

    \b
    Examples:
      tidings define change exchange add_edge acme berlin "topic = 'oil'"
      tidings define change exchange set_where acme berlin "topic = 'gas'"
    """
    given: list[Any] = list(arguments)
    if action == "set_where" and len(given) == 3:
        given = [given[:2], given[2]]
    if cost is not None:
        ends = {"add_node": 1, "add_edge": 2}.get(action)
        if ends is None:
            raise click.UsageError(f"--cost is of what is added, not of {action}; leave it out.")
        given = [*given, *[None] * (ends + 1 - len(given)), cost]
    with connect(service, token) as client:
        _report(client.change_network(name, [(action, given)], replaces=replaces))


def _named(definition: Definition) -> str:
    return " ".join(filter(None, (definition.kind, definition.name, f"version {definition.version}")))


def _report(definition: Definition) -> None:
    terminal.out.print(f"{_named(definition)}, in the index from {definition.index_version}", highlight=False)
