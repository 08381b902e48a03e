"""A SQL table as an operator: a SELECT whose parameters come from the call and from the event. On SQLAlchemy
(the extra `lookup`), so for SQLite, PostgreSQL and every other database it knows.

Answers are cached for a while, so that many events query the database once; failures are never cached. Within that
time the same inputs have the same answer.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from itertools import product
from threading import Lock
from typing import Any
from uuid import UUID

from tidings.errors import TidingsError
from tidings.kinds.operators.functions.operator import Operator, OperatorError, Out
from tidings.model.attributes import values_at
from tidings.model.event import Event

try:
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
except ModuleNotFoundError:
    raise TidingsError("lookups need SQLAlchemy; install Tidings with the extra 'lookup'") from None

Row = tuple[Any, ...]


def operator(
    name: str,
    database: str | sqlalchemy.Engine,
    sql: str,
    *,
    inputs: Sequence[str] = (),
    attributes: Mapping[str, str] | None = None,
    outs: Sequence[str] = (),
    cost: float = 5e-3,
    timeout: float | None = None,
    retries: int = 0,
    keep_seconds: float = 60.0,
    keep_answers: int = 10_000,
    clock: Callable[[], float] = time.monotonic,
) -> Operator:
    """The operator `name(input, …, ?out, …)`: true if the SELECT has a row, or a binding of the outs for each row.

    Each `:parameter` of the SELECT is one of `inputs`, given by the call, or a key of `attributes`, which says where
    in the event its value is (a path, such as `order.customer`). The columns are the `outs`, in this order. An event
    without one of the attributes has no rows; one with a list there has those of each element. A row with NULL in a
    column is left out, for it binds nothing.

    `database` is a URL of SQLAlchemy, or an engine; only with a URL can the operator go to other processes. Answers
    are kept for `keep_seconds`, the latest `keep_answers` of them.
    """
    query = TableQuery(
        database,
        sql,
        tuple(inputs),
        dict(attributes or {}),
        tuple(outs),
        AnswerCache(keep_seconds, keep_answers, clock),
    )
    return Operator(name, query, cost, timeout, retries)


class TableQuery:
    """A SELECT, as a function of the event and its inputs."""

    def __init__(
        self,
        database: str | sqlalchemy.Engine,
        sql: str,
        inputs: tuple[str, ...],
        attributes: dict[str, str],
        outs: tuple[str, ...],
        answers: AnswerCache,
    ) -> None:
        self.database, self.sql = database, sql
        self.inputs, self.attributes, self.outs = inputs, attributes, outs
        self.answers = answers
        self.statement = sqlalchemy.text(sql)
        self._check()
        self._engine: sqlalchemy.Engine | None = None
        self._lock = Lock()
        parts = [("event", Event), *((name, Any) for name in inputs), *((name, Out[Any]) for name in outs)]
        # What a signature of an operator is read from.
        self.__signature__ = Signature(
            [Parameter(part, Parameter.POSITIONAL_ONLY, annotation=kind) for part, kind in parts]
        )

    def _check(self) -> None:
        if self.sql.lstrip()[:6].upper().split()[:1] not in (["SELECT"], ["WITH"]):
            raise OperatorError(
                f"a lookup is a SELECT, and this is {self.sql[:60]!r}; write one, or WITH … SELECT"
            )
        wanted = set(self.statement.compile().params)
        given = {*self.inputs, *self.attributes}
        for name in sorted({*self.inputs} & {*self.attributes}):
            raise OperatorError(f":{name} is in inputs= and in attributes=; leave it in one of them")
        for name in sorted(wanted - given):
            raise OperatorError(
                f"the SELECT has :{name}; name it in inputs=, or in attributes= with its path"
            )
        for name in sorted(given - wanted):
            raise OperatorError(
                f"the SELECT has no :{name}; write it there, or leave it out of inputs= and attributes="
            )

    def __reduce__(self) -> tuple[Any, ...]:
        if not isinstance(self.database, str):
            raise OperatorError(
                "a lookup with an engine cannot go to other processes; give the database's URL"
            )
        return TableQuery, (self.database, self.sql, self.inputs, self.attributes, self.outs, self.answers)

    def __call__(self, event: Event, *arguments: Any) -> bool | list[Any]:
        given = dict(zip(self.inputs, arguments, strict=False))
        document = {**_envelope(event), **event.attributes}
        read = [values_at(document, path) for path in self.attributes.values()]
        found: dict[Row, None] = {}
        for values in product(*read):
            for row in self._rows({**given, **dict(zip(self.attributes, values, strict=True))}):
                found[row] = None
        if not self.outs:
            return bool(found)
        return [row[0] for row in found] if len(self.outs) == 1 else list(found)

    def _rows(self, parameters: dict[str, Any]) -> tuple[Row, ...]:
        for name, value in parameters.items():
            if isinstance(value, Mapping):
                raise TidingsError(
                    f"the value for :{name} is an object, not a plain value; give the path of one in it"
                )
        # True and 1 are equal, and not the same to every database.
        key = tuple((type(value), value) for value in parameters.values())
        rows = self.answers.get(key)
        if rows is None:
            rows = self._ask(parameters)
            self.answers.put(key, rows)
        return rows

    def _ask(self, parameters: dict[str, Any]) -> tuple[Row, ...]:
        try:
            with self._connected().connect() as connection:
                result = connection.execute(self.statement, parameters)
                columns = len(result.keys())
                # Without outs one row says all.
                rows = result.fetchall() if self.outs else result.fetchmany(1)
        except SQLAlchemyError as error:
            message = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise TidingsError(f"the database did not answer: {message}") from error
        if self.outs and columns != len(self.outs):
            raise TidingsError(
                f"the SELECT has {columns} columns, and the outs are {', '.join(self.outs)}; name one for each column"
            )
        if not self.outs:
            return tuple(() for _ in rows)
        return tuple(tuple(map(_plain, row)) for row in rows if None not in tuple(row))

    def _connected(self) -> sqlalchemy.Engine:
        if isinstance(self.database, sqlalchemy.Engine):
            return self.database
        with self._lock:
            if self._engine is None:
                try:
                    # A connection that died is noticed before it is used, so a database that was away is found again.
                    self._engine = sqlalchemy.create_engine(self.database, pool_pre_ping=True)
                except (ArgumentError, ImportError) as error:
                    raise TidingsError(
                        f"{error}; give a URL of SQLAlchemy whose driver is installed"
                    ) from None
            return self._engine


class AnswerCache:
    """A cache of at most `most` answers, none older than `seconds`. Safe to share among threads."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.most, self.clock = seconds, most, clock
        self._kept: OrderedDict[Row, tuple[float, tuple[Row, ...]]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return AnswerCache, (self.seconds, self.most, self.clock)

    def get(self, key: Row) -> tuple[Row, ...] | None:
        with self._lock:
            until, rows = self._kept.get(key, (0.0, None))
            if rows is None:
                return None
            if until <= self.clock():
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return rows

    def put(self, key: Row, rows: tuple[Row, ...]) -> None:
        with self._lock:
            self._kept[key] = (self.clock() + self.seconds, rows)
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)


def _envelope(event: Event) -> dict[str, str | None]:
    return {"id": event.id, "source": event.source, "type": event.type, "time": event.time}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
