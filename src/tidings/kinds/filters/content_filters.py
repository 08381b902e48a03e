"""Converts the lists of tests at the leaves of EventBridge's patterns to conditions on one attribute.

A field meets a list if one of its values meets one of the tests. JSON's types are distinguished strictly: our own
comparisons also read a number in the text "5", so a test of numbers excludes texts. Null is the value of an attribute
that is present without a value.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from ipaddress import ip_network
from typing import Any

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.language.query import (
    And,
    AnyElement,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    Missing,
    Not,
    OneOf,
    Or,
    TextTest,
)
from tidings.model.terms import Literal
from tidings.model.values import number

Test = Callable[[Attribute], Condition]

OPERATORS = "prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, exists, cidr"
_NUMERIC_START = re.compile(r"[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]*)?")
_WILD = re.compile(r"\\[*\\]|\*\*|\\|.", re.DOTALL)
_IN_LIKE = {"*": "%", "\\*": "*", "\\\\": "\\\\", "%": "\\%", "_": "\\_"}
_BOOLEANS = (Literal("true", XSD + "boolean"), Literal("false", XSD + "boolean"))
_LEAST = Decimal("1e-9")
_ZERO, _EMPTY = Literal("0", XSD + "integer"), Literal("")


@dataclass(frozen=True, slots=True)
class Field:
    """The tests of one leaf. `needed`, if there is one, suits an index and holds wherever `exact` does.

    A field that may be absent has `exact` hold then too; `met` says that a value meets a test, if one can.
    """

    exact: Test
    met: Test | None
    needed: Test | None
    location: str

    @property
    def may_be_absent(self) -> bool:
        return self.exact is not self.met


class Object(dict[str, Any]):
    """An object as written in a JSON text, where a key may be repeated."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        listed = list(pairs)
        super().__init__(listed)
        self.repeated: str | None = None
        if len(self) < len(listed):
            self.repeated = Counter(key for key, _ in listed).most_common(1)[0][0]


def read_tests(tests: list[Any], location: str) -> Field:
    """The field with this list of tests; `location` is the list's JSON path in the pattern."""
    if not tests:
        raise refusal(location, "an empty list matches nothing; write a value or a test into it")
    texts: list[Literal] = []
    numbers: list[Literal] = []
    booleans: list[Literal] = []
    exact: list[Test] = []
    needed: list[Test | None] = []
    may_be_absent = False
    for position, test in enumerate(tests):
        at = f"{location}[{position}]"
        if isinstance(test, str):
            texts.append(_text(test, at))
        elif isinstance(test, bool):
            booleans.append(_BOOLEANS[not test])
        elif isinstance(test, int | float | Decimal):
            numbers.append(_number(test, at))
        elif test is None:
            exact.append(_null)
            needed.append(None)
        elif isinstance(test, Mapping):
            operator, argument = _only(test, at)
            if operator == "exists" and argument is False:
                may_be_absent = True
                continue
            each, simpler = _operator(operator, argument, f"{at}.{operator}")
            exact.append(each)
            needed.append(simpler)
        else:
            raise refusal(
                at, f"{format_value(test)} is no test; write a value or an object such as {{'prefix': …}}"
            )
    if numbers:
        exact.insert(0, _as_number(lambda a: _one_of(a, numbers)))
        needed.insert(0, lambda a: _one_of(a, numbers))
    for plain in (booleans, texts):
        if plain:
            exact.insert(0, lambda a, options=plain: _one_of(a, options))  # type: ignore[misc]
            needed.insert(0, exact[0])
    met: Test | None = (lambda a: any_of([each(a) for each in exact])) if exact else None
    simple = [each for each in needed if each is not None]
    return Field(
        (lambda a: any_of([*(each(a) for each in exact), absent(a)]))
        if may_be_absent or met is None
        else met,
        met,
        (lambda a: any_of([each(a) for each in simple]))
        if len(simple) == len(needed) and not may_be_absent
        else None,
        location,
    )


def _operator(operator: str, argument: Any, location: str) -> tuple[Test, Test | None]:
    """The exact test, and a simple one that is necessary for it."""
    if operator in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
        test = _text_test(operator, argument, location)
        return test, test
    if operator == "cidr":
        test = _cidr(argument, location)
        return test, test
    if operator == "numeric":
        return _numeric(argument, location)
    if operator == "anything-but":
        return _anything_but(argument, location), None
    if operator == "exists":
        if argument is not True:
            raise refusal(location, f"exists takes true or false, not {format_value(argument)}")
        return _present, None
    raise refusal(location, f"{operator!r} is no operator; there are {OPERATORS}")


def _text_test(operator: str, argument: Any, location: str) -> Test:
    if operator in ("prefix", "suffix") and isinstance(argument, Mapping):
        inner, text = _only(argument, location)
        if inner != "equals-ignore-case":
            raise refusal(location, f"{operator} takes a text or equals-ignore-case, not {inner!r}")
        folded, location = True, f"{location}.{inner}"
    else:
        folded, text = False, argument
    if not isinstance(text, str):
        raise refusal(location, f"{operator} takes a text, not {format_value(text)}")
    literal = _text(text, location)
    if operator == "equals-ignore-case":
        return lambda a: Comparison(Folded(a), "=", literal)
    if operator == "wildcard":
        like = _text(_like(text, location), location)
        return lambda a: TextTest(a, "LIKE", like)
    if not text:
        return _is_text
    op = "STARTS" if operator == "prefix" else "ENDS"
    return lambda a: TextTest(Folded(a) if folded else a, op, literal)


