"""`tidings token`: manages the tokens of a service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from tidings.cli import options, terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.service.store.registry import Registry

ROLES = ("subscriber", "publisher", "delegate", "relay", "admin")


@click.group()
def token() -> None:
    """Make, list and end the tokens of a service.

    A token is a secret that is sent with every request, as 'Authorization: Bearer tid_…', or given to the page's
    login. Changes take effect at once, also while the service runs. A service that only this machine can
    reach needs no tokens.
    """


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="subscriber",
    show_default=True,
    help="A subscriber has subscriptions and sees only its own; a publisher sends events and follows feeds; a delegate subscribes for users who have no tokens, publishes, and replaces the taxonomy and the prefixes; a relay asks for what its own subscribers need; an admin may do and"
    " see everything.",
)
@click.option(
    "--subscriptions",
    default=1_000,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="How many subscriptions it may have at a time; of a delegate, each of its users.",
)
@click.option(
    "--events-per-second",
    default=1_000.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="RATE",
    help="How many events it may publish a second, on average.",
)
@click.option(
    "--requests-per-second",
    default=50.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="RATE",
    help="How many requests it may make a second, on average.",
)
@click.option(
    "--sources",
    default=1_000,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="How many feeds it may follow at a time.",
)
@click.option(
    "--only",
    "scope",
    default="",
    metavar="TEXT",
    help="A subscription that contains all that the token may ask for, such as \"WHERE topic = 'sport'\". A subscriber's own"
    " conditions come behind it; of a relay, those of all its subscribers.",
)
@options.data
@options.store
def add(
    name: str,
    role: str,
    subscriptions: int,
    events_per_second: float,
    requests_per_second: float,
    sources: int,
    scope: str,
    data: Path,
    store: str | None,
) -> None:
    """Make a token for NAME and print its secret.

    The secret is not stored, and cannot be shown again.

    \b
    Example:
      tidings token add 'news desk'
      tidings token add crawler --role publisher --events-per-second 5000
      tidings token add website --role delegate
      tidings token add 'relay in Lyon' --role relay --only "WHERE region = 'fr'"
    """
    with _registry(data, store) as registry:
        from tidings.service.model import Role
        from tidings.service.subscriptions.access_control import grant
        from tidings.service.subscriptions.scopes import check_scope

        made, secret = grant(
            registry,
            _name(name),
            Role(role),
            time.time(),
            subscriptions=subscriptions,
            events_per_second=events_per_second,
            requests_per_second=requests_per_second,
            sources=sources,
            scope=check_scope(scope),
        )
    click.echo(secret)
    terminal.note(f"{made.id}: {role} {made.name!r}. The secret is shown only now.")


@token.command("list")
@options.data
@options.store
def list_(data: Path, store: str | None) -> None:
    """List the tokens, without their secrets."""
    with _registry(data, store) as registry:
        tokens = registry.tokens()
    if not tokens:
        terminal.note("There is no token yet; 'tidings token add NAME' makes one.")
        return
    rows = [
        ("id", "name", "role", "made", "ended", "subscriptions", "events/s", "requests/s", "sources", "only")
    ]
    for token in tokens:
        limits = (
            f"{token.subscriptions:,}",
            f"{token.events_per_second:,g}",
            f"{token.requests_per_second:,g}",
            f"{token.sources:,}",
            token.scope or "-",
        )
        rows.append(
            (token.id, token.name, token.role.value, _day(token.created), _day(token.ended) or "-", *limits)
        )
    # Wider than a narrow terminal: a line that wraps can be copied, a cell that is folded cannot.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        terminal.out.print(Text(line, style="" if number and row[4] == "-" else "dim"))


@token.command()
@click.argument("id")
@options.data
@options.store
def end(id: str, data: Path, store: str | None) -> None:
    """End the token ID. Its subscriptions stay as they are; a running service refuses it within a second."""
    with _registry(data, store) as registry:
        if registry.end_token(id, time.time()):
            terminal.out.print(f"{id} is ended")
            return
        known = {token.id: token for token in registry.tokens()}
        if id in known:
            raise TidingsError(f"{id} was ended on {_day(known[id].ended)} already")
        named = [token.id for token in known.values() if token.name == id and token.ended is None]
        advice = (
            f"did you mean {' or '.join(named)}?" if named else "'tidings token list' shows those there are"
        )
        raise TidingsError(f"there is no token {id!r}; {advice}")


@contextmanager
def _registry(data: Path, store: str | None) -> Iterator[Registry]:
    if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
        raise TidingsError("this command needs more packages; install Tidings with the extra 'service'")
    from tidings.service.settings import Settings
    from tidings.service.store.database import open_stores

    if store is None and not (data / "registry.db").exists():
        raise TidingsError(
            f"there is no service in {data}; name its folder by --data, or its database by --store;"
            " 'tidings serve' makes a new one"
        )
    registry, mailbox = open_stores(Settings(data.absolute(), store=store))
    try:
        yield registry
    finally:
        registry.close()
        mailbox.close()


def _name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise TidingsError(
            f"{name[:40]!r} is no name for a token; give one of 1 to 100 characters that can be printed"
        )
    return name


def _day(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
