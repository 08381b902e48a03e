"""`tidings serve`: runs the whole system on one machine with one command."""

from __future__ import annotations

import ipaddress
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from tidings.cli import options, terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.service.matching.local_stream import LocalStream
    from tidings.service.matching.supervisor import DriverState, Supervisor
    from tidings.service.service import Service
    from tidings.service.settings import Settings

DAY = 86_400.0


@click.command()
@options.data
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", default=8750, show_default=True, type=click.IntRange(1, 65_535), help="The port to listen at."
)
@click.option(
    "--url",
    metavar="URL",
    help="The address that others use for the service, if it is behind a proxy; feeds and links have it.",
)
@options.store
@click.option(
    "--spark",
    default="local[*,4]",
    show_default=True,
    metavar="MASTER",
    help="The Spark master that runs the matching.",
)
@click.option(
    "--small-batch",
    type=click.IntRange(0),
    metavar="EVENTS",
    help="Match micro-batches of up to this many events without a Spark job, which is quicker; 0 for none. Without it the"
    " service measures which number is best.",
)
@options.memory
@options.parts
@options.place
@options.merge
@options.apart
@options.taxonomy
@options.prefix
@options.networks
@options.operators
@click.option(
    "--tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The tables that subscriptions join, in TOML or JSON (see 'tidings match --help').",
)
@click.option(
    "--allow-network",
    "allowed",
    multiple=True,
    metavar="CIDR",
    help="A private network that feeds and webhooks may be in, such as 10.1.0.0/16. Otherwise the service calls no loopback,"
    " private or link-local address. May be repeated.",
)
@options.smtp
@options.smtp_password
@options.mail_from
@click.option(
    "--longest-validity",
    "longest",
    type=click.FloatRange(0, min_open=True),
    metavar="DAYS",
    help="The longest validity that a subscription may have. Without it there is no limit.",
)
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
    help="How much of them is kept, such as 5GB, in the event log and in the mailbox each; the oldest are deleted first. Events"
    " that wait to be matched are kept in any case.",
)
@click.option(
    "--feeds-every",
    "every",
    default=900.0,
    show_default=True,
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="How often a feed is fetched, unless the feed itself asks for longer intervals.",
)
@click.option(
    "--stall-after",
    default=900.0,
    show_default=True,
    type=click.FloatRange(60),
    metavar="SECONDS",
    help="Restart the stream when it makes no progress for this long while events wait. It must be longer than any call of an"
    " operator takes.",
)
@click.option(
    "--max-lag",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="/ready answers 503 when an event has waited longer than this to be matched.",
)
@click.option(
    "--protect-metrics",
    is_flag=True,
    help="Require a token, of any role, for /metrics. A service that needs no tokens shows them to everybody.",
)
@click.option(
    "--log-format",
    "log_format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="The format of the log on standard error.",
)
def serve(
    data: Path,
    host: str,
    port: int,
    url: str | None,
    store: str | None,
    spark: str,
    small_batch: int | None,
    memory: int | None,
    parts: int | None,
    place: str,
    merge: int,
    apart: bool,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    modules: tuple[str, ...],
    tables: Path | None,
    allowed: tuple[str, ...],
    smtp: str | None,
    smtp_password_file: Path | None,
    mail_from: str | None,
    longest: float | None,
    retention: float,
    keep_size: int | None,
    every: float,
    stall_after: float,
    max_lag: float,
    protect_metrics: bool,
    log_format: str,
) -> None:
    """Serve subscriptions: a page, an HTTP interface, feeds, and the stream that matches.

    Everything is kept in one folder, and nothing needs to be configured: start it, and open the page it names.
    Ctrl-C ends it after the micro-batch under way, a second one at once; the next start goes on where this one ended.

    On this machine (127.0.0.1) everybody may do everything. With another --host, or a --url that others use, a token is
    needed for every request; the first start makes one for an admin and shows it once, and 'tidings token' makes more.

    \b
    Example:
      tidings serve
      tidings serve --data /var/lib/tidings --host 0.0.0.0 --url https://tidings.example.org
      tidings serve --store postgresql://tidings@db/tidings --spark spark://master:7077
    """
    if parts is None and (merge or apart):
        raise click.UsageError("--merge and --apart say how an index is divided; give --parts too")
    options.check_division(parts, place, merge, apart)
    for package in ("fastapi", "sqlalchemy", "uvicorn"):
        if find_spec(package) is None:
            raise TidingsError(
                "this command needs more packages; install Tidings with the extras 'service' and 'spark'"
            )
    from tidings.cli.subscriptions import network_options, operator_options, prefix_options
    from tidings.service.settings import Settings
    from tidings.spark.startup import need_spark

    settings = Settings(
        data.absolute(),
        host=host_name(host),
        port=port,
        url=public_address(url, host, port),
        store=store,
        spark=spark,
        small_batch=small_batch,
        memory=memory,
        parts=parts,
        place=place,
        merge=merge,
        apart=apart,
        taxonomy=taxonomy,
        prefixes=prefix_options(prefixes),
        networks=network_options(networks),
        operators=tuple(dict.fromkeys(modules)),
        tables=tables,
        allowed=tuple(map(checked_network, allowed)),
        mail=options.chosen_mail(smtp, smtp_password_file, mail_from),
        open=is_local(host) and (url is None or is_local(urlsplit(url).hostname or "")),
        longest_validity=None if longest is None else longest * DAY,
        retention=retention * DAY,
        keep_size=keep_size,
        feed_interval=every,
        stall_after=stall_after,
        max_lag=max_lag,
        protect_metrics=protect_metrics,
        log_format=log_format,
    )
    operator_options(modules)  # their errors are reported before anything starts
    need_spark()
    options.need_folder(settings.data, "by --data")
    from tidings.cli.warm import ahead
    from tidings.service.web.server import serve as serve_until_signal

    with until_signal(), ExitStack() as stack:

        def welcome(service: Service) -> None:
            show_address(service, settings)
            stack.enter_context(ahead())

        serve_until_signal(settings, welcome)


