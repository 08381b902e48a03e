"""`tidings contains`: whether one subscription covers another, with the proof or an event that shows that it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from tidings.cli import options, terminal
from tidings.errors import TidingsError, did_you_mean

if TYPE_CHECKING:
    from tidings.containment.contains import Containment
    from tidings.model.event import Event

YES, NO, NOT_SURE = 0, 1, 2


class _Trouble(click.ClickException):
    """As grep does, an error ends with another code than the answer no."""

    exit_code = 2


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--subscriptions",
    "-s",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file of subscriptions (see 'tidings match --help'), in which A and B are ids.",
)
@options.taxonomy
@options.prefix
@click.pass_context
def contains(
    context: click.Context,
    a: str,
    b: str,
    file: Path | None,
    taxonomy: Path | None,
    prefixes: tuple[str, ...],
) -> None:
    """Decide whether subscription A contains B: every event that matches B also matches A.

    A subscriber who has A gets nothing new by B then. A and B are texts, or with -s ids of subscriptions in a file.

    \b
    The answer is one of these:
      yes       with the mapping that proves it: which term of B each variable of A stands for
      no        with an event that matches B and not A
      not sure  neither was found

    An attribute may have several values: 'x >= 10 AND x <= 30' holds for x = [5, 40], so 'x BETWEEN 10 AND 30' does not
    contain it. A variable has one, so there it does. NOT, MISSING, arithmetic, ANY and operators have to be the same in both.
    What nothing can match is contained in nothing. Without the --taxonomy that events are matched with, ISA may be judged
    wrongly.

    The exit code is 0 for yes, 1 for no, and 2 for not sure or an error.

    \b
    Examples:
      tidings contains 'price > 10' 'price > 20 AND topic = "sport"'
      tidings contains '(?i, dc:subject, ?s)' '(?i, dc:subject, "goal"), (?i, rss:title, ?t)'
      tidings contains -s subscriptions.txt -t taxonomy.ttl 'two wheels' football
    """
    from tidings.cli.subscriptions import SubscriptionFile, prefix_options
    from tidings.containment.texts import contains as decide
    from tidings.model.taxonomy import Taxonomy

    try:
        known = prefix_options(prefixes)
        if file is not None:
            read = SubscriptionFile.read(file)
            known = {**read.prefixes, **known}
            texts = {entry.id: entry.text for entry in read.entries}
            a, b = _text(texts, a, file), _text(texts, b, file)
        classes = None if taxonomy is None else Taxonomy.from_file(taxonomy)
        found = decide(a, b, taxonomy=classes, prefixes=known)
    except TidingsError as error:
        raise _Trouble(str(error)) from None
    for line in _answer(found):
        terminal.out.print(line)
    context.exit(YES if found.holds else NO if found.is_certain else NOT_SURE)


def _text(texts: dict[str, str], id: str, file: Path) -> str:
    if id not in texts:
        advice = did_you_mean(id, texts, "with -s, A and B are ids of the file")
        raise TidingsError(f"{file} has no subscription {id!r}; {advice}")
    return texts[id]


def _answer(found: Containment) -> Iterator[Text]:
    if found.holds:
        yield Text("yes: every event that matches B also matches A", style="bold green")
        for number, terms in enumerate(found.mapping, 1):
            if len(found.mapping) > 1 and terms:
                yield Text(f"  alternative {number} of B", style="dim")
            for name, term in terms.items():
                yield Text.assemble("  ", (f"?{name}", "cyan"), f" of A is {term} of B")
    elif found.counterexample is not None:
        yield Text("no: this event matches B and not A", style="bold yellow")
        for line in _content(found.counterexample):
            yield Text(f"  {line}")
    else:
        yield Text("not sure: neither a proof nor an event that matches B and not A was found", style="bold")


def _content(event: Event) -> list[str]:
    lines = event.data.decode().splitlines()
    return [*([json.dumps(event.attributes, ensure_ascii=False)] if event.attributes else []), *lines]
