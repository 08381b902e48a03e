"""Searches words in what subscriptions have received: the texts of events, what was bound, rows that changed.

Newest first, until enough is found or so much was looked at; the next search goes on there. There is no index of words:
what is searched is mostly the last days, and an index would be written with every notification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tidings.service.delivery.markup import plain_text
from tidings.service.delivery.presentation import texts_of
from tidings.service.model import StoredNotification
from tidings.service.store.received import Page, Received

LONGEST: Final = 200  # characters of what is searched for
LOOKED_AT: Final = 2_000  # notifications, in one request
_LETTERS: Final = 16 << 20  # of their texts
_PORTION: Final = 50  # that are read at once; an event may have a megabyte


def words_of(searched: str) -> list[str]:
    """The words that have to be found, each anywhere, whatever their case."""
    return searched.replace("\0", " ").casefold().split()


def search(
    received: Received, subscriptions: Sequence[str], searched: str, *, before: int | None, limit: int
) -> Page:
    """The newest notifications that have all words. Where the work of a request ends first, `further` is set although
    fewer were found, or none."""
    words = words_of(searched)
    found: list[StoredNotification] = []
    numbers, further = received.numbers(subscriptions, before=before, limit=LOOKED_AT)
    size = 0
    for begin in range(0, len(numbers), _PORTION):
        for notification in received.read(numbers[begin : begin + _PORTION]):
            texts = list(_texts(notification))
            size += sum(map(len, texts))
            if _have_words(texts, words):
                found.append(notification)
            if len(found) == limit or size > _LETTERS:
                is_last = further is None and notification.number == numbers[-1]
                return Page(found, None if is_last else notification.number)
    return Page(found, further)


def has_words(notification: StoredNotification, words: Sequence[str]) -> bool:
    return _have_words(_texts(notification), words)


def _have_words(texts: Iterable[str], words: Sequence[str]) -> bool:
    rest = set(words)
    for text in texts:
        text = plain_text(text).casefold()
        rest = {word for word in rest if word not in text}
        if not rest:
            break
    return not rest


def _texts(notification: StoredNotification) -> Iterator[str]:
    if notification.event is not None:
        yield notification.event.source
        yield from texts_of(notification.event)
    yield from map(str, notification.bindings.values())
    for change in notification.changes:
        yield from map(str, [change["table"], *change["row"].values()])
    yield notification.message or ""
