"""`tidings explain`: why an event matches a subscription, or the first clause that does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from tidings.cli import compiling, options, terminal
from tidings.cli.notification_output import title_of
from tidings.language.syntax.prefixes import WELL_KNOWN, shortened

if TYPE_CHECKING:
    from tidings.model.event import Event

_COLOURS = {"match": "bold green", "no match": "bold yellow", "undecided": "bold yellow", "error": "bold red"}
_IRI = re.compile(r"<([^<>\s]+)>")
_NAMED = 5  # events that an error names
_MARKS = {"✓": "green", "✗": "bold red", "·": "dim", "?": "bold yellow"}


@click.command()
@options.subscriptions
@options.patterns
@click.option("--id", "-i", metavar="ID", help="The subscription to explain; needed if there are several.")
@click.option(
    "--event",
    "wanted",
    metavar="EVENT",
    help="Of several events, only the one with this id, number (1 is the first) or title. A part of a title is enough.",
)
@click.argument("event", metavar="EVENT")
@options.taxonomy
@options.prefix
@options.networks
@options.tables
@options.operators
def explain(
    subscriptions: Path | str,
    patterns: str | None,
    id: str | None,
    wanted: str | None,
    event: str,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
    networks: tuple[str, ...],
    tables: Path | None,
    modules: tuple[str, ...],
) -> None:
    """Explain why EVENT matches a subscription or does not.

    EVENT is a file as for 'tidings match'; of a feed every item is explained, or the one that --event names. A clause
    that holds has ✓ and what its variables were bound to, the first that does not has ✗, and those after it were not
    reached. A call of an operator shows its result, its time, or why it was not called; one that failed has ?.

    For a subscription that joins tables, every change of EVENT is explained with the rows that the changes before it have
    left: the conditions on the row that comes or goes, the rows that join it, and what the subscription gains and loses.

    IRIs are shortened by prefixes, which are printed at the end.

    \b
    Examples:
      tidings explain -s subscriptions.txt -i goals news.atom
      tidings explain -s "WHERE topic = 'sport'" events.ndjson
      tidings explain -s subscriptions.txt -i goals --event 3 news.atom
      tidings explain -s subscriptions.txt -i goals --event 'late goal' news.atom
      tidings explain -s subscriptions.txt --tables tables.toml -i liked --event u2 changes.ndjson
      tidings explain -s subscriptions.txt --operators operators.py -i mobs --event 7 events.ndjson
    """
    compiling.choose([subscriptions, taxonomy, tables, event, *networks])
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
    if id is None:
        id = _only([entry.id for entry in entries if entry.id in engine], subscriptions)
    engine.text(id)  # an unknown id is an error before anything is printed
    items: Iterable[tuple[str, Event]] = (
        (path, item)
        for path in event_files.files([event])
        for portion in event_files.read(path)
        for item in portion
    )
    chosen = None
    if wanted is not None:
        items = list(items)
        chosen = _chosen([item for _, item in items], wanted, event)
    abbreviations = _Abbreviations({**WELL_KNOWN, **engine.prefixes})
    attributes = ObservedAttributes("event of this run")
    number = shown = 0
    for number, (path, item) in enumerate(items, 1):
        attributes.observe([item])
        if chosen is None or number in chosen:
            if shown:
                terminal.out.print()
            shown += 1
            name = title_of(item) or item.id
            terminal.out.print(Text(f"{item.source or path}  event {number}: {name}", style="dim"))
            explanation = engine.explain(id, item)
            for line in str(explanation).splitlines():
                terminal.out.print(_coloured(abbreviations.shorten(line), explanation.verdict))
        if id in engine.joins:
            engine.correlate([item])  # the next one finds its rows
    if not number:
        raise click.ClickException(f"no event could be read from {event}")
    for prefix, iri in abbreviations.used.items():
        terminal.out.print(Text(f"@prefix {prefix}: <{iri}>", style="dim"))
    if not patterns:  # rules have no text of their own
        explained = [entry for entry in entries if entry.id == id]
        warn_of_mistakes(str(subscriptions), explained, engine, attributes)


def _only(ids: Sequence[str], path: Path | str) -> str:
    """The one subscription of a file or a text. Those of an index are not listed."""
    if len(ids) == 1:
        return ids[0]
    shown = ", ".join(repr(id) for id in ids[:_NAMED])
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    raise click.UsageError(
        "name the subscription to explain by --id" + (f"; {path} has {shown}{more}" if ids else "")
    )


def _chosen(items: Sequence[Event], wanted: str, path: str) -> set[int]:
    """The numbers of the events that are meant, from 1 on: by id, by number, by title, or by a part of one title."""
    if not items:
        return set()
    titles = {number: title_of(item) for number, item in enumerate(items, 1)}
    folded = " ".join(wanted.split()).casefold()
    for found in (
        [number for number, item in enumerate(items, 1) if item.id == wanted],
        [int(wanted)] if wanted.isdecimal() and int(wanted) in titles else [],
        [number for number, title in titles.items() if title.casefold() == folded],
        [number for number, title in titles.items() if folded in title.casefold()],
    ):
        if found:
            return set(found)
    shown = [
        f"{number} {terminal.brief(titles[number] or item.id)!r}"
        for number, item in enumerate(items[:_NAMED], 1)
    ]
    more = f" and {len(items) - _NAMED:,} more" if len(items) > _NAMED else ""
    raise click.ClickException(
        f"{path} has no event with the id, number or title {wanted!r}; it has {', '.join(shown)}{more}"
    )


class _Abbreviations:
    """Shortens IRIs by prefixes. `used` are the prefixes that it has needed."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = {prefix: start for prefix, start in prefixes.items() if prefix}
        self.used: dict[str, str] = {}

    def shorten(self, line: str) -> str:
        return _IRI.sub(self._short, line)

    def _short(self, found: re.Match[str]) -> str:
        parts = shortened(found[1], self._prefixes)
        if parts is None:
            return found[0]
        self.used[parts[0]] = self._prefixes[parts[0]]
        return ":".join(parts)


def _coloured(line: str, verdict: str) -> Text:
    indent = len(line) - len(line.lstrip())
    mark = line[indent : indent + 1]
    if indent and mark in _MARKS:
        clause, gap, evidence = line[indent + 2 :].partition("   ")
        return Text.assemble(line[:indent], (mark, _MARKS[mark]), " ", clause, gap, (evidence, "cyan"))
    return Text(line, style=_COLOURS[verdict])