def _like(wildcard: str, location: str) -> str:
    """A pattern of LIKE: * stands for any run of characters, a backslash takes that meaning from * and from itself."""
    pieces = _WILD.findall(wildcard)
    if "**" in pieces:
        raise refusal(location, "two * follow each other; one is enough")
    if "\\" in pieces:
        raise refusal(location, "a backslash stands before * or another backslash only; write it twice")
    return "".join(_IN_LIKE.get(piece, piece) for piece in pieces)


def _cidr(argument: Any, location: str) -> Test:
    try:
        if not isinstance(argument, str) or "/" not in argument:
            raise ValueError
        network = Literal(str(ip_network(argument, strict=False)))
    except ValueError:
        raise refusal(
            location, f"{format_value(argument)} is no block of addresses such as '10.0.0.0/24'"
        ) from None
    return lambda a: TextTest(a, "CIDR", network)


def _numeric(argument: Any, location: str) -> tuple[Test, Test]:
    if not isinstance(argument, list) or len(argument) not in (2, 4):
        raise refusal(location, "numeric takes a list such as ['>', 0] or ['>', 0, '<=', 5]")
    bounds = []
    for position in range(0, len(argument), 2):
        op, bound = argument[position], argument[position + 1]
        if op not in ("=", "<", "<=", ">", ">="):
            raise refusal(
                f"{location}[{position}]",
                f"{format_value(op)} compares no numbers; there are =, <, <=, > and >=",
            )
        if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal):
            raise refusal(f"{location}[{position + 1}]", f"{format_value(bound)} is no number")
        bounds.append((op, _number(bound, f"{location}[{position + 1}]")))
    (op, low), *rest = bounds
    if not rest:
        return _as_number(lambda a: Comparison(a, op, low)), lambda a: Comparison(a, op, low)
    ((upper, high),) = rest
    if op not in (">", ">=") or upper not in ("<", "<="):
        raise refusal(location, "a range has its lower bound first, as in ['>', 0, '<=', 5]")
    least, most = (_moved(bound, kind) for bound, kind in ((low, op), (high, upper)))
    ends = number(least.text), number(most.text)
    if ends[0] is None or ends[1] is None:
        raise refusal(location, "a range has bounds of at most 300 digits; give one bound only")
    if ends[0] > ends[1]:
        raise refusal(location, f"no number lies between {low.text} and {high.text}; exchange them")
    return _as_number(lambda a: Between(a, least, most)), lambda a: Between(a, least, most)


def _moved(bound: Literal, op: str) -> Literal:
    """The bound of a closed range: an exclusive one moves by less than EventBridge's precision.

    If a field has several values, one of them must lie within both bounds; only BETWEEN expresses that.
    """
    if op in ("<=", ">="):
        return bound
    with localcontext(prec=350):
        moved = (Decimal(bound.text) + (_LEAST if op == ">" else -_LEAST)).normalize()
    return Literal(f"{moved:f}", XSD + "decimal")


def _anything_but(argument: Any, location: str) -> Test:
    """A value other than these; the field must be present."""
    if isinstance(argument, Mapping):
        operator, wanted = _only(argument, location)
        if operator not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
            raise refusal(
                location,
                f"anything-but takes values, prefix, suffix, equals-ignore-case or wildcard, not {operator!r}",
            )
        location = f"{location}.{operator}"
        wanted = wanted if isinstance(wanted, list) else [wanted]
        if not wanted or any(not isinstance(each, str) for each in wanted):
            raise refusal(location, f"anything-but {operator} takes a text or a list of texts")
        if operator in ("prefix", "suffix") and "" in wanted:
            raise refusal(location, f"every text has an empty {operator}, so nothing would be left")
        tests = [_text_test(operator, each, location) for each in wanted]
        texts = [_text(each, location) for each in wanted]
        if operator == "equals-ignore-case":
            return _unlike(
                lambda a: _none_of(Folded(a), texts), any(_numeric_start(each, True) for each in wanted)
            )
        if operator == "prefix" and len(wanted) == 1:
            return _unlike(lambda a: _outside(a, texts[0]), _numeric_start(wanted[0]))
        return lambda a: any_of(
            [_any_value(a, lambda x: [_scalar(x), *(Not(test(x)) for test in tests)]), _null(a)]
        )
    options = argument if isinstance(argument, list) else [argument]
    if options and all(isinstance(each, str) for each in options):
        texts = [_text(each, location) for each in options]
        return _unlike(lambda a: _none_of(a, texts), any(_numeric_start(each, True) for each in options))
    if options and all(
        isinstance(each, int | float | Decimal) and not isinstance(each, bool) for each in options
    ):
        numbers = [_number(each, location) for each in options]
        return lambda a: any_of([_none_of(a, numbers), _is_text(a), _one_of(a, _BOOLEANS), _null(a)])
    raise refusal(location, "anything-but takes a text, a number, or a list of only texts or only numbers")


