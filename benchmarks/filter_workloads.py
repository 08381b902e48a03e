"""The workload of arbitrary Boolean expressions on ABE-Gen's parameters, as arrays of integers.

AND and OR alternate; the depth of a tree, counted in levels of AND and OR, is uniform; one child of each node goes
all the way down, of the others a small share are inner nodes. Attributes follow Zipf's law in expressions and events
alike; the values of an attribute are equally likely. What the parameters leave open is set here: 96.5 % of the roots
are an AND, as in targeting (one OR of four predicates already matches every fifth event), which with classic Zipf
makes about 0.3 % of the expressions match.

Attributes and values are numbers; `Names` says how they are written. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import expression_kernels as kernels
from benchmarks.expression_kernels import EQUAL, IN, MISSING, NOT_IN, OR, RANGE, UNEQUAL, Drawing, Trees

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int16]

# Shares of operators on ABE-Gen's parameters.
OPERATORS = {EQUAL: 0.40, UNEQUAL: 0.05, IN: 0.40, NOT_IN: 0.05, RANGE: 0.10}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Defaults are ABE-Gen's. `children`: shares of nodes with 2, 3, … children; `inner`: share of inner nodes
    among children that may be leaves; `conjunctions`: share of roots that are an AND."""

    expressions: int = 100_000
    events: int = 200
    depth: int = 4
    children: tuple[float, ...] = (0.2, 0.2, 0.2, 0.2, 0.2)
    inner: float = 0.05
    conjunctions: float = 0.965
    dimensions: int = 1000
    zipf: float = 1.0
    cardinality: int = 100
    options: int = 6
    width: int = 40
    pairs: int = 15
    seed: int = 2021


ABE_GEN = Parameters()
# A-Tree's largest workload as far as it is known: 1.39M expressions of depth 1 to 9, about 0.3 % of them matching.
A_TREE = Parameters(
    expressions=1_390_000, depth=9, children=(0.5, 0.3, 0.1, 0.06, 0.04), inner=0.03, pairs=20
)
# Conjunctions of two to six predicates, so mixed that about 100 of 3M match.
CONJUNCTIONS = Parameters(
    expressions=3_000_000, depth=1, children=(0.012, 0.3, 0.35, 0.2, 0.138), conjunctions=1.0, pairs=20
)


@dataclass(frozen=True, slots=True)
class Names:
    """How attributes and values are written; a number stands for itself where there is no list of values."""

    attributes: Sequence[str]
    values: Sequence[Sequence[str | int | float]]


@dataclass(frozen=True, slots=True)
class Expressions:
    """`first[i]` is the root of expression i in `trees`."""

    first: Longs
    trees: Trees

    def __len__(self) -> int:
        return len(self.first) - 1


@dataclass(frozen=True, slots=True)
class Events:
    """Pairs of attribute and value, of shape (events, pairs); an attribute of -1 is no pair."""

    attribute: Shorts
    value: Shorts

    def __len__(self) -> int:
        return len(self.attribute)

    def __getitem__(self, rows: slice) -> Events:
        return Events(self.attribute[rows], self.value[rows])


@dataclass(frozen=True, slots=True)
class Workload:
    expressions: Expressions
    events: Events
    names: Names


def make(parameters: Parameters) -> Workload:
    """Arbitrary expressions and the events that they are measured with."""
    rng = np.random.default_rng(parameters.seed)
    names = Names(
        [f"a{n}" for n in range(parameters.dimensions)],
        [range(parameters.cardinality)] * parameters.dimensions,
    )
    return Workload(draw_expressions(parameters), draw_events(parameters, parameters.events, rng), names)


def draw_expressions(parameters: Parameters) -> Expressions:
    drawing = Drawing(
        parameters.seed,
        parameters.depth,
        np.cumsum(parameters.children),
        np.cumsum(list(OPERATORS.values())),
        np.cumsum(zipf(parameters.dimensions, parameters.zipf)),
        parameters.cardinality,
        parameters.options,
        parameters.width,
        parameters.inner,
        parameters.conjunctions,
    )
    first = np.zeros(parameters.expressions + 1, np.int64)
    options = np.zeros(parameters.expressions + 1, np.int64)
    trees = empty_trees(0, 0)
    for fill in (False, True):
        kernels.draw(
            drawing,
            first,
            options,
            trees,
            fill,
            np.zeros(1, np.uint64),
            np.full(parameters.dimensions, -1, np.int64),
            np.zeros((parameters.depth + 1, 5), np.int64),
        )
        if not fill:
            trees = empty_trees(int(first[-1]), int(options[-1]))
    return Expressions(first, trees)


def draw_events(parameters: Parameters, count: int, rng: np.random.Generator) -> Events:
    """Events of `pairs` different attributes, the frequent ones in most of them."""
    logs = np.log(zipf(parameters.dimensions, parameters.zipf)).astype(np.float32)
    chosen = np.empty((count, parameters.pairs), np.int16)
    for start in range(0, count, 1000):  # the largest keys log p + Gumbel are a weighted sample
        rows = min(1000, count - start)
        keys = logs + rng.gumbel(size=(rows, parameters.dimensions)).astype(np.float32)
        chosen[start : start + rows] = np.argpartition(-keys, parameters.pairs, axis=1)[:, : parameters.pairs]
    return Events(chosen, rng.integers(0, parameters.cardinality, chosen.shape).astype(np.int16))


def zipf(count: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    return np.asarray(weights / weights.sum())


def empty_trees(nodes: int, options: int) -> Trees:
    return Trees(
        np.zeros(nodes, np.int8),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int16),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(options, np.int16),
    )


@dataclass(frozen=True, slots=True)
class Compiled:
    """Expressions as short-circuit code, evaluated one by one: the oracle of the workloads' statistics."""

    expressions: Expressions
    dimensions: int
    first: Longs
    leaf: Longs
    on_true: Ints
    on_false: Ints

    @classmethod
    def of(cls, workload: Workload) -> Compiled:
        trees = workload.expressions.trees
        count = int((trees.kind > OR).sum())
        first = np.zeros(len(workload.expressions) + 1, np.int64)
        leaf, on_true, on_false = (
            np.zeros(count, np.int64),
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
        )
        stack = np.zeros((64, 4), np.int64)
        kernels.short_circuit(workload.expressions.first, trees, first, leaf, on_true, on_false, stack)
        return cls(workload.expressions, len(workload.names.attributes), first, leaf, on_true, on_false)

    def matches(self, events: Events, rows: Longs | None = None, out: Ints | None = None) -> Ints:
        """The pairs (event, expression) that hold, ascending; written into `out` if that is large enough."""
        rows = np.arange(len(self.expressions)) if rows is None else rows
        values = np.full(self.dimensions, MISSING, np.int16)
        out = np.empty((0, 2), np.int32) if out is None else out
        while True:
            found = kernels.evaluate(
                rows,
                events.attribute,
                events.value,
                self.expressions.trees,
                self.first,
                self.leaf,
                self.on_true,
                self.on_false,
                values,
                out,
            )
            if found <= len(out):
                return out[:found]
            out = np.empty((found, 2), np.int32)
