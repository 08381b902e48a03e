"""What a kind of subscription is to the engine: small contracts, which the kinds in `kinds/` and yours fulfil.

A subscription mixes kinds, so a kind compiles its part of each way (`compile`) and gives the rest back. It plays one of
three roles, by the rows that its parts become:

    "find"     finds rows that an event satisfies: filters, patterns. One builder for the base, one for the tail.
    "check"    decides pairs that finders have found: networks, operators. One table for base and tail together.
    "state"    needs all events in order, and takes subscriptions whole: joins. Never in a worker that sees a part.

Rows are a kind's own numbers, 0, 1, 2, …; which subscription a row belongs to, whether that is live and valid, and
which ways it has, is the engine's. An index names its kinds and never what to import: its caller gives them.

A kind fulfils these by shape and does not import them: kinds are below the engine. The tests of the
engine have one of each role; docs/decisions/kinds-by-contract.md says why they are as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tidings.language.alternatives import Way
from tidings.language.query import KindCondition, Query
from tidings.model.batch import Batch
from tidings.model.event import Event
from tidings.model.explanation import Explanation
from tidings.model.pairs import Found, Pairs

Columns = Mapping[str, tuple[np.ndarray, list[str]]]
"""By parameter the code of each row, and the N-Triples texts that the codes stand for."""


class Kind(Protocol):
    """A kind of subscription."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def conditions(self) -> tuple[type[KindCondition], ...]:
        """The conditions that it adds to those of the language."""

    def builder(self) -> Any:
        """A `Builder`, a `Checker` or a `Stateful`, by its role, without any row."""

    def load(self, folder: Path) -> Any:
        """The same, as its `save` wrote it; a ValueError for what cannot be right. The engine checks row numbers."""


class Compiling(Kind, Protocol):
    """A kind that finds or checks. They compile in this order: networks, own checkers, operators; then patterns, own
    finders, filters, until one of these finds the way. What is left after that is checked by the definition."""

    def compile(self, way: Way) -> tuple[Any, Way]:
        """Takes what is its own of `way.tests`: the part, None if there is nothing, and the way without it. Own
        conditions under NOT or OR are no tests, and are left: there the definition decides. The part of a finder
        says whether it `is_broad`: whether nearly every event satisfies it."""


class Builder(Protocol):
    """Rows of a kind that finds, while they are collected."""

    def __len__(self) -> int: ...

    def prepare(self, part: Any, values: Mapping[str, str]) -> Any:
        """What `add` needs; a `SubscriptionError` for constants that do not fit. `values` are N-Triples texts by
        parameter; own conditions have no parameters."""

    def add(self, part: Any, prepared: Any) -> int:
        """Adds a row and returns its number; -1 if no event can satisfy it."""

    def add_many(self, part: Any, columns: Columns, count: int) -> int:
        """Adds `count` rows and returns the first number; -1 if no event can satisfy them."""

    def extend(self, other: Any, rows: np.ndarray) -> None:
        """Adds some rows of another builder of this kind."""

    def finder(self) -> Finder:
        """Finds the rows that are there now."""

    def save(self, folder: Path) -> None:
        """Writes the rows into a folder that is there, without pickles."""


class Finder(Protocol):
    """An index: which of its rows do the events of a batch satisfy?"""

    @property
    def several(self) -> bool:
        """Whether one event and one row may be found several times, with several bindings."""

    @property
    def binds(self) -> bool:
        """Whether what is found has bindings."""

    def find(self, batch: Batch) -> Found: ...


class Checker(Protocol):
    """Rows of a kind that checks: which of the pairs stand?"""

    @property
    def binds(self) -> bool:
        """Whether pairs may get bindings by it."""

    def __len__(self) -> int: ...

    def prepare(self, part: Any, values: Mapping[str, str]) -> Any:
        """What `add` needs; a `SubscriptionError` for constants that do not fit."""

    def add(self, part: Any, prepared: Any) -> int:
        """Adds a row and returns its number, which may be that of an equal row."""

    def add_many(self, part: Any, columns: Columns, count: int) -> np.ndarray:
        """Adds a row for each of many subscriptions, or none if it refuses one; their numbers."""

    def keep(self, rows: np.ndarray) -> None:
        """Drops all rows but these, which are numbered anew in this order: when base and tail are folded."""

    def check(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Pairs:
        """The pairs that stand, mostly `pairs.take(mask)`; rows[i] is what has to hold for pair i, -1 if nothing of
        this kind has to. A pair with a doubt is undecided already: it is dropped or left as it is. Attributes that
        cannot be read are None, and satisfy nothing."""

    def save(self, folder: Path) -> None:
        """Writes the rows into a folder that is there, without pickles."""


class RemarkingChecker(Checker, Protocol):
    """A checker that has something to say about pairs that match, beside their bindings."""

    def remarks(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> dict[int, dict[str, str]]:
        """By the position of a pair what its notification says among its bindings; the names are no variables'. It is called
        for answers alone, and a pair is no other answer by it."""


class Stateful(Protocol):
    """Subscriptions of a kind that keeps state, by their ids."""

    def __len__(self) -> int: ...

    def __contains__(self, id: str) -> bool: ...

    @property
    def reads_events(self) -> bool:
        """Whether events have to be applied, as they are not to joins without a table."""

    def takes(self, query: Query) -> bool:
        """Whether a query is of this kind, which then takes all of it, or refuses it."""

    def subscribe(
        self, id: str, text: str, query: Query, constants: Sequence[str], until: float
    ) -> str | None:
        """Adds a subscription that answers events up to the time `until`, or replaces it; if it can never match, why.
        What it cannot take of the query is a `SubscriptionError`."""

    def subscribe_table(self, text: str, query: Query, ids: Sequence[str], table: pa.Table) -> None:
        """Adds a subscription for each row of a table of the text's parameters."""

    def unsubscribe(self, id: str) -> bool: ...

    def text(self, id: str) -> str: ...

    def apply(self, events: pa.Table, moments: np.ndarray, *, joined: bool = False) -> Changes:
        """Takes events in, in their order; `moments` are their times."""

    def explain(self, id: str, query: Query, event: Event) -> Explanation: ...

    def save(self, folder: Path) -> None:
        """Writes subscriptions and state into a folder that is there."""


class Changes(Protocol):
    """What events did to stateful subscriptions."""

    @property
    def errors(self) -> dict[int, str]:
        """By row why an event could not be taken in."""

    def notifications(self, events: pa.Table) -> pa.Table: ...
