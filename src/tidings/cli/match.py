"""`tidings match`: matches events from files with subscriptions from a file, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidings.cli import compiling, options, terminal
from tidings.cli.notification_output import FORMATS, EventNames, NotificationWriter, key_of, open_writer
from tidings.cli.operator_statistics import check_stats_file, write_stats

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.cli.events import Portion
    from tidings.engine.engine import Engine
    from tidings.model.observed_attributes import ObservedAttributes

AT_ONCE = 1000


@click.command()
@options.subscriptions_of(required=False)
@options.patterns
@click.argument("events", nargs=-1, metavar="EVENTS…")
@options.taxonomy
@options.prefix
@options.networks
@options.tables
@options.operators
@click.option(
    "--all-bindings",
    is_flag=True,
    help="Write a notification for every binding of the variables, not only for the first.",
)
@click.option(
    "--joined",
    is_flag=True,
    help="Show the joined rows of subscriptions that join tables, not the rows of each table.",
)
@click.option(
    "--format",
    "-f",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The format of the notifications.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the notifications to this file, not to standard output.",
)
@click.option(
    "--stats",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write how often operators were called and how many calls were avoided: a picture (.png, .svg), or a table (.txt,"
    " .csv, .json).",
)
def match(
    subscriptions: Path | str | None,
    patterns: str | None,
    events: tuple[str, ...],
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    tables: Path | None,
    modules: tuple[str, ...],
    all_bindings: bool,
    joined: bool,
    format: str,
    output: Path | None,
    stats: Path | None,
) -> None:
    """Match events against subscriptions.

    EVENTS are files or folders: feeds (RSS, Atom, JSON Feed), RDF (Turtle, N-Triples, RDF/XML, JSON-LD, TriG,
    N-Quads), NDJSON of CloudEvents or of any objects, whose members are attributes; - is standard input.
    Lines that change tables: {"insert": "stocks", "row": {"symbol": "GOOG", "per": 52}}, "update" and "delete"
    likewise, or change events of Debezium. Tables are empty at the start, and nothing is kept of them at the end.

    \b
    A file of subscriptions:
      # comments, prefixes, then 'id: text'; an indented line continues the one before
      @prefix ex: <http://example.org/>
      goals: SELECT ?title WHERE (?item, rss:title, ?title) AND ?title CONTAINS 'goal'
      cheap bicycles:
          SELECT ?title, ?price
          WHERE (?item, rss:title, ?title), (?item, ex:price, ?price) AND ?price < 200
      large orders: WHERE type = 'order' AND total > 1000
      # tables that are joined, declared in a file beside this one
      @tables tables.toml
      liked: SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 70 AND rating >= 6

    \b
    A file of tables (types: integer, number, text, boolean, date, timestamp):
      [stocks]
      columns = { symbol = "text", per = "number" }
      key = ["symbol"]
      [reviews]
      columns = { symbol = "text", rating = "number" }

    With --patterns, the subscriptions are rules in JSON: {"name": {pattern}, ...}, a list of {"Name": ...,
    "EventPattern": ...}, what 'aws events list-rules' gives, or such an object in each line. The file may stand
    before EVENTS instead of after -s; without EVENTS, standard input is read.

    \b
    Examples:
      tidings match -s "WHERE topic = 'sport' AND price < 20" events.ndjson
      tidings match -s subscriptions.txt feeds/ news.atom
      tidings match -s subscriptions.txt -t topics.ttl -f ndjson feeds/ | jq .bindings.title
      tail -f events.ndjson | tidings match -s subscriptions.txt -
      tidings match --patterns eventbridge rules.json events.ndjson
      tidings match -s subscriptions.txt --network exchange=exchange/ events.ndjson
      tidings match -s subscriptions.txt --tables tables.toml changes.ndjson
      tidings match -s subscriptions.txt --operators operators.py --stats stats.png events.ndjson

    Matches are written in the order of the events, those of one event in the order of the subscriptions.

    A file, an event or a subscription that cannot be read is reported on standard error, and the others are used. At the end,
    likely mistakes in subscriptions are reported there too, such as an attribute that no event had. The exit code is 0 if
    any event was matched against any subscription, and 1 if nothing could be read.
    """
    compiling.choose([subscriptions, taxonomy, tables, *events, *networks])
    import pyarrow as pa

    from tidings.cli import events as event_files
    from tidings.cli.subscriptions import (
        Entry,
        load,
        network_options,
        operator_options,
        prefix_options,
        warn_of_mistakes,
    )
    from tidings.model.observed_attributes import ObservedAttributes

    if stats is not None:
        check_stats_file(stats)
    if patterns and subscriptions is None and events:
        subscriptions, events = Path(events[0]), events[1:] or (event_files.STDIN,)
    if subscriptions is None:
        raise click.UsageError("Missing option '--subscriptions' / '-s'.")
    if not events:
        raise click.UsageError("Missing argument 'EVENTS…'.")
    paths = event_files.files(events)
    entries: list[Entry] = []
    engine = load(
        subscriptions,
        taxonomy,
        prefix_options(prefixes),
        patterns=patterns,
        networks=network_options(networks),
        operators=operator_options(modules),
        tables=tables,
        entries=entries,
    )
    attributes = ObservedAttributes("event of this run")
    # Notifications in the terminal show progress enough, and a bar between them would be in the way.
    quiet = output is None and terminal.out.is_terminal
    with open_writer(format, output) as writer:
        named = iter(paths) if quiet else terminal.tracked(paths, len(paths), "matching files", 1)
        portions = _observed(_portions(named), attributes)
        order = pa.array([entry.id for entry in entries], pa.string())
        read, found = _publish(
            engine, portions, writer, order, named=format == "text", all_bindings=all_bindings, joined=joined
        )
    if not patterns:  # rules have no text of their own
        where = "-s" if isinstance(subscriptions, str) else str(subscriptions)
        warn_of_mistakes(where, entries, engine, attributes)
    terminal.note(
        f"{terminal.counted(read, 'event')} against {terminal.counted(len(engine), 'subscription')}: "
        f"{terminal.counted(found, 'notification')}"
    )
    counted = engine.stats()
    if counted.events:
        terminal.note(f"operators: {counted.summary()}")
    if stats is not None:
        write_stats(counted, stats)
    if not read:
        raise click.ClickException("no event could be read; give feeds, RDF or NDJSON")


def _portions(paths: Iterator[str]) -> Iterator[Portion]:
    """Merges the events of small files into larger portions; standard input is passed on as it comes."""
    from tidings.cli import events as event_files

    held = event_files.Portion()
    for path in paths:
        for portion in event_files.read(path):
            held.extend(portion)
            if len(held) >= AT_ONCE or path == event_files.STDIN:
                yield held
                held = event_files.Portion()
    if held:
        yield held


def _observed(portions: Iterator[Portion], attributes: ObservedAttributes) -> Iterator[Portion]:
    for portion in portions:
        attributes.observe(portion)
        yield portion


def _publish(
    engine: Engine,
    portions: Iterator[Portion],
    writer: NotificationWriter,
    order: pa.Array,
    *,
    named: bool,
    all_bindings: bool,
    joined: bool,
) -> tuple[int, int]:
    """Matches all portions; returns the number of events and of notifications. `named`: the writer shows names of events."""
    read = found = 0
    for portion in portions:
        notifications = engine.publish_many(portion, all_bindings=all_bindings, joined=joined)
        ordered = _in_order(notifications, portion, order)
        writer.write(ordered, EventNames(portion, portion.places) if named else None)
        errors = notifications["verdict"].to_pylist().count("error")
        read += len(portion) - errors
        found += len(notifications) - errors
    return read, found


def _in_order(notifications: pa.Table, portion: Portion, order: pa.Array) -> pa.Table:
    """Notifications by the order of their events, then by that of the subscriptions in their file; those of an index,
    which keeps no order, by their ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tidings.model.envelope import event_keys

    sources, ids = (pa.array(column, pa.string()) for column in zip(*map(key_of, portion), strict=True))
    events = event_keys(notifications["source"], notifications["event"])
    ranks = pa.table(
        {
            "event": pc.fill_null(pc.index_in(events, event_keys(sources, ids)), -1),
            "subscription": pc.fill_null(pc.index_in(notifications["subscription"], order), -1),
            "id": pc.fill_null(notifications["subscription"], ""),
        }
    )
    return notifications.take(pc.sort_indices(ranks, [(name, "ascending") for name in ranks.column_names]))
