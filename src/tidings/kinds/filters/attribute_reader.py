"""Reads events into pairs of attribute and position, which an index of filters is matched against.

Compiled loops rank the values at a path. Derived attributes (a text in folded case, the patterns that it contains, the
conditions that hold) are computed only for events that have the path, and once for each distinct text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, NamedTuple

import numpy as np

from tidings.formats.kernels.json import FALSE, LIST, NULL, NUMBER, TEXT, TRUE, Occurrences, occurrences_of
from tidings.kinds.filters import naive
from tidings.kinds.filters.columns import Wanted
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.kernels.layout import AGAIN, TRUTHS, AttributePairs, Memo
from tidings.kinds.filters.kernels.ranking import merge_pairs, rank_occurrences
from tidings.kinds.filters.shape import CONDITIONS, FOLDED, PLAIN, THERE, Key, compile_filter, read_condition
from tidings.kinds.filters.table import FilterTable
from tidings.language.query import AnyElement, Condition
from tidings.model.attributes import values_at, with_element
from tidings.model.search.index import SearchIndex
from tidings.model.text_sets import TextTests
from tidings.model.text_tests import is_search, network
from tidings.model.values import number

CACHED_TEXTS = 1 << 16  # texts, for each derived attribute
MEMO_SIZE = 1 << 12  # values, of all attributes; a power of two

Document = Callable[[int], Mapping[str, Any]]
Look = Callable[[int, bytes], tuple[int, ...]]  # kind and text of a value -> positions


class _DerivedAttribute(NamedTuple):
    """An attribute that is derived from the values at a path: by `look` from each value, by `conditions` from the
    event, or by `searches` from all texts of a batch."""

    attribute: int
    path: int
    look: Look | None
    conditions: _Conditions | None
    searches: _Searches | None = None


class AttributeReader:
    """Reads events for one index."""

    def __init__(self, index: FilterIndex) -> None:
        self.index = index
        paths = sorted({key.path for key in index.keys})
        number_of = {path: i for i, path in enumerate(paths)}
        self.wanted = Wanted.of(index.paths, paths)
        self._plain = np.full(len(paths), -1, dtype=np.int32)
        self._there = np.full(len(paths), -1, dtype=np.int32)
        self._derived: list[_DerivedAttribute] = []
        for attribute, key in enumerate(index.keys):
            path = number_of[key.path]
            if key.look == PLAIN:
                self._plain[path] = attribute
            elif key.look == THERE:
                self._there[path] = attribute
            else:
                self._derived.append(self._derived_attribute(key, attribute, path))
        self._stamps = np.full(len(index.keys), -1, dtype=np.int64)
        self._memo = Memo.of(MEMO_SIZE)

    def pairs(self, found: Occurrences, document: Document) -> AttributePairs:
        """The pairs of a batch; `document` gives an event's attributes where a condition has to see all of them."""
        count = 3 * len(found.path) + 1  # that it is there, its number or instant, its text
        pairs = AttributePairs(
            np.zeros(len(found.first), dtype=np.int64),
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.int32),
        )
        with self.index.lock:
            self._stamps.fill(-1)
            unsure = rank_occurrences(
                found.first, found.path, found.kind, found.low, found.high, found.blob,
                self._plain, self._there, self.index.scales, self._stamps, self._memo, pairs,
            )  # fmt: skip
        used = int(pairs.first[-1])
        pairs = AttributePairs(pairs.first, pairs.attribute[:used], pairs.position[:used])
        if unsure:
            for i in np.flatnonzero(pairs.position < 0).tolist():
                at = ~int(pairs.position[i])
                text = found.blob[found.low[at] : found.high[at]].tobytes().decode(errors="surrogatepass")
                # The position of its first view, the number; its text view, if any, is a separate pair.
                value = _number(text) if found.kind[at] == NUMBER else number(text)
                positions = self.index.exact.positions(int(pairs.attribute[i]), value)
                pairs.position[i] = positions[0]
        return self._with_derived(pairs, found, document) if self._derived else pairs

    def _with_derived(self, pairs: AttributePairs, found: Occurrences, document: Document) -> AttributePairs:
        extra: list[tuple[int, int, int]] = []
        found_searches: list[np.ndarray] = []
        events = np.repeat(np.arange(len(found.first) - 1), np.diff(found.first))
        for derived in self._derived:
            at = np.flatnonzero((found.path == derived.path) & (found.kind != NULL) & (found.kind != LIST))
            if derived.searches is not None:
                found_searches.append(derived.searches.columns(found, at, events, derived.attribute))
                continue
            if derived.look is None:
                for event in np.unique(events[at]).tolist():
                    assert derived.conditions is not None
                    holding = derived.conditions.holding(document(event))
                    extra.extend((event, derived.attribute, position) for position in holding)
                continue
            for i in at.tolist():
                text = found.blob[found.low[i] : found.high[i]].tobytes()
                extra.extend(
                    (int(events[i]), derived.attribute, p) for p in derived.look(int(found.kind[i]), text)
                )
        columns = np.concatenate([np.array(extra, dtype=np.int64).reshape(-1, 3), *found_searches])
        if not len(columns):
            return pairs
        if extra or len(found_searches) > 1:
            columns = columns[np.lexsort((columns[:, 1], columns[:, 0]))]
        count = len(pairs.attribute) + len(columns)
        merged = AttributePairs(
            np.zeros(len(pairs.first), dtype=np.int64),
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.int32),
        )
        merge_pairs(pairs, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy(), merged)
        return merged

    def _derived_attribute(self, key: Key, attribute: int, path: int) -> _DerivedAttribute:
        exact = self.index.exact
        if key.look == FOLDED:

            @lru_cache(maxsize=CACHED_TEXTS)
            def folded(kind: int, text: bytes) -> tuple[int, ...]:
                positions = exact.positions(attribute, _value(kind, text), fold=True)
                return tuple(p | AGAIN if i else p for i, p in enumerate(positions))

            return _DerivedAttribute(attribute, path, folded, None)
        # The constants on its scale are texts; the position of the one with number i is first + 2 i.
        first = int(self.index.scales.ends[attribute, TRUTHS]) + 1
        if is_search(key.look):
            searches = _Searches(self.index.searches(attribute), first)
            return _DerivedAttribute(attribute, path, None, None, searches)
        constants = exact.texts(attribute)
        if key.look == CONDITIONS:
            conditions = [read_condition(text) for text in constants]
            return _DerivedAttribute(attribute, path, None, _Conditions(conditions, first))
        op, fold = key.look.removesuffix("~"), key.look.endswith("~")
        if op == "MATCHES" and fold:
            constants, fold = [f"(?i:{text})" for text in constants], False
        tests: TextTests | _Networks = (
            _Networks(constants) if op == "CIDR" else TextTests([(op, text) for text in constants])
        )

        @lru_cache(maxsize=CACHED_TEXTS)
        def tested(kind: int, text: bytes) -> tuple[int, ...]:
            if kind != TEXT:
                return ()
            plain = text.decode(errors="surrogatepass")
            return tuple(first + 2 * i for i in tests.satisfied(plain.casefold() if fold else plain))

        return _DerivedAttribute(attribute, path, tested, None)


