"""Marks subscriptions that cannot be matched as unanswerable, and makes them active again when they can.

A subscription is refused by the index when a table, an operator, a network or a prefix that it names is missing: the
service was started without it, or it was changed. Its owner gets a notice of each change. The notice is stored before
the state: after a crash between the two it is sent again under the same id, which makes it one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidings.service.matching.engine_settings import missing_table
from tidings.service.model import Notice, NotificationKind, Subscription

if TYPE_CHECKING:
    from tidings.engine.engine import Engine
    from tidings.service.store.mailbox import Mailbox
    from tidings.service.store.registry import Registry

logger = logging.getLogger(__name__)


class Answerability:
    """Keeps the states of subscriptions in step with what the index refuses."""

    def __init__(
        self, registry: Registry, mailbox: Mailbox, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._registry, self._mailbox, self._clock = registry, mailbox, clock

    def refused(self, refused: Sequence[tuple[str, str]], number: int) -> None:
        """Marks subscriptions, given as id and reason, that the index has refused with changes up to a number."""
        reasons = dict(refused)
        found = self._registry.refusable(list(reasons), number)
        for subscription in found:
            fields = {"subscription": subscription.id}
            logger.warning(
                "a subscription cannot be matched: %s", reasons[subscription.id], extra={"fields": fields}
            )
        self._notify(
            found,
            NotificationKind.UNANSWERABLE,
            lambda id: (
                f"this subscription cannot be matched: {reasons[id]}; it goes on by itself when it can"
            ),
        )
        self._registry.refuse(found, reasons)

    def retry(self, engine: Engine) -> None:
        """Makes those active again that can be matched with the definitions of this engine."""
        for portion in self._registry.unanswerable():
            whole = [
                subscription
                for subscription in portion
                if not (subscription.over_tables and missing_table(engine, subscription.text))
            ]
            pairs = ((subscription.id, subscription.text) for subscription in whole)
            refused = {id for id, _ in engine.without_subscriptions().subscribe_many(pairs)}
            found = [subscription for subscription in whole if subscription.id not in refused]
            self._notify(
                found,
                NotificationKind.ANSWERABLE,
                lambda id: "this subscription is matched again; events that came meanwhile were not matched",
            )
            self._registry.restore(found)

    def _notify(
        self, subscriptions: Sequence[Subscription], kind: NotificationKind, message: Callable[[str], str]
    ) -> None:
        now = self._clock()
        notices = [
            Notice(given.id, kind, f"{kind.value} {given.revision}", now, message(given.id))
            for given in subscriptions
        ]
        if notices:
            self._mailbox.notify(notices)