def _unlike(other_text: Test, numeric: bool) -> Test:
    """Another text, or no text at all. A number is no text, but equals one of the texts where they are `numeric`."""
    is_number = _as_number(_any_number) if numeric else _any_number
    return lambda a: any_of([other_text(a), is_number(a), _one_of(a, _BOOLEANS), _null(a)])


def _numeric_start(text: str, whole: bool = False) -> bool:
    """Whether a text that starts with this one, or is equal to it if `whole`, may read as a number."""
    return number(text) is not None if whole else _NUMERIC_START.fullmatch(text) is not None


def _outside(attribute: Attribute, prefix: Literal) -> Condition:
    """A text without this prefix: it sorts before or after all texts that have it."""
    last = ord(prefix.text[-1])
    if last == sys.maxunicode:
        shorter = prefix.text.rstrip(chr(sys.maxunicode))
        behind = shorter[:-1] + chr(ord(shorter[-1]) + 1) if shorter else ""
    else:
        behind = prefix.text[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
    before = Comparison(attribute, "<", prefix)
    return Or((before, Comparison(attribute, ">=", Literal(behind)))) if behind else before


# -- conditions


def _as_number(test: Test) -> Test:
    """The test for numbers alone: in our language a text that reads as a number is one as well.

    Not by ANY, which would be evaluated for every event and constant. An event's id is a text beside the one given.
    """
    return lambda a: test(a) if a.path == "id" else And((test(a), Not(_is_text(a))))


def _any_value(attribute: Attribute, conditions: Callable[[Attribute], list[Condition]]) -> Condition:
    return AnyElement("x", attribute, all_of(conditions(Attribute("x"))))


def _is_text(attribute: Attribute) -> Condition:
    return Comparison(attribute, ">=", _EMPTY)


def _any_number(attribute: Attribute) -> Condition:
    return Or((Comparison(attribute, ">=", _ZERO), Comparison(attribute, "<", _ZERO)))


def _scalar(attribute: Attribute) -> Condition:
    return any_of([_is_text(attribute), _any_number(attribute), _one_of(attribute, _BOOLEANS)])


def _null(attribute: Attribute) -> Condition:
    return And((Not(Missing(attribute)), Not(Exists(attribute))))


def _present(attribute: Attribute) -> Condition:
    """A field is present as a leaf only: an object is not a leaf, null is one."""
    return And((Not(Missing(attribute)), any_of([_scalar(attribute), Not(Exists(attribute))])))


def absent(attribute: Attribute) -> Condition:
    """A field is absent: it has no value, or objects alone."""
    return Or((Missing(attribute), And((Exists(attribute), Not(_scalar(attribute))))))


def _one_of(attribute: Attribute, options: Iterable[Literal]) -> Condition:
    unique = tuple(dict.fromkeys(options))
    return OneOf(attribute, unique) if len(unique) > 1 else Comparison(attribute, "=", unique[0])


def _none_of(attribute: Attribute | Folded, options: Iterable[Literal]) -> Condition:
    unique = tuple(dict.fromkeys(options))
    return (
        OneOf(attribute, unique, negated=True) if len(unique) > 1 else Comparison(attribute, "!=", unique[0])
    )


def all_of(conditions: list[Condition]) -> Condition:
    parts = [p for each in conditions for p in (each.parts if isinstance(each, And) else (each,))]
    unique = tuple(dict.fromkeys(parts))
    return And(unique) if len(unique) > 1 else unique[0]


def any_of(conditions: list[Condition]) -> Condition:
    parts = [p for each in conditions for p in (each.parts if isinstance(each, Or) else (each,))]
    unique = tuple(dict.fromkeys(parts))
    return Or(unique) if len(unique) > 1 else unique[0]


# -- values


def _text(text: str, location: str) -> Literal:
    if not is_whole(text):
        raise refusal(location, f"{format_value(text)} has half a surrogate pair in it; correct its Unicode")
    return Literal(text)


def _number(value: float | Decimal, location: str) -> Literal:
    text = str(value) if isinstance(value, int | Decimal) else repr(value)
    if number(text) is None:
        raise refusal(
            location,
            f"{format_value(value)} is no number that can be compared; write one of at most 400 digits",
        )
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Literal(text, XSD + kind)


def _only(test: Mapping[str, Any], location: str) -> tuple[str, Any]:
    if len(test) != 1 or (isinstance(test, Object) and test.repeated is not None):
        raise refusal(
            location, "a test is an object with one operator; write several tests as several objects"
        )
    return next(iter(test.items()))


def is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def format_value(value: object) -> str:
    """A value in an error's sentence."""
    named = {type(None): "null", bool: str(value).lower()}
    text = named.get(type(value)) or repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def refusal(location: str, sentence: str) -> SubscriptionError:
    """The error at a location in the pattern."""
    return SubscriptionError(f"{location}: {sentence}")
