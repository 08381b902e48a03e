"""Keeps what a relay asks upstream for in step with its own subscriptions.

Every change of the index goes through the covering (dissemination/network/covering.py), and what comes of it is sent to all
parents: new filters before others are withdrawn, so that no event is missed in between. A parent that was away is given the
whole list when it is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from tidings.dissemination.network.covering import Covering
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.service.model import IndexChange
from tidings.service.relay.parent import Parent, ParentAway

_AGAIN = 2.0  # seconds until a parent that is away is tried again
_AWAITED = 5.0  # seconds that a subscriber waits for the upstream service

logger = logging.getLogger(__name__)


class OwnFilters:
    """A thread that sends filters. `active` gives (id, text) of all active subscriptions, and `engine` the definitions.
    `on_refused` is called with the ids of subscriptions that upstream refuses, and the reasons."""

    def __init__(
        self,
        parents: Sequence[Parent],
        active: Callable[[], Iterable[tuple[str, str]]],
        engine: Callable[[], Engine],
        on_refused: Callable[[Mapping[str, str]], None] = lambda refused: None,
    ) -> None:
        self._parents, self._active, self._engine, self._on_refused = parents, active, engine, on_refused
        self._covering = Covering()
        self._joins: dict[str, str] = {}  # by id: each text over tables is registered, whatever contains it
        self._rows_needed: set[str] = set()
        self._in_use = parents[0]  # the one whose link is read
        self._changes: deque[Sequence[IndexChange] | None] = deque()  # None: all are read anew
        self._news = threading.Condition()
        self._wanted = self._done = 0  # changes that came, and that a parent has
        self._behind = set(parents)  # those that need the whole list
        self._due: dict[Parent, float] = {}
        self._stopping = False
        self._had_filters: dict[Parent, bool] = {}  # whether a parent ever had some; it may have deleted them
        # Called before a parent has filters: whether it had some before this start.
        self.before_first: Callable[[Parent], bool] = lambda parent: False
        self.faults: dict[Parent, str] = {}
        self._thread = threading.Thread(target=self._run, name="own-filters", daemon=True)

    @property
    def registered(self) -> int:
        """How many filters stand for all subscriptions."""
        return len(self._texts())

    def start(self) -> None:
        self.reload()
        self._thread.start()

    def stop(self) -> None:
        with self._news:
            self._stopping = True
            self._news.notify_all()
        if self._thread.ident is not None:
            self._thread.join(10)

    def reload(self) -> None:
        """Has all subscriptions read anew: the definitions are others."""
        self._put(None)

    def changed(self, changes: Sequence[IndexChange]) -> None:
        """The index has these changes. Callable from any thread."""
        if changes:
            self._put(changes)

    def register_anew(self, parent: Parent, seconds: float = 3 * _AWAITED) -> None:
        """Gives a parent the whole list, since it may have lost it; ParentAway if that fails."""
        deadline = time.monotonic() + seconds
        with self._news:
            self._in_use = parent
            self._behind.add(parent)
            self._due.pop(parent, None)
            self.faults.pop(parent, None)
            self._news.notify_all()
            while parent in self._behind and parent not in self.faults and not self._stopping:
                if not self._news.wait(max(0.0, deadline - time.monotonic())):
                    break
            if parent in self._behind:
                raise ParentAway(self.faults.get(parent) or f"{parent.url} does not take the filters in time")

    def was_away(self, parent: Parent) -> None:
        """A parent does not answer: it is given the whole list when it does, since filters expire there meanwhile."""
        with self._news:
            self._behind.add(parent)

    def need_rows(self, texts: Iterable[str]) -> None:
        """The rows of these joins have to be sent again. Callable from any thread."""
        with self._news:
            self._rows_needed |= set(texts)
            self._behind |= set(self._parents)
            self._news.notify_all()

    def await_upstream(self, seconds: float = _AWAITED) -> str | None:
        """Waits until an upstream service has the filters of all changes so far, or none answers: then it says why."""
        deadline = time.monotonic() + seconds
        with self._news:
            wanted = self._wanted
            while self._done < wanted and not self._stopping and len(self.faults) < len(self._parents):
                if (left := deadline - time.monotonic()) <= 0:
                    break
                self._news.wait(left)
            if self._done >= wanted:
                return None
            return next(iter(self.faults.values()), f"{self._in_use.url} does not take the filters in time")

    def _put(self, changes: Sequence[IndexChange] | None) -> None:
        with self._news:
            self._changes.append(changes)
            self._wanted += 1
            self._news.notify_all()

    def _run(self) -> None:
        while True:
            with self._news:
                if not self._stopping and not self._changes and not self._is_due():
                    self._news.wait(_AGAIN)
                if self._stopping:
                    return
                taken, self._changes = list(self._changes), deque()
                wanted = self._wanted
            try:
                register, withdraw = self._covered(taken)
                self._send(register, withdraw, wanted)
            except Exception:
                logger.exception("the filters could not be worked out; all are read anew")
                with self._news:
                    self._behind |= set(self._parents)
                    if not self._changes:
                        self._changes.append(None)
                    self._news.wait(_AGAIN)

    def _is_due(self) -> bool:
        now = time.monotonic()
        return any(self._due.get(parent, 0.0) <= now for parent in self._behind)

    def _covered(self, taken: Sequence[Sequence[IndexChange] | None]) -> tuple[list[str], list[str]]:
        """What to register and to withdraw because of changes."""
        if None in taken:
            self._covering = Covering(self._engine().taxonomy)
            self._behind |= set(self._parents)
            queries, self._joins = self._queries(self._active())
            self._covering.update(queries, ())
            return [], []
        last = {change.id: change.text for changes in taken if changes for change in changes}
        added, joins = self._queries((id, text) for id, text in last.items() if text is not None)
        changed = self._covering.update(added, [id for id in last if id not in added])
        before = set(self._joins.values())
        self._joins = {id: text for id, text in self._joins.items() if id not in last} | joins
        now = set(self._joins.values())
        return [*changed.register, *sorted(now - before)], [*changed.withdraw, *sorted(before - now)]

    def _texts(self) -> set[str]:
        """What is registered."""
        return self._covering.registered | set(self._joins.values())

    def _queries(self, texts: Iterable[tuple[str, str]]) -> tuple[dict[str, Query], dict[str, str]]:
        """The queries over events, and the texts of those over tables."""
        engine, found, joins = self._engine(), dict[str, Query](), dict[str, str]()
        for id, text in texts:
            try:
                query = parse(text, engine.prefixes)
            except SubscriptionError:  # the index has refused it, too
                continue
            if engine.joins.takes(query):
                joins[id] = to_text(query)
            else:
                found[id] = query
        return found, joins

    def _send(self, register: list[str], withdraw: list[str], wanted: int) -> None:
        """Sends to the parent in use first: another one that does not answer must not delay it."""
        now = time.monotonic()
        for parent in sorted(self._parents, key=lambda parent: parent is not self._in_use):
            whole = parent in self._behind
            if self._due.get(parent, 0.0) > now if whole else not (register or withdraw):
                self._note_done(parent, wanted)
                continue
            try:
                texts = self._texts()
                if parent not in self._had_filters:
                    self._had_filters[parent] = self.before_first(parent)
                if whole:
                    refused = parent.replace_filters(sorted(texts), again=self._had_filters[parent])
                else:
                    refused = parent.change_filters(register, withdraw)
                self._had_filters[parent] |= bool(texts)
                self._behind.discard(parent)  # before rows: `need_rows` may add it again meanwhile
                if parent is self._in_use:
                    self._request_rows(parent)
                self.faults.pop(parent, None)
            except TidingsError as error:
                self._behind.add(parent)
                self._due[parent] = now + _AGAIN
                if self.faults.get(parent) != str(error):
                    level = logging.WARNING if isinstance(error, ParentAway) else logging.ERROR
                    logger.log(level, "the filters are not registered upstream: %s", error)
                self.faults[parent] = str(error)
                self._note_done(parent, wanted)
                continue
            if parent is self._in_use:  # another one may refuse what this one accepts
                self._refuse(refused)
            self._note_done(parent, wanted)

    def _note_done(self, parent: Parent, wanted: int) -> None:
        """Wakes those who wait; all changes so far are done if a parent has them."""
        with self._news:
            if parent not in self._behind:
                self._done = max(self._done, wanted)
            self._news.notify_all()

    def _request_rows(self, parent: Parent) -> None:
        with self._news:
            needed, self._rows_needed = self._rows_needed, set()
        try:
            if texts := sorted(needed & self._texts()):
                parent.request_rows(texts)
        except TidingsError:
            with self._news:
                self._rows_needed |= needed
            raise

    def _refuse(self, refused: Mapping[str, str]) -> None:
        """Takes refused filters out; what they cover is registered by itself then, in the next round."""
        reasons = {id: reason for text, reason in refused.items() for id in self._covering.ids_of(text)}
        reasons |= {id: refused[text] for id, text in self._joins.items() if text in refused}
        if reasons:
            self._joins = {id: text for id, text in self._joins.items() if id not in reasons}
            self._covering.update({}, reasons)
            self._behind |= set(self._parents)
            self._on_refused(reasons)