@contextmanager
def until_signal() -> Iterator[None]:
    """Handles signals before and after the server runs, which handles them itself in between. The first one waits
    for the micro-batch under way, a second one ends at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ending = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        if not ending:
            terminal.note("Finishing the micro-batch; Ctrl-C again ends at once.")
        ending = True
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    terminal.note("Ended; the next start goes on from here.")


def show_address(service: Service, settings: Settings) -> None:
    """Prints the address, and the first token if one was made."""
    from tidings.service.model import Role

    terminal.out.print(f"Tidings at {settings.address}")
    _announce_matching(service.supervisor)
    if settings.open:
        terminal.note("Open to everybody on this machine. Ctrl-C ends it.")
        return
    if any(token.role is Role.ADMIN and token.ended is None for token in service.registry.tokens()):
        terminal.note("A token is needed: 'tidings token' makes one.")
        return
    _, secret = service.access.grant("admin", Role.ADMIN)
    terminal.out.print(f"The admin's token, shown this once:\n\n    {secret}\n")


def _announce_matching(supervisor: Supervisor | LocalStream) -> None:
    """Prints once that events are being matched. Failures are in the log."""
    from tidings.arrays import loop_cache
    from tidings.service.matching.supervisor import Supervisor

    announced = threading.Lock()

    def announce(state: DriverState) -> None:
        if state.status == "running" and announced.acquire(blocking=False):
            terminal.note("Events are being matched.")

    if not loop_cache.is_complete():
        terminal.note("Compiling the matching loops, once; this may take a minute.")
    if isinstance(supervisor, Supervisor):
        terminal.note("Starting Spark; events that are published meanwhile are kept, and matched then.")
    supervisor.on_change = announce
    announce(supervisor.state)


def host_name(host: str) -> str:
    host = host.strip()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host:
        raise TidingsError("--host is empty; name an address, such as 127.0.0.1")
    return host


def _is_every(host: str) -> bool:
    return host.strip("[]") in ("0.0.0.0", "::")


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def public_address(url: str | None, host: str, port: int) -> str | None:
    if url is None:
        # "Every address" is none that a link could have.
        return f"http://{socket.gethostname()}:{port}" if _is_every(host) else None
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 # which is read only now
    except ValueError:
        good = False
    if not good:
        raise TidingsError(
            f"--url {url!r} is no address of a service; give one like https://tidings.example.org"
        )
    return url.rstrip("/")


def checked_network(cidr: str) -> str:
    try:
        return str(ipaddress.ip_network(cidr.strip()))
    except ValueError as error:
        raise TidingsError(
            f"--allow-network {cidr!r} is no network: {error}; give one like 10.1.0.0/16"
        ) from None
