"""Prints to the terminal: answers on standard output, everything else on standard error.

Colours and progress are for people: a file or a pipe gets plain lines, and no progress.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from tidings.cli.notification_output import EventNames

out = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False, markup=False)

Item = TypeVar("Item")
SHOWN = 20
_VALUE = 72
_NAME = 24
_SIGNS = {"+": "bold green", "-": "bold red"}


def warn(sentence: str) -> None:
    err.print(Text("! ", style="bold yellow") + Text(sentence))


def note(sentence: str) -> None:
    err.print(Text(sentence, style="dim"))


def warn_all(sentences: list[str], of_what: str, shown: int = SHOWN) -> None:
    """Prints the first of many sentences, and the number of the others."""
    for sentence in sentences[:shown]:
        warn(sentence)
    if len(sentences) > shown:
        warn(f"and {len(sentences) - shown:,} more {of_what}")


def progress() -> Progress:
    """A progress bar on standard error that vanishes at the end; none without a terminal, or if answers go there
    too."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )


def tracked(items: Iterable[Item], total: int, what: str, at_once: int = 500) -> Iterator[Item]:
    with progress() as bar:
        task = bar.add_task(what, total=total)
        for number, item in enumerate(items, 1):
            yield item
            if number % at_once == 0 or number == total:
                bar.update(task, completed=number)


def notification_lines(rows: Iterable[Mapping[str, Any]], names: EventNames) -> Iterator[Text]:
    """One line per notification: the subscription, the bindings, and the event. Joins have a line for each row gained or
    lost."""
    rows = list(rows)
    width = min(max((len(row["subscription"] or "") for row in rows), default=0), _NAME)
    for row in rows:
        if row["changes"] is not None:
            yield from _change_lines(row, width, names)
            continue
        line = Text()
        line.append((row["subscription"] or "").ljust(width), style="bold green")
        if row["verdict"] != "match":
            line.append(f"  {row['verdict']}: {row['message']}", style="yellow")
        for name, value in row["bindings"] or ():
            sign = "" if "." in name else "?"  # what is no variable, such as the cost of a path, has a dot
            line.append(f"  {sign}{name} ", style="cyan")
            line.append(brief(value))
        shown = [value for _, value in row["bindings"] or ()]
        line.append(f"  ({names.label(row, shown)})", style="dim")
        yield line


def _change_lines(row: Mapping[str, Any], width: int, names: EventNames) -> Iterator[Text]:
    """The rows that a join gained (+) and lost (-), each after the sequence number of its notification."""
    head = Text.assemble(
        ((row["subscription"] or "").ljust(width), "bold green"),
        (f"  {row['sequence']}", "dim"),
        (f" {row['part']}" if row["part"] != "0/1" else "", "dim"),
    )
    if row["verdict"] == "snapshot":
        yield head + Text(f"  snapshot: {counted(len(row['changes']), 'row')}", style="yellow")
    label = names.label(row)
    for change in sorted(
        row["changes"], key=lambda change: str(change["change"]), reverse=True
    ):  # lost ones first
        line = head + Text(f"  {change['change']} ", style=_SIGNS[change["change"]])
        line.append_text(_row(change["table"], json.loads(change["row"])))
        line.append(f"  ({label})", style="dim")
        yield line


def _row(table: str, content: Mapping[str, Any]) -> Text:
    """A row with the name of its table, without NULLs; a joined row as its rows."""
    is_joined = all(isinstance(value, dict) for value in content.values())  # no column holds an object
    joined = content.items() if is_joined else [(table, content)]
    shown = []
    for name, row in joined:
        text = Text(name)
        for column, value in row.items():
            if value is None:
                continue
            text.append(f"  {column} ", style="cyan")
            text.append(brief(value) if isinstance(value, str) else json.dumps(value))
        shown.append(text)
    return Text("  ⋈ ").join(shown)


def counted(number: int, noun: str) -> str:
    """ "1 event", "2,000 events"."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def brief(value: str) -> str:
    """A value on one line, shortened."""
    value = " ".join(value.split())
    return value if len(value) <= _VALUE else value[: _VALUE - 1] + "…"
