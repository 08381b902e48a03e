"""Stores subscriptions, tokens, sources and deliveries, and the outbox of changes for the index.

A subscription and its change of the index are written in one transaction, so the index always comes to agree with
the registry. Changes are optimistic: a change of an older revision is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Executable,
    Select,
    Table,
    and_,
    bindparam,
    case,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from tidings.errors import TidingsError
from tidings.service.model import (
    HIDDEN,
    LIVING,
    ActiveText,
    Definition,
    DefinitionKind,
    Delivery,
    IndexChange,
    Origin,
    Role,
    Source,
    State,
    Subscription,
    Token,
)
from tidings.service.owners import is_of_all_users, owns
from tidings.service.store import tables
from tidings.service.store.tables import clean
from tidings.service.store.transactions import Database, insert_columns

HEAD: Final = "0008"
LONGEST_URL: Final = 2_000  # bytes; PostgreSQL has no more than 2,704 in an index
_PORTION = 10_000
_MARKED = 1_000  # rows that one statement names
_T = TypeVar("_T")


class Conflict(TidingsError):
    """Another change came first: the revision is another, or the id exists."""


def _columns(table: Table, kind: type) -> list[Any]:
    return [table.c[field.name] for field in fields(kind)]


_SUBSCRIPTION = _columns(tables.subscriptions, Subscription)
_DEFINITION = _columns(tables.definitions, Definition)
_TOKEN = _columns(tables.tokens, Token)
_SOURCE = _columns(tables.sources, Source)
_DELIVERY = _columns(tables.deliveries, Delivery)
_OF_WEBHOOK = ("subscription", "url", "secret")


class Registry:
    """The registry; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        postgres = database.on_postgresql
        self._insert: Callable[[Table], Any] = postgresql.insert if postgres else sqlite.insert
        self._position = func.strpos if postgres else func.instr
        # Counts changes of subscriptions; a stream reads its own again when it differs.
        self.subscription_changes = 0

    @property
    def database(self) -> Database:
        """For other tables of the registry."""
        return self._database

    def close(self) -> None:
        self._database.close()

    # --- subscriptions

    @contextmanager
    def _changing_subscriptions(self) -> Iterator[Connection]:
        try:
            with self._database.writing() as connection:
                yield connection
        finally:  # the answer to a commit may be lost
            self.subscription_changes += 1

    def add(self, subscription: Subscription) -> int:
        """Stores a new subscription. Returns the number of its change of the index."""
        return self.add_many([subscription])

    def add_many(self, subscriptions: Sequence[Subscription]) -> int:
        """Stores new subscriptions, all or none. Returns the number of the last change of the index."""
        rows = [_stored(subscription) for subscription in subscriptions]
        names = [column.name for column in _SUBSCRIPTION]
        columns = dict(zip([*names, "folded"], zip(*rows, strict=True), strict=True)) if rows else {}
        active = [
            (clean(subscription.id), clean(subscription.text))
            for subscription in subscriptions
            if subscription.state is State.ACTIVE
        ]
        try:
            with self._changing_subscriptions() as connection:
                if rows:
                    insert_columns(connection, tables.subscriptions, columns)
                return _note(connection, active)
        except IntegrityError as error:
            raise Conflict("there is a subscription with this id or feed already; give another") from error

    def find(self, id: str) -> Subscription | None:
        return self._first(select(*_SUBSCRIPTION).where(tables.subscriptions.c.id == id), _subscription)

    def find_many(self, ids: Sequence[str]) -> list[Subscription]:
        """Those of `ids` that there are, in any order."""
        found: list[Subscription] = []
        for first in range(0, len(ids), _MARKED):
            mine = tables.subscriptions.c.id.in_(ids[first : first + _MARKED])
            found += self._all(select(*_SUBSCRIPTION).where(mine), _subscription)
        return found

    def by_feed(self, secret: str) -> Subscription | None:
        return self._first(select(*_SUBSCRIPTION).where(tables.subscriptions.c.feed == secret), _subscription)

    def page(
        self,
        *,
        owner: str | None,
        state: State | None = None,
        search: str = "",
        tag: str = "",
        after: str | None = None,
        limit: int = 50,
    ) -> list[Subscription]:
        """Newest first. Without an owner the subscriptions of all owners; `after` is the id of the last one of the
        previous page."""
        kept = tables.subscriptions.c
        query = select(*_SUBSCRIPTION).order_by(kept.created.desc(), kept.id.desc()).limit(max(limit, 0))
        query = query.where(_owned_by(owner))
        if state is not None:
            query = query.where(kept.state == state)
        if search:
            # LIKE has signs of its own, and a limit of length.
            query = query.where(self._position(kept.folded, clean(search).casefold()) > 0)
        if tag:
            query = query.where(self._position(kept.tags, _lines([clean(tag)])) > 0)
        with self._database.reading() as connection:
            if after is not None:
                last = connection.execute(select(kept.created, kept.id).where(kept.id == after)).first()
                if last is None:
                    return []
                query = query.where(tuple_(kept.created, kept.id) < tuple_(last.created, last.id))
            return [_subscription(row) for row in connection.execute(query)]

    def titles(self, *, owner: str | None, limit: int) -> dict[str, str]:
        """The ids and titles of subscriptions, newest first; without an owner those of all."""
        kept = tables.subscriptions.c
        query = select(kept.id, kept.title).order_by(kept.created.desc(), kept.id.desc())
        with self._database.reading() as connection:
            return dict(connection.execute(query.where(_owned_by(owner)).limit(limit)).all())

    def ids(self, *, owner: str | None, states: Sequence[State], limit: int) -> list[str]:
        """The ids of subscriptions in these states, in any order; without an owner those of all."""
        kept = tables.subscriptions.c
        query = select(kept.id).where(_owned_by(owner), kept.state.in_(states)).limit(max(limit, 0))
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def active_texts(self, ids: Sequence[str], owner: str) -> list[ActiveText]:
        """Those of a few ids that are active and of this owner, in any order."""
        kept = tables.subscriptions.c
        query = select(kept.id, kept.title, kept.text, kept.owner, kept.state).where(kept.id.in_(ids))
        # By ids alone: with the owner, SQLite looks through all that the owner has.
        found = self._all(query, tuple) if ids else []
        return [
            ActiveText(*texts) for *texts, of, state in found if owns(owner, of) and state == State.ACTIVE
        ]

    def counts(self, owner: str | None) -> dict[State, int]:
        kept = tables.subscriptions.c
        query = select(kept.state, func.count()).group_by(kept.state).where(_owned_by(owner))
        with self._database.reading() as connection:
            found = {State(state): int(count) for state, count in connection.execute(query)}
        return {state: found.get(state, 0) for state in State}

    def update(self, subscription: Subscription) -> int | None:
        """Replaces the revision that this subscription was made from; its revision becomes one higher. Returns the
        number of its change of the index, None where the index need not change."""
        kept = tables.subscriptions
        mine = (kept.c.id == subscription.id) & (kept.c.revision == subscription.revision)
        values = _values(subscription) | {
            "revision": subscription.revision + 1,
            "folded": _folded(subscription),
            "tags": _lines(subscription.tags),
        }
        try:
            with self._changing_subscriptions() as connection:
                before = connection.execute(
                    select(kept.c.state, kept.c.text).where(mine).with_for_update()
                ).first()
                if before is None:
                    raise Conflict(
                        f"the subscription {subscription.id} was changed meanwhile; read it again, then change it"
                    )
                connection.execute(update(kept).where(mine).values(values))
                was, now = before.state == State.ACTIVE, subscription.state is State.ACTIVE
                text = clean(subscription.text)
                if now and not (was and before.text == text):
                    return _note(connection, [(subscription.id, text)])
                return _note(connection, [(subscription.id, None)]) if was and not now else None
        except IntegrityError as error:
            raise Conflict("there is a subscription with this feed already; give another") from error

    def expire(self, given: Sequence[Subscription]) -> tuple[set[str], int | None]:
        """Ends those of `given` that were not changed since they were read. Returns their ids, and the number of the
        last change of the index if there is one."""
        with self._changing_subscriptions() as connection:
            ended = _mark(connection, given, state=State.EXPIRED, reason=None)
            gone = [
                (subscription.id, None)
                for subscription in given
                if subscription.id in ended and subscription.state is State.ACTIVE
            ]
            return ended, _note(connection, gone) if gone else None

    def warn(self, given: Sequence[Subscription]) -> set[str]:
        """Records the notice before expiry for those that were not changed since they were read. Returns their ids."""
        with self._database.writing() as connection:
            return _mark(connection, given, warned=True)

    def expiring(self, before: float, *, warned: bool | None = None, limit: int = 1000) -> list[Subscription]:
        """Living subscriptions whose validity ends before a time, soonest first."""
        kept = tables.subscriptions.c
        query = (
            select(*_SUBSCRIPTION)
            .where(kept.state.in_(LIVING), kept.valid_until <= before)
            .order_by(kept.valid_until, kept.id)
            .limit(max(limit, 0))
        )
        if warned is not None:
            query = query.where(kept.warned == warned)
        return self._all(query, _subscription)

    def remove_ended(self, before: float) -> int:
        """Deletes expired and cancelled subscriptions that ended before a time, with their deliveries. Returns how
        many."""
        kept = tables.subscriptions
        over = kept.c.state.in_([State.EXPIRED, State.CANCELLED]) & (kept.c.valid_until < before)
        with self._changing_subscriptions() as connection:
            gone = select(kept.c.id).where(over)
            connection.execute(delete(tables.deliveries).where(tables.deliveries.c.subscription.in_(gone)))
            return int(connection.execute(delete(kept).where(over)).rowcount)

    def active(self) -> Iterator[tuple[str, str]]:
        """(id, text) of all active subscriptions, read in portions; a change meanwhile is in the outbox."""
        kept = tables.subscriptions.c
        for rows in self._portions(select(kept.id, kept.text).where(kept.state == State.ACTIVE)):
            yield from ((row.id, row.text) for row in rows)

    def _portions(self, query: Select[Any]) -> Iterator[Sequence[Any]]:
        """The rows of a query of subscriptions in the order of their ids, so many at a time."""
        kept, after = tables.subscriptions.c, ""
        portion = query.order_by(kept.id).limit(_PORTION)
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(portion.where(kept.id > after)).all()
            yield rows
            if len(rows) < _PORTION:
                return
            after = rows[-1].id

    def standing(self, owner: str | None) -> Iterator[list[Subscription]]:
        """Subscriptions that are not over, in portions, by id; without an owner those of all owners."""
        kept, after = tables.subscriptions.c, ""
        portion = select(*_SUBSCRIPTION).where(kept.state.in_(LIVING), _owned_by(owner))
        while True:
            found = self._all(portion.where(kept.id > after).order_by(kept.id).limit(_MARKED), _subscription)
            if found:
                yield found
            if len(found) < _MARKED:
                return
            after = found[-1].id

    # --- the filters of relays

    def owned(self, owner: str) -> list[Subscription]:
        """All subscriptions of an owner, also those that have ended."""
        return self._all(select(*_SUBSCRIPTION).where(tables.subscriptions.c.owner == owner), _subscription)

    def count_living(self, prefix: str) -> int:
        """How many subscriptions are not over whose owner begins so."""
        kept = tables.subscriptions.c
        query = select(func.count()).where(begins(kept.owner, prefix), kept.state.in_(LIVING))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def cancel_many(self, given: Sequence[Subscription], now: float) -> int | None:
        """Cancels those of `given` that were not changed since they were read. Returns the number of the last change of
        the index if there is one."""
        if not given:
            return None
        with self._changing_subscriptions() as connection:
            ended = _mark(connection, given, state=State.CANCELLED, valid_until=now)
            return _note(connection, [(one.id, None) for one in given if one.id in ended])

    def revive_many(self, given: Sequence[Subscription], until: float) -> int | None:
        """Makes ended subscriptions active again, those that were not changed since they were read. Returns the number of
        the last change of the index if there is one."""
        if not given:
            return None
        with self._changing_subscriptions() as connection:
            revived = _mark(connection, given, state=State.ACTIVE, valid_until=until, reason=None)
            return _note(connection, [(one.id, clean(one.text)) for one in given if one.id in revived])

    def renew_owned(self, owner: str, until: float) -> None:
        """Has the living subscriptions of an owner last until then."""
        kept = tables.subscriptions.c
        mine = kept.owner == owner, kept.state.in_(LIVING)
        with self._database.writing() as connection:
            connection.execute(
                update(tables.subscriptions)
                .where(*mine)
                .values(valid_until=until, revision=kept.revision + 1)
            )

    # --- those that cannot be matched

    def over_tables(self) -> Iterator[tuple[str, str]]:
        """(id, text) of the active subscriptions over tables."""
        kept = tables.subscriptions.c
        query = select(kept.id, kept.text).where(kept.state == State.ACTIVE, kept.over_tables)
        for rows in self._portions(query):
            yield from ((row.id, row.text) for row in rows)

    def refusable(self, ids: Sequence[str], number: int) -> list[Subscription]:
        """Those of `ids` that are active, and that no change of the index after this number concerns."""
        kept, later = tables.subscriptions.c, tables.index_changes.c
        changed = select(later.id).where(later.number > number)
        found: list[Subscription] = []
        for first in range(0, len(ids), _MARKED):
            mine = kept.id.in_(ids[first : first + _MARKED]) & (kept.state == State.ACTIVE)
            found += self._all(select(*_SUBSCRIPTION).where(mine, kept.id.not_in(changed)), _subscription)
        return found

    def refuse(self, given: Sequence[Subscription], reasons: Mapping[str, str]) -> set[str]:
        """Marks as unanswerable, by reasons for their ids, those that were not changed since they were read. Returns
        their ids. The index does not have them."""
        by_reason: dict[str, list[Subscription]] = {}
        for subscription in given:
            by_reason.setdefault(clean(reasons[subscription.id]), []).append(subscription)
        refused: set[str] = set()
        with self._changing_subscriptions() as connection:
            for reason, alike in by_reason.items():
                refused |= _mark(connection, alike, state=State.UNANSWERABLE, reason=reason)
        return refused

    def unanswerable(self) -> Iterator[list[Subscription]]:
        """All unanswerable subscriptions, in portions."""
        query = select(*_SUBSCRIPTION).where(tables.subscriptions.c.state == State.UNANSWERABLE)
        for rows in self._portions(query):
            yield [_subscription(row) for row in rows]

    def restore(self, given: Sequence[Subscription]) -> set[str]:
        """Makes unanswerable subscriptions active, those that were not changed since they were read. Returns their
        ids."""
        with self._changing_subscriptions() as connection:
            restored = _mark(connection, given, state=State.ACTIVE, reason=None)
            _note(connection, [(mine.id, clean(mine.text)) for mine in given if mine.id in restored])
        return restored

    # --- definitions

    def definitions(self) -> list[Definition]:
        """Of each kind and name the newest whole definition, and the changes of it since, oldest first."""
        kept = tables.definitions.c
        query = select(*_DEFINITION).order_by(kept.kind, kept.name, kept.version)
        return self._all(query, _definition)

    def define(self, definition: Definition) -> None:
        """Stores the next version. A whole definition replaces those before it."""
        kept = tables.definitions
        before = (kept.c.kind == definition.kind) & (kept.c.name == definition.name)
        try:
            with self._database.writing() as connection:
                connection.execute(self._insert(kept).values(_values(definition)))
                if definition.origin is not Origin.CHANGE:
                    earlier = before & (kept.c.version < definition.version)
                    connection.execute(delete(kept).where(earlier))
        except IntegrityError as error:
            raise Conflict(
                f"the {definition.kind} was changed meanwhile; read it again, then change it"
            ) from error

    # --- the outbox of the index

    def changes(self, limit: int = 10_000) -> list[IndexChange]:
        """The changes that the index has yet to apply, oldest first."""
        kept = tables.index_changes
        return self._all(
            select(kept).order_by(kept.c.number).limit(max(limit, 0)), lambda row: IndexChange(*row)
        )

    def applied(self, number: int) -> None:
        """Removes the changes up to this number from the outbox."""
        with self._database.writing() as connection:
            connection.execute(delete(tables.index_changes).where(tables.index_changes.c.number <= number))

    def last_change(self) -> int:
        """The number of the newest change; 0 before the first."""
        with self._database.reading() as connection:
            return _last_change(connection)

    def last_base(self) -> int:
        """The number of the last base of the index; 0 before the first."""
        kept = tables.index_change_numbers.c
        with self._database.reading() as connection:
            return int(connection.execute(select(kept.value).where(kept.name == "base")).scalar_one())

    def next_base(self, after: int) -> int:
        """A number for a base of the index: above `after`, and above all that were given before. It is kept here
        because the folder of the index may be lost, while pins of micro-batches name its versions."""
        kept = tables.index_change_numbers.c
        raised = case((kept.value < after, after), else_=kept.value) + 1
        statement = update(tables.index_change_numbers).where(kept.name == "base").values(value=raised)
        with self._database.writing() as connection:
            return int(connection.execute(statement.returning(kept.value)).scalar_one())

    # --- tokens

    def add_token(self, token: Token) -> None:
        try:
            with self._database.writing() as connection:
                connection.execute(self._insert(tables.tokens).values(_values(token)))
        except IntegrityError as error:
            raise Conflict("there is a token with this id or secret already; give another") from error

    def token(self, secret_hash: str) -> Token | None:
        return self._first(select(*_TOKEN).where(tables.tokens.c.secret == secret_hash), _token)

    def tokens(self) -> list[Token]:
        """All tokens, also ended ones, oldest first."""
        kept = tables.tokens.c
        return self._all(select(*_TOKEN).order_by(kept.created, kept.id), _token)

    def end_token(self, id: str, at: float) -> bool:
        """Ends a token; whether there was one that had not ended."""
        kept = tables.tokens
        with self._database.writing() as connection:
            ended = connection.execute(
                update(kept).where(kept.c.id == id, kept.c.ended.is_(None)).values(ended=at)
            )
            return bool(ended.rowcount)

    # --- sessions that were logged out of

    def end_session(self, session: str, until: float, now: float) -> None:
        """Keeps the hash of a session until it would have ended by itself."""
        kept = tables.ended_sessions
        statement = self._insert(kept).values(session=session, until=until).on_conflict_do_nothing()
        with self._database.writing() as connection:
            connection.execute(delete(kept).where(kept.c.until < now))
            connection.execute(statement)

    def ended_sessions(self) -> list[str]:
        return self._all(select(tables.ended_sessions.c.session), lambda row: str(row.session))

    # --- sources

    def add_source(self, source: Source) -> bool:
        """Adds a source; whether it is new."""
        if (size := len(clean(source.url).encode())) > LONGEST_URL:
            raise TidingsError(f"the feed's address has {size:,} bytes; give one of at most {LONGEST_URL:,}")
        statement = self._insert(tables.sources).values(_values(source)).on_conflict_do_nothing()
        with self._database.writing() as connection:
            return connection.execute(statement.returning(tables.sources.c.url)).first() is not None

    def change_source(self, source: Source) -> bool:
        """Stores the title and the interval of a source; whether there is one with its address."""
        kept = tables.sources
        values = {"title": source.title, "interval": source.interval}
        with self._database.writing() as connection:
            changed = connection.execute(update(kept).where(kept.c.url == source.url).values(values))
            return bool(changed.rowcount)

    def remove_source(self, url: str) -> bool:
        """Removes a source; whether there was one."""
        with self._database.writing() as connection:
            gone = connection.execute(delete(tables.sources).where(tables.sources.c.url == url))
            return bool(gone.rowcount)

    def sources(self, after: tuple[float, str] | None = None, limit: int | None = None) -> list[Source]:
        """Oldest first; those after a place, which is (added, url) of the last one of the previous page."""
        kept = tables.sources.c
        query = select(*_SOURCE).order_by(kept.added, kept.url).limit(limit)
        if after is not None:
            query = query.where(tuple_(kept.added, kept.url) > tuple_(after[0], clean(after[1])))
        return self._all(query, lambda row: Source(*row))

    def source(self, url: str) -> Source | None:
        return self._first(select(*_SOURCE).where(tables.sources.c.url == url), lambda row: Source(*row))

    def count_sources(self, owner: str) -> int:
        query = select(func.count()).where(tables.sources.c.owner == owner)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    # --- deliveries

    def set_delivery(self, delivery: Delivery) -> None:
        self.set_deliveries([delivery])

    def set_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Sets the webhooks of subscriptions, in place of those before."""
        if not deliveries:
            return
        with self._database.writing() as connection:
            for values in map(_values, deliveries):
                statement = self._insert(tables.deliveries).values(values)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["subscription"], set_=values)
                )

    def move_deliveries(self, deliveries: Sequence[Delivery]) -> int:
        """Stores the cursors and states of webhooks. A webhook whose address or secret was changed meanwhile, or
        that was removed, is left alone. Returns how many were changed."""
        kept = tables.deliveries
        mine = [kept.c[name] == bindparam(f"old_{name}") for name in _OF_WEBHOOK]
        names = [column.name for column in kept.c if column.name not in _OF_WEBHOOK]
        statement = update(kept).where(*mine).values({name: bindparam(name) for name in names})
        rows = []
        for delivery in deliveries:
            values = _values(delivery)
            rows.append({f"old_{name}": values.pop(name) for name in _OF_WEBHOOK} | values)
        with self._database.writing() as connection:
            return int(connection.execute(statement, rows).rowcount) if rows else 0

    def deliveries_of(self, subscriptions: Sequence[str]) -> dict[str, Delivery]:
        """The webhooks of these subscriptions."""
        query = select(*_DELIVERY).where(tables.deliveries.c.subscription.in_(subscriptions))
        return {found.subscription: found for found in self._all(query, lambda row: Delivery(*row))}

    def delivery(self, subscription: str) -> Delivery | None:
        query = select(*_DELIVERY).where(tables.deliveries.c.subscription == subscription)
        return self._first(query, lambda row: Delivery(*row))

    def wanted_deliveries(self, subscriptions: Sequence[str]) -> list[Delivery]:
        """Those of the deliveries of these subscriptions that are not disabled, nor of a cancelled subscription."""
        kept, of = tables.deliveries.c, tables.subscriptions.c
        query = select(*_DELIVERY).join(tables.subscriptions, of.id == kept.subscription)
        query = query.where(kept.subscription.in_(subscriptions), kept.disabled.is_(None))
        return self._all(query.where(of.state != State.CANCELLED), lambda row: Delivery(*row))

    def remove_delivery(self, subscription: str) -> None:
        with self._database.writing() as connection:
            connection.execute(
                delete(tables.deliveries).where(tables.deliveries.c.subscription == subscription)
            )

    def deliveries(self, *, due: float | None = None) -> list[Delivery]:
        """The deliveries that are not disabled, the longest due first."""
        kept = tables.deliveries.c
        query = select(*_DELIVERY).where(kept.disabled.is_(None)).order_by(kept.next_try, kept.subscription)
        if due is not None:
            query = query.where(kept.next_try <= due)
        return self._all(query, lambda row: Delivery(*row))

    # ---

    def _first(self, query: Executable, make: Callable[[Any], _T]) -> _T | None:
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else make(row)

    def _all(self, query: Executable, make: Callable[[Any], _T]) -> list[_T]:
        with self._database.reading() as connection:
            return [make(row) for row in connection.execute(query)]


def _owned_by(owner: str | None) -> ColumnElement[bool]:
    """Whether a subscription is of this owner, as `owns` says, or of any that is not hidden."""
    kept = tables.subscriptions.c
    if owner is None:
        return kept.owner.not_like(f"{HIDDEN}%")
    return begins(kept.owner, owner) if is_of_all_users(owner) else kept.owner == owner


def begins(column: Column[Any], prefix: str) -> ColumnElement[bool]:
    """Whether a text begins so. Databases agree on the order of letters and digits alone, so the range in which they use the
    index is that of the prefix up to such a one; after z there is none."""
    begin = prefix.rstrip("/z")
    end = begin[:-1] + chr(ord(begin[-1]) + 1)
    return and_(column >= begin, column < end, column.startswith(prefix, autoescape=True))


_FIELDS = attrgetter(*(column.name for column in _SUBSCRIPTION))
_TAGS = [column.name for column in _SUBSCRIPTION].index("tags")


def _stored(subscription: Subscription) -> list[Any]:
    """The row of a subscription, with clean texts."""
    row = [clean(str(value)) if isinstance(value, str) else value for value in _FIELDS(subscription)]
    row[_TAGS] = clean(_lines(subscription.tags))
    return [*row, _folded(subscription)]


def _lines(tags: Sequence[str]) -> str:
    """Tags as they are stored: "\\na\\nb\\n", in which one is found whole."""
    return "".join(f"\n{tag}" for tag in tags) + "\n" if tags else ""


def _folded(subscription: Subscription) -> str:
    return clean(f"{subscription.title}\n{subscription.text}").casefold()


def _values(thing: Any) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _subscription(row: Any) -> Subscription:
    return Subscription(**{**row._mapping, "state": State(row.state), "tags": tuple(row.tags.split())})


def _definition(row: Any) -> Definition:
    kind, origin = DefinitionKind(row.kind), Origin(row.origin)
    return Definition(**{**row._mapping, "kind": kind, "origin": origin})


def _token(row: Any) -> Token:
    return Token(**{**row._mapping, "role": Role(row.role)})


def _mark(connection: Connection, given: Sequence[Subscription], **values: object) -> set[str]:
    """Changes the subscriptions whose revision is still the given one, many at once."""
    kept = tables.subscriptions.c
    marked: set[str] = set()
    for first in range(0, len(given), _MARKED):
        revisions = [
            (subscription.id, subscription.revision) for subscription in given[first : first + _MARKED]
        ]
        statement = (
            update(tables.subscriptions)
            .where(tuple_(kept.id, kept.revision).in_(revisions))
            .values(revision=kept.revision + 1, **values)
            .returning(kept.id)
        )
        marked.update(connection.execute(statement).scalars())
    return marked


def _note(connection: Connection, changed: Sequence[tuple[str, str | None]]) -> int:
    """Adds changes to the outbox. Returns the number of the last."""
    if not changed:
        return _last_change(connection)
    kept = tables.index_change_numbers.c
    count = len(changed)
    raised = update(tables.index_change_numbers).where(kept.name == "change").values(value=kept.value + count)
    statement = raised.returning(kept.value)
    last = int(connection.execute(statement).scalar_one())
    ids, texts = zip(*changed, strict=True)
    numbers = range(last - count + 1, last + 1)
    insert_columns(connection, tables.index_changes, {"number": numbers, "id": ids, "text": texts})
    return last


def _last_change(connection: Connection) -> int:
    kept = tables.index_change_numbers.c
    return int(connection.execute(select(kept.value).where(kept.name == "change")).scalar_one())
