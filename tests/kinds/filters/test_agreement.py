"""Whoever answers a filter answers as the definition does; the definition answers as a database does.

A party is a function from conditions and events to the pairs (condition, event) that match.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pytest

from tests.examples import seeds
from tests.kinds.filters import cases
from tests.kinds.filters.sql import to_sql
from tidings.kinds.filters import naive
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Condition, Query

Events = Sequence[Mapping[str, Any]]
Pairs = set[tuple[int, int]]
Party = Callable[[Sequence[Condition], Events], Pairs]


def definition(conditions: Sequence[Condition], events: Events) -> Pairs:
    return {
        (i, j)
        for i, condition in enumerate(conditions)
        for j, attributes in enumerate(events)
        if naive.matches(condition, attributes)
    }


def database(conditions: Sequence[Condition], events: Events) -> Pairs:
    """By DuckDB, which answers all conditions in one pass over the rows."""
    connection = duckdb.connect()
    types = {**{name: kind for name, (kind, _) in cases.COLUMNS.items()}, **cases.LISTS}
    connection.execute(f"CREATE TABLE events (row INTEGER, {', '.join(map(' '.join, types.items()))})")
    rows = [[j, *map(event.get, types)] for j, event in enumerate(events)]
    connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * (len(types) + 1))})", rows)
    tests = ", ".join(f"{to_sql(condition)} AS c{i}" for i, condition in enumerate(conditions))
    found = connection.execute(f"SELECT {tests} FROM events ORDER BY row").fetchall()
    return {(i, j) for j, answers in enumerate(found) for i, held in enumerate(answers) if held}


def assert_agree(party: Party, other: Party, conditions: Sequence[Condition], events: Events) -> None:
    """Fails with what each side lacks."""
    found, others = party(conditions, events), other(conditions, events)
    lacking = [
        f"only {whose.__name__}: {conditions[i]} on {events[j]}"
        for whose, pairs in ((party, found - others), (other, others - found))
        for i, j in sorted(pairs)[:2]
    ]
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_the_definition_agrees_with_a_database(seed: int) -> None:
    rng = random.Random(seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2, 3]), flat=True) for _ in range(260)]
    events = [cases.attributes(rng, flat=True) for _ in range(25)]
    assert_agree(definition, database, conditions, events)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_the_definition_agrees_with_a_database_on_lists(seed: int) -> None:
    rng = random.Random(100 + seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2]), lists=True) for _ in range(150)]
    events = [cases.attributes(rng, lists=True) for _ in range(25)]
    assert_agree(definition, database, conditions, events)


def test_random_conditions_can_be_written() -> None:
    """What `cases` makes up is in reach of the language, so that it may be given to an engine as texts."""
    rng = random.Random(42)
    for _ in range(500):
        query = Query(cases.condition(rng, rng.choice([0, 1, 2, 3])))
        assert parse(to_text(query)) == query
