"""A backtest agrees with the definition of matching, event by event, however the events are cut into batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.engine.backtest import SAMPLE, Tally, backtest, backtest_engine
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event, to_table

TEXTS = (
    "WHERE topic = 'sport'",
    "WHERE topic = 'sport' AND price < 20",
    "WHERE NOT topic = 'oil' OR price BETWEEN 5 AND 9",
    "WHERE price * 2 > 30",
    "WHERE title LIKE '%goal%' AND EXISTS topic",
)
SCOPES = ("", "WHERE city = 'Linz'", "WHERE price < 15")
events = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "topic": st.sampled_from(["sport", "oil", "opera"]),
            "price": st.integers(0, 30),
            "city": st.sampled_from(["Linz", "Wien"]),
            "title": st.sampled_from(["a goal", "none"]),
        },
    ),
    max_size=40,
)


def naive(text: str, scope: str, given: list[Event], arrivals: list[float]) -> tuple[int, Counter[int]]:
    """How many events are looked at, and the matches by minute."""
    engine = Engine()
    holds = lambda condition, event: engine.why(condition, event).verdict == "match"  # noqa: E731
    seen = [
        (event, at) for event, at in zip(given, arrivals, strict=True) if not scope or holds(scope, event)
    ]
    return len(seen), Counter(int(at // 60) for event, at in seen if holds(text, event))


@examples(12)
@given(
    events,
    st.sampled_from(TEXTS),
    st.sampled_from(SCOPES),
    st.integers(1, 7),
    st.lists(st.floats(0, 600), min_size=40, max_size=40),
)
def test_a_backtest_counts_what_matches_event_by_event(
    found: list[dict[str, Any]], text: str, scope: str, size: int, times: list[float]
) -> None:
    given, arrivals = [Event("s", each, id=str(n)) for n, each in enumerate(found)], times[: len(found)]
    engine = backtest_engine(Engine(), text, scope)
    batches = [
        (to_table(given[first : first + size]), np.array(arrivals[first : first + size]))
        for first in range(0, len(given), size)
    ]
    total = backtest(engine, batches)
    looked, minutes = naive(text, scope, given, arrivals)
    assert (total.events, total.matched, total.minutes) == (looked, minutes.total(), minutes)
    assert Tally.from_json(total.to_json()) == total
    assert len(total.matches) == min(SAMPLE, total.matched)
    assert [match.at for match in total.matches] == sorted((m.at for m in total.matches), reverse=True)


def test_the_sample_has_the_newest_matches_as_they_were() -> None:
    given = [Event("s", {"n": n}, id=str(n), data=bytes([n])) for n in range(80)]
    total = backtest(backtest_engine(Engine(), "WHERE n >= 10"), [(to_table(given), np.arange(80.0))])
    assert [match.event for match in total.matches] == given[::-1][:SAMPLE]
    assert [match.at for match in total.matches][:2] == [79.0, 78.0]


def test_a_sample_of_large_events_is_bounded() -> None:
    given = [Event("s", {"n": n}, id=str(n), data=b"x" * 300_000) for n in range(9)]
    total = backtest(backtest_engine(Engine(), "WHERE n >= 0"), [(to_table(given), np.arange(9.0))])
    assert (total.matched, [match.event.id for match in total.matches]) == (9, ["8", "7", "6"])


def test_events_that_cannot_be_read_are_counted() -> None:
    table = to_table([Event("s", {"n": 1}, id="a"), Event("s", id="b")]).to_pydict()
    table["attributes"][1] = "{"
    import pyarrow as pa

    total = backtest(backtest_engine(Engine(), "WHERE n = 1"), [(pa.table(table), np.zeros(2))])
    assert (total.events, total.matched, total.unreadable) == (2, 1, 1)


def test_a_subscription_over_tables_has_no_backtest() -> None:
    engine = Engine(tables=[Table("orders", {"id": "integer", "price": "number"}, ("id",))])
    with pytest.raises(SubscriptionError, match="over tables has no backtest"):
        backtest_engine(engine, "SELECT * FROM orders WHERE price > 3")
