"""The catalogue: operators that are given, those of installed packages and of files, and conditions that call them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.kinds.operators.functions.catalogue import Catalogue, read_operators
from tidings.kinds.operators.functions.operator import OperatorError, Out, operator
from tidings.language.query import And, Call, Comparison, Condition, Not, Or, TriplePattern, Variable
from tidings.model.event import Event
from tidings.model.terms import Iri, Literal

EVENT = Event(attributes={"n": 1})
X, Y, Z = Variable("x"), Variable("y"), Variable("z")
FIVE = Literal("5", XSD + "integer")


@operator
def locIn(event: Event, place: str) -> bool:
    return True


@operator
def distanceFrom(event: Event, place: str, metres: Out[float]) -> Any:
    yield 1


@operator
def mobPattern(event: Event, people: Out[int]) -> Any:
    yield 1


KNOWN = Catalogue([locIn, distanceFrom, mobPattern])


def triple(*nodes: Any) -> TriplePattern:
    return TriplePattern(*[node if isinstance(node, Variable) else Iri(node) for node in nodes])


def distance(place: Any, metres: Any) -> Call:
    return Call("distanceFrom", (place, metres))


def test_operators_by_name() -> None:
    assert KNOWN.find("locIn") is locIn
    assert list(KNOWN) == [locIn, distanceFrom, mobPattern]
    assert Catalogue({"locIn": locIn}).find("locIn") is locIn
    assert Catalogue([locIn, locIn]).find("locIn") is locIn
    renamed = Catalogue({"inside": locIn}).find("inside")
    assert (renamed.name, renamed.function) == ("inside", locIn.function)


def test_an_unknown_name() -> None:
    with pytest.raises(
        SubscriptionError,
        match="unknown operator 'locln'; did you mean 'locIn'. known are .*locIn, mobPattern",
    ):
        KNOWN.find("locln")
    with pytest.raises(SubscriptionError, match="unknown operator 'weather'; known are .*distanceFrom, "):
        KNOWN.find("weather")
    many = Catalogue({f"a{n}": locIn for n in range(20)})
    with pytest.raises(SubscriptionError, match="a0, a1, .* and .* more"):
        many.find("weather")


def test_operators_that_are_none() -> None:
    with pytest.raises(
        OperatorError, match="is not an operator; decorate the function with @tidings.operator"
    ):
        Catalogue([locIn.function])  # type: ignore[list-item]
    other = operator(name="locIn")(mobPattern.function)
    with pytest.raises(
        OperatorError, match="two operators are named 'locIn'; give one of them another name="
    ):
        Catalogue([locIn, other])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with a distribution that offers operators."""
    (tmp_path / "tiny_operators.py").write_text(
        "import tidings\n@tidings.operator\ndef tall(event, metres: float): return metres > 100\nplain = 5\n"
    )
    (tmp_path / "tiny_broken.py").write_text("import no_such_library\n")
    info = tmp_path / "tiny-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tidings.operators]\n"
        "tall = tiny_operators:tall\n"
        "high = tiny_operators:tall\n"
        "number = tiny_operators:plain\n"
        "broken = tiny_broken:x\n"
        "gone = tiny_operators:gone\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("tiny_operators", "tiny_broken"):
        sys.modules.pop(name, None)


def test_operators_of_installed_packages(installed: Path) -> None:
    catalogue = Catalogue([locIn])
    assert {"broken", "high", "locIn", "tall"} <= set(catalogue.names())
    assert "tiny_operators" not in sys.modules
    tall = catalogue.find("tall")
    assert tall(EVENT, 101.0) is True
    assert catalogue.find("tall") is tall
    assert (catalogue.find("high").name, catalogue.find("high").function) == ("high", tall.function)
    with pytest.raises(SubscriptionError, match="unknown operator 'tal'; did you mean 'tall'"):
        catalogue.find("tal")


def test_operators_that_are_given_come_first(installed: Path) -> None:
    assert Catalogue({"tall": locIn}).find("tall").function is locIn.function
    assert "tiny_operators" not in sys.modules


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "broken",
            r"the operator 'broken' of tiny \(tiny_broken:x\) cannot be loaded: ModuleNotFoundError: No",
        ),
        ("gone", "cannot be loaded: AttributeError: .*gone"),
        ("number", "is 5, not an operator; its package must decorate it"),
    ],
)
def test_broken_packages(installed: Path, name: str, message: str) -> None:
    with pytest.raises(SubscriptionError, match=message):
        Catalogue().find(name)


def test_two_packages_with_one_name(installed: Path) -> None:
    info = installed / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tidings.operators]\ntall = other:tall\n")
    with pytest.raises(
        SubscriptionError, match="'tall' is offered by .* and .*; give the engine the one you mean"
    ):
        Catalogue().find("tall")


