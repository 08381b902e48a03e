"""Subscriptions that one index covers: their ids, texts and validity, and the rows they became.

The engine has two of them, a large one that rarely changes and a small one that takes every change (base and
tail). Removing marks a subscription dead in its layer; its rows stay until the layers are folded into one.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.arrays import bounds, folders
from tidings.arrays.bounds import are_texts, refuse_unless
from tidings.arrays.vocabulary import StoredTexts, join_texts
from tidings.engine.plan import MAX_ALTERNATIVES, Plan
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.integrity import refuse_damaged_table
from tidings.kinds.filters.shape import FilterShape
from tidings.kinds.filters.table import FilterTable
from tidings.kinds.operators.table import OperatorTable, Texts
from tidings.kinds.patterns.index import PatternIndex
from tidings.kinds.patterns.table import PatternTable
from tidings.language.parameters import substitute
from tidings.language.printer import term_text, to_text
from tidings.language.query import Parameter, Query, Via
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import from_ntriples

ALWAYS = float("inf")
REMEMBERED_PLANS = 100_000


class Layer:
    """Grows by `add`, `add_table` and `extend`; `index` covers what is there when it is asked for."""

    def __init__(self, operators: OperatorTable) -> None:
        self.operators = operators
        self.ids: Sequence[str] = []
        self.valid_until: array[float] | np.ndarray = array("d")
        self.live = bytearray()
        self._texts: Sequence[str | None] = []  # None: a row of a template
        self._templates: list[Template] = []
        self._numbers: dict[str, int] | None = {}
        self._table: PatternTable | None = PatternTable()
        self._index: PatternIndex | None = None
        self._filters: FilterTable | None = FilterTable()
        self._filter_arrays: Mapping[str, np.ndarray] = {}
        self._reader: AttributeReader | None = None
        self.places: dict[Via, int] = {}
        self.place: array[int] | np.ndarray = array("i")  # of each subscription, -1: nowhere in a network
        # Of each subscription where the programs of its ways are, which operators settle; -1: there are none.
        self.program_first: array[int] | np.ndarray = array("i")
        self.programs: array[int] | np.ndarray = array("i")  # rows in `operators`, -1: this way needs none
        self.unasked: array[int] | np.ndarray = array(
            "i"
        )  # subscription and way, of ways with a program alone
        self._shape_numbers: dict[int, tuple[Plan, list[int]]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def table(self) -> PatternTable:
        if self._table is None:
            assert self._index is not None
            self._table = PatternTable.thaw(self._index.arrays, self._index.facts)
        return self._table

    def index(self, taxonomy: Taxonomy) -> PatternIndex:
        if self._index is None:
            self._index = PatternIndex.build(self.table, taxonomy)
        return self._index

    @property
    def filters(self) -> FilterTable:
        if self._filters is None:
            self._filters = FilterTable.thaw(self._filter_arrays, self.reader.index.facts["keys"])
        return self._filters

    @property
    def reader(self) -> AttributeReader:
        """Reads events for the index of filters, which covers what is there now."""
        if self._reader is None:
            self._reader = AttributeReader(FilterIndex.build(self.filters))
        return self._reader

    @property
    def has_filters(self) -> bool:
        return len(self.filter_owner) > 0

    @property
    def has_patterns(self) -> bool:
        return len(self._index or self.table) > 0

    @cached_property
    def filter_owner(self) -> np.ndarray:
        """The subscription of each row of filters."""
        if self._filters is None:
            return self._filter_arrays["row_owner"]
        return np.frombuffer(self._filters.row_owner.tobytes(), dtype=np.int32)  # the column grows on

    @cached_property
    def filter_way(self) -> np.ndarray:
        """Which of its subscription's alternatives each row of filters is."""
        if self._filters is None:
            return self._filter_arrays["row_way"]
        return np.frombuffer(self._filters.row_way.tobytes(), dtype=np.int16)

    @property
    def has_programs(self) -> bool:
        return len(self.programs) > 0

    def program_rows(self, owner: np.ndarray, way: np.ndarray) -> np.ndarray:
        """The rows of programs that settle alternatives of subscriptions, -1 where there is none."""
        first = np.asarray(self.program_first)[owner]
        return np.where(first < 0, -1, np.asarray(self.programs)[first + np.where(first < 0, 0, way)])

    @cached_property
    def open_to_all(self) -> tuple[np.ndarray, np.ndarray]:
        """Subscriptions that every event is a candidate for, and which of their alternatives it is."""
        pairs = np.array(self.unasked, dtype=np.int32).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    @property
    def settled(self) -> PatternIndex:
        """The index, which must have been made."""
        assert self._index is not None
        return self._index

    @cached_property
    def one_answer_each(self) -> bool:
        """Whether no event can give two answers to one subscription: each is one row that is settled at once."""
        arrays = self.settled.arrays
        return np.bincount(arrays["row_owner"]).max(initial=0) <= 1 and not arrays["later"].any()

    @cached_property
    def several_ways(self) -> np.ndarray | None:
        """Of each subscription whether an event may satisfy it in two ways that are settled apart; None if none.

        Patterns alone are settled together; filters, and what operators settle, are not.
        """
        rows = np.bincount(self.filter_owner, minlength=len(self.ids))
        rows += np.bincount(self.open_to_all[0], minlength=len(self.ids))
        if self.has_patterns:
            owner = self._index.arrays["row_owner"] if self._index else self.table.row_owner
            apart = (rows > 0) | (np.asarray(self.program_first) >= 0)
            rows += apart * np.bincount(np.asarray(owner), minlength=len(self.ids))
        several = rows > 1
        return several if several.any() else None

    @cached_property
    def some_end(self) -> bool:
        """Whether any subscription has an end of its validity."""
        return bool(np.min(self.valid_until, initial=ALWAYS) < ALWAYS)

    @cached_property
    def id_column(self) -> pa.Array:
        if isinstance(self.ids, StoredTexts):
            buffers = [None, pa.py_buffer(self.ids.start), pa.py_buffer(self.ids.blob)]
            column = pa.Array.from_buffers(pa.large_string(), len(self.ids), buffers)
        else:
            column = pa.array(self.ids, pa.large_string())
        # Small ones as notifications have them, once and for all.
        return column.cast(pa.string()) if column.nbytes < 1 << 31 else column

    @cached_property
    def selected(self) -> tuple[pa.Array, np.ndarray, np.ndarray, np.ndarray]:
        """What subscribers are told: names, and by shape where its selected variables are, and their names."""
        variables, select = self.settled.facts["variables"], self.settled.facts["select"]
        names: dict[str, int] = {}
        first = np.concatenate([[0], np.cumsum([len(slots) for slots in select])]).astype(np.int64)
        slots = np.array([slot for chosen in select for slot in chosen], dtype=np.int64)
        numbers = np.array(
            [
                names.setdefault(variables[shape][slot], len(names))
                for shape, chosen in enumerate(select)
                for slot in chosen
            ],
            dtype=np.int32,
        )
        return pa.array(list(names), pa.string()), first, slots, numbers

    def find(self, id: str) -> int:
        """The number of the live subscription with this id, or -1."""
        if self._numbers is None:
            self._numbers = {id: number for number, id in enumerate(self.ids)}
        number = self._numbers.get(id, -1)
        return number if number >= 0 and self.live[number] else -1

    def text(self, number: int) -> str:
        text = self._texts[number]
        if text is not None:
            return text
        template = self._templates[bisect_right(self._templates, number, key=lambda t: t.first) - 1]
        return template.text(number - template.first)

    def add(self, id: str, text: str, plan: Plan, values: Mapping[str, str], valid_until: float) -> None:
        """One subscription: a plan and the N-Triples texts of its parameters."""
        programs = self._programs(plan, [values])
        self._before_adding()
        number = len(self.ids)
        for way, (number_of, shape) in enumerate(zip(self._shapes(plan), plan.shapes, strict=True)):
            if isinstance(shape, FilterShape):
                if number_of >= 0:
                    self.filters.add(number_of, shape, values, number, way)
            elif number_of >= 0:
                self.table.add(number_of, values, number, way)
        self._note([id], [text], valid_until, plan.query.via)
        self._add_programs(plan, programs)

    def add_table(self, template: Template, plan: Plan) -> None:
        """A subscription for each row of a template."""
        programs = self._programs(plan, map(template.values, range(len(template))))
        self._before_adding()
        template.first = len(self.ids)
        owners = np.arange(template.first, template.first + len(template))
        for way, (number_of, shape) in enumerate(zip(self._shapes(plan), plan.shapes, strict=True)):
            if isinstance(shape, FilterShape):
                if number_of >= 0:
                    self.filters.add_many(number_of, shape, template.columns, owners, way)
            elif number_of >= 0:
                self.table.add_many(number_of, template.columns, owners, way)
        self._note(template.ids, [None] * len(template), ALWAYS, plan.query.via)
        self._add_programs(plan, programs)
        self._templates.append(template)

    def _programs(self, plan: Plan, values: Iterable[Mapping[str, str]]) -> list[list[Texts | None]]:
        """For subscriptions the texts of each way's program: all first, so that one that is refused leaves nothing."""
        if not any(plan.programs):
            return []
        read = self.operators.read
        return [
            [None if program is None else read(program, each) for program in plan.programs] for each in values
        ]

    def _add_programs(self, plan: Plan, programs: list[list[Texts | None]]) -> None:
        """Adds the programs of the subscriptions that were added last."""
        assert isinstance(self.program_first, array)
        assert isinstance(self.programs, array)
        assert isinstance(self.unasked, array)
        if not programs:
            self.program_first.extend([-1] * (len(self.ids) - len(self.program_first)))
            return
        opens = [way.is_open for way in plan.ways]
        for each in programs:
            number = len(self.program_first)
            self.program_first.append(len(self.programs))
            for way, (program, texts) in enumerate(zip(plan.programs, each, strict=True)):
                if program is None or texts is None:
                    self.programs.append(-1)
                    continue
                self.programs.append(self.operators.add(program, texts))
                if opens[way]:
                    self.unasked.extend((number, way))

    def remove(self, id: str) -> bool:
        number = self.find(id)
        if number >= 0:
            self.live[number] = 0
        return number >= 0

    def extend(self, other: Layer) -> None:
        """Takes over the live subscriptions of `other`."""
        self._before_adding()
        live = np.frombuffer(other.live, dtype=np.uint8).astype(np.bool_)
        numbers = len(self.ids) + np.cumsum(live) - 1
        owner = np.frombuffer(other.table.row_owner, dtype=np.int32)
        if len(owner):
            self.table.extend(other.table, live[owner], numbers)
        if other.has_filters:
            self.filters.extend(other.filters, live[other.filter_owner], numbers)
        kept = np.flatnonzero(live).tolist()
        if not kept:
            return
        self._take_programs(other, live, numbers)
        self._note([other.ids[i] for i in kept], [other.text(i) for i in kept], ALWAYS, None)
        self.valid_until[-len(kept) :] = array("d", [other.valid_until[i] for i in kept])
        if other.places:
            renumbered = [self.places.setdefault(place, len(self.places)) for place in other.places]
            places = np.array([*renumbered, -1], dtype=np.int32)[np.asarray(other.place)[kept]]
            self.place[-len(kept) :] = array("i", places.tobytes())

    def _take_programs(self, other: Layer, live: np.ndarray, numbers: np.ndarray) -> None:
        assert isinstance(self.program_first, array)
        assert isinstance(self.programs, array)
        assert isinstance(self.unasked, array)
        first = np.asarray(other.program_first, dtype=np.int32)
        owners = np.flatnonzero(first >= 0)
        sizes = np.diff(first[owners], append=len(other.programs))
        taken = np.where(live[owners], sizes, 0)
        moved = np.full(len(first), -1, dtype=np.int32)
        moved[owners] = len(self.programs) + np.cumsum(taken) - taken
        self.program_first.frombytes(moved[live].tobytes())
        if other.has_programs:
            programs = np.asarray(other.programs, dtype=np.int32)
            self.programs.frombytes(programs[np.repeat(live[owners], sizes)].tobytes())
            pairs = np.asarray(other.unasked, dtype=np.int32).reshape(-1, 2)
            pairs = pairs[live[pairs[:, 0]]]
            pairs[:, 0] = numbers[pairs[:, 0]]
            self.unasked.frombytes(pairs.tobytes())

    def keep_programs(self) -> OperatorTable:
        """Leaves the rows of others out of the table of programs, which no other layer may have rows in."""
        programs = np.array(self.programs, dtype=np.int32)
        rows = programs[programs >= 0]
        if len(rows) < len(self.operators):
            programs[programs >= 0] = np.arange(len(rows))
            self.operators, self.programs = self.operators.kept(rows), array("i", programs.tobytes())
        return self.operators

    def _before_adding(self) -> None:
        self._index = self._reader = None
        for known in (
            "one_answer_each",
            "several_ways",
            "filter_owner",
            "filter_way",
            "open_to_all",
            "some_end",
            "id_column",
            "selected",
        ):
            self.__dict__.pop(known, None)

    def _note(self, ids: list[str], texts: Sequence[str | None], valid_until: float, via: Via | None) -> None:
        # What comes from a folder is never added to.
        assert isinstance(self.ids, list)
        assert isinstance(self._texts, list)
        assert isinstance(self.valid_until, array)
        assert isinstance(self.place, array)
        if len(ids) != 1:
            self._numbers = None  # made anew when an id is looked for
        elif self._numbers is not None:
            self._numbers[ids[0]] = len(self.ids)
        self.ids += ids
        self._texts += texts
        self.live += b"\x01" * len(ids)
        self.valid_until.extend([valid_until] * len(ids))
        place = -1 if via is None else self.places.setdefault(via, len(self.places))
        self.place.extend([place] * len(ids))

    def _shapes(self, plan: Plan) -> list[int]:
        known = self._shape_numbers.get(id(plan))
        if known is None:
            numbers = [
                (-1 if way.is_open else self.filters.add_shape(shape))
                if isinstance(shape, FilterShape)
                else -1
                if shape.never
                else self.table.add_shape(
                    shape, way.every or (program is not None and program.joins), bool(way.residual)
                )
                for shape, way, program in zip(plan.shapes, plan.ways, plan.programs, strict=True)
            ]
            if len(self._shape_numbers) >= REMEMBERED_PLANS:
                self._shape_numbers.clear()
            known = self._shape_numbers[id(plan)] = (plan, numbers)  # the plan is kept: its id stays its own
        return known[1]

    def save(self, folder: Path, taxonomy: Taxonomy) -> None:
        """Writes the index and the subscriptions; dead ones must have been folded away."""
        self.index(taxonomy).save(folder / "patterns")
        self.reader.index.save(folder / "filters")
        folders.save(folder / "filter_table", self.filters.freeze(), {})
        ids, texts = join_texts(self.ids), join_texts(self.text(i) for i in range(len(self)))
        arrays = {
            "id_blob": ids[0],
            "id_start": ids[1],
            "text_blob": texts[0],
            "text_start": texts[1],
            "valid_until": np.frombuffer(self.valid_until, dtype=np.float64),
            "place": np.frombuffer(self.place, dtype=np.int32),
            "program_first": np.asarray(self.program_first, dtype=np.int32),
            "programs": np.asarray(self.programs, dtype=np.int32),
            "unasked": np.asarray(self.unasked, dtype=np.int32),
        }
        facts = {"count": len(self.ids), "places": [list(astuple(place)) for place in self.places]}
        folders.save(folder / "subscriptions", arrays, facts)

    @classmethod
    def load(cls, folder: Path, operators: OperatorTable) -> Layer:
        layer = cls(operators)
        arrays, facts = folders.load(folder / "subscriptions")
        layer._index, layer._table, layer._numbers = PatternIndex.load(folder / "patterns"), None, None
        layer._reader, layer._filters = AttributeReader(FilterIndex.load(folder / "filters")), None
        layer._filter_arrays, _ = folders.load(folder / "filter_table")
        refuse_damaged_table(folder / "filter_table", layer._filter_arrays, layer._reader.index.keys)
        layer.places = {Via(*place): number for number, place in enumerate(facts["places"])}
        layer.place = arrays["place"]
        layer.program_first, layer.programs = arrays["program_first"], arrays["programs"]
        layer.unasked = arrays["unasked"]
        layer.ids = StoredTexts(arrays["id_blob"], arrays["id_start"])
        layer._texts = StoredTexts(arrays["text_blob"], arrays["text_start"])
        layer.valid_until = arrays["valid_until"]
        layer.live = bytearray(b"\x01" * len(layer.ids))
        refuse_unless(folder, layer._checks(facts["count"]))
        return layer

    def _checks(self, count: int) -> Iterator[tuple[str, bool]]:
        """Names of arrays from a folder, and whether their values can be right (see patterns/damage.py)."""
        for name, texts in (("id_start", self.ids), ("text_start", self._texts)):
            assert isinstance(texts, StoredTexts)
            yield name, len(texts) == count and bounds.ascends(texts.start, len(texts.blob))
            if (
                name == "id_start"
            ):  # texts are many and long; one that cannot be read is told when it is asked for
                yield "id_blob", are_texts(texts.blob, texts.start)
        yield "valid_until", len(self.valid_until) == count
        yield "row_owner", bounds.within(self.settled.arrays["row_owner"], 0, count)
        yield "row_way", bounds.within(self.settled.arrays["row_way"], 0, MAX_ALTERNATIVES)
        yield "place", len(self.place) == count and bounds.within(self.place, -1, len(self.places))
        yield from self._checks_of_programs(count)
        owner = self._filter_arrays["row_owner"]
        yield "row_owner", len(owner) == len(self.reader.index) and bounds.within(owner, 0, count)

    def _checks_of_programs(self, count: int) -> Iterator[tuple[str, bool]]:
        first, ways = np.asarray(self.program_first), len(self.programs)
        yield "program_first", len(first) == count and bounds.within(first, -1, ways)
        starts = np.append(first[first >= 0], ways)
        yield "program_first", starts[0] == 0 and bool(np.all(np.diff(starts) > 0))
        yield "programs", bounds.within(np.asarray(self.programs), -1, len(self.operators))
        yield "unasked", len(self.unasked) % 2 == 0
        owner, way = np.asarray(self.unasked).reshape(-1, 2).T
        yield "unasked", bool(np.all((owner >= 0) & (owner < count) & (way >= 0)))
        end = starts[np.searchsorted(starts, first[owner], side="right").clip(max=len(starts) - 1)]
        yield "unasked", bool(np.all((first[owner] >= 0) & (first[owner] + way < end)))


