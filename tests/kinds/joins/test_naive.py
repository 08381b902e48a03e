"""The definition agrees with DuckDB, which nobody here wrote."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from tests.examples import seeds
from tests.kinds.joins.cases import GRAPHS, Changes, some_inserts, some_query, some_tables
from tests.kinds.joins.sql import Sql, flat
from tidings.errors import EventError
from tidings.kinds.joins.naive import Naive, binary_semijoin, result, selected, semijoin
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse

SEEDS = 32
CHANGES = 20


def fill(naive, rng):
    for change in some_inserts(rng, list(naive.tables.values())):
        naive.apply(*change)


@pytest.mark.parametrize("seed", seeds(16, SEEDS))
def test_results_are_those_of_duckdb(seed):
    rng = random.Random(seed)
    tables = some_tables(rng)
    naive, sql = Naive(tables), Sql(tables)
    fill(naive, rng)
    for name, there in naive.rows.items():
        sql.set(name, there)
    cases = {str(n): some_query(rng, tables, GRAPHS[n % 4]) for n in range(5)}
    for id, case in cases.items():
        assert parse(case.text) == case.query, case.text
        naive.subscribe(id, case.query)
    for change in islice(Changes(rng, tables, naive.rows), CHANGES):
        rows = {name: there.copy() for name, there in naive.rows.items()}
        forms = dict(naive.forms)
        try:
            deltas = naive.apply(*change)
        except EventError:
            assert naive.rows == rows
            continue
        sql.set(change.table, naive.rows[change.table])
        for id, case in cases.items():
            names = naive.subscriptions[id][0].tables
            if change.table not in names:
                assert id not in deltas
                continue
            assert flat(naive.result(id)) == sql.result(case.text, names), (case.text, change)
            gained, lost = deltas.get(id, (Counter(), Counter()))
            assert forms[id] + gained - lost == naive.forms[id]
            assert not gained & lost


def test_random_cases_have_results_of_every_kind():
    found = Counter()
    for seed in range(2 * SEEDS):
        rng = random.Random(seed)
        tables = some_tables(rng)
        naive = Naive(tables)
        fill(naive, rng)
        for n in range(5):
            naive.subscribe(str(n), some_query(rng, tables, GRAPHS[n % 4]).query)
        for change in islice(Changes(rng, tables, naive.rows), CHANGES):
            try:
                deltas = naive.apply(*change)
            except EventError:
                found["refused"] += 1
                continue
            found[change.op] += 1
            for id, (gained, lost) in deltas.items():
                found["gained"] += bool(gained)
                found["lost"] += bool(lost)
                found["both"] += bool(gained and lost)
                found[len(naive.subscriptions[id][0].tables)] += 1
                found["copies"] += max((gained | lost).values()) > 1
                found["one key"] += naive.subscriptions[id][0].one_key
                found["not one key"] += not naive.subscriptions[id][0].one_key
    for kind in ("insert", "update", "delete", "refused", "gained", "lost", "both", "copies", 1, 2, 3, 4):
        assert found[kind] >= 10, found
    assert sum(found[count] for count in (5, 6, 7, 8)) >= 30, found
    assert min(found["one key"], found["not one key"]) > 50, found


STOCKS = Table("stocks", {"symbol": "text", "per": "integer"}, ["symbol"])
REVIEWS = Table("reviews", {"symbol": "text", "rating": "integer"})
NOTES = Table("notes", {"rating": "integer", "note": "text"})


def test_a_join_is_told_each_row_once():
    naive = Naive([STOCKS, REVIEWS])
    text = (
        "FROM stocks JOIN reviews USING (symbol) WHERE stocks.per BETWEEN 45 AND 70 AND reviews.rating >= 6"
    )
    naive.subscribe("s", parse("SELECT * " + text))
    assert naive.apply("insert", "stocks", {"symbol": "A", "per": 50}) == {}
    deltas = naive.apply("insert", "reviews", {"symbol": "A", "rating": 6})
    assert deltas == {"s": (Counter({("stocks", ("A", 50)): 1, ("reviews", ("A", 6)): 1}), Counter())}
    again = naive.apply("insert", "reviews", {"symbol": "A", "rating": 6})
    assert again == {"s": (Counter({("reviews", ("A", 6)): 1}), Counter())}
    assert naive.result("s") == Counter({(("A", 50), ("A", 6)): 2})
    lost = naive.apply("update", "stocks", {"symbol": "A", "per": 71})
    assert lost == {"s": (Counter(), Counter({("stocks", ("A", 50)): 1, ("reviews", ("A", 6)): 2}))}


def test_a_binary_semijoin_looks_at_two_tables_only():
    naive = Naive([STOCKS, REVIEWS, NOTES])
    naive.subscribe("s", parse("SELECT * FROM stocks JOIN reviews USING (symbol) JOIN notes USING (rating)"))
    naive.apply("insert", "stocks", {"symbol": "A", "per": 50})
    naive.apply("insert", "reviews", {"symbol": "A", "rating": 6})
    naive.apply("insert", "reviews", {"symbol": "A"})
    shape, ranges = naive.subscriptions["s"]
    assert not naive.result("s")
    assert binary_semijoin(shape, ranges, naive.rows, 0, 1) == Counter({("A", 50): 1})
    assert binary_semijoin(shape, ranges, naive.rows, 1, 0) == Counter({("A", 6): 1, ("A", None): 1})
    assert not binary_semijoin(shape, ranges, naive.rows, 1, 2)


@pytest.mark.parametrize("seed", range(10))
def test_semijoins_join_to_the_same_result(seed):
    rng = random.Random(seed)
    tables = some_tables(rng)
    naive = Naive(tables)
    fill(naive, rng)
    for n in range(5):
        naive.subscribe(str(n), some_query(rng, tables, GRAPHS[n % 4]).query)
    for change in islice(Changes(rng, tables, naive.rows), CHANGES):
        try:
            naive.apply(*change)
        except EventError:
            continue
        for shape, ranges in naive.subscriptions.values():
            whole = result(shape, ranges, naive.rows)
            reduced = {name: Counter() for name in naive.tables}
            for (name, row), copies in semijoin(shape, ranges, naive.rows).items():
                reduced[name][row] = copies
            assert result(shape, ranges, reduced) == whole
            if len(shape.tables) == 2:
                for slot in (0, 1):
                    found = binary_semijoin(shape, ranges, naive.rows, slot, 1 - slot)
                    assert found == reduced[shape.tables[slot]]
            for slot, name in enumerate(shape.tables):
                assert reduced[name] <= selected(shape, ranges, naive.rows, slot)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("insert", "stocks", {"symbol": "A", "per": 1}), "already"),
        (("insert", "stocks", {"symbol": None, "per": 1}), "key needs a value"),
        (("update", "stocks", {"symbol": "B"}), "no row"),
        (("update", "stocks", {"symbol": "B"}, {"symbol": "C"}), "no row"),
        (("delete", "stocks", {"symbol": "B"}), "no row"),
        (("update", "reviews", {"symbol": "A"}), "no key"),
        (("delete", "reviews", {"symbol": "A"}), "no row"),
        (("insert", "reviews", {"symbol": 5}), "needs a text"),
    ],
)
def test_a_change_that_cannot_be_leaves_all_as_it_is(change, words):
    naive = Naive([STOCKS, REVIEWS])
    naive.apply("insert", "stocks", {"symbol": "A", "per": 50})
    with pytest.raises(EventError, match=words):
        naive.apply(*change)
    assert naive.rows == {"stocks": Counter({("A", 50): 1}), "reviews": Counter()}


def test_an_update_may_change_the_key():
    naive = Naive([STOCKS])
    naive.subscribe("s", parse("SELECT * FROM stocks WHERE per > 10"))
    naive.apply("insert", "stocks", {"symbol": "A", "per": 50})
    deltas = naive.apply("update", "stocks", {"symbol": "B", "per": 50}, {"symbol": "A"})
    assert deltas == {"s": (Counter({("stocks", ("B", 50)): 1}), Counter({("stocks", ("A", 50)): 1}))}
    naive.apply("insert", "stocks", {"symbol": "A", "per": 5})
    with pytest.raises(EventError, match="already"):
        naive.apply("update", "stocks", {"symbol": "B", "per": 50}, {"symbol": "A"})


def test_a_truncate_takes_all_rows():
    naive = Naive([STOCKS, REVIEWS])
    naive.subscribe("s", parse("SELECT * FROM stocks JOIN reviews USING (symbol)"))
    for change in (("stocks", {"symbol": "A"}), ("reviews", {"symbol": "A"}), ("reviews", {"symbol": "A"})):
        naive.apply("insert", *change)
    lost = Counter({("stocks", ("A", None)): 1, ("reviews", ("A", None)): 2})
    assert naive.apply("truncate", "reviews", {}) == {"s": (Counter(), lost)}
    assert not naive.rows["reviews"]
    assert naive.apply("truncate", "reviews", {}) == {}
