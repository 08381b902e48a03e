"""Seeded random filters and events over a small vocabulary, so that most filters have something to match.

`condition(rng, depth)` and `attributes(rng)` know every form: nested paths, lists, null, numbers and dates as texts,
values of the wrong kind. With `flat` they keep to the scalar columns of a SQL table, `COLUMNS`, absent instead of
null and each of one kind; with `lists` besides to its columns of lists and of records, `LISTS`.
"""

from __future__ import annotations

import random
from typing import Any

from tidings.formats.namespaces import XSD
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    Missing,
    Not,
    OneOf,
    Operand,
    Or,
    TextTest,
)
from tidings.model.terms import Iri, Literal

COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]
INTEGERS: list[Any] = [0, 1, 2, 3, 4, 5, -2]
NUMBERS: list[Any] = [0.25, 0.5, 1.5, 2.5, 2.0, 4, -0.5]
BIG: list[Any] = [2**53, 2**53 + 1, 2**63, 2**64 + 1, -(2**53) - 1, 3]
TEXTS: list[Any] = ["red", "Red", "green", "dark red", "Zürich", "ZÜRICH", "100% red", "r_d", ""]
DATES: list[Any] = ["2004-01-31", "2004-02-29", "2005-12-24"]
TRUTHS: list[Any] = [True, False]
ADDRESSES: list[Any] = ["10.0.0.1", "10.1.2.3", "192.168.7.7", "::ffff:10.0.0.1", "2001:db8::1", "10.0.0"]

# Columns of a table: the name, its SQL type, what it holds.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "i": ("BIGINT", INTEGERS),
    "j": ("BIGINT", INTEGERS),
    "x": ("DOUBLE", NUMBERS),
    "y": ("DOUBLE", NUMBERS),
    "big": ("HUGEINT", BIG),
    "s": ("VARCHAR", TEXTS),
    "t": ("VARCHAR", TEXTS),
    "ok": ("BOOLEAN", TRUTHS),
    "day": ("DATE", DATES),
}
LISTS = {
    "tags": "VARCHAR[]",
    "sizes": "DOUBLE[]",
    "items": "STRUCT(price DOUBLE, colour VARCHAR)[]",
}
LISTED: dict[str, list[Any]] = {
    "tags": TEXTS,
    "sizes": NUMBERS,
    "items.price": NUMBERS,
    "items.colour": TEXTS,
}
# What can be asked of an element of each list of a table.
OF_ELEMENTS: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "tags": ("tag", {"tag": TEXTS}),
    "sizes": ("size", {"size": NUMBERS}),
    "items": ("record", {"record.price": NUMBERS, "record.colour": TEXTS}),
}
NESTED: dict[str, list[Any]] = {
    "user.age": INTEGERS,
    "user.name": TEXTS,
    "user.home.ip": ADDRESSES,
    "tags": TEXTS,
    "sizes": [*INTEGERS, *NUMBERS],
    "items": [*INTEGERS, *TEXTS],
    "items.price": [*INTEGERS, *NUMBERS],
    "items.colour": TEXTS,
    "nowhere": INTEGERS,
}
ELEMENTS: dict[str, list[Any]] = {
    "item": [*INTEGERS, *TEXTS],
    "item.price": [*INTEGERS, *NUMBERS],
    "item.colour": TEXTS,
    "item.sizes": INTEGERS,
}
ODD_VALUES: list[Any] = [
    None,
    [],
    {},
    [None],
    "3",
    "2.50",
    "1e2",
    0.1,
    "2004-01-31T10:00:00Z",
    "2004-01-31T11:00:00+01:00",
    "true",
    True,
    "red",
    2**53 + 1,
    str(2**53 + 1),
    {"age": 3, "price": 2},
    [1, [2, [None, "red"]]],
]
ODD_CONSTANTS: list[Any] = [
    3,
    "3",
    2.5,
    100,
    0.1,
    "red",
    True,
    "2004-01-31",
    2**53 + 1,
    Iri("urn:tidings:red"),
]
PATTERNS = [
    ("LIKE", "%red"),
    ("LIKE", "_ed"),
    ("LIKE", "100\\%%"),
    ("LIKE", "r\\_d"),
    ("LIKE", "%r%d%"),
    ("LIKE", ""),
    ("CONTAINS", "re"),
    ("CONTAINS", ""),
    ("CONTAINS", "%"),
    ("STARTS", "dark"),
    ("STARTS", "R"),
    ("ENDS", "ed"),
    ("ENDS", "CH"),
    ("MATCHES", "^(red|green)$"),
    ("MATCHES", "[0-9]+"),
]
SEARCHES = [
    ("SEARCH", "red"),
    ("SEARCH", "zurich OR (dark -green)"),
    ("SEARCH", '"dark red" OR 100 -d'),
    ("SEARCH", "green -(dark red)"),
    ("SEARCH english", "reds"),
    ("SEARCH english", '"darks reds" OR greens -red'),
]
NETWORKS = ["10.0.0.0/8", "10.1.0.0/16", "192.168.7.7", "2001:db8::/32", "::ffff:0:0/96"]
WORDS = {name: held for name, (_, held) in COLUMNS.items()}


