"""Filters larger than what is narrow, short or roomy: the same answers, only other paths through the index."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.kinds.filters import cases
from tests.kinds.filters.test_agreement import definition
from tests.kinds.filters.test_index import index_of, matched, pairs_of
from tidings.kinds.filters.kernels import layout
from tidings.language.query import And, Attribute, Between, Comparison, Condition, Exists, Not, OneOf, Or
from tidings.language.syntax.predicates import MAX_PREDICATES

a, b = Attribute("a"), Attribute("b")


def number(value: Any) -> Any:
    return cases.constant(value)


def test_more_constants_than_narrow_code_has_positions_for() -> None:
    rng = random.Random(1)
    few = rng.sample(range(40_000), 300)
    conditions: list[Condition] = [Comparison(a, "=", number(i)) for i in range(40_000)]
    special: list[Condition] = []
    for i in few:
        special += [
            Comparison(a, "<", number(i)),
            And((Comparison(a, ">=", number(i)), Not(OneOf(b, (number(i), number(1)))))),
            OneOf(a, (number(i), number(i - 1), number(i // 2)), True),
            Between(a, number(i), number(i + 500)),
        ]
    index = index_of([*conditions, *special])
    assert len(index.index.code.wide)
    assert len(index.index.code.narrow)
    events = [{"a": 0.5, "b": 1}, {"a": [39_999, 7]}, {"a": 39_999.5}, {"a": -1}, {"b": 2}]
    events += [{"a": i, "b": rng.choice([i, 1, 2])} for i in few[:10]]
    expected = {(i + 40_000, j) for i, j in definition(special, events)}
    for j, event in enumerate(events):
        given = event.get("a", [])
        values = given if isinstance(given, list) else [given]
        expected |= {(value, j) for value in values if value in range(40_000)}
    assert matched(index, pairs_of(index, events)) == expected


def test_more_attributes_than_narrow_code_has_numbers_for() -> None:
    count = layout.NARROW_LIMIT + 50
    conditions = [Comparison(Attribute(f"a{i}"), "=", number(1)) for i in range(count)]
    last = [Attribute(f"a{count - 1 - i}") for i in range(3)]
    conditions += [
        And((Exists(last[0]), Not(Exists(last[1])))),
        Or((Comparison(last[0], ">", number(1)), Comparison(Attribute("a0"), "<", number(1)))),
    ]
    index = index_of(conditions)
    assert len(index.index.code.wide)
    events = [
        {f"a{count - 1}": 1},
        {f"a{count - 1}": [1, 2], f"a{count - 2}": None},
        {"a0": 0},
        {"a0": 1},
        {},
    ]
    events += [{"a65535": 1, "a65536": 1, "a65537": 2}]
    expected = {
        (int(name[1:]), j) for j, event in enumerate(events) for name, v in event.items() if v in (1, [1, 2])
    }
    expected |= {(count + i, j) for i, j in definition(conditions[count:], events)}
    assert matched(index, pairs_of(index, events)) == expected


@pytest.mark.parametrize("size", [11, 12, 13, 130, pytest.param(1_000, marks=pytest.mark.slow)])
def test_many_options(size: int) -> None:
    rng = random.Random(size)
    options = tuple(number(2 * i) for i in rng.sample(range(size), size))
    texts = tuple(number(f"t{i}") for i in range(size))
    conditions: list[Condition] = [
        OneOf(a, options),
        OneOf(a, options, True),
        Not(OneOf(a, options)),
        OneOf(a, (*options, *texts)),
        OneOf(a, (*options, *texts), True),
        And((Exists(b), OneOf(a, options[: size // 2]))),
        Or((OneOf(b, options[size // 2 :]), OneOf(a, texts, True))),
    ]
    given: list[Any] = [0, 1, -1, 2 * size - 2, 2 * size, "t0", f"t{size - 1}", f"t{size}", "0", "1", True]
    given += [rng.randrange(2 * size) for _ in range(10)]
    given += [[one, other] for one in given[:4] for other in given[4:8]]
    events = [{"a": value, "b": rng.choice(given)} for value in given]
    index = index_of(conditions)
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)


@pytest.mark.parametrize("size", [63, 64, 65, 200])
def test_many_children(size: int) -> None:
    """More than are put in order of their weight, in both joins, nested and negated."""
    rng = random.Random(size)
    names = [Attribute(f"n{i % 40}") for i in range(size)]
    parts = [Comparison(names[i], rng.choice(cases.COMPARISONS), number(i % 7)) for i in range(size)]
    inner = [And((parts[i], parts[-i])) if i % 2 else Or((parts[i], Not(parts[-i]))) for i in range(size)]
    conditions: list[Condition] = [And(tuple(parts)), Or(tuple(parts)), And(tuple(inner)), Or(tuple(inner))]
    conditions += [Not(condition) for condition in conditions]
    conditions += [And((Or(tuple(inner)), Not(And(tuple(inner)))))]
    events: list[dict[str, Any]] = [{}]
    for _ in range(30):
        chosen = rng.sample(names, rng.randrange(1, len(names)))
        events.append({name.path: rng.choice([0, 1, 3, 6, "3", [1, 5]]) for name in chosen})
    index = index_of(conditions)
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)


def test_expressions_of_as_many_predicates_as_there_may_be() -> None:
    rng = random.Random(4)
    size = MAX_PREDICATES
    equal = [Comparison(Attribute(f"n{i % 50}"), "=", number(i)) for i in range(size)]
    conditions: list[Condition] = [
        Or(tuple(equal)),
        And(tuple(Not(part) for part in equal)),
        And(tuple(Or((equal[i], Not(equal[i + 1]))) for i in range(0, size, 2))),
        Or(tuple(And((equal[i], Comparison(Attribute("m"), ">", number(i)))) for i in range(size // 2))),
    ]
    conditions.append(And((Or(tuple(equal)), Exists(Attribute("m")))))  # its jumps are long
    deep: Condition = equal[0]
    for i in range(1, 200):
        deep = And((equal[i % 50], deep)) if i % 2 else Or((equal[-i], deep))
    conditions.append(deep)
    events: list[dict[str, Any]] = [{}, {"n0": size - 50}, {"n49": size - 1, "m": 10**9}, {"n7": 7, "m": 7}]
    for _ in range(20):
        events.append({f"n{i % 50}": i for i in rng.sample(range(size), 30)} | {"m": rng.randrange(size)})
    index = index_of(conditions)
    assert len(index.index.code.wide)
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)


def test_an_index_of_long_expressions_only() -> None:
    long = Or(tuple(Comparison(a, "=", number(i)) for i in range(600)))
    conditions: list[Condition] = [And((long, Exists(b)))] * 2
    index = index_of(conditions)
    assert len(index.index.code.wide)
    assert not len(index.index.code.narrow)
    events: list[dict[str, Any]] = [{"a": 599, "b": 1}, {"a": [600, 3], "b": 0}, {"a": 600, "b": 0}, {}]
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)


def test_more_matches_than_there_is_room_for() -> None:
    conditions: list[Condition] = [Exists(a), Not(Comparison(b, "=", number(1)))] * 3_000
    events: list[dict[str, Any]] = [{"a": [1, 2], "b": i % 2} for i in range(40)]
    index = index_of(conditions)
    found = matched(index, pairs_of(index, events))
    assert len(found) == 40 * 3_000 + 20 * 3_000
    assert found == {(i, j) for i in range(6_000) for j in range(40) if i % 2 == 0 or j % 2 == 0}


def test_many_values_lead_to_a_row_once() -> None:
    conditions: list[Condition] = [
        OneOf(a, tuple(number(i) for i in range(50))),
        Between(a, number(3), number(40)),
    ]
    conditions += [Or((Comparison(a, "<", number(30)), Comparison(a, ">", number(20)), Exists(b)))] * 600
    index = index_of(conditions)
    events: list[dict[str, Any]] = [{"a": list(range(60)), "b": [1, 1]}, {"a": [5] * 2_000}, {"b": 1}]
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)
    cursor = index.cursor(pairs_of(index, events), 0)
    met, n = [], 0
    while (n := cursor.seek(n)) >= 0:
        met.append(n)
        n += 1
    assert met == list(range(len(conditions)))