class Template:
    """One text with `$parameters` and a table with a column for each: a subscription a row."""

    def __init__(
        self, query: Query, ids: list[str], columns: dict[str, tuple[np.ndarray, list[str]]]
    ) -> None:
        self.query, self.ids, self.columns = query, ids, columns
        self.first = 0

    def __len__(self) -> int:
        return len(self.ids)

    def values(self, row: int) -> dict[str, str]:
        """The N-Triples texts of one row's parameters."""
        return {name: texts[codes[row]] for name, (codes, texts) in self.columns.items()}

    @cached_property
    def _pieces(self) -> list[str]:
        """The text, cut at its parameters: fixed text, name, fixed text, name, …"""
        marked = {name: Parameter(f"\0{name}\0") for name in self.columns}
        return re.split("\\$\0([^\0]*)\0", to_text(substitute(self.query, marked)))  # type: ignore[arg-type]

    def text(self, row: int) -> str:
        """The subscription of one row, written out: constants in N-Triples form are constants of the language, but
        for some escapes."""
        pieces = list(self._pieces)
        for i in range(1, len(pieces), 2):
            codes, texts = self.columns[pieces[i]]
            text = texts[codes[row]]
            pieces[i] = term_text(from_ntriples(text)) if "\\" in text else text  # type: ignore[arg-type]
        return "".join(pieces)
