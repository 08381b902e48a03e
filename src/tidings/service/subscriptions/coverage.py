"""Finds which of a subscriber's subscriptions already cover a text: whatever matches the text matches them too.

Whatever contains the text matches the events that are made to match it (containment/witness.py), so the index finds all
candidates at once; the few that are the subscriber's own are then compared with the text. What is not certain is not named.

The answer is a remark beside others and never delays them: it is awaited for a moment, in which an open index gives it many
times over, and only so many candidates are compared.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tidings.containment.contains import contains
from tidings.containment.witness import witnesses
from tidings.errors import SubscriptionError, TidingsError
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.service.model import ActiveText, State
from tidings.service.store.registry import Registry

if TYPE_CHECKING:
    from tidings.service.matching.event_preview import EventPreview
    from tidings.service.subscriptions.preview import Preview

SHOWN = 5
AWAITED = 0.05  # seconds
_COMPARING = 0.015  # seconds of this thread: on a busy machine the answer is late rather than incomplete
_VARIANTS, _WITNESSES = 2, 8
_LOOKED_UP = 500  # candidates
_OWNED = 2_000  # of one owner, of which candidates are sought where there are many

logger = logging.getLogger(__name__)


class Covering(NamedTuple):
    """A subscription that covers a text. `same`: the text covers it, too."""

    id: str
    title: str
    same: bool


class Coverage(NamedTuple):
    """The subscriptions that cover a text, at most SHOWN; `more` if there may be others."""

    covering: list[Covering]
    more: bool


class CoverageSearch:
    """Asks the index in a thread of its own. Thread-safe."""

    def __init__(
        self, registry: Registry, preview: Preview, events: EventPreview, awaited: float = AWAITED
    ) -> None:
        self._registry, self._preview, self._events, self._awaited = registry, preview, events, awaited
        self._thread = ThreadPoolExecutor(1, "coverage")

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def covering(self, text: str, owner: str, but: str | None = None) -> Coverage | None:
        """The active subscriptions of an owner that cover a valid text, without the one with the id `but`. None if that
        was not found out in time: the index may have to be opened first."""
        asked = self._thread.submit(self.find, text, owner, but)
        try:
            return asked.result(self._awaited)
        except NotInTime:
            asked.cancel()
        except TidingsError as error:  # of the store or of the index, which others report
            logger.debug("no subscriptions that cover a text were sought: %s", error)
        except Exception:
            logger.exception("the subscriptions that cover a text could not be sought")
        return None

    def find(self, text: str, owner: str, but: str | None = None) -> Coverage:
        """The same, however long it takes."""
        engine = self._preview.engine
        query = parse(text, engine.prefixes)
        # Only equal subscriptions over tables contain each other, and no single event shows which.
        made = () if engine.joins.takes(query) else witnesses(query, engine.taxonomy, _VARIANTS)
        events = list(islice(made, _WITNESSES))
        if not events:
            return Coverage([], False)
        ids, more = self._owned([id for id in self._events.candidates(events) if id != but], owner)
        found = list[Covering]()
        for covering in self._compared(query, text, self._registry.active_texts(ids, owner)):
            if covering is None or len(found) == SHOWN:
                return Coverage(found, True)
            found.append(covering)
        return Coverage(found, more)

    def _owned(self, ids: list[str], owner: str) -> tuple[list[str], bool]:
        """Few enough to look up, and whether some were left out. Where there are many, most may be of others."""
        if len(ids) <= _LOOKED_UP:
            return ids, False
        owned = set(self._registry.ids(owner=owner, states=[State.ACTIVE], limit=_OWNED))
        theirs = [id for id in ids if id in owned]
        return theirs[:_LOOKED_UP], len(owned) == _OWNED or len(theirs) > _LOOKED_UP

    def _compared(self, query: Query, text: str, candidates: list[ActiveText]) -> Iterator[Covering | None]:
        """Those that contain the query, short texts first: they are the more general ones. None if the time is over."""
        engine, deadline = self._preview.engine, time.thread_time() + _COMPARING
        candidates.sort(key=lambda one: (one.text != text, len(one.text), one.text))
        for id, title, other in candidates:
            if time.thread_time() > deadline:
                yield None
                return
            with suppress(SubscriptionError):  # a prefix of it may be gone
                wider = parse(other, engine.prefixes)
                if contains(wider, query, engine.taxonomy):
                    yield Covering(id, title, contains(query, wider, engine.taxonomy).holds)
