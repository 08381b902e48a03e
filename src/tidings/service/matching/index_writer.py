"""Applies changes of the registry to the index: new and removed subscriptions are appended to the tail at once.

The outbox of the registry keeps each change until the index has it. After a kill at any moment, a change that is
not in the tail is appended at the next start, and appending it again does no harm. One thread appends all waiting
changes at once, so a hundred concurrent subscribers share one write. compaction.py folds a tail that has grown.

An index that is lost or damaged, before the start or while the service runs, is built anew from the registry. So is one
whose definitions (taxonomy, prefixes, networks) were changed: the version before is used until the new one is there.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tidings.engine.engine import BroadSubscription, EmptySubscription, Engine
from tidings.errors import IndexFileError, SubscriptionError, TidingsError
from tidings.service.matching.compaction import Compaction, drop_bases, next_base, sample_of_log
from tidings.service.matching.engine_settings import fingerprint, load_engine, missing_table
from tidings.service.model import IndexChange
from tidings.service.settings import Settings
from tidings.service.store.registry import Registry
from tidings.storage import checksums, versions
from tidings.storage.event_log import sync
from tidings.storage.tail_changes import apply
from tidings.storage.versions import Change, NetworkChange, Placement, Version

_POLL_SECONDS = 1.0  # how often the outbox is read while no caller waits
_APPLIED_EVERY = 0.25  # how often what the index has is taken out of the outbox
_LONGEST_PAUSE = 5.0
_PATIENCE = 30.0
_REFUSALS = 10_000
_ALL = 10_000_000  # changes in the outbox

logger = logging.getLogger(__name__)


class IndexTimeout(TidingsError):
    """The index could not be changed in time; the change stays in the outbox and is applied as soon as possible."""

    status = 503


class IndexWriter:
    """Call `prepare`, then `start`; after each change of the registry `wait_for` its number. `on_refused` is called
    with the ids and reasons of subscriptions that the index refuses, but for those that `wait_for` told its caller of, and
    with the number of the last change that was tried; `on_rebuilt` when a damaged index was built anew; `on_definitions`
    with an engine that has the definitions, before an index is built with them and after a network was changed;
    `on_appended` with changes that the index has now, before `wait_for` returns."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        on_refused: Callable[[Sequence[tuple[str, str]], int], None] = lambda refused, number: None,
        on_rebuilt: Callable[[], None] = lambda: None,
        on_definitions: Callable[[Engine], None] = lambda engine: None,
    ) -> None:
        for remark in (BroadSubscription, EmptySubscription):  # `preview` reports them to the subscriber
            warnings.filterwarnings("ignore", category=remark)
        self.root = settings.data / "index"
        self.on_refused, self.on_rebuilt, self.on_definitions = on_refused, on_rebuilt, on_definitions
        self.on_appended: Callable[[Sequence[IndexChange]], None] = lambda changes: None
        self._settings, self._registry = settings, registry
        self._definitions, self._fingerprint = Engine(), ""
        self._turn = threading.Lock()  # held by whoever changes the index
        self._is_prepared = False
        self._is_stale = False  # it was built with other definitions
        self._keeps_outbox = False  # until an index that is being built has the changes too
        self._compaction = Compaction(settings, registry)
        self._news = threading.Condition()
        # Numbers of changes: the last one that a caller waits for, that is in the tail, that is out of the outbox.
        self._wanted = self._reached = self._applied = 0
        self._applied_at = self._looked_at = 0.0
        self._refusals: dict[int, tuple[str, str]] = {}  # by numbers of changes, for those who wait for them
        self._unreported: dict[str, str] = {}  # of those that `on_refused` was not called with yet
        self._fault = ""
        self._stopping = self._ended = False
        self._thread: threading.Thread | None = None

    # --- at the start

    def prepare(
        self, definitions: Engine | None = None, definitions_hash: str | None = None
    ) -> list[tuple[str, str]]:
        """Brings the index to the state of the registry; returns the refused subscriptions with the reasons. The
        index is built anew if none is complete, or if it was built with another taxonomy, other prefixes,
        networks, operators or tables. `definitions` is an engine that has the present ones, with their hash; by default they
        are those that the settings name. Changes that come meanwhile are in the index in the end, too: nobody waits for them.
        IndexFileError if one process needs more of the index than the memory that the settings allow."""
        with self._turn:
            refused = self._open_or_build(definitions, definitions_hash)
            # The driver would be refused it, again and again.
            versions.check_memory(self.root, versions.current(self.root), self._settings.memory)
            with self._news:
                self._is_prepared = True
            return refused + self._catch_up()

    def _open_or_build(
        self, definitions: Engine | None, definitions_hash: str | None
    ) -> list[tuple[str, str]]:
        self.root.mkdir(parents=True, exist_ok=True)
        self._definitions = load_engine(self._settings) if definitions is None else definitions
        self.on_definitions(self._definitions)
        mark, self._fingerprint = self.root / "FINGERPRINT", definitions_hash or fingerprint(self._settings)
        if not any(self.root.glob("v*")) and self._registry.last_base():
            return self._rebuild(IndexFileError(f"{self.root} has lost its content"))
        if not mark.exists() or mark.read_text(errors="replace") != self._fingerprint:
            return self._build()
        try:
            versions.try_open(self.root, versions.current(self.root), operators=self._definitions.operators)
        except (TidingsError, OSError) as error:
            return self._rebuild(error)
        try:
            return self._catch_up()
        except IndexFileError as error:
            return self._rebuild(error)

    def _build(self) -> list[tuple[str, str]]:
        engine = self._definitions.without_subscriptions()
        last = self._registry.last_change()
        lost = {
            id: missing
            for id, text in self._registry.over_tables()
            if (missing := missing_table(engine, text)) is not None
        }
        active = (pair for pair in self._registry.active() if pair[0] not in lost)
        refused = [(id, str(error)) for id, error in engine.subscribe_many(active)] + list(lost.items())
        if refused:  # before the index is there: after a crash it is built again
            self.on_refused(refused, last)
        number = next_base(self._settings.data, self._registry)
        placement = _placement(self._settings)
        version = versions.publish(
            self.root,
            engine,
            at_least=number,
            placement=placement,
            sample=None if placement is None else sample_of_log(self._settings.data),
            memory=self._settings.memory,
        )
        logger.info("built the index %s of %d subscriptions", version, len(engine))
        _write(self.root / "FINGERPRINT", self._fingerprint)
        self._registry.applied(last)
        with self._news:
            self._reached = self._applied = last
            self._unreported.clear()
            self._news.notify_all()
        return refused

    def _rebuild(self, damage: Exception) -> list[tuple[str, str]]:
        """Builds the index anew because it is lost or damaged, and removes the damaged base: a micro-batch that pinned
        it gets the new one."""
        logger.error("the index is built anew: %s", damage)
        damaged = 0
        with suppress(IndexFileError):
            damaged = versions.current(self.root).base
        refused = self._build()
        versions.discard(self.root, damaged)
        self.on_rebuilt()
        return refused

    def _catch_up(self) -> list[tuple[str, str]]:
        """Applies the changes that were committed but not recorded as applied when the service ended."""
        refused: list[tuple[str, str]] = []
        last = self._registry.last_change()
        while changes := self._registry.changes():
            refused += [(change.id, message) for change, message in self._append(self._unknown(changes))]
            self._report_refused()
            last = max(last, changes[-1].number)
            self._registry.applied(changes[-1].number)
        with self._news:
            self._reached = self._applied = last
            self._news.notify_all()
        return refused

    def _unknown(self, changes: Sequence[IndexChange]) -> Sequence[IndexChange]:
        """The changes without those of joins that the index already has: subscribing again would restart their
        sequence at 1."""
        if not self._definitions.joins.tables:
            return changes
        standing = versions.joins(self.root, versions.current(self.root))
        texts = {change.id: change.text for change in changes}  # what each comes to in the end
        same = {id for id, text in texts.items() if id in standing and standing.source(id) == (text, None)}
        return [change for change in changes if change.id not in same]

    # --- definitions

    def define(self, definitions: Engine, store: Callable[[], str]) -> Version:
        """Builds the index with other definitions, while the one before goes on. `store` commits them and returns their
        hash; from then on a failure is mended: by the thread, or at the next start."""
        self._need_prepared()
        with self._turn:
            hash = store()
            if definitions.joins.tables:
                # Their sequences go on from one version to the next, so nothing may be appended meanwhile.
                return self._define_in_turn(definitions, hash)
            self._keeps_outbox, last = True, self._registry.last_change()
        try:
            return self._define_aside(definitions, hash, last)
        except Exception as error:
            logger.error("the index could not be built with other definitions: %s", error)
            with self._turn:
                return self._define_in_turn(definitions, hash)
        finally:
            self._keeps_outbox = False

    def _define_in_turn(self, definitions: Engine, hash: str) -> Version:
        self._fingerprint, self._definitions, self._is_stale = hash, definitions, True
        self._build_with_definitions()
        return versions.current(self.root)

    def _define_aside(self, definitions: Engine, hash: str, last: int) -> Version:
        engine = definitions.without_subscriptions()
        refused = [(id, str(error)) for id, error in engine.subscribe_many(self._registry.active())]
        aside = versions.write_aside(self.root, engine)
        with self._turn:
            self._fingerprint, self._definitions = hash, definitions
            version = self._switch(aside, refused, last)
            self.on_definitions(definitions)
            return version

    def _switch(self, aside: Path, refused: Sequence[tuple[str, str]], last: int) -> Version:
        """Makes a base current that has the subscriptions as they were at change `last`; what came since begins its tail."""
        if refused:
            self.on_refused(refused, last)
        since = [change for change in self._registry.changes(_ALL) if change.number > last]
        trial, made = self._definitions.without_subscriptions(), list[Change]()
        unfit: dict[int, tuple[str, str]] = {}
        for change in since:
            made.append(Change(change.id, change.text))
            try:
                apply(made[-1], trial)
            except TidingsError as error:
                made[-1] = Change(change.id, None)
                unfit[change.number] = change.id, str(error)
        number = next_base(self._settings.data, self._registry)
        version = versions.switch(self.root, aside, made, at_least=number)
        _write(self.root / "FINGERPRINT", self._fingerprint)
        with self._news:
            self._refusals |= unfit
            for change in since:
                self._unreported.pop(change.id, None)
            self._unreported |= dict(unfit.values())
            self._reached = max(self._reached, last, *(change.number for change in since))
            self._news.notify_all()
        self._compaction.measure()
        checksums.start_check(self.root, version.base)
        return version

    def change_network(self, changes: Sequence[NetworkChange], store: Callable[[], str]) -> Version:
        """Appends changes of a network, all or none; NetworkError for one that cannot be made. `store` is as in `define`."""

        def commit() -> None:
            self._fingerprint, self._is_stale = store(), True
            for change in changes:
                apply(change, self._definitions)

        self._need_prepared()
        with self._turn:
            version = versions.append(self.root, changes, before_write=commit)
            _write(self.root / "FINGERPRINT", self._fingerprint)
            self._is_stale = False
            self._compaction.appended(len(changes))
            self.on_definitions(self._definitions)
            return version

    def _need_prepared(self) -> None:
        if not self._is_prepared:
            raise IndexTimeout("the index is being prepared; try again in a moment")

    def _build_with_definitions(self) -> None:
        self.on_definitions(self._definitions)
        self._build()
        self._is_stale = False
        self._compaction.measure()

    # --- while the service runs

    def start(self) -> None:
        base = versions.current(self.root).base
        threading.Thread(
            target=checksums.check, args=(self.root, base), name="checksums", daemon=True
        ).start()
        self._compaction.start()
        self._thread = threading.Thread(target=self._follow, name="indexing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after all waiting changes are in the index."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        self._compaction.stop()

    def wait_for(self, number: int, timeout: float = 10.0) -> None:
        """Waits until the index has a change of the registry: an event that is published afterwards is matched with
        it. SubscriptionError if the index refuses it; IndexTimeout if it takes too long. While the index is prepared nothing
        is matched, and there is nothing to wait for."""
        deadline = time.monotonic() + timeout
        with self._news:
            if not self._is_prepared:
                return
            self._wanted = max(self._wanted, number)
            self._news.notify_all()
            while self._reached < number:
                left = deadline - time.monotonic()
                if left <= 0 or self._ended:
                    why = self._fault or ("the service ends" if self._ended else "it takes too long")
                    raise IndexTimeout(f"the index could not be changed yet ({why}); try again")
                self._news.wait(left)
            if (refused := self._refusals.pop(number, None)) is not None:
                self._unreported.pop(refused[0], None)
                raise SubscriptionError(refused[1])

    def drop(self) -> list[int]:
        """Removes the bases that nothing uses any more; returns their numbers."""
        return drop_bases(self._settings.data)

    def _follow(self) -> None:
        """Appends waiting changes until the service ends, and once more then."""
        pause = 0.0
        while not self._ended:
            with self._news:
                if self._wanted <= self._reached and not self._stopping:
                    self._news.wait(_APPLIED_EVERY if self._applied < self._reached else _POLL_SECONDS)
                last, wanted = self._stopping, self._wanted
            try:
                with self._turn:
                    self._mend_and_take(wanted, last)
                pause, self._fault = 0.0, ""
            except Exception as error:
                # A full disk or an unreachable store: the outbox keeps the changes.
                pause, self._fault = min(_LONGEST_PAUSE, 2 * pause or 0.1), str(error)
                logger.error("the index could not be changed: %s", error)
            with self._news:
                self._ended = last
                self._news.notify_all()
                if pause and not self._stopping:
                    self._news.wait_for(lambda: self._stopping, pause)

    def _mend_and_take(self, wanted: int, last: bool) -> None:
        """Takes the waiting changes; builds the index anew if it is lost, or damaged by any host's report."""
        try:
            if self._is_stale:
                self._build_with_definitions()
            if time.monotonic() - self._looked_at >= _POLL_SECONDS:
                self._looked_at = time.monotonic()
                if damage := checksums.damage(self.root, versions.current(self.root).base):
                    raise IndexFileError(damage)
            self._take_changes(wanted, last)
        except IndexFileError as error:
            self.root.mkdir(parents=True, exist_ok=True)
            self._rebuild(error)
            self._compaction.measure()

    def _take_changes(self, wanted: int, last: bool) -> None:
        changes = [change for change in self._registry.changes() if change.number > self._reached]
        refused = self._append(changes)
        if not changes:
            with self._news:
                if self._wanted == wanted:  # the awaited change is not in the outbox
                    self._wanted = self._reached
        # Not each time: that would be one more write that callers wait for.
        now = time.monotonic()
        # Not with those that were refused just now: a caller who waits for one undoes its change.
        idle = last or not changes or (not refused and now - self._applied_at > _APPLIED_EVERY)
        if self._applied < self._reached and idle and not self._keeps_outbox:
            self._report_refused()
            self._registry.applied(self._reached)
            self._applied, self._applied_at = self._reached, now

    def _report_refused(self) -> None:
        """Reports the refused changes that no caller was told of."""
        with self._news:
            refused = list(self._unreported.items())
        if refused:
            self.on_refused(refused, self._reached)
        with self._news:
            for id, _ in refused:
                self._unreported.pop(id, None)

    def _append(self, changes: Sequence[IndexChange]) -> list[tuple[IndexChange, str]]:
        """Appends changes; returns the refused ones. A refused change fails the whole append, so the changes are
        then tried by halves."""
        if not changes:
            return []
        refused = []
        try:
            appended = [Change(change.id, change.text) for change in changes]
            versions.append(self.root, appended, operators=self._definitions.operators)
            self._compaction.appended(len(changes))
        except (OSError, IndexFileError):
            raise
        except Exception as error:
            if len(changes) > 1:
                middle = len(changes) // 2
                return self._append(changes[:middle]) + self._append(changes[middle:])
            logger.warning("the index refuses subscription %s: %s", changes[0].id, error)
            refused = [(changes[0], str(error))]
            # The text that it had before is not what its subscriber asks any more.
            versions.append(self.root, [Change(changes[0].id, None)])
        with self._news:
            for change in changes:
                self._unreported.pop(change.id, None)
            self._refusals |= {change.number: (change.id, message) for change, message in refused}
            self._unreported |= {change.id: message for change, message in refused}
            for number in list(self._refusals)[:-_REFUSALS]:
                del self._refusals[number]
            gone = {change.number for change, _ in refused}
            self.on_appended(
                [change._replace(text=None) if change.number in gone else change for change in changes]
            )
            self._reached = changes[-1].number
            self._news.notify_all()
        return refused


def _placement(settings: Settings) -> Placement | None:
    if settings.parts is None:
        return None
    return Placement(settings.place, settings.parts, settings.merge, settings.apart)


def _write(path: Path, text: str) -> None:
    aside = path.with_suffix(".writing")
    aside.write_text(text)
    sync(aside)
    aside.replace(path)
    sync(path.parent)
