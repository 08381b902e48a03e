"""The workloads of conjunctions: filled-in forms, as an application makes them.

A form fixes attributes and operators, a subscriber fills in the constants. They are taken from one event of a
population, so that every conjunction holds for something that happens. The population has one event for so many
conjunctions as an event is to match, so their number does not change what an event matches.

`make` draws forms over 1,000 anonymous attributes; `make_rules` rules of six conditions over the events of a shop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.expression_kernels import AND, EQUAL, IN, RANGE, UNEQUAL, Trees
from benchmarks.filter_workloads import Events, Expressions, Longs, Names, Shorts, Workload, zipf

_ABSENT = -1
_HOMES = 3  # forms that fit an event


@dataclass(frozen=True, slots=True)
class Parameters:
    """As ABE-Gen's where they have a meaning for conjunctions; `predicates`: fewest and most of a form."""

    conjunctions: int = 3_000_000
    matches: int = 100
    events: int = 200
    forms: int = 1000
    predicates: tuple[int, int] = (4, 6)
    dimensions: int = 1000
    zipf: float = 1.0
    cardinality: int = 100
    pairs: int = 20
    seed: int = 2009


@dataclass(frozen=True, slots=True)
class Form:
    """The conjunctions first … first + len(constants) - 1. Predicate j has the constants of the columns `columns[j]`:
    a value, a range's two ends, or an IN's options."""

    first: int
    attributes: tuple[int, ...]
    kinds: tuple[int, ...]
    columns: tuple[slice, ...]
    constants: Shorts


@dataclass(frozen=True, slots=True)
class Conjunctions(Workload):
    forms: Sequence[Form]


@dataclass(frozen=True, slots=True)
class _Blank:
    """A form that nobody has filled in: attribute, operator and number of options of each predicate."""

    attributes: tuple[int, ...]
    kinds: tuple[int, ...]
    options: tuple[int, ...]


