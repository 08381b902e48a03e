"""The check stage with real operators: sync, async and in batches, many events at once, interrupted and abandoned."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tidings import Engine, Event, Out, operator
from tidings.kinds.operators.evaluator import Decided, Evaluator
from tidings.kinds.operators.functions.caller import Caller
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.naive import Binding
from tidings.kinds.operators.program import Program, compile_program
from tidings.kinds.operators.scheduling.schedulers import Adaptive, Naive, Scheduler
from tidings.kinds.operators.table import OperatorTable
from tidings.language import conditions
from tidings.language.parser import parse
from tidings.language.query import Leaf

PAUSE = 0.01
EVENTS = 200


class Counted:
    """Operators of every kind that count what they are asked, and how many are under way."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int, Any]] = Counter()
        self.under_way = self.most = 0
        self.batches: list[int] = []
        self.interrupts = threading.Event()

        @operator
        def divides(event: Event, by: int) -> bool:
            self.asked["divides", event.attributes["n"], by] += 1
            if self.interrupts.is_set():
                raise KeyboardInterrupt
            return bool(event.attributes["n"] % by == 0)

        @operator
        async def slow(event: Event, by: int) -> bool:
            self.asked["slow", event.attributes["n"], by] += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                await asyncio.sleep(PAUSE)
            finally:
                self.under_way -= 1
            return bool(event.attributes["n"] % by == 0)

        @operator(batch=True)
        def bulk(calls: list[tuple[Event, int]], by: int) -> list[bool]:
            self.batches.append(len(calls))
            self.asked.update(("bulk", event.attributes["n"], by) for event, by in calls)
            return [event.attributes["n"] % by == 0 for event, by in calls]

        @operator
        def digits(event: Event, digit: Out[int]) -> Iterator[int]:
            self.asked["digits", event.attributes["n"], None] += 1
            yield from map(int, str(event.attributes["n"]))

        @operator
        def even(event: Event, number: int) -> bool:
            self.asked["even", event.attributes["n"], number] += 1
            return number % 2 == 0

        self.operators: list[Operator] = [divides, slow, bulk, digits, even]

    def engine(self, *texts: str) -> Engine:
        engine = Engine(operators=self.operators)
        for number, text in enumerate(texts):
            engine.subscribe(f"s{number}", f"WHERE {text}")
        return engine


def events(count: int, first: int = 0) -> list[Event]:
    return [Event(id=str(n), source="test", attributes={"n": n}) for n in range(first, first + count)]


