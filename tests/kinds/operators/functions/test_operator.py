"""Operators: what a signature declares, what a call of it may be, and what its function may answer."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy
import pytest

import tidings
from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.kinds.operators.functions.operator import Operator, OperatorError, Out, operator
from tidings.kinds.operators.functions.outcome import FALSE, MAX_ROWS, TRUE, Outcome
from tidings.language.query import Call, Parameter, Variable
from tidings.model.event import Event
from tidings.model.terms import Blank, Iri, Literal

EVENT = Event(attributes={"n": 1})


@operator(cost=20e-3)
def mobPattern(event: Event, people: Out[int]) -> Any:
    """Whether people form a mob."""
    yield 60
    yield 70


@operator
def near(event: Event, place: str, metres: float) -> bool:
    return metres > 10


@operator
def spread(event: Event, distance: Out[float], place: str, count: tidings.Out[int], depth: Any) -> Any:
    return [(1.5, len(place)), (2, depth)]


def integer(text: str) -> Literal:
    return Literal(text, XSD + "integer")


def test_the_decorator_with_and_without_settings() -> None:
    assert (mobPattern.name, mobPattern.cost, mobPattern.timeout, mobPattern.retries) == (
        "mobPattern",
        0.02,
        None,
        0,
    )
    assert not mobPattern.batch
    assert not mobPattern.is_async
    assert mobPattern.__doc__ == "Whether people form a mob."
    assert near.cost > 0
    assert operator(name="other")(near.function).name == "other"
    assert tidings.operator is operator
    assert tidings.Out is Out


def test_signatures() -> None:
    assert mobPattern.signature == "mobPattern(people: Out[int])"
    assert near.signature == "near(place: str, metres: float)"
    assert spread.signature == "spread(distance: Out[float], place: str, count: Out[int], depth)"
    assert [parameter.name for parameter in spread.inputs] == ["place", "depth"]
    assert [parameter.name for parameter in spread.outs] == ["distance", "count"]


def test_an_operator_is_called_as_its_function_without_what_it_binds() -> None:
    assert list(mobPattern(EVENT)) == [60, 70]
    assert near(EVENT, "here", 11.0) is True
    assert spread(EVENT, "abc", 4) == [(1.5, 3), (2, 4)]


def test_methods_objects_and_partial_functions() -> None:
    class Model:
        def __init__(self, least: int) -> None:
            self.least = least

        def holds(self, event: Event, n: int) -> bool:
            return n >= self.least

        async def __call__(self, event: Event, n: Out[int]) -> list[int]:
            return [self.least]

    assert operator(Model(3).holds)(EVENT, 3) is True
    called = operator(name="model")(Model(3))  # type: ignore[arg-type]
    assert called.is_async
    assert called.outs[0].types == (int,)
    fixed = operator(name="fixed")(partial(Model(3).holds, n=5))
    assert fixed.signature == "fixed()"
    assert fixed(EVENT) is True


def test_async_functions_and_generators() -> None:
    async def one(event: Event) -> bool:
        return True

    async def many(event: Event, n: Out[int]) -> Any:
        yield 1

    assert operator(one).is_async
    assert operator(many).is_async
    with pytest.raises(OperatorError, match="many yields, but answers a batch; return a list"):
        operator(batch=True)(many)


def _keyword(event: Event, *, metres: float) -> bool:
    return True


def _rest(event: Event, *places: str) -> bool:
    return True


def _nothing() -> bool:
    return True


def _listed(event: Event, names: list[str]) -> bool:
    return True


def _unread(event: Event, names: Nowhere) -> bool:  # type: ignore[name-defined]  # noqa: F821
    return True


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        (
            _keyword,
            {},
            "has the parameter 'metres', which a subscription cannot give; write plain parameters",
        ),
        (_rest, {}, "has the parameter 'places'"),
        (_nothing, {}, "has no parameters; its first is the event"),
        (_listed, {}, "the type of _listed's names is list.*; use int, float, str"),
        (_unread, {}, "the type 'Nowhere' of _unread's names cannot be read"),
        (lambda event: True, {}, "'<lambda>' is not a name a subscription can write; give name="),
        (near.function, {"name": "two words"}, "'two words' is not a name"),
        (near.function, {"name": "contains"}, "contains is a word of the language"),
        (near.function, {"cost": 0}, "the cost of near is 0; give seconds above 0"),
        (near.function, {"cost": float("nan")}, "the cost of near is nan"),
        (near.function, {"cost": "cheap"}, "the cost of near is 'cheap'"),
        (near.function, {"timeout": -1}, "the timeout of near is -1"),
        (near.function, {"retries": -1}, "the retries of near are -1"),
        (near.function, {"retries": True}, "the retries of near are True"),
        (5, {"name": "five"}, "made of a function, not of 5"),
    ],
)
def test_refused_operators(function: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        operator(**settings)(function)


def test_the_arguments_of_a_call() -> None:
    call = Call("spread", (Variable("d"), Literal("Bronx"), integer("3"), Variable("z")))
    spread.check(call)
    assert spread.inputs_of(call) == (Literal("Bronx"), Variable("z"))
    assert spread.outs_of(call) == (Variable("d"), integer("3"))


@pytest.mark.parametrize(
    ("used", "arguments", "message"),
    [
        (mobPattern, (), r"mobPattern has 1 argument, not 0; write it as mobPattern\(people: Out\[int\]\)"),
        (
            near,
            (Literal("x"),),
            r"near has 2 arguments, not 1; write it as near\(place: str, metres: float\)",
        ),
        (near, (Literal("x"), Literal("far")), '"far" is not an input for near.*; it needs metres: float'),
        (mobPattern, (Literal("many"),), '"many" is never what mobPattern binds there; write a .variable'),
        (mobPattern, (Literal("50"),), '"50" is never what mobPattern binds'),
        (mobPattern, (Iri("urn:x"),), "<urn:x> is never what mobPattern binds"),
    ],
)
def test_refused_calls(used: Operator, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SubscriptionError, match=message):
        used.check(Call(used.name, arguments))


@pytest.mark.parametrize(
    ("used", "arguments"),
    [
        (near, (Iri("urn:place"), Parameter("metres"))),
        (near, (Variable("p"), Literal("7.5"))),
        (mobPattern, (Parameter("people"),)),
        (mobPattern, (integer("50"),)),
        (mobPattern, (Literal("50.0", XSD + "decimal"),)),
    ],
)
def test_calls_that_fit(used: Operator, arguments: tuple[Any, ...]) -> None:
    used.check(Call(used.name, arguments))


NOON = datetime(2004, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hint", "given", "expected"),
    [
        (int, integer("5"), 5),
        (int, Literal("5"), 5),
        (int, Literal("5.0", XSD + "decimal"), 5),
        (int, Literal("5.5", XSD + "decimal"), None),
        (int, Literal("five"), None),
        (int, Iri("urn:5"), None),
        (int, True, None),
        (float, integer("5"), 5.0),
        (float, Literal("1e308"), 1e308),
        (float, Literal("1e400"), None),
        (Fraction, Literal("0.1", XSD + "decimal"), Fraction(1, 10)),
        (Decimal, Literal("0.1", XSD + "decimal"), Decimal("0.1")),
        (str, Iri("urn:x"), "urn:x"),
        (str, Literal("deux", None, "fr"), "deux"),
        (str, integer("5"), "5"),
        (str, Blank("b"), "_:b"),
        (str, 5, None),
        (bool, Literal("true", XSD + "boolean"), True),
        (bool, Literal("false", XSD + "boolean"), False),
        (bool, Literal("true"), None),
        (date, Literal("2004-01-31", XSD + "date"), date(2004, 1, 31)),
        (datetime, Literal("2004-01-31T13:00:00+01:00", XSD + "dateTime"), NOON),
        (datetime, Literal("0001-01-01T00:00:00+01:00", XSD + "dateTime"), None),
        (Iri, Iri("urn:x"), Iri("urn:x")),
        (Iri, Literal("x"), None),
        (Literal, Literal("x", None, "en"), Literal("x", None, "en")),
        (int | str, Literal("x"), "x"),
        (int | str, Literal("7"), 7),
        (Any, integer("5"), 5),
        (Any, Literal("5"), "5"),
        (Any, Literal("5.0", XSD + "decimal"), 5.0),
        (Any, Literal("x", XSD + "integer"), "x"),
        (Any, Literal("true", XSD + "boolean"), True),
        (Any, Literal("2004-01-31", XSD + "date"), date(2004, 1, 31)),
        (Any, Literal("2004-01-31T12:00:00Z", XSD + "dateTime"), NOON),
        (Any, Literal("x", "urn:type"), "x"),
        (Any, Iri("urn:x"), "urn:x"),
        (Any, 7, 7),
    ],
)
def test_inputs_as_python_values(hint: Any, given: object, expected: object) -> None:
    def function(event: Event, x: Any) -> bool:
        return True

    function.__annotations__["x"] = hint
    made = operator(function)
    if expected is None:
        with pytest.raises(SubscriptionError, match="is not an input for function"):
            made.read_inputs((given,))
    else:
        (found,) = made.read_inputs((given,))
        assert found == expected
        assert type(found) is type(expected)


def answered(answer: Any, *hints: Any) -> Outcome:
    names = [f"out{number}" for number in range(len(hints))]
    scope: dict[str, Any] = {}
    exec(f"def asked({', '.join(['event', *names])}): ...", scope)
    scope["asked"].__annotations__ = {
        name: Out if hint is Any else Out[hint] for name, hint in zip(names, hints, strict=True)
    }
    return Outcome.of(operator(scope["asked"]), answer)


@pytest.mark.parametrize(("answer", "expected"), [(True, TRUE), (False, FALSE)])
def test_answers_without_bindings(answer: object, expected: Outcome) -> None:
    assert answered(answer) == expected
    assert answered(numpy.bool_(True)) == TRUE
    assert answered(numpy.bool_(False)) == FALSE
    assert answered(False, int) == FALSE
    assert answered(None, int, str) == FALSE
    assert answered(None).error == "asked returned None; return True or False"


@pytest.mark.parametrize(
    "make",
    [list, tuple, iter, lambda values: (value for value in values), dict.fromkeys(()).__class__.fromkeys],
)
def test_collections_of_bindings(make: Callable[[list[int]], Any]) -> None:
    answer = make([3, 4])
    expected = ((3,), (4,))
    assert answered(answer.keys() if isinstance(answer, dict) else answer, int).rows == expected
    assert answered({3}, int).rows == ((3,),)
    assert answered([], int) == FALSE


def test_several_bindings_at_once() -> None:
    assert answered([(1, "a"), [2, "b"]], int, str).rows == ((1, "a"), (2, "b"))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (5, int),
        (5, float),
        (5.5, float),
        (5, Decimal),
        (Decimal("0.1"), Decimal),
        (Fraction(1, 3), Fraction),
        ("täxt", str),
        (True, bool),
        (date(2004, 1, 31), date),
        (NOON, date),
        (NOON, datetime),
        (Iri("urn:x"), Iri),
        (Literal("x", None, "en"), Literal),
        (5, int | str),
        ("five", int | str),
        (True, Any),
        (Fraction(1, 3), Any),
    ],
)
def test_values_that_are_bound(value: object, hint: Any) -> None:
    outcome = answered([value], hint)
    assert outcome == Outcome(((value,),))
    assert type(outcome.rows[0][0]) is type(value)


def test_numbers_of_numpy_become_plain_ones() -> None:
    (whole,) = answered([numpy.int64(5)], int).rows[0]
    (part,) = answered([numpy.float32(0.5)], float).rows[0]
    assert (type(whole), whole, type(part), part) == (int, 5, float, 0.5)
    assert answered(numpy.array([3, 4]), int).rows == ((3,), (4,))
    assert answered([numpy.float64("nan")], float).error is not None


@pytest.mark.parametrize(
    ("answer", "hints", "message"),
    [
        (5, (), "asked returned 5; return True or False"),
        ([5], (), "asked returned [5]; return True or False"),
        (5, (int,), "asked returned 5; yield its bindings, or return False"),
        ("text", (str,), "asked returned 'text'; yield its bindings, or return False"),
        ({"a": 1}, (str,), "asked returned {'a': 1}; yield its bindings, or return False"),
        (True, (int, str), "asked returned True, but binds out0, out1; yield its bindings, or return False"),
        (["x"], (int,), "asked yielded 'x'; yield values for out0: Out[int]"),
        ([True], (int,), "asked yielded True; yield values for out0: Out[int]"),
        ([1.0], (int,), "asked yielded 1.0; yield values for out0: Out[int]"),
        ([(1,)], (int,), "asked yielded (1,); yield values for out0: Out[int]"),
        ([None], (Any,), "asked yielded None; yield values for out0: Out"),
        ([float("nan")], (float,), "asked yielded nan; yield finite numbers for out0: Out[float]"),
        ([float("inf")], (Any,), "asked yielded inf; yield finite numbers for out0: Out"),
        ([Decimal("NaN")], (Decimal,), "asked yielded Decimal('NaN'); yield finite numbers"),
        (["\ud800"], (str,), "asked yielded '\\ud800', which has half a surrogate pair in it"),
        ((1, "a"), (int, str), "asked yielded 1; yield tuples of out0, out1"),
        ([(1,)], (int, str), "asked yielded (1,); yield tuples of out0, out1"),
        ([(1, 2)], (int, str), "asked yielded 2; yield values for out1: Out[str]"),
        (["x" * 1000], (int,), "asked yielded '" + "x" * 79),
        (["a\nb"] * 2, (int,), "asked yielded 'a\\nb'; yield"),
    ],
)
def test_answers_that_say_nothing(answer: Any, hints: tuple[Any, ...], message: str) -> None:
    outcome = answered(answer, *hints)
    assert outcome.rows == ()
    assert outcome.error is not None
    assert outcome.error.startswith(message)
    assert len(outcome.error) <= 300
    assert "\n" not in outcome.error


def test_a_generator_that_never_ends() -> None:
    def forever() -> Any:
        while True:
            yield 1

    assert answered(forever(), int).error == "asked yielded more than 10,000 bindings; make it stop"
    assert len(answered([1] * MAX_ROWS, int).rows) == MAX_ROWS


def test_a_coroutine_is_not_an_answer() -> None:
    async def later() -> bool:
        return True

    error = answered(later()).error
    assert error is not None
    assert error.endswith("write it as async def")


def test_failures_are_one_line() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert Outcome.failure(near, ValueError("a\n b")).error == "near failed: ValueError: a b"
    assert Outcome.failure(near, KeyError()).error == "near failed: KeyError"
    assert Outcome.failure(near, Odd()).error == "near failed: Odd"
    assert len(Outcome.failure(near, ValueError("x" * 10**6)).error or "") <= 300


def test_a_decorated_function_travels_by_its_name() -> None:
    again = pickle.loads(pickle.dumps(mobPattern))
    assert again is mobPattern
    renamed = pickle.loads(pickle.dumps(Operator("mob", mobPattern.function, cost=1.0)))
    assert (renamed.name, renamed.cost, renamed.function) == ("mob", 1.0, mobPattern.function)


def test_an_operator_of_no_module_travels_by_value() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    least = 10

    @operator(timeout=2, retries=1)
    def above(event: Event, n: int, rest: Out[int]) -> Any:
        return [n - least] if n > least else False

    again = pickle.loads(cloudpickle.dumps(above))
    assert again.signature == above.signature
    assert (again.timeout, again.retries) == (2, 1)
    assert again(EVENT, 15) == [5]


def test_the_event_comes_first() -> None:
    with pytest.raises(OperatorError, match=r"the first parameter of counted is n.*the event comes first"):

        @operator
        def counted(n: Out[int]) -> None: ...