def test_operators_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "json.py"  # a name that is taken
    path.write_text(
        "from __future__ import annotations\n"
        "from tidings import Out, operator\n"
        "LEAST = 3\n"
        "@operator\n"
        "def first(event, n: Out[int]):\n    yield LEAST\n"
        "@operator(name='second')\n"
        "async def other(event): return True\n"
        "again = first\n"
    )
    first, second = read_operators(str(path))
    assert (first.name, second.name, second.is_async) == ("first", "second", True)
    assert list(first(EVENT)) == [3]
    assert sys.modules["json"].__file__ != str(path)


def test_operators_of_a_module(installed: Path) -> None:
    (tall,) = read_operators("tiny_operators")
    assert tall is sys.modules["tiny_operators"].tall


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file .*ops.py; give the path of a Python file"),
        ("x = 5", "ops.py has no operators; decorate its functions with @tidings.operator"),
        ("def (", r"ops.py cannot be loaded: SyntaxError: .*line 1"),
        (
            "import no_such_library",
            "cannot be loaded: ModuleNotFoundError: No module named 'no_such_library'; correct",
        ),
        ("open('/no/such/file')", "cannot be loaded: FileNotFoundError"),
        ("raise SystemExit(2)", "cannot be loaded: SystemExit: 2"),
        ("\0", "cannot be loaded: .*null"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "ops.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OperatorError, match=message):
        read_operators(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module", "there is no module 'no_such_module'; install it, or give the path of a file"),
        ("tidings.nowhere", "there is no module 'tidings.nowhere'"),
        ("no_such.module", "there is no module 'no_such.module'"),
        (
            "tiny_broken",
            "tiny_broken cannot be loaded: ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("", "there is no module|cannot be loaded"),
        ("tidings.errors", "tidings.errors has no operators"),
    ],
)
def test_modules_that_cannot_be_used(installed: Path, name: str, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        read_operators(name)


BRONX = Literal("Bronx")


@pytest.mark.parametrize(
    "condition",
    [
        Call("locIn", (BRONX,)),
        And((Call("mobPattern", (X,)), Comparison(X, ">", FIVE))),
        And((distance(X, Y), triple(Z, "urn:p", X))),
        And((distance(X, Y), distance(Y, Z), distance(BRONX, X))),
        # The triple of the inner AND binds what the outer call needs, whose result the inner call waits for.
        And((And((distance(X, Y), triple(Z, "urn:p", "urn:q"))), distance(Z, X))),
        And((Or((distance(BRONX, X), triple(X, "urn:p", Y))), Call("locIn", (X,)))),
        And((Or((distance(X, Y), Call("locIn", (X,)))), triple(X, "urn:p", Z))),
        And((Not(distance(X, FIVE)), triple(X, "urn:p", Z))),
        Not(And((distance(X, FIVE), Call("mobPattern", (X,))))),
        Comparison(X, ">", FIVE),
        And(()),
    ],
)
def test_conditions_that_can_be_decided(condition: Condition) -> None:
    KNOWN.check_query(condition)


LOOSE = r"\?x is an input of distanceFrom; bind it in a triple or another call, or give a constant"
ELSEWHERE = r"\?x is an input of distanceFrom, but is bound only in another part of an OR or under NOT"
CIRCLE = r"\?x is an input of distanceFrom, but what would bind it waits for that itself; bind it in a triple"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Call("locln", (BRONX,)), "unknown operator 'locln'; did you mean 'locIn'"),
        (Or((triple(X, "urn:p", Y), Call("locIn", ()))), "locIn has 1 argument, not 0"),
        (distance(X, Y), LOOSE),
        (And((distance(X, Y), Comparison(X, ">", FIVE))), LOOSE),
        (And((distance(X, Y), Not(Call("mobPattern", (X,))))), ELSEWHERE),
        (Or((distance(X, Y), Call("mobPattern", (X,)))), ELSEWHERE),
        (And((distance(X, Y), Or((triple(X, "urn:p", Z), triple(Z, "urn:p", Z))))), ELSEWHERE),
        (distance(X, X), CIRCLE),
        (And((distance(X, Y), distance(Y, X))), CIRCLE),
        (And((distance(X, Y), Call("locIn", (BRONX,)), distance(Y, Z), distance(Z, X))), CIRCLE),
        (And((triple(Z, "urn:p", Y), Not(distance(X, Y)))), LOOSE),
    ],
)
def test_conditions_that_cannot_be_decided(condition: Condition, message: str) -> None:
    with pytest.raises(SubscriptionError, match=message):
        KNOWN.check_query(condition)


def test_what_is_bound_outside() -> None:
    KNOWN.check_query(distance(X, Y), bound=[X])
    with pytest.raises(SubscriptionError, match=LOOSE):
        KNOWN.check_query(distance(X, Y), bound=[Y])
