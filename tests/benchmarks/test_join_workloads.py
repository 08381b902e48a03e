"""The workloads of joins are drawn as Select-joins says, and what they are set beside gives the right deltas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.join_baselines import COMES, GOES, Baseline, DuckBuckets, DuckQueries, DuckTable
from benchmarks.join_postgres import PostgresTable
from benchmarks.join_workloads import (
    DELETE,
    DOMAIN,
    INSERT,
    JOINING,
    UPDATE,
    Parameters,
    Workload,
    make,
    make_general,
    make_star,
)
from tests.postgresql import programs

SMALL = Parameters(subscriptions=1_000, r_rows=100, s_rows=100, events=160, s_share=0.5, update_share=0.4)
Delta = tuple[int, int, int, int, int]


def live(workload: Workload) -> Iterator[list[set[int]]]:
    """The rows of every table, before the first change and after each."""
    rows = [set(range(table.initial)) for table in workload.tables]
    yield rows
    stream = workload.stream
    for place, new, old in zip(stream.table, stream.new.tolist(), stream.old.tolist(), strict=True):
        if new >= 0:
            rows[place].add(new)
        if old >= 0:
            rows[place].remove(old)
        yield rows


def semijoins(workload: Workload, rows: list[set[int]]) -> set[tuple[int, int, int]]:
    """(subscription, table, row) of the rows that are in a result, by trying all pairs."""
    r, s = workload.tables
    ranges = {name: ends[:, None] for name, ends in workload.groups[0].columns.items()}
    left, right = (np.array(sorted(some)) for some in rows)
    joined = (r.columns["b"][left][:, None] == s.columns["b"][right][None, :]).nonzero()
    left, right = left[joined[0]], right[joined[1]]
    a, c = r.columns["a"][left], s.columns["c"][right]
    held = (ranges["a_low"] <= a) & (a <= ranges["a_high"]) & (ranges["c_low"] <= c) & (c <= ranges["c_high"])
    subs, pairs = (found.tolist() for found in held.nonzero())
    return {
        (sub, place, int(numbers[pair]))
        for place, numbers in enumerate((left, right))
        for sub, pair in zip(subs, pairs, strict=True)
    }


def expected(workload: Workload) -> set[Delta]:
    deltas: set[Delta] = set()
    before: set[tuple[int, int, int]] = set()
    for change, rows in enumerate(live(workload), -1):
        after = semijoins(workload, rows)
        if change >= 0:
            deltas |= {(change, sub, COMES, place, row) for sub, place, row in after - before}
            deltas |= {(change, sub, GOES, place, row) for sub, place, row in before - after}
        before = after
    return deltas


@pytest.fixture(scope="module")
def small() -> Workload:
    return make(SMALL)


@pytest.fixture(scope="module")
def wanted(small: Workload) -> set[Delta]:
    return expected(small)


@pytest.mark.parametrize(
    "contender",
    [
        DuckTable,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (DuckBuckets, DuckQueries, PostgresTable)),
    ],
)
def test_baselines_give_the_exact_deltas(
    contender: type[Baseline], small: Workload, wanted: set[Delta]
) -> None:
    if contender is PostgresTable:
        folder = programs()
        if folder is None:
            pytest.skip("PostgreSQL is not installed")
        baseline: Baseline = PostgresTable(small, folder)
    else:
        baseline = contender(small)
    try:
        found = []
        for first in range(0, 160, 16):
            part = baseline.apply(first, first + 16)
            found += list(zip(*part.to_pydict().values(), strict=True))
    finally:
        baseline.close()
    assert len(found) == len(set(found))
    assert set(found) == wanted
    # Both tables gain and lose rows, by changes of their own and of the other one.
    tables = small.stream.table
    kinds = {(sign, place, int(tables[change])) for change, _, sign, place, _ in wanted}
    assert len(kinds) == 8
    assert baseline.seconds > 0


def test_ranges_and_rows_are_those_of_table_2() -> None:
    workload = make(Parameters(events=2_000))
    columns = workload.groups[0].columns
    for name, mean, widths in (("a", (30_000, 70_000), 20_000), ("c", (15_000, 85_000), 7_000)):
        low, high = columns[f"{name}_low"], columns[f"{name}_high"]
        assert (low >= 0).all()
        assert (high <= DOMAIN).all()
        assert (low <= high).all()
        assert np.mean(high - low) == pytest.approx(widths, rel=0.03)
        centres = (low + high) / 2
        for some, middle in ((centres < 50_000, mean[0]), (centres >= 50_000, mean[1])):
            assert some.mean() == pytest.approx(0.5, abs=0.01)
            assert centres[some].mean() == pytest.approx(middle, abs=1_500)
    r, s = workload.tables
    assert (r.initial, s.initial) == (16_000, 5_100)
    counts = np.sort(np.bincount(s.columns["b"][: s.initial], minlength=100))[::-1]
    assert (counts > 0).sum() == JOINING
    assert 0.7 < counts[9] / counts[19] / 2**0.8 < 1.3
    inserts = workload.stream.new[workload.stream.op == INSERT]
    assert np.isin(r.columns["b"][inserts], s.columns["b"]).mean() == pytest.approx(0.7, abs=0.03)
    payload = r.arrow(0, 50)["payload"].to_pylist()
    assert {len(text) for text in payload} == {100}
    assert len(set(payload)) == 50


def test_events_affect_as_many_as_published() -> None:
    """Table 3 at 100K: Enum-SJ sends 27.3 kB an event, Enum-J 484.8, of rows with 100 bytes of payload."""
    workload = make(Parameters(events=2_000))
    r, s = workload.tables
    ranges = {name: ends[::5] for name, ends in workload.groups[0].columns.items()}
    values = {b: np.sort(s.columns["c"][: s.initial][s.columns["b"][: s.initial] == b]) for b in range(100)}
    affected = results = 0
    inserts = workload.stream.new[workload.stream.op == INSERT]
    for row in inserts.tolist():
        a, met = r.columns["a"][row], values[int(r.columns["b"][row])]
        holds = (ranges["a_low"] <= a) & (a <= ranges["a_high"])
        found = np.searchsorted(met, ranges["c_high"][holds], "right")
        found -= np.searchsorted(met, ranges["c_low"][holds])
        affected += int((found > 0).sum())
        results += int(found.sum())
    assert 5 * affected / len(inserts) * 108 == pytest.approx(27_300, rel=0.2)
    assert 5 * results / len(inserts) * 212 == pytest.approx(484_800, rel=0.2)


@pytest.mark.parametrize(
    "workload",
    [make(SMALL), make_general(1_700, 400), make_star(1_700, 400)],
    ids=["binary", "general", "star"],
)
def test_streams_can_be_applied_and_sizes_stay(workload: Workload) -> None:
    sizes = [table.initial for table in workload.tables]
    for rows in live(workload):
        assert all(abs(len(some) - size) <= 1 for some, size in zip(rows, sizes, strict=True))
    stream = workload.stream
    for op, place, new, old in zip(stream.op, stream.table, stream.new, stream.old, strict=True):
        assert (new >= 0, old >= 0) == {INSERT: (True, False), UPDATE: (True, True), DELETE: (False, True)}[
            op
        ]
        if op == UPDATE:
            assert workload.tables[place].columns["id"][new] == workload.tables[place].columns["id"][old]


def test_multi_way_workloads_are_those_of_6_3() -> None:
    general, star = make_general(), make_star()
    assert [table.initial for table in general.tables] == [1_000, 7_000, 7_000, 3_000]
    assert {table.name: table.initial for table in star.tables} == {
        "r": 1000,
        "t": 1000,
        "u": 1000,
        "s": 25_000,
    }
    for workload in (general, star):
        assert list(map(len, workload.groups)) == [50_000, 50_000, 50_000, 20_000]
        assert [group.first for group in workload.groups] == [0, 50_000, 100_000, 150_000]
    assert general.groups[3].template == (
        "SELECT * FROM s JOIN t USING (b) JOIN u USING (b) WHERE s.c BETWEEN $c_low AND $c_high "
        "AND t.d BETWEEN $d_low AND $d_high AND u.e BETWEEN $e_low AND $e_high"
    )
    assert "JOIN t ON s.t = t.id" in star.groups[1].template


def test_all_follows_from_the_seed() -> None:
    one, two, more = make(SMALL), make(SMALL), make(replace(SMALL, subscriptions=4_000))
    for other in (two, more):
        for left, right in zip(one.tables, other.tables, strict=True):
            assert all((left.columns[name] == right.columns[name]).all() for name in left.columns)
        assert (one.stream.new == other.stream.new).all()
    assert one.groups[0].arrow().equals(two.groups[0].arrow())
    assert len(more) == 4_000
    assert one.groups[0].arrow().column_names == ["id", "a_low", "a_high", "c_low", "c_high"]
