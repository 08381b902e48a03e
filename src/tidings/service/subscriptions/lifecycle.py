"""Creates, edits, renews, pauses, resumes and cancels subscriptions; Sub-Order, 5.1.

Subscribing returns a ticket; the ticket or the owner's token is needed for all further changes. Validity counts
from now, never from the old end. Renewing an expired subscription makes it active again, as long as it is kept; a
cancelled one stays cancelled, so a replayed ticket opens nothing. A text is in the index when `subscribe`,
`edit`, `resume` or `renew` returns: events published afterwards are matched.
"""

from __future__ import annotations

import math
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tidings.errors import SubscriptionError, TidingsError
from tidings.feeds.addresses import check_url
from tidings.service.matching.index_writer import IndexTimeout, IndexWriter
from tidings.service.model import LIVING, Delivery, Principal, Role, State, Subscription
from tidings.service.owners import HEADER, UserError, is_of_all_users, owns
from tidings.service.settings import Settings
from tidings.service.store.registry import Conflict, Registry
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import (
    AccessControl,
    AccessError,
    Forbidden,
    NotFound,
    OverQuota,
)
from tidings.service.subscriptions.preview import Preview
from tidings.service.subscriptions.scopes import Scopes

if TYPE_CHECKING:
    from tidings.service.store.mailbox import Mailbox

MAX_TEXT = 64 << 10  # bytes
MAX_TITLE = 200  # characters
MAX_TAGS, MAX_TAG = 20, 50  # tags of a subscription, characters of a tag
_MADE_TITLE = 80
_TRIES = 5
_FOR_LONG = 100 * 366 * 86_400.0  # seconds; a longer validity is a mistake for "never"

Validity = float | None | Literal["default"]
"""Seconds from now on, None for good, or what the service gives to those that name none."""


class Ended(AccessError):
    """The subscription was cancelled, or has to be renewed before anything else."""

    status = 410


class Refused(TidingsError):
    """A title, a validity or an address cannot be accepted."""

    status = 422


class Changed(AccessError):
    """The subscription has another revision than the one that was to be edited."""

    status = 412


class Kept(Enum):
    """Marks what an edit leaves as it is."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What changes in a subscription. `webhook` is None to remove it; with `revision`, only that one is changed."""

    text: str | Kept = KEPT
    title: str | Kept = KEPT
    public: bool | Kept = KEPT
    validity: Validity | Kept = KEPT
    webhook: str | Kept | None = KEPT
    tags: Sequence[str] | Kept = KEPT
    revision: int | None = None


class Edited(NamedTuple):
    """The result of an edit; `webhook` is set if it has a new address, and so a new secret."""

    subscription: Subscription
    warnings: tuple[str, ...] = ()
    webhook: Delivery | None = None


class Subscribed(NamedTuple):
    """The result of subscribing, with the ticket and the webhook's secret, which are not shown again."""

    subscription: Subscription
    ticket: str
    warnings: tuple[str, ...] = ()
    webhook: Delivery | None = None


