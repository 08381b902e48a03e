"""Random Boolean programs as rows of a table, and what is plainly true of them.

A predicate is a number; three of them may share an evaluation, and one in ten needs none. A `Tree` says by recursion
what a gate is worth as far as predicates are known: the loops over dockets are compared with it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from tidings.kinds.operators.functions.operator import Operator, operator
from tidings.kinds.operators.kernels.layout import AWAITED, FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.program import Gate, Leaf, Program, Text
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.table import OperatorTable
from tidings.language.query import And
from tidings.model.event import Event

NOTHING = And(())
_TEXT = Text.__new__(Text)


@operator(cost=1e-3)
def p(event: Event, number: int) -> bool:
    return False


@operator(cost=4e-3)
def q(event: Event, number: int) -> bool:
    return False


def find(name: str) -> Operator:
    return {"p": p, "q": q}[name]


@dataclass(frozen=True)
class Asked:
    """A predicate, the evaluation that it needs if any, and whether its leaf is negated."""

    predicate: str
    evaluation: str | None
    negated: bool = False


@dataclass
class Tree:
    """A gate with its children in the order in which they are asked."""

    is_or: bool = False
    negated: bool = False
    confirmed: bool = False
    children: list[Tree | Asked] = field(default_factory=list)

    def value(self, known: dict[str, int], confirmations: dict[int, int]) -> int:
        """Kleene's truth of the gate itself as far as it is known; 0 if it is not."""
        decisive = TRUE if self.is_or else FALSE
        values = [self.child(child, known, confirmations) for child in self.children]
        if decisive in values:
            return decisive
        if 0 in values:
            return 0
        if self.confirmed:
            return confirmations.get(id(self), 0)
        return UNKNOWN if UNKNOWN in values else TRUE + FALSE - decisive

    @staticmethod
    def child(child: Tree | Asked, known: dict[str, int], confirmations: dict[int, int]) -> int:
        own = child.value(known, confirmations) if isinstance(child, Tree) else known.get(child.predicate, 0)
        return TRUE + FALSE - own if child.negated and own in (TRUE, FALSE) else own

    def needed(self, known: dict[str, int], confirmations: dict[int, int]) -> list[Asked]:
        """The leaves whose value may still matter."""
        if self.value(known, confirmations):
            return []
        found: list[Asked] = []
        for child in self.children:
            if isinstance(child, Tree):
                found += child.needed(known, confirmations)
            elif child.predicate not in known:
                found.append(child)
        return found

    def gates(self) -> list[Tree]:
        """All gates, parents first, as they are numbered."""
        found = [self]
        for child in self.children:
            if isinstance(child, Tree):
                found += child.gates()
        return found

    def leaves(self) -> list[Asked]:
        return [leaf for gate in self.gates() for leaf in gate.children if isinstance(leaf, Asked)]

    def program(self) -> tuple[Program, list[tuple[str, str | None]]]:
        """The program of the tree and the texts of its leaves."""
        gates = self.gates()
        number = {id(gate): i for i, gate in enumerate(gates)}
        parent = {id(child): number[id(gate)] for gate in gates for child in gate.children}
        program = Program(NOTHING)
        for gate in gates:
            program.gates.append(
                Gate(
                    NOTHING,
                    gate.is_or,
                    parent.get(id(gate), -1),
                    gate.negated,
                    gate.confirmed,
                    len(gate.children),
                )
            )
        texts = []
        for gate in gates:
            for leaf in gate.children:
                if isinstance(leaf, Asked):
                    program.leaves.append(Leaf(number[id(gate)], leaf.negated, _TEXT, None))
                    texts.append((leaf.predicate, leaf.evaluation))
        return program, texts


class Predicates:
    """Draws predicates from a pool, so that rows share them."""

    def __init__(self, rng: random.Random, count: int, shared: int = 3, at_once: float = 0.1) -> None:
        self.rng = rng
        self.all = []
        for number in range(count):
            evaluation = f"{'pq'[number // shared % 2]}({number // shared})"
            self.all.append((f"{evaluation} {number}", None if rng.random() < at_once else evaluation))

    def draw(self, count: int, negated: float = 0.3) -> list[Asked]:
        chosen = self.rng.sample(self.all, min(count, len(self.all)))
        return [Asked(*one, self.rng.random() < negated) for one in chosen]

    def conjunctions(self, rows: int, longest: int) -> list[Tree]:
        return [Tree(children=list(self.draw(self.rng.randint(1, longest), 0.0))) for _ in range(rows)]


