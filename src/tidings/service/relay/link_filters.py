"""What relays ask this service for: ordinary subscriptions in the registry, which the stream matches like all others.

Their owner is "(relay) TOKEN RELAY", so no list of people shows them, and two relays with one token do not meet. The id of one
is a hash of its owner and its text: registering it again changes nothing. One that is withdrawn leaves the index at once, but
what it has matched before is still sent. One that expired while its relay was away gets a `missed` notice when the relay is back, and
the link passes that on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from tidings.errors import TidingsError
from tidings.service.model import (
    HIDDEN,
    LIVING,
    MEMBERS,
    Notice,
    NotificationKind,
    Principal,
    State,
    Subscription,
)
from tidings.service.settings import Settings
from tidings.service.store.registry import Registry
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import AccessControl, OverQuota
from tidings.service.subscriptions.lifecycle import Lifecycle

MOST = 100_000  # filters of all relays with one token
_EXPIRED = "events may be missing: the relay was away for so long that its filters had expired"
STILL_SENT = 3_600.0  # seconds that a withdrawn filter's matches are looked for


def owner_of(principal: Principal, relay: str) -> str:
    """The owner of a relay's filters."""
    return f"{HIDDEN}relay) {principal.token} {relay}"


def _owners_of(principal: Principal) -> str:
    """How the owners of the filters of all relays with a token begin. The ids of services begin with n."""
    return owner_of(principal, "n")


class LinkFilters:
    """Registers and withdraws the filters of relays. `request_rows` has the stream answer with all rows of filters over tables;
    `notify` stores notices. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        lifecycle: Lifecycle,
        access: AccessControl,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        *,
        request_rows: Callable[[Sequence[str]], None],
        notify: Callable[[Iterable[Notice]], None],
    ) -> None:
        self._registry, self._lifecycle, self._access = registry, lifecycle, access
        self.request_rows, self._notify = request_rows, notify
        self._validity, self._clock = settings.retention, clock
        self._changing = threading.Lock()

    def replace(
        self, principal: Principal, relay: str, texts: Iterable[str], *, again: bool = False
    ) -> dict[str, str]:
        """Makes these the filters of a relay, new ones first; returns the refused texts with the reasons. `again` says that
        it had filters here before."""
        wanted, owner = dict.fromkeys(texts), owner_of(principal, relay)
        refused = self.register(principal, relay, list(wanted), again=again)
        kept = {filter_id(owner, text) for text in wanted}
        with self._changing:
            self._registry.cancel_many(
                [filter for filter in self._living(owner) if filter.id not in kept], self._clock()
            )
        return refused

    def register(
        self, principal: Principal, relay: str, texts: Sequence[str], *, again: bool = False
    ) -> dict[str, str]:
        """Has these matched, too; returns the refused texts with the reasons. The index has the others then."""
        owner, refused = owner_of(principal, relay), dict[str, str]()
        until = self._clock() + self._validity
        with self._changing:
            known = {filter.id: filter for filter in self._registry.owned(owner)}
            new, ended = list[Subscription](), list[Subscription]()
            for text in dict.fromkeys(texts):
                found = known.get(filter_id(owner, text))
                if found is not None and found.state in LIVING:
                    if found.state is State.UNANSWERABLE:
                        refused[text] = found.reason or "it cannot be matched"
                    continue
                try:
                    over_tables = self._lifecycle.check_filter(principal, text)
                except TidingsError as error:
                    refused[text] = str(error)
                    continue
                if found is None:
                    new.append(_filter(owner, text, self._clock(), until, over_tables))
                else:
                    ended.append(found)
            self._check_quota(principal, len(new) + len(ended))
            errors = self._lifecycle.add_filters(new, ended, until)
            unmatched = [filter for filter in ended if filter.state is State.EXPIRED]
            if again and not known:  # they have expired so long ago that they are deleted
                unmatched = new
            self._notify_of_gap(
                filter.id for filter in unmatched if not filter.over_tables and filter.id not in errors
            )
            # In the log before this is answered, so before any change that the relay's subscriber may expect to hear of.
            if members := [
                filter.id for filter in (*new, *ended) if filter.over_tables and filter.id not in errors
            ]:
                self.request_rows(members)
        return refused | {
            filter.text: str(errors[filter.id]) for filter in (*new, *ended) if filter.id in errors
        }

    def _notify_of_gap(self, ids: Iterable[str]) -> None:
        """What these filters would have matched while they were not in the index may be missing at their relay."""
        now = self._clock()
        self._notify(
            Notice(id, NotificationKind.MISSED, f"missed since expiry {now:.3f}", now, _EXPIRED) for id in ids
        )

    def began(self, owner: str) -> float:
        """When the first of a relay's filters was registered; 0 if it has none."""
        return min((filter.created for filter in self._living(owner)), default=0.0)

    def members(self, owner: str) -> list[Subscription]:
        """The filters of a relay that are over tables."""
        return [filter for filter in self._living(owner) if filter.over_tables]

    def send_rows(self, principal: Principal, relay: str, texts: Iterable[str]) -> None:
        """Has the rows of filters over tables sent again, to a relay that has lost them."""
        owner = owner_of(principal, relay)
        asked = {filter_id(owner, text) for text in texts}
        if found := [filter.id for filter in self.members(owner) if filter.id in asked]:
            self.request_rows(found)

    def withdraw(self, principal: Principal, relay: str, texts: Iterable[str]) -> None:
        owner = owner_of(principal, relay)
        gone = {filter_id(owner, text) for text in texts}
        with self._changing:
            self._registry.cancel_many(
                [filter for filter in self._living(owner) if filter.id in gone], self._clock()
            )

    def renew(self, principal: Principal, relay: str) -> None:
        """Starts a new validity of all filters of a relay."""
        self._registry.renew_owned(owner_of(principal, relay), self._clock() + self._validity)

    def sent_for(self, owner: str) -> frozenset[str]:
        """The ids whose matches are sent to a relay: its filters, and those that were withdrawn a while ago."""
        lately = self._clock() - STILL_SENT
        return frozenset(
            filter.id
            for filter in self._registry.owned(owner)
            if filter.state in LIVING or (filter.valid_until or 0.0) > lately
        )

    def _living(self, owner: str) -> list[Subscription]:
        return [filter for filter in self._registry.owned(owner) if filter.state in LIVING]

    def _check_quota(self, principal: Principal, more: int) -> None:
        """Counts the filters of all relays with the token: a relay chooses its id itself."""
        quota = self._access.subscription_quota(principal)
        most = MOST if quota is None else min(MOST, quota)
        if more and (held := self._registry.count_living(_owners_of(principal))) + more > most:
            raise OverQuota(
                f"the relays with this token have {held:,} filters, this one asks for {more:,} more, and they may have"
                f" {most:,}; ask an admin of the upstream service for a token of its own, or with more subscriptions"
            )


def filter_id(owner: str, text: str) -> str:
    """The id of a relay's filter."""
    return MEMBERS + blake2b(f"{owner}\0{text}".encode(errors="surrogatepass"), digest_size=13).hexdigest()


def _filter(owner: str, text: str, now: float, until: float, over_tables: bool) -> Subscription:
    nobody = tickets.digest(tickets.new_secret())  # no ticket opens it
    feed = tickets.new_secret("f")
    return Subscription(
        filter_id(owner, text),
        text,
        "(relay)",
        owner,
        nobody,
        feed,
        now,
        until,
        warned=True,
        over_tables=over_tables,
    )
