"""Controls access: tokens, sessions of the page, rate limits and quotas.

A principal comes from `Authorization: Bearer`, from a signed session that nobody has logged out of, or, on an open
service, without credentials. A subscription that a principal may not see gives the same answer as one that does not exist. A
ticket is valid for the one subscription that it was made for. A delegate's token gives the principals of its users (`owners.py`):
quotas are of each of them, rates and scope of the token.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tidings.errors import TidingsError
from tidings.service.model import LIVING, PUBLISHERS, READERS, Principal, Role, Subscription, Token
from tidings.service.owners import HEADER, check_user, owner_of, owns, token_of, user_of
from tidings.service.settings import DAY, Settings
from tidings.service.subscriptions import tickets

if TYPE_CHECKING:
    from tidings.service.store.registry import Registry

SESSION = 14 * DAY
_FRESH = (
    0.5  # seconds that a token is believed without looking; one that was ended is refused within a second
)
_KEPT = 10_000  # tokens, buckets
_BURST = 2.0  # seconds of its rate that a token may spend at once
_WRONG_TICKETS = (0.1, 5.0)  # a second, and at once, for each subscription
_WEBHOOK_TESTS = (0.1, 3.0)
_FETCHES = (1 / 30, 1.0)  # of one feed
_VERIFICATIONS = (50.0, 2_000.0)  # of the WebSub hub
_OF_HOST = (2.0, 200.0)
_CHANNEL_TESTS = (0.1, 3.0)  # of one channel
_CONFIRMATIONS = (1 / 3_600, 3.0)  # to one address, whoever asks for them
_CONFIRMATIONS_OF_OWNER = (20 / 3_600, 20.0)
_OPEN = Principal("", Role.ADMIN)
_HAVE = {  # the roles that have a role
    Role.SUBSCRIBER: READERS,
    Role.PUBLISHER: PUBLISHERS,
}
STREAMS_OF_ONE = 200  # open at once, of one token


class AccessError(TidingsError):
    """A request was refused because of its principal. `status` is the HTTP status."""

    status: ClassVar[int] = 403


class Unauthorized(AccessError):
    """The credentials of the request are not known."""

    status = 401


class Forbidden(AccessError):
    """The principal is known, and may not do this."""


class OverQuota(AccessError):
    """The token already has all the subscriptions or sources that it may have."""


class NotFound(AccessError):
    """The thing does not exist, or the principal may not see it; the answer does not say which."""

    status = 404


class TooMany(AccessError):
    """Too many requests in too short a time. `retry_after` is in seconds."""

    status = 429

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Bucket:
    """A token bucket that fills at `rate` up to `burst`. A large request may overdraw it, and the debt delays later
    requests: a batch of any size is accepted, and the rate still holds in the long run."""

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Takes an amount and returns 0; or takes nothing and returns the seconds to wait."""
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = now
        needed = min(amount, 1.0)
        if (
            self._level >= needed - 0.01
        ):  # tolerance, so that waiting exactly as long as Retry-After is enough
            self._level -= amount
            return 0.0
        return (needed - self._level) / self.rate


