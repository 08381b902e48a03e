"""The index of filters: immutable arrays, matched against batches of events.

Expressions become short-circuit code over positions of attributes, each filed under the rarest access set that it
cannot match without. An event leads to the rows filed under what it holds, and those are run (kernels/matching.py).
Graph constraints 2 needs the next matching id from a given one on: that is `cursor`.

A-Tree (SIGMOD 2021) stores shared sub-expressions once and evaluates them bottom-up. Here each expression is stored
whole, in one piece of memory, because fetching the shared parts from elsewhere costs more than evaluating them anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays import folders
from tidings.formats.kernels.json import PathTable
from tidings.kinds.filters.integrity import refuse_damage
from tidings.kinds.filters.kernels import coding
from tidings.kinds.filters.kernels.layout import (
    ABSENT,
    Access,
    AttributePairs,
    ExpressionCode,
    Index,
    Lists,
    Scales,
    Space,
)
from tidings.kinds.filters.kernels.matching import PORTION, match_events
from tidings.kinds.filters.kernels.running import enter, row_holds
from tidings.kinds.filters.kernels.seeking import open_lists, seek
from tidings.kinds.filters.scales import ExactScales, Known, rank_constants
from tidings.kinds.filters.shape import Key
from tidings.kinds.filters.table import FilterTable
from tidings.model.search.filing import file_searches
from tidings.model.search.index import SearchIndex
from tidings.model.search.joined import join_searches, part_of
from tidings.model.text_tests import is_search, search_language


@dataclass(frozen=True, slots=True)
class Matches:
    """Answer i says that `row` matched `event`; `tried` is how many candidates were run."""

    event: np.ndarray
    row: np.ndarray
    tried: int


class FilterIndex:
    """Build, read, match, save, load."""

    def __init__(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        for array in arrays.values():  # one type for the compiled loops, mapped from a file or not
            array.flags.writeable = False
        self.arrays, self.facts = arrays, facts
        self.scales = _gather(Scales, arrays, "scale_")
        self.index = Index(
            _gather(ExpressionCode, arrays, "code_"), _gather(Access, arrays, "access_"), self.scales.ends
        )
        self.exact = ExactScales(self.scales, facts["long_numbers"])
        self.keys = [Key(*key) for key in facts["keys"]]
        self.paths = PathTable({name: arrays[f"path_{name}"] for name in facts["path_arrays"]})
        self.lock = Lock()  # of the scratch
        self.space = Space(
            slots=np.full(len(self.keys), ABSENT, dtype=np.int32),
            coarse=np.append(np.full(len(self.keys), ABSENT, dtype=np.int16), np.zeros(1, dtype=np.int16)),
            seen=np.zeros((len(self) >> 3) + 1, dtype=np.uint8),
            marked=np.zeros(len(self) + 1, dtype=np.int32),
            held=np.zeros(PORTION, dtype=np.uint32),
            low=np.zeros(0, dtype=np.int64),
            high=np.zeros(0, dtype=np.int64),
        )
        self._most_levels = max((int(bits).bit_count() for bits in self.index.access.levels), default=0)

    def __len__(self) -> int:
        return len(self.index.code.at)

    @property
    def nbytes(self) -> int:
        return folders.size(self.arrays)

    @classmethod
    def build(cls, table: FilterTable) -> FilterIndex:
        scales, long_numbers, known = rank_constants(table)
        code, access = _write_code(table, known)
        arrays = {f"scale_{name}": array for name, array in scales.items()}
        arrays |= {f"code_{name}": array for name, array in code._asdict().items()}
        arrays |= {f"access_{name}": array for name, array in access._asdict().items()}
        arrays |= _search_arrays(table, ExactScales(_gather(Scales, arrays, "scale_"), long_numbers))
        paths = PathTable.build(sorted({key.path for key in table.keys}))
        arrays |= {f"path_{name}": array for name, array in paths.arrays().items()}
        facts = {
            "long_numbers": long_numbers,
            "keys": [list(key) for key in table.keys],
            "path_arrays": list(paths.arrays()),
        }
        return cls(arrays, facts)

    def match(self, pairs: AttributePairs) -> Matches:
        """All matches of a batch."""
        total = len(pairs.first) - 1
        most = int(pairs.first[1]) if total == 1 else int(np.diff(pairs.first).max(initial=0))
        events, rows = _room(max(1024, 16 * total))
        done, tried = 0, 0
        pieces: list[tuple[np.ndarray, np.ndarray]] = []
        with self.lock:
            self._make_room(1 + self._most_levels * most)
            while done < total:
                after, found, looked = match_events(self.index, pairs, done, self.space, events, rows)
                tried += looked
                pieces.append((events[:found], rows[:found]))
                if after < total:
                    events, rows = _room(4 * len(events) if after == done else len(events))
                done = after
        if len(pieces) == 1:
            return Matches(*pieces[0], tried)
        found_events, found_rows = zip(*pieces, strict=True) if pieces else ([events[:0]], [rows[:0]])
        return Matches(np.concatenate(found_events), np.concatenate(found_rows), tried)

    def _make_room(self, lists: int) -> None:
        if lists > len(self.space.low):
            self.space = self.space._replace(low=np.zeros(lists, np.int64), high=np.zeros(lists, np.int64))

    def searches(self, attribute: int) -> SearchIndex:
        """The searches of an attribute that is derived from texts by them."""
        number = sum(is_search(key.look) for key in self.keys[:attribute])
        return SearchIndex(part_of(self.arrays, number), search_language(self.keys[attribute].look))

    def cursor(self, pairs: AttributePairs, event: int = 0) -> Cursor:
        """The matching rows of one event of a batch, in their order."""
        return Cursor(self.index, pairs, event)

    def save(self, folder: Path) -> None:
        folders.save(folder, self.arrays, self.facts)

    @classmethod
    def load(cls, folder: Path) -> FilterIndex:
        """The index that was saved there; its arrays are mapped into memory. An `IndexFileError` if it is damaged."""
        arrays, facts = folders.load(folder)
        index = cls(arrays, facts)
        refuse_damage(folder, index.index, index.scales, arrays, facts)
        return index


class Cursor:
    """One event against the rows of an index, one row at a time."""

    def __init__(self, index: Index, pairs: AttributePairs, event: int) -> None:
        self._index, self._pairs = index, pairs
        self._slots = np.full(len(index.access.base), ABSENT, dtype=np.int32)
        enter(pairs, event, self._slots)
        levels = index.access.levels[pairs.attribute[pairs.first[event] : pairs.first[event + 1]]]
        room = 1 + sum(int(bits).bit_count() for bits in levels)
        self._lists = Lists(*(np.zeros(room, dtype=np.int64) for _ in Lists._fields))
        self._count = open_lists(index, pairs, event, self._lists)

    def seek(self, n: int) -> int:
        """The next matching row from n on, or -1. Rows only ever ascend: what was passed is not found again."""
        return int(seek(self._index, self._pairs, self._slots, self._lists, self._count, n))

    def holds(self, row: int) -> bool:
        """Whether one row matches."""
        return bool(row_holds(self._index, row, self._slots, self._pairs))


class _Nodes(NamedTuple):
    """Scratch for one expression's tree: as many of each as the largest has nodes, and its operands."""

    parent: np.ndarray
    kind: np.ndarray
    word: np.ndarray
    span: np.ndarray
    weight: np.ndarray
    cost: np.ndarray
    marked: np.ndarray
    leaves: np.ndarray
    begin: np.ndarray
    on_true: np.ndarray
    on_false: np.ndarray
    test: np.ndarray
    operand_at: np.ndarray
    operand_count: np.ndarray
    stack: np.ndarray
    stack_end: np.ndarray
    children: np.ndarray
    in_order: np.ndarray
    offset: np.ndarray
    operands: np.ndarray


