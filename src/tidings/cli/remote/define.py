"""`tidings define`: changes what the subscriptions of a running service refer to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidings.cli import terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.client import Client, Definition

_FORMATS = {".nt": "nt", ".rdf": "rdfxml", ".xml": "rdfxml", ".owl": "rdfxml", ".jsonld": "jsonld"}
_ACTIONS = ("add_node", "add_edge", "remove_node", "remove_edge", "set_where")


def _of_service(command: Callable[..., Any]) -> Callable[..., Any]:
    service = click.option(
        "--service",
        default="http://localhost:8750",
        show_default=True,
        metavar="URL",
        help="The address of the service.",
    )
    token = click.option(
        "--token", envvar="TIDINGS_TOKEN", metavar="TOKEN", help="An admin's token; or TIDINGS_TOKEN has it."
    )
    return service(token(command))


_REPLACES = click.option(
    "--replaces",
    type=click.IntRange(0),
    metavar="VERSION",
    help="Change nothing unless this is the present version.",
)


@click.group()
def define() -> None:
    """Change the taxonomy, the prefixes or a network of a running service.

    Each change is the next version. Events that are published after the command has ended are matched by it;
    subscriptions that it makes impossible become unanswerable, those that it makes possible again active.
    """


@define.command("list")
@_of_service
def list_(service: str, token: str | None) -> None:
    """List what there is, with its versions."""
    with _client(service, token) as client:
        found = client.definitions()
    if not found:
        terminal.note("There is neither a taxonomy nor a network, and no prefix but the built-in ones.")
    for definition in found:
        terminal.out.print(f"{_named(definition)}, {definition.origin}", highlight=False)


@define.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_REPLACES
@_of_service
def taxonomy(file: Path, replaces: int | None, service: str, token: str | None) -> None:
    """Replace the taxonomy by that in FILE: RDFS in the syntax that the end of its name says, Turtle otherwise.

    \b
    Example:
      tidings define taxonomy taxonomy.ttl
      tidings define taxonomy taxonomy.ttl --service https://tidings.example.org --replaces 3
    """
    format = _FORMATS.get(file.suffix.lower(), "turtle")
    with _client(service, token) as client:
        _report(client.set_taxonomy(file.read_bytes(), format=format, replaces=replaces))


@define.command()
@click.argument("prefixes", nargs=-1, metavar="[NAME=IRI]...")
@_REPLACES
@_of_service
def prefixes(prefixes: tuple[str, ...], replaces: int | None, service: str, token: str | None) -> None:
    """Replace all prefixes, but for the built-in ones.

    \b
    Example:
      tidings define prefixes ex=http://example.org/ shop=http://example.org/shop#
    """
    from tidings.cli.subscriptions import prefix_options

    with _client(service, token) as client:
        _report(client.set_prefixes(prefix_options(prefixes), replaces=replaces))


@define.command()
@click.argument("name")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@_REPLACES
@_of_service
def network(name: str, path: Path, replaces: int | None, service: str, token: str | None) -> None:
    """Add the network at PATH, which is as for 'tidings network', under NAME; one with the same NAME is replaced.

    \b
    Example:
      tidings define network exchange examples/exchange
    """
    from tidings.kinds.networks.files.sources import read_network

    read = read_network(path)
    if read.match != "expression":
        raise TidingsError(f"{path} matches by labels; a network with expressions can be sent")
    with _client(service, token) as client:
        _report(client.set_network(name, read, replaces=replaces))


@define.command()
@click.argument("name")
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("arguments", nargs=-1, required=True)
@click.option("--cost", type=click.FloatRange(0), metavar="COST", help="Of the node or edge that is added.")
@_REPLACES
@_of_service
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

    ARGUMENTS are of add_node: a node and perhaps an expression; of add_edge: two nodes and perhaps an expression; of
    remove_node and remove_edge: one node and two; of set_where: a node or two, and an expression.

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
    with _client(service, token) as client:
        _report(client.change_network(name, [(action, given)], replaces=replaces))


def _client(service: str, token: str | None) -> Client:
    from tidings.client import Client

    return Client(service, token, timeout=600.0)


def _named(definition: Definition) -> str:
    return " ".join(filter(None, (definition.kind, definition.name, f"version {definition.version}")))


def _report(definition: Definition) -> None:
    terminal.out.print(f"{_named(definition)}, in the index from {definition.index_version}", highlight=False)