class AccessControl:
    """Checks requests before anything is done. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        *,
        key: bytes | None = None,
        max_streams: int = 5_000,
    ) -> None:
        self._registry = registry
        self._open = settings.open
        self._clock = clock
        self._key = key or read_key(settings.data / "key")
        self._lock = threading.Lock()
        self._tokens: OrderedDict[str, tuple[float, Token]] = OrderedDict()  # by hash, and by id
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._used: dict[
            str, float
        ] = {}  # by token; in memory alone: a write for each request would be too dear
        self._streams: Counter[str] = Counter()  # open ones by token
        self._ended = set(registry.ended_sessions())  # one service at a time has the registry
        self.max_streams = max_streams

    # Who it is

    def principal(
        self, authorization: str | None = None, session: str | None = None, user: str | None = None
    ) -> Principal:
        """The principal of a request with this Authorization header or, without one, this session; if a user is named, on
        behalf of that user."""
        found = self._principal(authorization, session)
        return found if user is None else self.on_behalf(found, user)

    def on_behalf(self, principal: Principal, user: str) -> Principal:
        """A delegate's user, who is a subscriber. Forbidden to any other role."""
        if principal.role is not Role.DELEGATE:
            raise Forbidden(
                f"to act for a user takes a token with the role {Role.DELEGATE.value}, and"
                f" {_described(principal)}; leave the user out, or use another token"
            )
        owner = owner_of(token_of(principal.token), check_user(user))
        return replace(principal, role=Role.SUBSCRIBER, token=owner)

    def _principal(self, authorization: str | None, session: str | None) -> Principal:
        if authorization:
            scheme, _, secret = authorization.partition(" ")
            if scheme.lower() != "bearer" or not secret.strip():
                raise Unauthorized("the Authorization header is not understood; send 'Bearer tid_…'")
            token = self._by_secret(secret.strip())
            if token is None:
                raise Unauthorized("this token is not known, or was ended; ask an admin for another")
            return self._used_by(token)
        token = self._by_session(session) if session else None
        if session and token is not None:
            return self._used_by(token, tickets.digest(session))
        if self._open:
            return _OPEN
        if session:
            raise Unauthorized("this session is over; log in again")
        raise Unauthorized("a token is needed; send it as 'Authorization: Bearer tid_…', or log in")

    def log_in(self, secret: str) -> str:
        """A session for the token with this secret, as the value of a cookie."""
        token = self._by_secret(secret.strip())
        if token is None:
            raise Unauthorized("this token is not known, or was ended; ask an admin for another")
        said = f"{token.id}.{int(self._clock() + SESSION)}.{secrets.token_hex(8)}"
        return f"{said}.{self.sign('session', said)}"

    def log_out(self, session: str) -> None:
        """Ends a session at once, wherever its cookie is kept. One that is none is ignored."""
        if self._by_session(session) is None:
            return
        hashed = tickets.digest(session)
        self._registry.end_session(hashed, self._clock() + SESSION, self._clock())
        self._ended.add(hashed)

    def sign(self, purpose: str, text: str) -> str:
        """A signature by the key of this service, valid for this purpose only."""
        said = f"{purpose}\n{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()

    # Tokens

    def last_used(self, id: str) -> float | None:
        """When a token was last let in; None if it was not since the service was started."""
        return self._used.get(id)

    def _used_by(self, token: Token, session: str = "") -> Principal:
        self._used[token.id] = self._clock()
        owner = owner_of(token.id) if token.role is Role.DELEGATE else token.id
        return Principal(token.name, token.role, owner, session)

    def grant(
        self,
        name: str,
        role: Role,
        *,
        subscriptions: int = 1_000,
        events_per_second: float = 1_000.0,
        requests_per_second: float = 50.0,
        sources: int = 1_000,
        scope: str = "",
    ) -> tuple[Token, str]:
        """Makes a token; returns it with its secret, which is not stored."""
        return grant(
            self._registry,
            name,
            role,
            self._clock(),
            subscriptions=subscriptions,
            events_per_second=events_per_second,
            requests_per_second=requests_per_second,
            sources=sources,
            scope=scope,
        )

    def end(self, id: str) -> bool:
        """Ends a token. False if there is none that has not ended."""
        ended = self._registry.end_token(id, self._clock())
        with self._lock:
            self._tokens.clear()
        return ended

    # What it may

    def need(self, principal: Principal, role: Role) -> None:
        """Refuses a principal without this role. An admin has every role, a delegate those of publishers and subscribers."""
        if principal.role not in _HAVE.get(role, (role, Role.ADMIN)):
            raise Forbidden(
                f"this takes the role {role.value}, and {_described(principal)}; use another token"
            )

    def may_see(self, principal: Principal, subscription: Subscription) -> bool:
        if principal.role is Role.ADMIN:
            return True
        return bool(principal.token) and owns(principal.token, subscription.owner)

    def may_change(self, principal: Principal, subscription: Subscription, ticket: str | None) -> bool:
        """Whether a principal may change a subscription: with the token of the owner or of an admin, or with the
        ticket. Without a token the ticket is needed, also on an open service: several people may use one machine."""
        if principal.token and self.may_see(principal, subscription):
            return True
        if not ticket:
            return False
        # The right ticket is never refused for the wrong ones before it: otherwise anybody who knows an id could keep
        # its owner out. Guessing 256 bits needs no help from us to be hopeless; this is for the noise it makes.
        if tickets.is_secret_of(ticket, subscription.ticket):
            return True
        self.wrong_ticket(subscription.id)
        return False

    def count_webhook_test(self, id: str) -> None:
        """Takes one of the test deliveries that a subscription may send: a webhook may be at somebody else's."""
        self._take(("webhook test", id), 1, *_WEBHOOK_TESTS, "too many test deliveries of this subscription")

    def count_fetch(self, url: str) -> None:
        """Takes one of the fetches of a feed that people may ask for beside those that are due."""
        self._take(("fetch", url), 1, *_FETCHES, "this feed was fetched just now")

    def count_verification(self, host: str) -> None:
        """Takes one of the requests that the WebSub hub sends to a callback whose host anybody may have named."""
        self._take("verifications", 1, *_VERIFICATIONS, "too many requests to the hub")
        self._take(("verifications", host), 1, *_OF_HOST, "too many requests to the hub for this host")

    def count_channel_test(self, id: str) -> None:
        """Takes one of the test messages that a channel may send: its address may be somebody else's."""
        self._take(("channel test", id), 1, *_CHANNEL_TESTS, "too many test messages of this channel")

    def count_confirmation(self, owner: str, address: str) -> None:
        """Takes one of the requests to confirm that an owner may send, and that an address may get: nobody is flooded."""
        what = "too many requests to confirm a channel"
        self._take(("confirmations of", owner), 1, *_CONFIRMATIONS_OF_OWNER, what)
        self._take(
            ("confirmations to", address.lower()), 1, *_CONFIRMATIONS, f"{what} were sent to this address"
        )

    def wrong_ticket(self, id: str) -> None:
        """Counts a wrong ticket against the limit of guesses. It is called also for ids that do not exist, so that
        the answers do not differ."""
        self._take(("ticket", id[:64]), 1, *_WRONG_TICKETS, "too many wrong tickets for this subscription")

    def is_good(self, principal: Principal) -> bool:
        """Whether the principal of a long request would still be let in."""
        if principal.session in self._ended:
            return False
        return not principal.token or self._token(principal) is not None

    # How much

    @contextmanager
    def streaming(self, principal: Principal) -> Iterator[None]:
        """Counts a stream while it is open."""
        with self._lock:
            self._streams[token_of(principal.token)] += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams[token_of(principal.token)] -= 1
                self._streams += Counter()  # without those that have none

    def check_streams(self, principal: Principal) -> None:
        """Refuses a stream beyond the limits: each stream holds a connection."""
        with self._lock:
            mine, all_of_them = self._streams[token_of(principal.token)], self._streams.total()
        if all_of_them >= self.max_streams or (principal.token and mine >= STREAMS_OF_ONE):
            raise TooMany(
                "too many streams are open; close some, or ask for several subscriptions in one", 5.0
            )

    def count_request(self, principal: Principal) -> None:
        """Takes one of the token's requests; TooMany when there is none left."""
        token = self._token(principal)
        if token is not None:
            rate = token.requests_per_second
            self._take(("requests", token.id), 1, rate, max(1.0, rate * _BURST), "too many requests")

    def count_events(self, principal: Principal, events: int) -> None:
        """Takes events of the token's rate; TooMany while it is overdrawn. With 0 it only checks."""
        token = self._token(principal)
        if token is not None:
            rate = token.events_per_second
            self._take(("events", token.id), events, rate, max(1.0, rate * _BURST), "too many events")

    def check_quota(self, principal: Principal, more: int = 1) -> None:
        """Refuses a subscription beyond the quota of the token."""
        token = self._token(principal)
        if token is None:
            return
        held = self._held(principal)
        if held + more > token.subscriptions:
            raise OverQuota(
                f"{_named(principal)} has {held:,} subscriptions and may have {token.subscriptions:,};"
                " cancel some, or ask an admin for more"
            )

    def scope(self, principal: Principal) -> str:
        """The scope of the token; empty if it may ask for everything."""
        token = self._token(principal)
        return "" if token is None else token.scope

    def subscription_quota(self, principal: Principal) -> int | None:
        """How many subscriptions the token may have; None if there is no quota."""
        token = self._token(principal)
        return None if token is None else token.subscriptions

    def subscriptions_left(self, principal: Principal) -> int | None:
        """How many more subscriptions the token may have; None if there is no quota."""
        token = self._token(principal)
        return None if token is None else max(0, token.subscriptions - self._held(principal))

    def _held(self, principal: Principal) -> int:
        counts = self._registry.counts(principal.token)
        return sum(counts.get(state, 0) for state in LIVING)

    def sources_left(self, principal: Principal) -> int | None:
        """How many more sources the token may follow; None if there is no quota."""
        token = self._token(principal)
        if token is None:
            return None
        return max(0, token.sources - self._registry.count_sources(principal.token))

    def _take(self, key: Hashable, amount: float, rate: float, burst: float, what: str) -> None:
        now = self._clock()
        with self._lock:
            bucket = self._buckets.pop(key, None) or Bucket(rate, burst, now)
            self._buckets[key] = bucket
            if len(self._buckets) > _KEPT:
                self._buckets.popitem(last=False)
            wait = bucket.take(amount, now)
        if wait:
            raise TooMany(f"{what}; try again in {wait:,.1f} seconds", wait)

    def _by_secret(self, secret: str) -> Token | None:
        hashed = tickets.digest(secret)
        return self._fresh(hashed, lambda: self._registry.token(hashed))

    def _token(self, principal: Principal) -> Token | None:
        return self._by_id(token_of(principal.token))

    def _by_id(self, id: str) -> Token | None:
        if not id:
            return None
        return self._fresh(id, lambda: next((t for t in self._registry.tokens() if t.id == id), None))

    def _by_session(self, session: str) -> Token | None:
        said, _, signature = session.rpartition(".")
        if not hmac.compare_digest(
            signature.encode("utf-8", "surrogatepass"), self.sign("session", said).encode()
        ):
            return None
        id, until, *_ = said.split(".")
        if float(until) <= self._clock() or tickets.digest(session) in self._ended:
            return None
        return self._by_id(id)

    def _fresh(self, key: str, look: Callable[[], Token | None]) -> Token | None:
        now = time.monotonic()
        with self._lock:
            at, token = self._tokens.get(key, (float("-inf"), None))
        if token is None or now - at > _FRESH:
            token = look()
            with self._lock:
                self._tokens.pop(key, None)
                if token is not None:
                    self._tokens[key] = (now, token)
                    if len(self._tokens) > _KEPT:
                        self._tokens.popitem(last=False)
        return token if token is not None and token.ended is None else None


