"""The programs of an engine's subscriptions, a row each, in growing columns. See kernels/layout.py for a drawing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tidings.arrays.growing import Growing
from tidings.arrays.vocabulary import Vocabulary, join_texts, thaw_texts
from tidings.errors import SubscriptionError
from tidings.kinds.operators.kernels.layout import CONFIRMED, NEGATED, OR, ProgramArrays
from tidings.kinds.operators.predicates import Find, Predicates, renumbered
from tidings.kinds.operators.program import Leaf, Program, Text, compile_program
from tidings.language.query import Call, Condition, Variable, leaves
from tidings.language.stored_conditions import StoredConditions, Template, filled
from tidings.model.terms import from_ntriples

_REMEMBERED = 100_000
_REMEMBERED_PROGRAMS = 10_000
_CALL = re.compile(r"(\S+)/(\d{1,3})\b")

_COLUMNS = {
    "gate_first": np.int32,
    "gate_kind": np.uint8,
    "gate_parent": np.int32,
    "gate_size": np.int32,
    "leaf_first": np.int32,
    "leaf_gate": np.int32,
    "leaf_asked": np.int32,
    "leaf_names": np.int32,
    "binds": np.bool_,
    "plain": np.bool_,
    "called": np.int32,
}


Texts = Sequence[tuple[str, str | None]]


class OperatorTable:
    """Rows are added and never changed; `kept` leaves out rows of subscriptions that have ended."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.predicates = Predicates(find)
        self.predicates.condition_of, self.predicates.call_of = self.condition_of, self.call_of
        self._columns = {name: Growing(dtype) for name, dtype in _COLUMNS.items()}
        self._columns["gate_first"].append(0)
        self._columns["leaf_first"].append(0)
        self._calls = Vocabulary()  # what a row calls: names and numbers of arguments
        self._names = Vocabulary()  # what the values of a leaf's answer are called, end to end
        self._calls_of: dict[int, tuple[Program, int]] = {}
        self.conditions = StoredConditions()  # of each row what its program was made of
        self._compiled: dict[int, Program] = {}  # by template
        self._programs: dict[int, Program] = {}  # by row, with constants
        # Of each predicate and each evaluation a leaf that has it: from there it is known what it says.
        self._predicate_leaf, self._evaluation_leaf = Growing(np.int32), Growing(np.int32)
        self._split: list[list[str]] = []
        self._scratch = [np.empty(0, dtype=np.int32)] * 2

    def __len__(self) -> int:
        return len(self._columns["gate_first"]) - 1

    @property
    def programs(self) -> ProgramArrays:
        columns = {
            name: column.all for name, column in self._columns.items() if name in ProgramArrays._fields
        }
        predicates = self.predicates
        return ProgramArrays(
            **columns, pred_eval=predicates.pred_eval.all, eval_operator=predicates.eval_operator.all
        )

    @property
    def is_concurrent(self) -> bool:
        """Whether an operator is better called with several events at once."""
        return any(
            (operator := self.find(name)).is_async or operator.batch
            for name in self.predicates.operators.numbers
        )

    @property
    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """An entry for every predicate and evaluation, all -1, for a docket while it is opened."""
        for at, wanted in enumerate((len(self.predicates.pred_eval), len(self.predicates.eval_operator))):
            if len(self._scratch[at]) < wanted:
                self._scratch[at] = np.full(2 * wanted, -1, dtype=np.int32)
        return self._scratch[0], self._scratch[1]

    @property
    def binds(self) -> np.ndarray:
        """Of each row whether it has variables."""
        return self._columns["binds"].all

    def plain(self, row: int) -> Iterator[tuple[int, list[str]]] | None:
        """For a row whose calls bind each its own: its predicates, and the names of what they bind. None for others."""
        if not self._columns["plain"].all[row]:
            return None
        first, end = self._columns["leaf_first"].all[row : row + 2].tolist()
        names = self._name_lists()
        asked, named = self._columns["leaf_asked"].all, self._columns["leaf_names"].all
        return ((asked[leaf] >> 1, names[named[leaf]]) for leaf in range(first, end) if not asked[leaf] & 1)

    def _name_lists(self) -> list[list[str]]:
        if len(self._split) < len(self._names):
            self._split = [text.split(" ") for text in self._names.numbers]
        return self._split

    def read(self, program: Program, values: Mapping[str, str]) -> Texts:
        """The texts of a row's predicates and evaluations; a `SubscriptionError` if a constant does not fit its call.

        `values` are the N-Triples texts of the program's parameters.
        """
        texts = [
            (leaf.predicate.filled(values), leaf.evaluation.filled(values) if leaf.evaluation else None)
            for leaf in program.leaves
        ]
        terms: Mapping[str, Any] | None = None
        asked = [
            (text, leaf.predicate) for (text, call), leaf in zip(texts, program.leaves, strict=True) if call
        ]
        for text, condition in (*asked, *((call.filled(values), call) for call in program.others)):
            if not self.predicates.fits(text):
                if terms is None:
                    terms = {name: from_ntriples(value) for name, value in values.items()}
                self.predicates.fit(text, filled((condition.condition,), terms)[0])
        return texts

    def add(
        self,
        program: Program,
        texts: Texts,
        template: Template | None = None,
        values: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """A row of a program, the texts that `read` gave, and what the program was made of: its own condition,
        unless it has parameters, or is beside triples."""
        made_of = Template((program.condition,)) if template is None else template
        self._keep_program(self._stored(made_of, values), program)
        columns, first = self._columns, len(self._columns["leaf_asked"])
        asked: list[int] = []
        for leaf, (text, evaluation) in zip(program.leaves, texts, strict=True):
            known = len(self.predicates)
            number = self.predicates.number(text, evaluation)
            if number == known:
                self._note_leaf(first + len(asked))
            asked.append(number << 1 | leaf.negated)
        columns["leaf_asked"].extend(asked)
        columns["leaf_gate"].extend([leaf.gate for leaf in program.leaves])
        columns["leaf_first"].append(len(columns["leaf_gate"]))
        columns["gate_kind"].extend(
            [gate.is_or * OR | gate.confirmed * CONFIRMED | gate.negated * NEGATED for gate in program.gates]
        )
        columns["gate_parent"].extend([gate.parent for gate in program.gates])
        columns["gate_size"].extend([gate.size for gate in program.gates])
        columns["gate_first"].append(len(columns["gate_kind"]))
        columns["leaf_names"].extend([self._names.number(" ".join(leaf.names)) for leaf in program.leaves])
        columns["binds"].append(program.binds)
        columns["plain"].append(program.is_plain)
        columns["called"].append(self._called(program))
        return len(self) - 1

    def _stored(self, template: Template, values: Mapping[str, str]) -> int:
        """Stores the conditions of the next row; the number of its template."""
        row = self.conditions.add(template, values)
        return self.conditions.row_template[row]

    def _note_leaf(self, leaf: int) -> None:
        """Notes a leaf for the predicate that it has brought, and for its evaluation if that is new."""
        self._predicate_leaf.append(leaf)
        if len(self._evaluation_leaf) < len(self.predicates.evaluation_texts):
            self._evaluation_leaf.append(leaf)

    def restore(self, rows: Iterable[tuple[Program, Template, Mapping[str, str]]]) -> None:
        """Brings what the programs of all rows were made of, which a folder of version 0.1 does not have."""
        for program, template, values in rows:
            self._keep_program(self._stored(template, values), program)

    def program(self, row: int) -> Program:
        """The program of a row with its constants."""
        found = self._programs.get(row)
        if found is None:
            if len(self._programs) >= _REMEMBERED_PROGRAMS:
                self._programs.clear()
            found = self._programs[row] = self._template_program(row).filled(self.conditions.values(row))
        return found

    def _template_program(self, row: int) -> Program:
        number = self.conditions.row_template[row]
        if number not in self._compiled:
            template = self.conditions.template(number)
            calls = [leaf for leaf in leaves(template.conditions[0]) if isinstance(leaf, Call)]
            for call in calls:
                self.find(call.name).check(call)
            bound = frozenset(template.bound)
            made = compile_program(template.conditions[0], bound, self.find, template.select)
            first = self._columns["leaf_first"].all
            if len(made.leaves) != first[row + 1] - first[row]:
                raise self._changed(calls, bound)
            self._keep_program(number, made)
        return self._compiled[number]

    def _keep_program(self, template: int, program: Program) -> None:
        if template not in self._compiled:
            if len(self._compiled) >= _REMEMBERED_PROGRAMS:
                self._compiled.clear()
            self._compiled[template] = program

    def _changed(self, calls: Sequence[Call], bound: frozenset[Variable]) -> SubscriptionError:
        """Says which operator is another than it was when a row was added."""
        for call in calls:
            operator = self.find(call.name)
            inputs = {argument for argument in operator.inputs_of(call) if isinstance(argument, Variable)}
            if inputs - bound:
                break
        return SubscriptionError(
            f"{call.name} bound what is an input of {operator.signature} now; subscribe anew, "
            "or give the operator that was there"
        )

    def condition_of(self, predicate: int) -> Condition:
        """What a predicate says."""
        return self._condition(int(self._predicate_leaf.all[predicate]), lambda leaf: leaf.predicate)

    def call_of(self, evaluation: int) -> Condition:
        """What an evaluation calls."""
        return self._condition(int(self._evaluation_leaf.all[evaluation]), lambda leaf: leaf.evaluation)

    def _condition(self, at: int, part: Callable[[Leaf], Text | None]) -> Condition:
        first = self._columns["leaf_first"].all
        row = int(np.searchsorted(first, at, side="right")) - 1
        text = part(self._template_program(row).leaves[at - int(first[row])])
        assert text is not None
        return filled((text.condition,), self.conditions.values(row))[0]

    def _find_leaves(self) -> None:
        """Finds a leaf for each predicate and evaluation, of a table that is there as a whole."""
        predicate = self._columns["leaf_asked"].all >> 1
        leaf = np.zeros(len(self.predicates), dtype=np.int32)
        leaf[predicate[::-1]] = np.arange(len(predicate), dtype=np.int32)[::-1]
        self._predicate_leaf = Growing(np.int32, leaf)
        evaluation = self.predicates.pred_eval.all
        asked = np.flatnonzero(evaluation >= 0)
        of = np.zeros(len(self.predicates.evaluation_texts), dtype=np.int32)
        of[evaluation[asked]] = leaf[asked]
        self._evaluation_leaf = Growing(np.int32, of)

    def _called(self, program: Program) -> int:
        """The number of what a program calls, whatever its constants."""
        known = self._calls_of.get(id(program))
        if known is None:
            calls = {
                f"{leaf.name}/{len(leaf.arguments)}"
                for leaf in leaves(program.condition)
                if isinstance(leaf, Call)
            }
            if len(self._calls_of) >= _REMEMBERED:
                self._calls_of.clear()
            known = program, self._calls.number(" ".join(sorted(calls)))
            self._calls_of[id(program)] = known  # with the program: its id stays its own
        return known[1]

    def kept(self, rows: np.ndarray) -> OperatorTable:
        """A table of some rows in this order, with the predicates they use and what was learnt of them."""
        made, old = OperatorTable(self.find), {name: column.all for name, column in self._columns.items()}
        gates, gate_first = _taken(old["gate_first"], rows)
        leaves, leaf_first = _taken(old["leaf_first"], rows)
        asked = old["leaf_asked"][leaves]
        used, numbers = renumbered(asked >> 1)
        arrays = {
            **{name: old[name][gates] for name in ("gate_kind", "gate_parent", "gate_size")},
            "gate_first": gate_first,
            "leaf_first": leaf_first,
            "leaf_gate": old["leaf_gate"][leaves],
            "leaf_asked": numbers << 1 | asked & 1,
            "leaf_names": old["leaf_names"][leaves],
            "binds": old["binds"][rows],
            "plain": old["plain"][rows],
        }
        made._names = self._names
        called, arrays["called"] = renumbered(old["called"][rows])
        texts = list(self._calls.numbers)
        made._calls = Vocabulary(texts[i] for i in called.tolist())
        made._columns = {name: Growing(dtype, arrays[name]) for name, dtype in _COLUMNS.items()}
        made.conditions = self.conditions.kept(rows)
        made._take_predicates(self.predicates.kept(used))
        return made

    def _take_predicates(self, predicates: Predicates) -> None:
        self.predicates = predicates
        predicates.condition_of, predicates.call_of = self.condition_of, self.call_of
        self._find_leaves()

    def freeze(self) -> dict[str, np.ndarray]:
        columns = {name: column.all for name, column in self._columns.items()}
        texts: dict[str, np.ndarray] = {}
        for name, vocabulary in (("calls", self._calls), ("names", self._names)):
            texts[f"{name}_blob"], texts[f"{name}_start"] = join_texts(vocabulary.numbers)
        return {**columns, **texts, **self.predicates.freeze()}

    @classmethod
    def thaw(
        cls, arrays: Mapping[str, np.ndarray], find: Find, conditions: StoredConditions | None = None
    ) -> OperatorTable:
        """What `freeze` gave; without `conditions` they have to be brought by `restore`."""
        made = cls(find)
        made.conditions = conditions or StoredConditions()
        made._columns = {name: Growing(dtype, arrays[name]) for name, dtype in _COLUMNS.items()}
        made._calls = Vocabulary(_texts_of_calls(arrays))
        made._names = Vocabulary(thaw_texts({"blob": arrays["names_blob"], "start": arrays["names_start"]}))
        made._take_predicates(Predicates.thaw(arrays, find))
        return made


def saved_calls(arrays: Mapping[str, np.ndarray]) -> list[Call]:
    """The operators that the rows of a frozen table call, each with a variable for every argument."""
    each = {call for text in _texts_of_calls(arrays) for call in _CALL.findall(text)}
    return [Call(name, tuple(Variable(str(i)) for i in range(int(count)))) for name, count in sorted(each)]


def _texts_of_calls(arrays: Mapping[str, np.ndarray]) -> list[str]:
    return thaw_texts({"blob": arrays["calls_blob"], "start": arrays["calls_start"]})


def _taken(first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the items of some rows are, and where those of each row begin among them."""
    sizes = first[rows + 1] - first[rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(first[rows] - starts[:-1], sizes) + np.arange(starts[-1]), starts