def make(parameters: Parameters) -> Conjunctions:
    """Conjunctions over anonymous attributes: = 45 %, IN 45 %, range 10 %."""
    rng = np.random.default_rng(parameters.seed)
    p = zipf(parameters.dimensions, parameters.zipf)
    blanks = []
    for _ in range(parameters.forms):
        count = int(rng.integers(parameters.predicates[0], parameters.predicates[1] + 1))
        attributes = rng.choice(parameters.dimensions, count, replace=False, p=p)
        kinds = rng.choice((EQUAL, IN, RANGE), count, p=(0.45, 0.45, 0.1))
        blanks.append(_blank(attributes, kinds, rng))
    population = max(1, parameters.conjunctions // parameters.matches)
    homes = rng.integers(0, parameters.forms, (population, _HOMES))
    dense = np.full((population, parameters.dimensions), _ABSENT, np.int16)
    fitting = [np.array(blank.attributes) for blank in blanks]
    logs = np.log(p).astype(np.float32)
    for row in range(
        population
    ):  # the largest keys log p + Gumbel are a weighted sample; a home's come first
        keys = logs + rng.gumbel(size=parameters.dimensions).astype(np.float32)
        for form in homes[row].tolist():
            keys[fitting[form]] += 1000
        chosen = np.argpartition(-keys, parameters.pairs)[: parameters.pairs]
        dense[row, chosen] = rng.integers(0, parameters.cardinality, parameters.pairs)
    events = np.arange(parameters.conjunctions) % population
    chosen_home = homes[events, rng.integers(0, _HOMES, len(events))]
    forms = _fill(
        blanks, chosen_home, events, dense, np.full(parameters.dimensions, parameters.cardinality), rng
    )
    names = Names(
        [f"a{n}" for n in range(parameters.dimensions)],
        [range(parameters.cardinality)] * parameters.dimensions,
    )
    return Conjunctions(_expressions(forms), _pairs(dense[: parameters.events]), names, forms)


_COUNTRIES = (
    "DE US GB FR IT ES PL NL BR IN JP CN CA AU MX SE AT CH BE DK NO FI CZ PT IE GR RO HU TR ZA".split()
)
_EVENTS = "viewed added removed ordered paid shipped delivered returned reviewed abandoned".split()
_SEGMENTS = "new returning loyal business student staff guest".split()
_WORDS = (
    "aurora basalt cedar delta ember falcon garnet harbor indigo juniper krypton linden meadow nimbus opal prairie quartz "
    "river saffron tundra umber velvet willow xenon yarrow zephyr"
).split()
_GOODS = (
    "shoes jackets lamps chairs phones laptops bikes tents books games watches bags cameras skis pans".split()
)
_SHOP: dict[
    str, tuple[Sequence[str | int | float], float]
] = {  # member -> its values, the more frequent first, Zipf
    "event": ([f"item.{word}" for word in _EVENTS], 0.5),
    "country": (_COUNTRIES, 0.6),
    "city": ([f"{a.title()} {b.title()}" for a in _WORDS[:12] for b in _WORDS[12:]], 0.5),
    "category": ([f"{good}/{word}" for good in _GOODS for word in _WORDS[:12]], 0.5),
    "brand": ([f"{a.title()}{b}" for a in _WORDS for b in _WORDS[:10]], 0.5),
    "segment": (_SEGMENTS, 0.3),
    "channel": ("search mail social direct partner app store".split(), 0.3),
    "campaign": ([f"{word}-2026-{month:02}" for word in _WORDS[:10] for month in range(1, 13)], 0.3),
    "price": ([round(0.99 + 0.5 * n, 2) for n in range(1000)], 0.0),
    "quantity": (list(range(1, 41)), 0.0),
    "age": (list(range(18, 88)), 0.0),
    "weight": ([round(0.1 * n, 1) for n in range(1, 301)], 0.0),
}
_OPTIONAL = {"campaign": 0.5, "weight": 0.7}  # member -> share of events that have it


def make_rules(
    rules: int = 100_000, events: int = 10_000, planted: int = 9, seed: int = 2009
) -> Conjunctions:
    """Rules of six conditions over the events of a shop, half of them on texts or more; about ten hold for an event."""
    rng = np.random.default_rng(seed)
    members = list(_SHOP)
    sizes = np.array([len(values) for values, _ in _SHOP.values()])
    texts = [i for i, (values, _) in enumerate(_SHOP.values()) if isinstance(values[0], str)]
    numbers = [i for i in range(len(members)) if i not in texts]
    blanks = []
    for _ in range(200):
        count = int(rng.integers(4, 6))
        chosen = np.concatenate([rng.permutation(texts)[:count], rng.permutation(numbers)[: 6 - count]])
        kinds = np.where(
            np.arange(6) < count, rng.choice((EQUAL, IN, UNEQUAL), 6, p=(0.65, 0.3, 0.05)), np.full(6, RANGE)
        )
        blanks.append(_blank(chosen, kinds, rng))
    population = max(1, rules // planted)
    dense = np.empty((population, len(members)), np.int16)
    for i, (values, exponent) in enumerate(_SHOP.values()):
        dense[:, i] = rng.choice(len(values), population, p=zipf(len(values), exponent))
        dense[rng.random(population) > _OPTIONAL.get(members[i], 1.0), i] = _ABSENT
    home = np.arange(rules) % population
    fits = np.array([(dense[:, blank.attributes] != _ABSENT).all(axis=1) for blank in blanks]).T
    form = np.where(fits[home], rng.random((rules, len(blanks)), np.float32), 0).argmax(axis=1)
    forms = _fill(blanks, form, home, dense, sizes, rng)
    names = Names(members, [values for values, _ in _SHOP.values()])
    return Conjunctions(_expressions(forms), _pairs(dense[:events]), names, forms)


def _blank(attributes: Longs, kinds: Longs, rng: np.random.Generator) -> _Blank:
    options = np.where(kinds == IN, rng.integers(2, 7, len(kinds)), np.where(kinds == RANGE, 2, 1))
    return _Blank(tuple(attributes.tolist()), tuple(kinds.tolist()), tuple(options.tolist()))


def _fill(
    blanks: Sequence[_Blank], form: Longs, event: Longs, dense: Shorts, sizes: Longs, rng: np.random.Generator
) -> list[Form]:
    """Each conjunction's form with constants that hold for its event."""
    order = np.argsort(form, kind="stable")
    bounds = np.searchsorted(form[order], np.arange(len(blanks) + 1))
    forms = []
    for number, blank in enumerate(blanks):
        rows = order[bounds[number] : bounds[number + 1]]
        columns, at = [], 0
        for count in blank.options:
            columns.append(slice(at, at + count))
            at += count
        constants = np.empty((len(rows), at), np.int16)
        for attribute, kind, column in zip(blank.attributes, blank.kinds, columns, strict=True):
            own = dense[event[rows], attribute].astype(np.int64)
            constants[:, column] = _constants(
                own, kind, column.stop - column.start, int(sizes[attribute]), rng
            )
        forms.append(Form(int(bounds[number]), blank.attributes, blank.kinds, tuple(columns), constants))
    return forms


def _constants(
    own: Longs, kind: int, count: int, size: int, rng: np.random.Generator
) -> npt.NDArray[np.integer]:
    if kind == EQUAL:
        return own[:, None]
    if kind == RANGE:
        width = rng.integers(1, max(2, size // 5), len(own))
        low = np.maximum(own - (rng.random(len(own)) * width).astype(np.int64), 0)
        high = np.minimum(low + width, size - 1)
        side = rng.integers(0, 4, len(own))  # half of the ranges are open at one end
        return np.stack([np.where(side == 0, 0, low), np.where(side == 1, size - 1, high)], axis=1)
    # Others than one's own: one from each of as many parts of the circle of the values that begins after it.
    others = count - (kind == IN)
    part = (size - 1) // others
    steps = 1 + np.arange(others) * part + rng.integers(0, part, (len(own), others))
    options = (own[:, None] + steps) % size
    return options if kind == UNEQUAL else np.sort(np.concatenate([own[:, None], options], axis=1), axis=1)


def _expressions(forms: Sequence[Form]) -> Expressions:
    """The forms' conjunctions as trees: an AND and its leaves."""
    parts: list[tuple[npt.NDArray[np.integer], ...]] = []
    taken, lengths = 0, []
    for form in forms:
        rows, leaves = len(form.constants), len(form.attributes)
        shape = (rows, leaves + 1)
        kind, attribute, size = np.full(shape, AND), np.full(shape, -1), np.ones(shape, np.int32)
        low, high = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        size[:, 0] = leaves + 1
        kind[:, 1:], attribute[:, 1:] = form.kinds, form.attributes
        lists = [column for j, column in enumerate(form.columns) if form.kinds[j] == IN]
        options = np.concatenate([form.constants[:, column] for column in lists], axis=1) if lists else None
        each = 0 if options is None else options.shape[1]
        inside = 0
        for j, (operator, column) in enumerate(zip(form.kinds, form.columns, strict=True), start=1):
            if operator == IN:
                low[:, j] = taken + np.arange(rows) * each + inside
                inside += column.stop - column.start
                high[:, j] = taken + np.arange(rows) * each + inside
            else:
                low[:, j], high[:, j] = form.constants[:, column.start], form.constants[:, column.stop - 1]
        taken += rows * each
        lengths.append(np.full(rows, leaves + 1))
        flat = np.empty(0, np.int16) if options is None else options.ravel()
        parts.append((kind.ravel(), size.ravel(), attribute.ravel(), low.ravel(), high.ravel(), flat))
    dtypes = (np.int8, np.int32, np.int16, np.int32, np.int32, np.int16)
    arrays = [
        np.concatenate([np.asarray(part[i], dtype) for part in parts]) for i, dtype in enumerate(dtypes)
    ]
    first = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Expressions(first, Trees(*arrays))


def _pairs(dense: Shorts) -> Events:
    """The values that are there, each event's in the order of attributes."""
    there = dense != _ABSENT
    most = int(there.sum(axis=1).max())
    order = np.argsort(~there, axis=1, kind="stable")[:, :most].astype(np.int16)
    value = np.take_along_axis(dense, order, axis=1)
    return Events(np.where(value == _ABSENT, -1, order).astype(np.int16), value)