def grant(
    registry: Registry,
    name: str,
    role: Role,
    now: float,
    *,
    subscriptions: int = 1_000,
    events_per_second: float = 1_000.0,
    requests_per_second: float = 50.0,
    sources: int = 1_000,
    scope: str = "",
) -> tuple[Token, str]:
    """Adds a new token to the registry; returns it with its secret, which is not stored."""
    secret = tickets.new_secret(tickets.TOKEN)
    token = Token(
        tickets.new_id("t"),
        name,
        role,
        tickets.digest(secret),
        now,
        subscriptions=subscriptions,
        events_per_second=events_per_second,
        requests_per_second=requests_per_second,
        sources=sources,
        scope=scope,
    )
    registry.add_token(token)
    return token, secret


def _named(principal: Principal) -> str:
    user = user_of(principal.token)
    return f"the token {principal.name!r}" if user is None else f"the user {user!r} of {principal.name!r}"


def _described(principal: Principal) -> str:
    if not principal.token:
        return "this request has no token"
    if user_of(principal.token) is not None:
        return f"{_named(principal)} has the role {principal.role.value}: without {HEADER} it is the delegate"
    return f"{_named(principal)} has the role {principal.role.value}"


def read_key(path: Path) -> bytes:
    """The key that signs sessions. It is made at the first start; removing its file ends all sessions."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(os.urandom(32))
        try:
            os.link(whole, path)  # never half a key, and never over one that another process has just made
        except FileExistsError:
            pass
        whole.unlink()
    key = path.read_bytes()
    if len(key) < 32:
        raise TidingsError(f"{path} does not hold a key; remove it, and a new one is made at the next start")
    return key
