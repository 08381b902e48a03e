"""The command line: parse, call, print. Each command is one file; heavy modules are imported inside the commands.

A user's mistake is one sentence on standard error and exit code 1, never a traceback; a wrong command line is
exit code 2.
"""

from __future__ import annotations

from typing import Any

import click

from tidings import __version__
from tidings.cli.backup import backup, restore
from tidings.cli.contains import contains
from tidings.cli.demo import demo
from tidings.cli.explain import explain
from tidings.cli.index import index
from tidings.cli.match import match
from tidings.cli.network import network
from tidings.cli.relay import relay
from tidings.cli.remote.define import define
from tidings.cli.remote.sources import sources
from tidings.cli.run import run
from tidings.cli.serve import serve
from tidings.cli.token import token
from tidings.cli.trials.backtest import backtest
from tidings.cli.trials.bench import bench
from tidings.cli.trials.dissemination import dissemination
from tidings.errors import TidingsError


class _CommandGroup(click.Group):
    """Prints the errors that a user can fix as one sentence, and lists commands in the order of their addition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TidingsError as error:
            raise click.ClickException(str(error)) from None
        except BrokenPipeError:
            raise  # `| head`: click ends quietly
        except OSError as error:
            prefix = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{prefix}{error.strerror or error}") from None


@click.group(
    cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="tidings")
def main() -> None:
    """Match events against many subscriptions at once.

    A subscription is a condition such as topic = 'sport'; an event is an item of a feed, an RDF graph or a JSON object.
    A first look:

    \b
      tidings demo
      tidings match --subscriptions subscriptions.txt feeds/
    """


for command in (
    match,
    explain,
    contains,
    backtest,
    index,
    network,
    dissemination,
    run,
    serve,
    relay,
    token,
    define,
    sources,
    backup,
    restore,
    demo,
    bench,
):
    main.add_command(command)
