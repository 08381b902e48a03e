"""`tidings explain`: why an event matches a subscription, or the first clause that does not hold."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from tidings.cli import compiling, options, terminal

_COLOURS = {"match": "bold green", "no match": "bold yellow", "undecided": "bold yellow", "error": "bold red"}
_MARKS = {"✓": "green", "✗": "bold red", "·": "dim", "?": "bold yellow"}


@click.command()
@options.subscriptions
@options.patterns
@click.option("--id", "-i", required=True, metavar="ID", help="The subscription to explain.")
@click.option("--event", "wanted", metavar="ID", help="Of several events, only the one with this id.")
@click.argument("event", metavar="EVENT")
@options.taxonomy
@options.prefix
@options.networks
@options.tables
@options.operators
def explain(
    subscriptions: Path,
    patterns: str | None,
    id: str,
    wanted: str | None,
    event: str,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    tables: Path | None,
    modules: tuple[str, ...],
) -> None:
    """Explain why EVENT matches a subscription or does not.

    EVENT is a file as for 'tidings match'; of a feed, every item is explained. A clause that holds has ✓ and what
    its variables were bound to, the first that does not has ✗, and those after it were not reached. A call of an
    operator says what it answered and how long that took, that it failed (?), or why it was spared.

    Of a question that joins tables, every change of EVENT is explained with the rows that the changes before it have
    left: the conditions on the row that comes or goes, the rows that join it, and what the question gains and loses.

    \b
    Examples:
      tidings explain -s questions.txt -i goals news.atom
      tidings explain -s questions.txt --tables tables.toml -i liked --event u2 changes.ndjson
      tidings explain -s questions.txt --operators operators.py -i mobs --event 7 events.ndjson
    """
    compiling.choose([subscriptions, taxonomy, tables, event, *networks])
    from tidings.cli import events as event_files
    from tidings.cli.subscriptions import load, network_options, operator_options, prefix_options

    engine = load(
        subscriptions,
        taxonomy,
        prefix_options(prefixes),
        patterns=patterns,
        networks=network_options(networks),
        operators=operator_options(modules),
        tables=tables,
    )
    engine.text(id)  # an unknown id is an error before anything is printed
    count = 0
    for path in event_files.files([event]):
        for portion in event_files.read(path):
            for item in portion:
                if wanted in (None, item.id):
                    if count:
                        terminal.out.print()
                    terminal.out.print(Text(f"{item.source or path}  event {item.id}", style="dim"))
                    explanation = engine.explain(id, item)
                    for line in str(explanation).splitlines():
                        terminal.out.print(_coloured(line, explanation.verdict))
                    count += 1
                if id in engine.joins:
                    engine.correlate([item])  # the next one finds its rows
    if not count:
        which = f"event with the id {wanted!r}" if wanted is not None else "event"
        raise click.ClickException(f"no {which} could be read from {event}")


def _coloured(line: str, verdict: str) -> Text:
    indent = len(line) - len(line.lstrip())
    mark = line[indent : indent + 1]
    if indent and mark in _MARKS:
        clause, gap, evidence = line[indent + 2 :].partition("   ")
        return Text.assemble(line[:indent], (mark, _MARKS[mark]), " ", clause, gap, (evidence, "cyan"))
    return Text(line, style=_COLOURS[verdict])
