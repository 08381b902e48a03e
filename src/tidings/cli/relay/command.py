"""`tidings relay`: a service at the edge, which gets its events from another one."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from tidings.cli import options
from tidings.cli.serve import (
    DAY,
    checked_network,
    host_name,
    is_local,
    public_address,
    show_address,
    until_signal,
)
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.service.service import Service


@click.command()
@click.option(
    "--upstream",
    metavar="URL",
    help="The service that events come from: the centre, or another relay, such as http://central:8750.",
)
@click.option(
    "--second",
    metavar="URL",
    help="Another one, for when the first is gone. The relay goes back to the first when that answers again.",
)
@click.option(
    "--token",
    envvar="TIDINGS_TOKEN",
    metavar="TOKEN",
    help="A token of the upstream services with the role relay: 'tidings token add NAME --role relay' makes one there."
    " The variable TIDINGS_TOKEN may hold it as well.",
)
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="What the page of the upstream service calls this relay; the name of the host without it.",
)
@options.data
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", default=8751, show_default=True, type=click.IntRange(1, 65_535), help="The port to listen at."
)
@click.option(
    "--url",
    metavar="URL",
    help="The address that others use for the relay, if it is behind a proxy; feeds and links have it.",
)
@options.store
@options.memory
@options.operators
@click.option(
    "--allow-network",
    "allowed",
    multiple=True,
    metavar="CIDR",
    help="A private network that webhooks may be in, such as 10.1.0.0/16. May be repeated.",
)
@options.smtp
@options.smtp_password
@options.mail_from
@click.option(
    "--retention",
    default=7.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="DAYS",
    help="How long events and notifications are kept.",
)
@click.option(
    "--keep-size",
    "keep_size",
    type=options.Size(least=100_000_000),
    metavar="SIZE",
    help="How much of them is kept, such as 5GB, in the event log and in the mailbox each; the oldest are deleted first.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Start a centre and three relays on this machine, with subscribers and sample events, and show what crosses each link"
    " and what it would have been without them.",
)
@click.option("--protect-metrics", is_flag=True, help="Require a token, of any role, for /metrics.")
@click.option(
    "--log-format",
    "log_format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="The format of the log on standard error.",
)
def relay(
    upstream: str | None,
    second: str | None,
    token: str | None,
    name: str,
    data: Path,
    host: str,
    port: int,
    url: str | None,
    store: str | None,
    memory: int | None,
    modules: tuple[str, ...],
    allowed: tuple[str, ...],
    smtp: str | None,
    smtp_password_file: Path | None,
    mail_from: str | None,
    retention: float,
    keep_size: int | None,
    demo: bool,
    protect_metrics: bool,
    log_format: str,
) -> None:
    """Serve subscribers near them: a service that gets its events from another one.

    A relay has the page, the HTTP interface, feeds, server-sent events and webhooks of a service, and its own subscribers and
    tokens. It asks the upstream service only for what they need, gets each event once however many of them want it, and matches
    it here, without Spark. Relays may stand below relays. Subscriptions over tables work as at the upstream service, whose tables
    it takes over.

    Everything is on disk: a relay that is stopped or killed goes on where it was, and its subscribers miss nothing. With
    --second, they need not wait while the upstream service is gone.

    \b
    Example:
      tidings relay --demo
      tidings relay --upstream http://central:8750
      tidings relay --upstream https://central.example.org --second https://standby.example.org --host 0.0.0.0
    """
    for package in ("fastapi", "sqlalchemy", "uvicorn"):
        if find_spec(package) is None:
            raise TidingsError("this command needs more packages; install Tidings with the extra 'service'")
    if demo:
        _refuse_others("demo")
        from tidings.cli.relay.demo import play

        play()
        return
    if upstream is None:
        raise click.UsageError("name the service that events come from: --upstream http://central:8750")
    from tidings.cli.subscriptions import operator_options
    from tidings.service.relay.upstream_tables import upstream_tables
    from tidings.service.settings import Settings
    from tidings.service.web.server import serve as serve_until_signal

    if len(name) > 100:
        raise TidingsError(f"the name of the relay has {len(name)} characters; give at most 100 by --name")
    urls = tuple(_upstream(given) for given in (upstream, second) if given is not None)
    options.need_folder(data.absolute(), "by --data")
    settings = Settings(
        data.absolute(),
        host=host_name(host),
        port=port,
        url=public_address(url, host, port),
        store=store,
        matching="process",
        memory=memory,
        operators=tuple(dict.fromkeys(modules)),
        allowed=tuple(map(checked_network, allowed)),
        mail=options.chosen_mail(smtp, smtp_password_file, mail_from),
        open=is_local(host) and (url is None or is_local(urlsplit(url).hostname or "")),
        retention=retention * DAY,
        keep_size=keep_size,
        upstream=urls,
        tables=upstream_tables(urls, token, data.absolute()),
        upstream_token=token,
        name=name,
        protect_metrics=protect_metrics,
        log_format=log_format,
    )
    operator_options(modules)  # their errors are reported before anything starts
    from tidings.cli.warm import ahead

    with until_signal(), ExitStack() as stack:

        def welcome(service: Service) -> None:
            show_address(service, settings)
            stack.enter_context(ahead())

        serve_until_signal(settings, welcome)


def _refuse_others(name: str) -> None:
    """UsageError if another option than this one was given."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name != name:
            raise click.UsageError(
                f"--{name} starts services of its own, so {parameter.opts[0]} has no effect; leave one of the two out"
            )


def _upstream(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 # which is read only now
    except ValueError:
        good = False
    if not good:
        raise TidingsError(f"{url!r} is no address of a service; give one like http://central:8750")
    return url.rstrip("/")