def random_tree(predicates: Predicates, depth: int, confirmed: float = 0.2) -> Tree:
    """A tree as programs are: any gate may be negated but the root, only ANDs are confirmed, none is empty."""
    rng = predicates.rng
    tree = Tree(is_or=rng.random() < 0.4)
    tree.confirmed = not tree.is_or and rng.random() < confirmed
    tree.children = list(predicates.draw(rng.randint(0, 3)))
    for _ in range(rng.randint(0, 2) if depth else 0):
        child = random_tree(predicates, depth - 1, confirmed)
        child.negated = rng.random() < 0.3
        tree.children.append(child)
    if not tree.children and not (tree.confirmed and rng.random() < 0.3):
        tree.children = list(predicates.draw(1))
    return tree


def table_of(trees: list[Tree]) -> OperatorTable:
    table = OperatorTable(find)
    for tree in trees:
        table.add(*tree.program())
    return table


def all_rows(trees: list[Tree]) -> np.ndarray:
    return np.arange(len(trees), dtype=np.int32)


class World:
    """The truth of everything, which `answer` tells a docket piece by piece; `known` is what it has told."""

    def __init__(self, rng: random.Random, docket: Docket, trees: list[Tree], failing: float = 0.15) -> None:
        self.rng, self.docket, self.trees = rng, docket, trees
        self.evaluations = {
            leaf.predicate: leaf.evaluation for row in docket.rows.tolist() for leaf in trees[row].leaves()
        }
        fails = {
            name: rng.random() < failing for name in sorted(set(self.evaluations.values()) - {None}, key=str)
        }
        self.truth = {
            name: UNKNOWN if fails.get(evaluation) else rng.choice([TRUE, FALSE])
            for name, evaluation in self.evaluations.items()
        }
        self.known: dict[str, int] = {}
        self.waiting: list[tuple[int, int]] = []
        self.confirmations: dict[int, int] = {}

    def know_at_once(self) -> None:
        preds = self.docket.known_at_once()
        names = [self.predicate(pred) for pred in preds.tolist()]
        assert set(names) == {name for name, evaluation in self.evaluations.items() if evaluation is None}
        self.docket.know(preds, np.array([self.truth[name] for name in names], np.uint8))
        self.known.update((name, self.truth[name]) for name in names)

    def predicate(self, pred: int) -> str:
        return self.docket.table.predicates.texts[int(self.docket.arrays.pred_id[pred])]

    def evaluation(self, ev: int) -> str:
        return self.docket.table.predicates.evaluation_texts[int(self.docket.arrays.ev_id[ev])]

    def answer(self, evs: list[int], seconds: float = 1e-3) -> None:
        values = []
        for ev in evs:
            preds = self.docket.predicates(ev).tolist()
            truths = [self.truth[self.predicate(pred)] for pred in preds]
            self.known.update(
                (self.predicate(pred), truth) for pred, truth in zip(preds, truths, strict=True)
            )
            alike = len(set(truths)) == 1 and (truths[0] == UNKNOWN or self.rng.random() < 0.5)
            values.append(truths[0] if alike else 0)
            if not alike:
                self.docket.arrays.pred["truth"][preds] = truths
        self.docket.settle(np.array(evs, np.int32), np.array(values, np.int32), np.full(len(evs), seconds))

    def confirm(self, share: float = 1.0) -> None:
        """Confirms some of the gates that wait; the others are asked for again."""
        self.waiting = [*self.waiting, *self.docket.awaiting()]
        left = []
        for row, gate in self.rng.sample(self.waiting, len(self.waiting)):
            tree = self.trees[int(self.docket.rows[row])].gates()[gate]
            if not self.docket.waits(row, gate):
                continue
            if self.rng.random() < share:
                self.confirmations[id(tree)] = self.rng.choice([TRUE, FALSE, UNKNOWN])
                self.docket.confirm(row, gate, self.confirmations[id(tree)])
            else:
                left.append((row, gate))
        self.waiting = left
        if any(not self.docket.waits(*row_gate) for row_gate in left) or self.docket.arrays.counters[AWAITED]:
            self.confirm(share)

    @property
    def verdicts(self) -> list[int]:
        rows = self.docket.rows.tolist()
        return [self.trees[row].value(self.known, self.confirmations) for row in rows]

    @property
    def needed(self) -> set[str]:
        """The evaluations that an undecided row may still need."""
        rows = self.docket.rows.tolist()
        leaves = [leaf for row in rows for leaf in self.trees[row].needed(self.known, self.confirmations)]
        return {leaf.evaluation for leaf in leaves if leaf.evaluation is not None}