def matched(engine: Engine, some: Sequence[Event]) -> set[tuple[str, int]]:
    rows = engine.publish_many(some).to_pylist()
    assert {row["verdict"] for row in rows} <= {"match"}
    found = {(row["subscription"], int(row["event"])) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_async_calls_of_many_events_are_under_way_together(counted: Counted) -> None:
    engine = counted.engine("slow(2)")
    matched(engine, events(1, EVENTS))
    began = time.perf_counter()
    assert matched(engine, events(EVENTS)) == {("s0", n) for n in range(0, EVENTS, 2)}
    assert time.perf_counter() - began < EVENTS * PAUSE  # what one after the other would take at least
    assert counted.most >= 20
    assert set(counted.asked.values()) == {1}


def test_operators_of_every_kind_in_one_condition(counted: Counted) -> None:
    engine = counted.engine(
        "slow(2) AND bulk(3) AND divides(5)",
        "slow(2) OR bulk(3)",
        "NOT divides(5) AND bulk(7)",
        "digits(?d) AND ?d > 8 AND slow(3)",
        "slow(3) AND NOT slow(2)",
    )
    count = 90
    expected = {
        0: lambda n: n % 30 == 0,
        1: lambda n: n % 2 == 0 or n % 3 == 0,
        2: lambda n: n % 5 and n % 7 == 0,
        3: lambda n: "9" in str(n) and n % 3 == 0,
        4: lambda n: n % 6 == 3,
    }
    assert matched(engine, events(count)) == {
        (f"s{number}", n) for number, test in expected.items() for n in range(count) if test(n)
    }
    assert set(counted.asked.values()) == {1}, "an evaluation is done once an event"


def test_a_batch_holds_several_events(counted: Counted) -> None:
    engine = counted.engine("bulk(2)", "bulk(3)")
    assert len(matched(engine, events(EVENTS))) == len(range(0, EVENTS, 2)) + len(range(0, EVENTS, 3))
    assert len(counted.batches) < EVENTS / 20
    assert set(counted.asked.values()) == {1}


def test_an_interrupted_check_leaves_an_engine_as_it_was(counted: Counted) -> None:
    engine = counted.engine("divides(2)", "slow(3) AND divides(2)", "bulk(5)")
    counted.interrupts.set()
    with pytest.raises(KeyboardInterrupt):
        engine.publish_many(events(30))
    counted.interrupts.clear()
    expected = {("s0", n) for n in range(0, 30, 2)} | {("s1", n) for n in range(0, 30, 6)}
    assert matched(engine, events(30)) == expected | {("s2", n) for n in range(0, 30, 5)}


@dataclass
class Case:
    """An event and all programs of a table."""

    event: Event
    programs: list[Program]
    bound: list[Binding] = field(default_factory=lambda: [{}])
    twins: list[list[int]] = field(default_factory=list)

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.programs), dtype=np.int32)

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        return conditions.holds(leaf, self.event.attributes, binding)

    def program(self, position: int) -> Program:
        return self.programs[position]

    def bindings(self, position: int) -> list[Binding]:
        return self.bound


class Stage:
    """A check stage and nothing around it."""

    def __init__(
        self, operators: list[Operator], *texts: str, outer: str = "", scheduler: Scheduler | None = None
    ) -> None:
        find = {one.name: one for one in operators}.__getitem__
        self.table, self.programs = OperatorTable(find), []
        for text in texts:
            condition = parse(f"WHERE (?s, urn:p, ?{outer}) AND {text}" if outer else f"WHERE {text}").where
            triples = condition.parts[0] if outer else None  # type: ignore[union-attr]
            rest = type(condition)(condition.parts[1:]) if outer else condition  # type: ignore[call-arg, union-attr]
            known = frozenset([triples.subject, triples.object]) if triples else frozenset()  # type: ignore[union-attr]
            program = compile_program(rest, known, find)
            self.table.add(program, self.table.read(program, {}))
            self.programs.append(program)
        self.checker = Evaluator(self.table, scheduler or Adaptive(), Caller())

    def check(self, some: Sequence[Event], bound: list[Binding] | None = None, every: bool = False) -> Any:
        return self.checker.check((Case(one, self.programs, bound or [{}]) for one in some), every)


def truths(found: Iterator[Decided]) -> dict[str, list[int]]:
    return {one.case.event.id: one.truth.tolist() for one in found}


@pytest.mark.parametrize("scheduler", [Adaptive, Naive])
def test_a_check_that_is_abandoned_leaves_nothing_in_the_way(counted: Counted, scheduler: Any) -> None:
    stage = Stage(counted.operators, "slow(2) AND slow(3)", "bulk(5) AND slow(7)", scheduler=scheduler())
    checking = stage.check(events(100))
    first = next(checking)
    assert first.truth.tolist()
    checking.close()
    assert truths(stage.check(events(40, 500))) == {
        str(n): [TRUE if n % 6 == 0 else FALSE, TRUE if n % 35 == 0 else FALSE] for n in range(500, 540)
    }
    stage.checker.caller.close()


def test_cases_are_decided_in_the_order_in_which_they_are_done() -> None:
    @operator
    async def waits(event: Event) -> bool:
        await asyncio.sleep(event.attributes["n"] * 0.05)
        return True

    stage = Stage([waits], "waits()")
    found = [one.case.event.id for one in stage.check([*reversed(events(4))])]
    assert found == ["0", "1", "2", "3"]
    stage.checker.caller.close()