def attributes(rng: random.Random, flat: bool = False, lists: bool = False) -> dict[str, Any]:
    """What one event says."""
    found: dict[str, Any] = {}
    for name, (_, held) in COLUMNS.items():
        if rng.random() < 0.75:
            found[name] = rng.choice(held) if flat or lists else _value(rng, held)
    if lists:
        for name, (_, parts) in OF_ELEMENTS.items():
            if rng.random() < 0.75:
                found[name] = [_element(rng, parts) for _ in range(rng.randrange(4))]
    if flat or lists:
        return found
    if rng.random() < 0.7:
        home = {"ip": _value(rng, ADDRESSES)}
        found["user"] = {"age": _value(rng, INTEGERS), "name": _value(rng, TEXTS), "home": home}
    if rng.random() < 0.2:
        found["user.age"] = _value(rng, INTEGERS)  # the same path, written flat
    if rng.random() < 0.1:
        found["item.price"] = 1  # hidden where `item` is an element
    if rng.random() < 0.6:
        found["tags"] = [_value(rng, TEXTS) for _ in range(rng.randrange(4))]
    if rng.random() < 0.6:
        found["sizes"] = [rng.choice([*INTEGERS, *NUMBERS]) for _ in range(rng.randrange(4))]
    if rng.random() < 0.7:
        items = [_item(rng) for _ in range(rng.randrange(4))]
        found["items"] = rng.choice([items, items, items, [items, [_item(rng)]], _item(rng)])
    return found


def _value(rng: random.Random, held: list[Any]) -> Any:
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(ODD_VALUES)
    return rng.sample(held, 2) if kind < 0.25 else rng.choice(held)


def _element(rng: random.Random, parts: dict[str, list[Any]]) -> Any:
    if len(parts) == 1:
        return rng.choice([*next(iter(parts.values())), None])
    return {name.partition(".")[2]: rng.choice(held) for name, held in parts.items() if rng.random() < 0.8}


def _item(rng: random.Random) -> Any:
    if rng.random() < 0.1:
        return rng.choice([*INTEGERS, *TEXTS, None])
    sizes = [rng.choice(INTEGERS) for _ in range(rng.randrange(3))]
    parts = {"price": _value(rng, NUMBERS), "colour": _value(rng, TEXTS), "sizes": sizes}
    return {name: value for name, value in parts.items() if rng.random() < 0.8}


def condition(rng: random.Random, depth: int, flat: bool = False, lists: bool = False) -> Condition:
    """A condition whose AND, OR and NOT nest up to `depth` deep."""
    if flat or lists:
        return _condition(rng, depth, True, {**WORDS, **LISTED} if lists else WORDS)
    return _condition(rng, depth, False, {**WORDS, **NESTED})


def _condition(rng: random.Random, depth: int, flat: bool, names: dict[str, list[Any]]) -> Condition:
    if depth == 0 or (kind := rng.random()) < 0.2:
        return _leaf(rng, flat, names)
    if kind < 0.35:
        return Not(_condition(rng, depth - 1, flat, names))
    if kind < 0.45 and (not flat or "tags" in names):
        return (_any_of_a_table if flat else _any_element)(rng, depth - 1, names)
    join = rng.choice([And, Or])
    parts: list[Condition] = []
    for _ in range(rng.choice([2, 2, 3])):
        part = _condition(rng, depth - 1, flat, names)
        parts += part.parts if isinstance(part, join) else (part,)  # as the language reads them
    return join(tuple(parts))


