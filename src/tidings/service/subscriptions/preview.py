"""Checks and tries the text of a subscription before anybody subscribes: is it valid, what would it match, and why.

Matching follows the definition, one event after the other, and is bounded in time: a text is tried on a thousand
events, not on a stream. Nothing is stored.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.language.bare_words import bare_words_error, title_with
from tidings.language.faults import line_and_column
from tidings.language.likely_mistakes import Known, TextWarning, likely_mistakes
from tidings.language.parser import parse
from tidings.language.property_names import PropertyNames
from tidings.language.query import Query, TriplePattern, has_calls, leaves
from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.model.notification import Notification, RowChange
from tidings.model.observed_attributes import ObservedAttributes
from tidings.service.subscriptions.flood import FloodEstimate
from tidings.service.subscriptions.join_trial import Rows, replay

_THIS = "this"
_CHECKED = 200  # texts that one engine takes; making an engine takes longer than checking a text
SHOWN = 20  # matches and near misses of a trial that are shown with their reasons


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a text is a valid subscription. `kinds` are some of pattern, filter, operator, network and join."""

    ok: bool
    kinds: tuple[str, ...] = ()
    message: str = ""
    line: int | None = None
    column: int | None = None
    warnings: tuple[TextWarning, ...] = ()


class Reason(NamedTuple):
    """An event, and the explanation why it matches or does not."""

    event: Event
    explanation: Explanation
    changes: tuple[RowChange, ...] = ()  # of a join: the rows that it gained and lost


@dataclass(frozen=True, slots=True)
class Trial:
    """A text tried on events, newest first. `matches` and `near` have only the first of each."""

    looked: int
    matched: int
    matches: list[Reason] = field(default_factory=list)
    near: list[Reason] = field(default_factory=list)
    late: bool = False  # the time was over before all events were looked at
    found: frozenset[tuple[str, str]] = frozenset()  # source and id of every event that matches
    is_join: bool = False
    rows: tuple[RowChange, ...] | None = None  # of a join: its result now, if known


