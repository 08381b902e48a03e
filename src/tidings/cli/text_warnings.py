"""Warns on standard error of what the subscriptions of a file probably do not mean, each with its place in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidings.cli import terminal
from tidings.errors import SubscriptionError
from tidings.language.faults import line_and_column
from tidings.language.likely_mistakes import Known, asked_attributes, likely_mistakes
from tidings.language.parser import parse
from tidings.model.observed_attributes import ObservedAttributes

if TYPE_CHECKING:
    from tidings.cli.subscriptions import Entry
    from tidings.engine.engine import Engine

SHOWN = 5
_CHECKED = 1_000  # texts: a file of more is made by a program, and would take long


def warn_of_mistakes(
    path: str, entries: Sequence[Entry], engine: Engine, attributes: ObservedAttributes | None = None
) -> None:
    """Warns of the first few, and counts the others. Without `attributes` of events, the names that the file tests stand
    for them: a name that is only compared with is probably a text without quotes."""
    asked = [entry for entry in entries[:_CHECKED] if entry.id in engine]
    if attributes is None:
        attributes = _tested([entry.text for entry in asked], engine)
    errors = [(entry, error) for entry in asked for error in _mistakes(entry.text, engine, attributes)]
    terminal.warn_all([entry.error_at(path, error) for entry, error in errors], "warnings", SHOWN)


def warn_of_mistakes_in(id: str, text: str, engine: Engine) -> None:
    """The same for one text that is in no file."""
    errors = _mistakes(text, engine, _tested([text], engine))
    terminal.warn_all([f"{id}: {error}" for error in errors], "warnings", SHOWN)


def _mistakes(text: str, engine: Engine, attributes: ObservedAttributes) -> list[SubscriptionError]:
    known = Known(attributes, engine.prefixes, engine.taxonomy, engine.networks, engine.joins.tables)
    return [
        SubscriptionError(warning.message, *line_and_column(text, warning.start))
        for warning in likely_mistakes(text, known)
    ]


def _tested(texts: Sequence[str], engine: Engine) -> ObservedAttributes:
    attributes = ObservedAttributes("subscription of the file")
    for text in texts:
        for name in asked_attributes(parse(text, engine.prefixes)):
            attributes.add(name)
    return attributes