def _any_element(rng: random.Random, depth: int, names: dict[str, list[Any]]) -> AnyElement:
    if "item.sizes" in names and rng.random() < 0.5:
        return AnyElement("size", Attribute("item.sizes"), _condition(rng, depth, False, {"size": INTEGERS}))
    path = rng.choice(["items", "items", "items", "tags", "items.sizes", "user", "i"])
    outer = {name: names[name] for name in rng.sample(sorted(names), min(2, len(names)))}
    return AnyElement("item", Attribute(path), _condition(rng, depth, False, {**outer, **ELEMENTS}))


def _any_of_a_table(rng: random.Random, depth: int, names: dict[str, list[Any]]) -> AnyElement:
    path = rng.choice(list(OF_ELEMENTS))
    name, parts = OF_ELEMENTS[path]
    outer = {n: names[n] for n in ["tags", *rng.sample(sorted(names), 2)]}
    return AnyElement(name, Attribute(path), _condition(rng, depth, True, {**outer, **parts}))


def _leaf(rng: random.Random, flat: bool, names: dict[str, list[Any]]) -> Condition:
    name = rng.choice(list(names))
    held, attribute = names[name], Attribute(name)
    texts = held is TEXTS or (not flat and rng.random() < 0.1)
    operand: Operand = Folded(attribute) if texts and rng.random() < 0.3 else attribute
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([Exists, Missing])(attribute)
    if held is ADDRESSES and kind < 0.6:
        return TextTest(attribute, "CIDR", Literal(rng.choice(NETWORKS)))
    if texts and kind < 0.45:
        op, pattern = rng.choice(PATTERNS if flat or rng.random() < 0.7 else SEARCHES)
        is_plain = op == "MATCHES" or op.startswith("SEARCH")
        return TextTest(attribute if is_plain else operand, op, Literal(pattern))
    if kind < 0.5:
        constants = [_constant(rng, held, flat) for _ in range(rng.choice([1, 2, 3, 3]))]
        return OneOf(operand, tuple(dict.fromkeys(constants)), rng.random() < 0.4)
    if kind < 0.6:
        return Between(operand, _constant(rng, held, flat), _constant(rng, held, flat))
    if kind < 0.7:
        others = [n for n in names if not flat or _comparable(held, names[n])]
        return Comparison(operand, rng.choice(COMPARISONS), Attribute(rng.choice(others)))
    if kind < 0.85 and (not flat or held in (INTEGERS, NUMBERS)):
        return _calculation(rng, flat, names)
    return Comparison(operand, rng.choice(COMPARISONS), _constant(rng, held, flat))


def _calculation(rng: random.Random, flat: bool, names: dict[str, list[Any]]) -> Comparison:
    """A comparison with arithmetic. A quotient is not calculated with further: SQL would round it."""
    numeric = [name for name in names if not flat or names[name] in (INTEGERS, NUMBERS)]

    def side(depth: int) -> Any:
        kind = rng.random()
        if depth == 0 or kind < 0.2:
            numbers = [*INTEGERS, *NUMBERS]
            return Attribute(rng.choice(numeric)) if kind < 0.7 else constant(rng.choice(numbers))
        op = rng.choice(["+", "-", "*", "/"] if depth == 2 else ["+", "-", "*"])
        return Arithmetic(op, side(depth - 1), side(depth - 1))

    left = Arithmetic(rng.choice(["+", "-", "*", "/"]), Attribute(rng.choice(numeric)), side(1))
    return Comparison(left, rng.choice(COMPARISONS), side(2))


def _comparable(held: list[Any], other: list[Any]) -> bool:
    """Whether SQL compares two columns as Tidings does: exactly, or not at all."""
    return held is other or (held in (INTEGERS, NUMBERS) and other in (INTEGERS, NUMBERS, TEXTS))


def _constant(rng: random.Random, held: list[Any], flat: bool) -> Iri | Literal:
    if rng.random() < 0.15:
        # SQL rounds beside a fraction, and its dates have no text.
        exact = flat and (held is BIG or held is DATES)
        return constant(rng.choice([3, True] if exact else ODD_CONSTANTS))
    if held is DATES:
        text = rng.choice(DATES)
        return Literal(text, XSD + "date") if flat or rng.random() < 0.8 else Literal(text)
    return constant(rng.choice(held))


def constant(value: Any) -> Iri | Literal:
    """A Python value as the language writes it."""
    if isinstance(value, Iri):
        return value
    if isinstance(value, bool):
        return Literal(str(value).lower(), XSD + "boolean")
    if isinstance(value, int):
        return Literal(str(value), XSD + "integer")
    if isinstance(value, float):
        return Literal(repr(value), XSD + "decimal")
    return Literal(value)