class _Written(NamedTuple):
    """Code as it is being written, and what is filed; `used` is how much of each."""

    narrow: np.ndarray
    wide: np.ndarray
    at: np.ndarray
    filed_node: np.ndarray
    filed_address: np.ndarray
    filed_check: np.ndarray
    used: np.ndarray


def _write_code(table: FilterTable, known: Known) -> tuple[ExpressionCode, Access]:
    rows = table.rows()
    size = int(np.diff(rows.tree_first).max(initial=1)) + 1
    width = int(np.diff(rows.slot_first).max(initial=0))
    kinds = {"weight": np.float64, "cost": np.float64, "marked": np.bool_}
    nodes = _Nodes(
        **{name: np.zeros(size, dtype=kinds.get(name, np.int64)) for name in _Nodes._fields[:-1]},
        operands=np.zeros(3 * size + 2 * width, dtype=np.int64),
    )
    count = len(table)
    room = 2 * size + 2 * width + 4
    mean = len(rows.trees) / max(1, len(rows.tree_first) - 1) + len(rows.slots) / max(1, count)
    out = _Written(
        narrow=np.zeros(int(1.2 * mean * count) + room, dtype=np.uint16),
        wide=np.zeros(room, dtype=np.uint32),
        at=np.zeros(count, dtype=np.uint32),
        filed_node=np.zeros(4 * count + 4 * room, dtype=np.int32),
        filed_address=np.zeros(4 * count + 4 * room, dtype=np.uint32),
        filed_check=np.zeros(4 * count + 4 * room, dtype=np.uint64),
        used=np.zeros(3, dtype=np.int64),
    )
    done = 0
    while (done := int(coding.write_code(rows, known, done, nodes, out))) < count:
        out = _grown(out, room)
    narrow, wide, filed = out.used.tolist()
    node_count = int(known.base[-1] + 2 ** (int(known.height[-1]) + 1)) if len(known.base) else 1
    first = np.zeros(node_count + 1, dtype=np.int64)
    filed_node = out.filed_node[:filed]
    first[:node_count] = np.bincount(filed_node, minlength=node_count)
    entries = np.zeros(3 * filed, dtype=np.uint32)
    coding.sort_entries(filed_node, out.filed_address[:filed], out.filed_check[:filed], first, entries)
    first = first.astype(np.uint32)
    levels = _levels(first, known)
    code = ExpressionCode(out.narrow[:narrow].copy(), out.wide[:wide].copy(), out.at)
    return code, Access(known.base, known.height, levels, known.shift, first, entries)


