"""`tidings backtest`: what a subscription would have matched of the events of the last days, and how often."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from tidings.cli import compiling, options, terminal
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.engine.backtest import Tally
    from tidings.engine.engine import Engine
    from tidings.service.delivery.channels.schedule import Schedule

_DAY = 86_400
_WIDTH = 40  # characters of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHOWN = 5  # matches


@click.command()
@click.argument("text")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of a service, whose log, taxonomy, prefixes and networks are used. The service may run meanwhile.",
)
@click.option(
    "--log",
    "log_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of an event log, as 'tidings run' makes it.",
)
@click.option(
    "--service", metavar="URL", help="Ask a running service instead, such as http://localhost:8750."
)
@click.option(
    "--token",
    envvar="TIDINGS_TOKEN",
    metavar="TOKEN",
    help="With --service: a token; by default that of the environment variable TIDINGS_TOKEN.",
)
@click.option(
    "--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How far back it looks."
)
@click.option(
    "--digest",
    type=click.Choice(("hourly", "daily", "weekly", "none")),
    default="daily",
    show_default=True,
    help="The digest whose messages are foretold; 'none' for messages at once.",
)
@click.option("--at", metavar="HH:MM", help="When a daily or weekly digest comes; 08:00 without it.")
@click.option("--zone", default="UTC", show_default=True, help="The time zone of days and digests.")
@click.option(
    "--spark", "master", metavar="MASTER", help="Count by Spark, such as local[*] or spark://host:7077."
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@options.taxonomy
@options.prefix
@options.networks
@options.operators
def backtest(
    text: str,
    data: Path | None,
    log_folder: Path | None,
    service: str | None,
    token: str | None,
    days: int,
    digest: str,
    at: str | None,
    zone: str,
    master: str | None,
    as_json: bool,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    modules: tuple[str, ...],
) -> None:
    """Count what the subscription TEXT would have matched of past events.

    Prints the matches of each day, the busiest hour, the newest matches, and the messages that a digest would have been. Events
    count by when they arrived; what the log does not keep any more is not counted. Subscriptions over tables are refused.

    \b
    Examples:
      tidings backtest "WHERE topic = 'sport'" --data tidings-data
      tidings backtest "WHERE topic = 'sport'" --log out/log --days 7 --spark 'local[*]'
      tidings backtest "WHERE topic = 'sport'" --service http://localhost:8750 --digest weekly --zone Europe/Vienna
    """
    if sum(given is not None for given in (data, log_folder, service)) != 1:
        raise click.UsageError("give one of --data, --log and --service: where the events are")
    if at is not None and digest not in ("daily", "weekly"):
        raise click.UsageError("--at is the time of a daily or weekly digest")
    schedule = {"zone": zone} if digest == "none" else {"digest": digest, "zone": zone}
    if at is not None:
        schedule["at"] = at
    if service is not None:
        if master or taxonomy or prefixes or networks or modules:
            raise click.UsageError(
                "with --service, the service has the definitions and Spark; leave them out"
            )
        _print(_ask(service, token, text, days, schedule), as_json)
        return
    from tidings.service.delivery.channels.schedule import Schedule

    planned = Schedule.from_json(schedule)  # a mistake in it is said before the events are counted
    compiling.choose([data or log_folder])
    engine = _definitions(data, taxonomy, prefixes, networks, modules)
    folder = log_folder or Path(data or "") / "log"
    found = _count(folder, text, engine, days, master, modules)
    _print(_report(found, folder, days, planned), as_json)


def _ask(
    service: str, token: str | None, text: str, days: int, schedule: Mapping[str, Any]
) -> dict[str, Any]:
    from dataclasses import asdict

    from tidings.client import Client

    with Client(service, token) as client, _ProgressBar() as progress:
        return asdict(client.backtest(text, days=days, schedule=schedule, progress=progress.update))


class _ProgressBar:
    """A bar of what is done; none without a terminal."""

    def __enter__(self) -> _ProgressBar:
        self._bar = terminal.progress()
        self._bar.start()
        self._task = self._bar.add_task("matching", total=100)
        return self

    def update(self, done: float) -> None:
        self._bar.update(self._task, completed=int(100 * done))

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def _definitions(
    data: Path | None,
    taxonomy: Path | None,
    prefixes: Sequence[str],
    networks: Sequence[str],
    modules: Sequence[str],
) -> Engine:
    """What the text may refer to: as the service has it, and as the options say."""
    from tidings.cli.subscriptions import network_options, operator_options, prefix_options
    from tidings.engine.engine import Engine
    from tidings.kinds.networks.files.sources import read_network
    from tidings.model.taxonomy import Taxonomy
    from tidings.storage import versions

    operators = operator_options(modules)
    known = Engine(operators=operators)
    if data is not None and (data / "index" / "CURRENT").exists():
        index = data / "index"
        known = versions.open(index, versions.current(index), operators=operators)
    given = {name: read_network(path) for name, path in network_options(tuple(networks)).items()}
    return Engine(
        taxonomy=known.taxonomy if taxonomy is None else Taxonomy.from_file(taxonomy),
        prefixes={**known.prefixes, **prefix_options(tuple(prefixes))},
        networks={**known.networks, **given},
        operators=operators,
        tables=known.joins.tables.values(),
    )


def _count(
    folder: Path, text: str, definitions: Engine, days: int, master: str | None, modules: Sequence[str]
) -> Tally:
    since = time.time() - days * _DAY
    if not (folder / "HEAD").exists():
        raise TidingsError(
            f"there is no event log in {folder}; give a service's folder by --data, or the log by --log"
        )
    with _ProgressBar() as progress:
        if master is None:
            from tidings.engine.backtest import backtest_engine
            from tidings.service.matching.backtests import LocalRunner, Span
            from tidings.storage.event_log import EventLog

            engine = backtest_engine(definitions, text)
            return LocalRunner(EventLog(folder)).run("", engine, Span(since, math.inf), progress.update)
        from tidings.spark.startup import need_spark

        need_spark()
        from tidings.spark import backtest, session

        spark = session(master, name="tidings backtest")
        try:
            return backtest(
                folder,
                text,
                since=since,
                definitions=definitions,
                operators=modules,
                spark=spark,
                progress=progress.update,
            )
        finally:
            spark.stop()


def _report(found: Tally, folder: Path, days: int, schedule: Schedule) -> dict[str, Any]:
    from tidings.service.delivery.presentation import describe
    from tidings.service.subscriptions.backtest_report import report
    from tidings.storage.event_log import EventLog
    from tidings.storage.log_times import LogTimes

    now = time.time()
    since = LogTimes(EventLog(folder)).known_from(now - days * _DAY, now)
    made = report(found, since, now, schedule)
    return made.to_json(
        lambda event: {"id": event.id, "source": event.source, "title": describe(event).title}
    )


def _print(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, default=str, indent=1))
        return
    out = terminal.out.print
    matched = terminal.counted(found["matched"], "match")
    share = f" ({found['matched'] / found['events']:.1%})" if found["events"] else ""
    out(Text(f"{matched} of {terminal.counted(found['events'], 'event')}{share}", style="bold"))
    out(Text(f"  from {_shown(found['since'])} to {_shown(found['until'])} UTC", style="dim"))
    for line in _bars(found["days"]):
        out(line)
    if (busiest := found["busiest"]) is not None:
        out(f"busiest hour   {_shown(busiest['start'])} UTC: {terminal.counted(busiest['matched'], 'match')}")
    digest = found["digest"]
    waiting = f", and {digest['waiting']:,} wait for the next" if digest["waiting"] else ""
    out(f"digest         {digest['sentence']}{waiting}")
    for number, match in enumerate(found["matches"][:_SHOWN]):
        event = match["event"]
        title = event.get("title") or event.get("id") or ""
        out(
            Text(f"{'newest' if not number else '':<15}{_shown(match['arrived'])}  ")
            + Text(terminal.brief(title))
        )
    for count, what in ((found["undecided"], "undecided"), (found["unreadable"], "not readable")):
        if count:
            terminal.warn(f"{terminal.counted(count, 'event')} {'is' if count == 1 else 'are'} {what}")
    if found["warning"]:
        terminal.warn(found["warning"])


def _bars(days: Sequence[Mapping[str, Any]]) -> list[Text]:
    """A bar for each day."""
    top = max((day["matched"] for day in days), default=0) or 1
    lines = []
    for day in days:
        eighths = round(8 * _WIDTH * day["matched"] / top)
        if day["matched"]:
            eighths = max(1, eighths)
        bar = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
        lines.append(Text.assemble((f"{day['day']}  ", "dim"), (bar, "green"), f" {day['matched']:,}"))
    return lines


def _shown(moment: str) -> str:
    return moment[:16].replace("T", " ")