def test_cases_are_not_read_ahead_of_plain_operators(counted: Counted) -> None:
    stage, seen = Stage(counted.operators, "divides(2)"), []

    def cases() -> Iterator[Case]:
        for one in events(10):
            seen.append(one.id)
            yield Case(one, stage.programs)

    checking = stage.checker.check(cases())
    next(checking)
    assert seen == ["0"]
    assert len(list(checking)) == 9


def test_an_open_call_is_asked_once_for_each_value(counted: Counted) -> None:
    """By triples: two bindings have the same value; both rows ask for it, and a closed call asks for it as well."""
    stage = Stage(
        counted.operators, "even(?x)", "even(?x) AND divides(1)", "even(4) AND divides(1)", outer="x"
    )
    bound: list[Binding] = [{"s": 1, "x": 3}, {"s": 2, "x": 3}, {"s": 3, "x": 4}]
    (decided,) = stage.check(events(1), bound, every=True)
    assert decided.truth.tolist() == [TRUE, TRUE, TRUE]
    assert [one["x"] for one in decided.solutions[0]] == [4]
    assert {key: count for key, count in counted.asked.items() if key[0] == "even"} == {
        ("even", 0, 3): 1,
        ("even", 0, 4): 1,
    }


def test_an_open_call_is_asked_of_what_another_call_binds(counted: Counted) -> None:
    stage = Stage(counted.operators, "digits(?d) AND even(?d)", "NOT (digits(?d) AND even(?d))")
    assert truths(stage.check(events(3, 331))) == {
        "331": [FALSE, TRUE],
        "332": [TRUE, FALSE],
        "333": [FALSE, TRUE],
    }
    assert set(counted.asked.values()) == {1}
    assert counted.asked["even", 333, 3] == 1
    counts = stage.table.predicates.unnumbered["even"]
    assert (counts.calls, counts.hits, counts.failures) == (5, 1, 0)


def test_what_fails_is_unknown_where_it_matters_and_nowhere_else() -> None:
    @operator
    def fails(event: Event) -> bool:
        raise OSError("the service is away")

    @operator
    def says(event: Event, word: str) -> bool:
        return word == "yes"

    stage = Stage(
        [fails, says], "fails() AND says(yes)", "fails() AND says(no)", "fails() OR says(yes)", "NOT fails()"
    )
    (decided,) = stage.check(events(1))
    assert decided.truth.tolist() == [UNKNOWN, FALSE, TRUE, UNKNOWN]
    assert {row: message.count("the service is away") for row, message in decided.messages.items()} == {
        0: 1,
        3: 1,
    }


def test_no_cases_and_cases_without_rows(counted: Counted) -> None:
    stage = Stage(counted.operators)
    assert list(stage.check([])) == []
    (decided,) = stage.check(events(1))
    assert decided.truth.tolist() == []
    assert not counted.asked


def test_twins_are_asked_until_one_is_true() -> None:
    asked: list[str] = []

    @operator(cost=1e-3)
    def first(event: Event) -> bool:
        asked.append("first")
        return True

    @operator(cost=1.0)
    def second(event: Event) -> bool:
        asked.append("second")
        return True

    engine = Engine(operators=[first, second])
    engine.subscribe("s", "WHERE ((?i, rss:title, ?t) AND first()) OR ((?i, rss:link, ?t) AND second())")
    event = Event.from_rdf(
        "<urn:i> <http://purl.org/rss/1.0/title> 'a'; <http://purl.org/rss/1.0/link> 'b' .", "turtle"
    )
    assert [(one.verdict, one.bindings["t"]) for one in engine.publish(event)] == [("match", "a")]
    assert asked == ["first"]
    assert len(engine.publish(event, all_bindings=True)) == 2
    assert asked == ["first", "first", "second"]