def _number(text: str) -> Any:
    """The number that a JSON value or a column writes: exact if possible, otherwise as Python reads it."""
    if (exact := number(text)) is not None:
        return exact
    try:
        return json.loads(text)
    except ValueError:
        return float(text)


def _value(kind: int, text: bytes) -> Any:
    """An occurrence as a value of `tidings.model.values`."""
    if kind == TEXT:
        return text.decode(errors="surrogatepass")
    if kind == NUMBER:
        return _number(text.decode())
    return {TRUE: True, FALSE: False}.get(kind)


class _Searches:
    """All searches in the texts of one attribute; the position of search i is first + 2 i."""

    def __init__(self, index: SearchIndex, first: int) -> None:
        self._index, self._first = index, first

    def columns(self, found: Occurrences, at: np.ndarray, events: np.ndarray, attribute: int) -> np.ndarray:
        """(event, attribute, position) of each search that a text among the occurrences `at` satisfies."""
        at = at[found.kind[at] == TEXT]
        held = self._index.satisfied(found.blob, found.low[at], found.high[at])
        columns = np.empty((len(held.text), 3), dtype=np.int64)
        # Ascending positions are found by halving: an event may satisfy thousands of searches.
        key = np.sort(events[at][held.text].astype(np.int64) << 32 | held.search)
        columns[:, 0], columns[:, 1] = key >> 32, attribute
        columns[:, 2] = self._first + 2 * (key & 0xFFFFFFFF)
        return columns


class _Conditions:
    """Conditions that an index of values cannot express: `naive` decides them. Conditions on elements of lists have an
    index of their own, in which every element is an event."""

    def __init__(self, conditions: Sequence[Condition], first: int) -> None:
        self._others = []
        elements: dict[tuple[str, str], list[tuple[int, Condition]]] = {}
        positions = range(first, first + 2 * len(conditions), 2)
        for position, condition in zip(positions, conditions, strict=True):
            if isinstance(condition, AnyElement):
                of = elements.setdefault((condition.attribute.path, condition.name), [])
                of.append((position, condition.condition))
            else:
                self._others.append((position, condition))
        self._elements = [_Elements(path, name, listed) for (path, name), listed in elements.items()]

    def holding(self, document: Mapping[str, Any]) -> list[int]:
        """The positions of the conditions that hold."""
        found = [position for position, condition in self._others if naive.matches(condition, document)]
        for elements in self._elements:
            found += elements.holding(document)
        return found


class _Elements:
    """Conditions on elements of the lists at one path, under one name."""

    def __init__(self, path: str, name: str, conditions: Sequence[tuple[int, Condition]]) -> None:
        self._path, self._name = path, name
        self._positions = np.array([position for position, _ in conditions])
        table = FilterTable()
        for _, condition in conditions:
            shape = compile_filter(condition)
            table.add(table.add_shape(shape), shape.texts({}))
        self._reader = AttributeReader(FilterIndex.build(table))

    def holding(self, document: Mapping[str, Any]) -> list[int]:
        elements = values_at(document, self._path)
        documents = [with_element(document, self._name, element) for element in elements]
        pairs = self._reader.pairs(
            occurrences_of(documents, self._reader.wanted.table), documents.__getitem__
        )
        found: list[int] = self._positions[np.unique(self._reader.index.match(pairs).row)].tolist()
        return found


class _Networks:
    """All networks of addresses that one attribute is tested for, by the length of their prefix."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._by_prefix: dict[tuple[int, int], dict[int, list[int]]] = {}
        for i, text in enumerate(texts):
            written = network(text)
            of_prefix = self._by_prefix.setdefault((written.version, written.prefixlen), {})
            of_prefix.setdefault(int(written.network_address), []).append(i)

    def satisfied(self, text: str) -> list[int]:
        """The numbers of the networks that an address is in."""
        try:
            address = ip_address(text)
        except ValueError:
            return []
        wrapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        found: list[int] = []
        for candidate in (address, wrapped) if wrapped is not None else (address,):
            for (version, length), networks in self._by_prefix.items():
                if version == candidate.version:
                    size = candidate.max_prefixlen - length
                    found += networks.get(int(candidate) >> size << size, ())
        return found
