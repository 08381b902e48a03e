"""`tidings sources`: the feeds that a running service follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidings.cli import terminal
from tidings.cli.remote.service_options import connect, of_service

if TYPE_CHECKING:
    from tidings.client import Source

_SERVICE = of_service("A publisher's")
_SHORTEST, _LONGEST = 60.0, 7 * 86_400.0


@click.group()
def sources() -> None:
    """Follow feeds by a running service, each at its own interval."""


@sources.command("list")
@_SERVICE
def list_(service: str, token: str | None) -> None:
    """List the followed feeds with their intervals, and what is wrong with them."""
    with connect(service, token) as client:
        found = list(client.sources())
    for source in found:
        terminal.out.print(_described(source), highlight=False, soft_wrap=True)
    if not found:
        terminal.note("No feed is followed; 'tidings sources follow URL' follows one.")


@sources.command()
@click.argument("url")
@click.option("--title", default="", help="What people call it.")
@click.option(
    "--every",
    type=click.FloatRange(_SHORTEST, _LONGEST),
    metavar="SECONDS",
    help="From one fetch to the next, a minute to a week; by default as the service fetches all feeds.",
)
@_SERVICE
def follow(url: str, title: str, every: float | None, service: str, token: str | None) -> None:
    """Follow the feed at URL: its items are events.

    \b
    Example:
      tidings sources follow https://example.org/feed.xml --every 3600
    """
    with connect(service, token) as client:
        source = client.follow(url, title=title, interval=every)
    terminal.out.print(_described(source), highlight=False, soft_wrap=True)
    if source.interval != every:
        terminal.note("It is followed already; 'tidings sources change' changes its interval.")


@sources.command()
@click.argument("url")
@click.option("--title", help="What people call it.")
@click.option(
    "--every",
    type=click.FloatRange(_SHORTEST, _LONGEST),
    metavar="SECONDS",
    help="From one fetch to the next, a minute to a week.",
)
@click.option("--default", is_flag=True, help="Fetch it as the service fetches all feeds.")
@_SERVICE
def change(
    url: str, title: str | None, every: float | None, *, default: bool, service: str, token: str | None
) -> None:
    """Change the title or the interval of the feed at URL.

    \b
    Example:
      tidings sources change https://example.org/feed.xml --every 600
    """
    if default and every is not None:
        raise click.UsageError("--every and --default exclude each other; give one of them.")
    with connect(service, token) as client:
        source = client.change_source(url, title=title, interval="default" if default else every)
    terminal.out.print(_described(source), highlight=False, soft_wrap=True)


@sources.command()
@click.argument("url")
@_SERVICE
def unfollow(url: str, service: str, token: str | None) -> None:
    """Stop following the feed at URL."""
    with connect(service, token) as client:
        client.unfollow(url)
    terminal.out.print(f"{url} is not followed any more", highlight=False, soft_wrap=True)


def _described(source: Source) -> str:
    every = "" if source.interval is None else f", every {source.interval:,g} seconds"
    named = f" ({source.title})" if source.title else ""
    error = (source.error or "").removeprefix(f"{source.url}: ")
    return f"{source.url}{named}{every}{f': {error}' if error else ''}"
