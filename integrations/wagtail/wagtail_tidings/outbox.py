"""Calls to the service that wait in the database until they were made: nothing is lost while the service is away.

Whoever changes something writes an entry in the same transaction. A thread of this process sends the entries after the commit, oldest
first, and tries again for some minutes; `manage.py tidings_sync` sends what is left. An entry is claimed by one sender at a
time; one that was sent twice nevertheless does no harm, because every action may be repeated.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import Any

from django.db import close_old_connections, connection, transaction
from django.db.models import Q
from django.utils import timezone

from tidings.client import ServiceError
from wagtail_tidings.models import OutboxEntry

log = logging.getLogger(__name__)

CLAIM = timedelta(minutes=2)
MOMENT = 0.2  # seconds before the thread begins: the request that woke it is answered first, and several changes go together
PAUSES = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)  # seconds between attempts, before it is left to `tidings_sync`


class Away(Exception):
    """The service does not answer, or cannot at the moment: the entry stays."""


def add(action: str, content: dict[str, Any] | None = None) -> OutboxEntry:
    """Writes an entry. The sender is woken when the transaction is committed."""
    entry = OutboxEntry.objects.create(action=action, content=content or {})
    transaction.on_commit(_sender.wake)
    return entry


def waiting() -> int:
    return OutboxEntry.objects.filter(error="").count()


def send_waiting() -> int:
    """Sends all entries that wait, oldest first; how many were sent. Raises Away at the first one that has to wait."""
    sent = 0
    while (entry := _claim_next()) is not None:
        _send(entry)
        sent += 1
    return sent


def send_now(entry: OutboxEntry) -> bool:
    """Sends one entry for a visitor who waits for it; False if it has to wait."""
    if not _claim(entry):
        return False
    try:
        _send(entry)
    except Away:
        return False
    return True


def _claim_next() -> OutboxEntry | None:
    free = Q(claimed_until=None) | Q(claimed_until__lt=timezone.now())
    while (entry := OutboxEntry.objects.filter(free, error="").order_by("pk").first()) is not None:
        if _claim(entry):
            return entry
    return None


def _claim(entry: OutboxEntry) -> bool:
    now = timezone.now()
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    return OutboxEntry.objects.filter(free, pk=entry.pk).update(claimed_until=now + CLAIM) == 1


def _send(entry: OutboxEntry) -> None:
    from wagtail_tidings.actions import ACTIONS

    try:
        ACTIONS[entry.action](**entry.content)
    except ServiceError as error:
        if error.status is None or error.status in (401, 403, 408, 429) or error.status >= 500:
            OutboxEntry.objects.filter(pk=entry.pk).update(claimed_until=None)
            raise Away(str(error)) from error
        log.error("Tidings refused %s: %s", entry, error)
        OutboxEntry.objects.filter(pk=entry.pk).update(error=str(error))
    except Exception:
        OutboxEntry.objects.filter(pk=entry.pk).update(claimed_until=None)
        raise
    else:
        OutboxEntry.objects.filter(pk=entry.pk).delete()


class Sender:
    """Sends in a thread of its own, which ends when nothing waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._woken = False

    def wake(self) -> None:
        with self._lock:
            self._woken = True
            # A forked process has the object, but not the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tidings-outbox", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        attempts = iter(PAUSES)
        time.sleep(MOMENT)
        while self._has_work():
            try:
                close_old_connections()
                if send_waiting():
                    attempts = iter(PAUSES)
            except Exception as error:
                pause = next(attempts, None)
                log.warning("Tidings is not reached (%s); %s", error, _next_step(pause))
                if pause is None:
                    continue
                time.sleep(pause)
                self._woken = True
            finally:
                connection.close()

    def _has_work(self) -> bool:
        with self._lock:
            woken, self._woken = self._woken, False
            if not woken:
                self._thread = None
            return woken


def _next_step(pause: int | None) -> str:
    return "left to manage.py tidings_sync" if pause is None else f"tried again in {pause} s"


_sender = Sender()