def _levels(first: np.ndarray, known: Known) -> np.ndarray:
    """For each attribute a bit for every level of its nodes that has rows."""
    used = np.flatnonzero(np.diff(first)[1:]) + 1  # without node 0, which belongs to no attribute
    attribute = np.searchsorted(known.base, used, side="right") - 1
    within = used - known.base[attribute]
    depth = np.floor(np.log2(np.maximum(within, 1))).astype(np.int64)
    level = known.height[attribute].astype(np.int64) - depth
    levels = np.zeros(len(known.base), dtype=np.int64)
    np.bitwise_or.at(levels, attribute, np.left_shift(1, level))
    return levels


def _grown(out: _Written, room: int) -> _Written:
    """Twice the room for whatever was nearly full."""

    def grow(array: np.ndarray, used: int, needed: int) -> np.ndarray:
        if used + needed <= len(array):
            return array
        larger = np.zeros(2 * len(array) + needed, dtype=array.dtype)
        larger[:used] = array[:used]
        return larger

    narrow, wide, filed = out.used.tolist()
    return out._replace(
        narrow=grow(out.narrow, narrow, room),
        wide=grow(out.wide, wide, room),
        filed_node=grow(out.filed_node, filed, 4 * room),
        filed_address=grow(out.filed_address, filed, 4 * room),
        filed_check=grow(out.filed_check, filed, 4 * room),
    )


def _search_arrays(table: FilterTable, exact: ExactScales) -> dict[str, np.ndarray]:
    """The searches in the texts of each attribute, numbered as its constants are."""
    return join_searches(
        [
            file_searches(exact.texts(attribute), search_language(key.look))
            for attribute, key in enumerate(table.keys)
            if is_search(key.look)
        ]
    )


def _room(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)


def _gather(form: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    return form(**{name: arrays[prefix + name] for name in form._fields})