class Lifecycle:
    """All changes of subscriptions. Thread-safe; every method is a few short transactions."""

    def __init__(
        self,
        registry: Registry,
        mailbox: Mailbox,
        index_writer: IndexWriter,
        preview: Preview,
        access: AccessControl,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._mailbox = mailbox
        self._index_writer = index_writer
        self._preview = preview
        self._access = access
        self._scopes = Scopes(access, lambda: preview.engine)
        self._settings = settings
        self._clock = clock
        # Of a relay: waits until the upstream service has what the index has, or says why it has not. It may refuse some of it.
        self.on_indexed: Callable[[], str | None] | None = None
        self._counting = threading.Lock()  # so that two at once do not both take the last of a quota

    def subscribe(
        self,
        principal: Principal,
        text: str,
        *,
        title: str = "",
        validity: Validity = "default",
        public: bool = False,
        webhook: str | None = None,
        tags: Sequence[str] = (),
    ) -> Subscribed:
        """Makes a subscription. All checks come before anything is stored."""
        new = self.prepare(
            principal, text, title=title, validity=validity, public=public, webhook=webhook, tags=tags
        )
        (begun,) = self.begin(principal, [new])
        if isinstance(begun, TidingsError):
            raise begun
        return begun

    def prepare(
        self,
        principal: Principal,
        text: str,
        *,
        title: str = "",
        validity: Validity = "default",
        public: bool = False,
        webhook: str | None = None,
        tags: Sequence[str] = (),
        paused: bool = False,
        one_of_many: bool = False,
    ) -> Subscribed:
        """A new subscription, checked and not yet stored; `begin` stores it. One of many gets no warnings about events, which
        take time."""
        self._access.need(principal, Role.SUBSCRIBER)
        if is_of_all_users(principal.token):
            raise UserError(
                f"the token {principal.name!r} subscribes for its users; name one by the header {HEADER}"
            )
        scope = "" if one_of_many else self._access.scope(principal)
        warnings = self._check(text, about_events=not one_of_many, scope=scope)
        self._scopes.check(principal, text)
        title = check_title(title) or title_of_text(text)
        now = self._clock()
        until = self._end_of_validity(validity, now)
        if webhook is not None:
            check_url(webhook, self._settings.allowed)
        ticket = tickets.new_secret(tickets.TICKET)
        new = Subscription(
            tickets.new_id("s"),
            text,
            title,
            principal.token,
            tickets.digest(ticket),
            tickets.new_secret("f"),
            now,
            until,
            state=State.PAUSED if paused else State.ACTIVE,
            public=public,
            over_tables=self._preview.is_over_tables(text),
            tags=check_tags(tags),
        )
        delivery = None if webhook is None else Delivery(new.id, webhook, tickets.new_webhook_secret(), 0)
        return Subscribed(new, ticket, warnings, delivery)

    def begin(self, principal: Principal, given: Sequence[Subscribed]) -> list[Subscribed | TidingsError]:
        """Stores what was prepared, in one transaction, and waits for the index once. Returns each, or why it was
        refused: the token's quota is spent, or the index cannot take the text."""
        cursor = self._mailbox.last() if any(new.webhook for new in given) else 0
        fits = [_delivered_after(cursor, new) for new in given]
        over: list[TidingsError] = []
        with self._counting if principal.token else nullcontext():
            try:
                self._access.check_quota(principal, len(given))
            except OverQuota as error:
                fits = fits[: self._access.subscriptions_left(principal)]
                over = [error] * (len(given) - len(fits))
            last = self._registry.add_many([new.subscription for new in fits])
        self._registry.set_deliveries([new.webhook for new in fits if new.webhook])
        refused = self._wait_for_new([new.subscription for new in fits], last)
        now, waiting = self._await_upstream([new.subscription for new in fits])
        fits = [_as_it_became(new, now, waiting) for new in fits]
        return [*(refused.get(new.subscription.id, new) for new in fits), *over]

    def check_filter(self, principal: Principal, text: str) -> bool:
        """Refuses a text that a relay may not ask for; whether it is over tables."""
        self._check(text, about_events=False)
        self._scopes.check(principal, text)
        return self._preview.is_over_tables(text)

    def add_filters(
        self, new: Sequence[Subscription], revived: Sequence[Subscription], until: float
    ) -> dict[str, TidingsError]:
        """Stores the filters of a relay, or makes those active again that had ended, and waits for the index once. Returns those
        that it refuses, or a service above this one, with the reasons."""
        refused: dict[str, TidingsError] = {}
        if (number := self._registry.revive_many(revived, until)) is not None:
            self._index_writer.wait_for(number)
        if new:
            refused = self._wait_for_new(new, self._registry.add_many(new))
        now, _ = self._await_upstream([*new, *revived])
        return refused | {
            id: SubscriptionError(found.reason or "it cannot be matched")
            for id, found in now.items()
            if found.state is State.UNANSWERABLE
        }

    def find(self, principal: Principal, id: str) -> Subscription:
        """The subscription, if the principal may see it; otherwise NotFound."""
        found = self._registry.find(id)
        if found is None or not self._access.may_see(principal, found):
            raise _not_found(id)
        return found

    def page(
        self,
        principal: Principal,
        *,
        state: State | None = None,
        search: str = "",
        tag: str = "",
        after: str | None = None,
        limit: int = 50,
    ) -> list[Subscription]:
        """The subscriptions that the principal may see, newest first, after the one with the id `after`."""
        owner, tag = self._owner(principal), tag.lower()
        return self._registry.page(owner=owner, state=state, search=search, tag=tag, after=after, limit=limit)

    def titles(self, principal: Principal, *, limit: int) -> dict[str, str]:
        """The ids and titles of the subscriptions that the principal may see, newest first."""
        return self._registry.titles(owner=self._owner(principal), limit=limit)

    def living(self, principal: Principal, *, limit: int) -> list[str]:
        """The ids of those subscriptions that the principal may see and that have not ended."""
        return self._registry.ids(owner=self._owner(principal), states=LIVING, limit=limit)

    def counts(self, principal: Principal) -> dict[State, int]:
        return self._registry.counts(self._owner(principal))

    def renew(
        self, principal: Principal, id: str, ticket: str | None = None, validity: Validity = "default"
    ) -> Subscription:
        """Starts a new validity from now. An expired subscription is active again; a paused one stays paused."""
        return self._change(principal, id, ticket, partial(self._renewed, validity), lives=False)

    def _renewed(self, validity: Validity, old: Subscription) -> Subscription:
        now = self._clock()
        state = State.ACTIVE if old.state is State.EXPIRED else old.state
        return replace(
            old, state=state, valid_until=self._end_of_validity(validity, now), renewed=now, warned=False
        )

    def edit(self, principal: Principal, id: str, ticket: str | None, edit: Edit) -> Edited:
        """Changes what is named, in place. Everything is checked before anything is stored. A new validity counts from
        now, as by `renew`."""
        self.changeable(principal, id, ticket)  # first: nobody else learns what is wrong with the edit
        warnings: tuple[str, ...] = ()
        if edit.text is not KEPT:
            warnings = self._check(edit.text, scope=self._access.scope(principal))
            self._scopes.check(principal, edit.text)
        if isinstance(edit.webhook, str):
            check_url(edit.webhook, self._settings.allowed)
        lives = edit.validity is KEPT
        changed = self._change(principal, id, ticket, partial(self._edited, edit), lives=lives)
        old = self._registry.delivery(id)
        if edit.webhook is None:
            self._registry.remove_delivery(id)
        elif edit.webhook is not KEPT and (old is None or old.disabled or old.url != edit.webhook):
            return Edited(changed, warnings, self._deliver_to(id, edit.webhook))
        return Edited(changed, warnings)

    def _edited(self, edit: Edit, old: Subscription) -> Subscription:
        if edit.revision not in (None, old.revision):
            raise Changed(
                f"subscription {old.id} has the revision {old.revision} by now, not {edit.revision}; read it again"
            )
        text = old.text if edit.text is KEPT else edit.text
        title = old.title if edit.title is KEPT else check_title(edit.title)
        if not title or (edit.title is KEPT and title == title_of_text(old.text)):
            title = title_of_text(text)
        new = replace(old, text=text, title=title)
        if text != old.text:
            state = State.ACTIVE if old.state is State.UNANSWERABLE else old.state
            new = replace(new, state=state, over_tables=self._preview.is_over_tables(text))
        if edit.public is not KEPT:
            new = replace(new, public=edit.public)
        if edit.tags is not KEPT:
            new = replace(new, tags=check_tags(edit.tags))
        return new if edit.validity is KEPT else self._renewed(edit.validity, new)

    def cancel(self, principal: Principal, id: str, ticket: str | None = None) -> Subscription:
        """Cancels for good. Notifications stay until their retention time is over; nothing more is delivered."""
        now = self._clock()
        gone = self._change(
            principal,
            id,
            ticket,
            lambda old: replace(old, state=State.CANCELLED, valid_until=min(old.valid_until or now, now)),
            lives=False,
        )
        self._registry.remove_delivery(id)
        return gone

    def pause(self, principal: Principal, id: str, ticket: str | None = None) -> Subscription:
        """Stops matching until it is resumed; the validity goes on."""
        return self._change(principal, id, ticket, lambda old: replace(old, state=State.PAUSED))

    def resume(self, principal: Principal, id: str, ticket: str | None = None) -> Subscription:
        """Matches it again. Of an unanswerable one, SubscriptionError says why it cannot be."""
        return self._change(principal, id, ticket, lambda old: replace(old, state=State.ACTIVE))

    def set_webhook(self, principal: Principal, id: str, ticket: str | None, url: str) -> Delivery:
        """Delivers to `url`, with a new secret. If there was a webhook before, the new one continues at its cursor."""
        found = self.changeable(principal, id, ticket)
        self._check_not_expired(found)
        check_url(url, self._settings.allowed)
        return self._deliver_to(id, url)

    def _deliver_to(self, id: str, url: str) -> Delivery:
        old = self._registry.delivery(id)
        cursor = old.cursor if old is not None else self._mailbox.last()
        delivery = Delivery(id, url, tickets.new_webhook_secret(), cursor)
        self._registry.set_delivery(delivery)
        return delivery

    def remove_webhook(self, principal: Principal, id: str, ticket: str | None = None) -> None:
        self.changeable(principal, id, ticket)
        self._registry.remove_delivery(id)

    def _owner(self, principal: Principal) -> str | None:
        self._access.need(principal, Role.SUBSCRIBER)
        return None if principal.role is Role.ADMIN else principal.token

    def _change(
        self,
        principal: Principal,
        id: str,
        ticket: str | None,
        step: Callable[[Subscription], Subscription],
        *,
        lives: bool = True,
    ) -> Subscription:
        """Changes a subscription, and repeats on a conflict with another change; returns when the index has the
        change."""
        for attempt in range(_TRIES):
            old = self.changeable(principal, id, ticket)
            if lives:
                self._check_not_expired(old)
            new = step(old)
            if new.state is not State.UNANSWERABLE:
                new = replace(new, reason=None)
            if new == old:
                return old
            try:
                number = self._update(principal, old, new)
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                continue
            new = replace(new, revision=old.revision + 1)
            return new if number is None else self._wait_for_index(old, new, number)
        raise AssertionError("the last try returns or raises")

    def _wait_for_index(self, old: Subscription, new: Subscription, number: int) -> Subscription:
        """Waits until the index has the change. Returns what became of it."""
        try:
            self._index_writer.wait_for(number)
            return self._await_upstream([new])[0].get(new.id, new) if new.state is State.ACTIVE else new
        except IndexTimeout:
            if new.state is State.ACTIVE:
                raise
            return new  # a removal may come to the index later: it is in the outbox
        except SubscriptionError:
            # It was valid before, and is not now: an operator or a network is missing.
            self._take_back(old)
            raise

    def _wait_for_new(self, new: Sequence[Subscription], last: int) -> dict[str, TidingsError]:
        """Waits until the index has new subscriptions, of which `last` is the last change. Returns those that it
        refuses, with the reasons."""
        active = [subscription for subscription in new if subscription.state is State.ACTIVE]
        refused: dict[str, TidingsError] = {}
        try:
            for number, subscription in enumerate(active, last - len(active) + 1):
                try:
                    self._index_writer.wait_for(number)
                except SubscriptionError as error:
                    refused[subscription.id] = error
                    self._withdraw(subscription)
        except TidingsError:
            # Their tickets were not handed out; the subscriber tries again.
            for subscription in new:
                if subscription.id not in refused:
                    self._withdraw(subscription)
            raise
        return refused

    def _await_upstream(self, given: Sequence[Subscription]) -> tuple[dict[str, Subscription], str | None]:
        """At a relay, waits for the upstream service. Returns what became of subscriptions, by their ids: those that it refuses
        are unanswerable now; and why it does not have them yet, if so."""
        if self.on_indexed is None or not given:
            return {}, None
        waiting = self.on_indexed()
        found = self._registry.find_many([subscription.id for subscription in given])
        return {subscription.id: subscription for subscription in found}, waiting

    def _withdraw(self, subscription: Subscription) -> None:
        gone = replace(subscription, state=State.CANCELLED, valid_until=self._clock())
        if subscription.state is State.PAUSED:
            self._registry.update(gone)
        else:
            self._take_back(gone)

    def _take_back(self, wanted: Subscription) -> None:
        """Makes a subscription what it was before a change that the index refused, also if it was marked as unanswerable
        meanwhile. What another caller has made of it stays."""
        for _ in range(_TRIES):
            found = self._registry.find(wanted.id)
            if found is None or found.state not in (State.ACTIVE, State.UNANSWERABLE):
                return
            with suppress(Conflict):
                self._registry.update(replace(wanted, revision=found.revision))
                return

    def _update(self, principal: Principal, old: Subscription, new: Subscription) -> int | None:
        if old.state is not State.EXPIRED or new.state is not State.ACTIVE or not principal.token:
            return self._registry.update(new)
        with self._counting:
            if owns(principal.token, old.owner):
                self._access.check_quota(replace(principal, token=old.owner))
            return self._registry.update(new)

    def changeable(self, principal: Principal, id: str, ticket: str | None) -> Subscription:
        """The subscription, if the principal may change it. A principal who may see it gets the error that the ticket is
        wrong; for others it does not exist. A cancelled one has ended, whatever the ticket."""
        found = self._registry.find(id)
        if found is None:
            if ticket:
                self._access.wrong_ticket(id)
            raise _not_found(id)
        if not self._access.may_change(principal, found, ticket):
            if not self._access.may_see(principal, found):
                raise _not_found(id)
            if ticket:
                raise Forbidden(
                    f"this is not the ticket of subscription {id}; use the one shown when it began"
                )
            raise Forbidden(
                f"only who has the ticket of subscription {id} can change it;"
                " give the ticket, which was shown when the subscription was made"
            )
        if found.state is State.CANCELLED:
            raise Ended(f"subscription {id} was cancelled and stays so; subscribe anew")
        return found

    def _check_not_expired(self, found: Subscription) -> None:
        if found.state is State.EXPIRED:
            raise Ended(f"subscription {found.id} has expired; renew it first")

    def check_asked(self, found: Subscription) -> None:
        """Refuses a subscription that is not in the index now."""
        self._check_not_expired(found)
        if found.state is not State.ACTIVE:
            raise Conflict(f"subscription {found.id} is {found.state}; resume it first")

    def _check(self, text: str, *, about_events: bool = True, scope: str = "") -> tuple[str, ...]:
        """The warnings for a valid text; SubscriptionError for an invalid one."""
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT:
            raise SubscriptionError(
                f"the text has {size:,} bytes, and a subscription has at most {MAX_TEXT:,}; make it shorter"
            )
        if bad := _unprintable(text):
            raise SubscriptionError(f"the text has the character {bad} in it; take it out")
        checked = self._preview.check(text, about_events=about_events, scope=scope)
        if not checked.ok:
            error = SubscriptionError(checked.message)  # which names the place already
            error.line, error.column = checked.line, checked.column
            raise error
        return tuple(warning.message for warning in checked.warnings)

    def _end_of_validity(self, validity: Validity, now: float) -> float | None:
        """The end of a validity from now. A validity longer than the limit is refused, not cut, so that the
        subscriber notices."""
        longest = self._settings.longest_validity
        if isinstance(validity, str):
            return now + (
                self._settings.validity if longest is None else min(self._settings.validity, longest)
            )
        if validity is None:
            if longest is None:
                return None
            raise Refused(
                f"here no subscription is for good; ask for at most {longest:,.0f} seconds, and renew it"
            )
        if not (math.isfinite(validity) and 0 < validity <= _FOR_LONG):
            raise Refused(
                f"a validity of {validity:,} seconds is none; give a number of seconds greater than 0, or 'never'"
            )
        if longest is not None and validity > longest:
            raise Refused(
                f"a validity of {validity:,.0f} seconds is longer than the {longest:,.0f} that are allowed here;"
                " ask for less, and renew it"
            )
        return now + validity


def read_validity(given: object) -> Validity:
    """Reads a validity: nothing, "never", or seconds as a number or a text."""
    if given is None or given == "":
        return "default"
    if isinstance(given, str):
        if given.strip().lower() == "never":
            return None
        try:
            return float(given)
        except ValueError:
            pass
    elif isinstance(given, int | float) and not isinstance(given, bool):
        try:
            return float(given)
        except OverflowError:
            pass
    shown = f"{given!r}"[:60]
    raise Refused(f"a validity is a number of seconds, or 'never', not {shown}")


def check_title(title: str) -> str:
    """The title on one line; Refused if it is too long or has control characters."""
    if len(title) > 100 * MAX_TITLE:  # however many blanks are among them
        raise Refused(f"the title has {len(title):,} characters, and may have {MAX_TITLE}; make it shorter")
    if bad := _unprintable(title):
        raise Refused(f"the title has the character {bad} in it; take it out")
    title = " ".join(title.split())
    if len(title) > MAX_TITLE:
        raise Refused(f"the title has {len(title):,} characters, and may have {MAX_TITLE}; make it shorter")
    return title


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags in lower case, each once; Refused if one is no word, or if there are too many."""
    for tag in tags:
        if "," in tag or len(tag.split()) != 1 or tag != tag.strip() or _unprintable(tag):
            raise Refused(
                f"the tag {tag[:MAX_TAG]!r} is not one word; leave out blanks, commas and control characters"
            )
        if len(tag) > MAX_TAG:
            raise Refused(
                f"the tag {tag[:MAX_TAG]}… has {len(tag):,} characters, and may have {MAX_TAG}; shorten it"
            )
    unique = tuple(dict.fromkeys(tag.lower() for tag in tags))
    if len(unique) > MAX_TAGS:
        raise Refused(f"the subscription has {len(unique):,} tags, and may have {MAX_TAGS}; leave some out")
    return unique


def title_of_text(text: str) -> str:
    """The beginning of a text, as the title of a subscription that has none."""
    line = " ".join(text.split())
    return line if len(line) <= _MADE_TITLE else line[: _MADE_TITLE - 1].rstrip() + "…"


def _unprintable(text: str) -> str | None:
    """The first character that pages, feeds or databases refuse: control characters, lone surrogates, U+FFFE."""
    for character in text:
        if character in "\t\n\r" or character.isprintable():
            continue
        if unicodedata.category(character) in ("Cc", "Cs") or ord(character) & 0xFFFE == 0xFFFE:
            return f"U+{ord(character):04X}"
    return None


def _as_it_became(new: Subscribed, now: Mapping[str, Subscription], waiting: str | None) -> Subscribed:
    """At a relay, with its state after the upstream service was asked, and a warning if that does not answer."""
    subscription = now.get(new.subscription.id, new.subscription)
    warnings = new.warnings
    if waiting and subscription.state is State.ACTIVE:
        warnings += (f"it waits for the upstream service, and gets no event until then: {waiting}",)
    return new._replace(subscription=subscription, warnings=warnings)


def _delivered_after(cursor: int, new: Subscribed) -> Subscribed:
    return new if new.webhook is None else new._replace(webhook=replace(new.webhook, cursor=cursor))


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no subscription {id[:40]!r}; look at the list for those there are")