class Preview:
    """Previews with one engine's taxonomy, prefixes, networks, operators and tables; the engine has no
    subscriptions."""

    def __init__(
        self,
        engine: Engine,
        recent: Callable[[], Sequence[Event]] = tuple,
        *,
        daily: Callable[[], int] = lambda: 0,
    ) -> None:
        """`recent` gives the events that were accepted last, newest first, `daily` how many came within a day."""
        self.engine = engine  # replaced when a definition is
        self._recent = recent
        self._flood = FloodEstimate(recent, daily)
        self._newest: Event | None = None
        self._attributes = ObservedAttributes("recent event")
        self._warnings_lock = threading.Lock()  # Python keeps one list of warnings for all threads
        self._trial = engine.without_subscriptions()
        self._trial_of, self._left = engine, _CHECKED

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self.engine.joins.tables.values())

    def check(self, text: str, *, about_events: bool = True, scope: str = "") -> Checked:
        """Whether a text is valid, with its kinds, or the error. Warnings `about_events` name attributes of events; with the
        `scope` of a token, only events in it are counted."""
        try:
            with self._warnings_lock, warnings.catch_warnings(record=True) as remarks:
                warnings.simplefilter("always")
                self._trial_engine().subscribe(_THIS, text)
            query = parse(text, self.engine.prefixes)
        except SubscriptionError as error:
            if error.line is None:
                return self._refused(text, str(error), about_events)
            known = self._known(about_events)
            properties = PropertyNames(known.attributes, known.prefixes, known.taxonomy)
            error = bare_words_error(text, known.attributes, properties) or error
            return Checked(False, message=str(error), line=error.line, column=error.column)
        except TidingsError as error:
            return self._refused(text, str(error), about_events)
        mine = f"subscription {_THIS!r}"  # other threads may remark on theirs meanwhile
        said = (str(remark.message) for remark in remarks)
        remarked = (line.replace(mine, "it", 1) for line in said if line.startswith(mine))
        found = self._likely_mistakes(text, about_events)
        flood = self.flood_warning(text, scope) if about_events or scope else None
        about_all = (TextWarning(line, 0, len(text)) for line in (*remarked, *([flood] if flood else [])))
        return Checked(True, tuple(self._kinds(query)), warnings=(*about_all, *found))

    def flood_warning(self, text: str, scope: str = "") -> str | None:
        """The sentence on a valid text that would flood its owner, who sees the events of a scope."""
        return self._flood.warning(self.engine, parse(text, self.engine.prefixes), text, scope)

    def _refused(self, text: str, message: str, about_events: bool) -> Checked:
        """A text that can be parsed, but not be matched. The place is that of the warning with the same sentence, if any."""
        found = self._likely_mistakes(text, about_events)
        line, column = None, None
        for warning in found:
            if warning.message == message:
                line, column = line_and_column(text, warning.start)
        others = tuple(warning for warning in found if warning.message != message)
        return Checked(False, message=message, line=line, column=column, warnings=others)

    def _likely_mistakes(self, text: str, about_events: bool) -> list[TextWarning]:
        return likely_mistakes(text, self._known(about_events))

    def graph_example(self) -> str | None:
        """A subscription to titles with a word, if recent events are mostly graphs."""
        known = self._known(about_events=True)
        if not known.attributes.are_mostly_graphs:
            return None
        properties = PropertyNames(known.attributes, known.prefixes, known.taxonomy)
        return title_with("storm", known.attributes, properties)

    def _known(self, about_events: bool) -> Known:
        events, engine = self._recent(), self.engine
        with self._warnings_lock:
            self._attributes.observe(takewhile(lambda event: event is not self._newest, events))
            self._newest = events[0] if events else None
        attributes = self._attributes if about_events else ObservedAttributes("")
        tables = engine.joins.tables
        return Known(attributes, engine.prefixes, engine.taxonomy, engine.networks, tables)

    def is_over_tables(self, text: str) -> bool:
        """Whether a valid text is a subscription over tables."""
        return self.engine.joins.takes(parse(text, self.engine.prefixes))

    def _trial_engine(self) -> Engine:
        if not self._left or self._trial_of is not self.engine:
            self._trial_of, self._left = self.engine, _CHECKED
            self._trial = self.engine.without_subscriptions()
        self._left -= 1
        return self._trial

    def explain(self, text: str, event: Event) -> Explanation:
        """Why an event matches a text, or does not."""
        return self.engine.why(text, event)

    def try_on(
        self,
        text: str,
        events: Iterable[Event],
        *,
        seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        rows: Callable[[Collection[Table]], Rows | None] = lambda _: {},
    ) -> Trial:
        """Tries a text on events that come newest first. A near miss is an event for which most clauses hold. `rows` gives
        the rows that tables have now, None if they are not known."""
        query = parse(text, self.engine.prefixes)
        if self.engine.joins.takes(query):
            return self._replay(text, query, list(events), rows)
        deadline = clock() + seconds
        looked = 0
        found: set[tuple[str, str]] = set()
        matches: list[Reason] = []
        misses: list[tuple[float, int, Reason]] = []
        for event in events:
            if clock() > deadline:
                return Trial(looked, len(found), matches, _nearest(misses), late=True, found=frozenset(found))
            reason = Reason(event, self.engine.why(query, event))
            looked += 1
            if reason.explanation.verdict == "match":
                found.add((event.source, event.id))
                if len(matches) < SHOWN:
                    matches.append(reason)
            elif share := _share_of_clauses(reason.explanation):
                misses.append((-share, looked, reason))
        return Trial(looked, len(found), matches, _nearest(misses), found=frozenset(found))

    def _replay(
        self,
        text: str,
        query: Query,
        events: Sequence[Event],
        rows: Callable[[Collection[Table]], Rows | None],
    ) -> Trial:
        """Tries a join, which depends on earlier rows. All changes at once: one by one, a second is over after 300."""
        tables = self.engine.joins.tables
        named = dict.fromkeys([query.stream or "", *(joined.name for joined in query.joined)])
        present = rows([tables[name] for name in named if name in tables])
        replayed = replay(self.engine, text, events[::-1], present or {})
        matches = [
            Reason(event, Explanation("", "match", message=_changes(notification)), notification.changes)
            for event, notification in reversed(replayed.matches)
        ]
        found = frozenset((reason.event.source, reason.event.id) for reason in matches)
        known = None if present is None else replayed.rows
        return Trial(len(events), len(matches), matches[:SHOWN], found=found, is_join=True, rows=known)

    def _kinds(self, query: Query) -> Iterable[str]:
        if self.engine.joins.takes(query):
            yield "join"
            return
        found = list(leaves(query.where))
        if any(isinstance(leaf, TriplePattern) for leaf in found):
            yield "pattern"
        else:
            yield "filter"
        if has_calls(query.where):
            yield "operator"
        if query.via is not None:
            yield "network"


def _share_of_clauses(explanation: Explanation) -> float:
    """The share of the clauses that hold; 0 if none does."""
    clauses = [clause for clause in explanation.clauses if clause.depth or len(explanation.clauses) > 1]
    held = sum(clause.held is True for clause in clauses)
    return held / len(clauses) if clauses else 0.0


def _nearest(misses: list[tuple[float, int, Reason]]) -> list[Reason]:
    return [reason for _, _, reason in sorted(misses, key=lambda miss: miss[:2])[:SHOWN]]


def _changes(notification: Notification) -> str:
    counts: dict[tuple[str, str], int] = {}
    for change in notification.changes:
        key = change.table, "gained" if change.change == "+" else "lost"
        counts[key] = counts.get(key, 0) + 1
    rows = (f"{table} {word} {n} row{'s' * (n > 1)}" for (table, word), n in counts.items())
    return ", ".join(rows)
