"""Our index over the integer form of a workload of filters, so that a million expressions need no query tree each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks import filter_texts, table_kernels
from benchmarks.conjunctions import Conjunctions
from benchmarks.filter_workloads import Ints, Workload
from tidings.formats.namespaces import XSD
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.columns import read_events
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.kernels.layout import AttributePairs
from tidings.kinds.filters.shape import PLAIN, Key, compile_filter
from tidings.kinds.filters.table import FilterTable
from tidings.language.parser import parse
from tidings.model.terms import Literal, ntriples


class Tidings:
    """The index of all expressions; a row is an expression's number."""

    def __init__(self, workload: Workload) -> None:
        if isinstance(workload, Conjunctions):
            self.index = FilterIndex.build(conjunction_table(workload))
        else:
            self.index = FilterIndex.build(expression_table(workload))
        self.nbytes = self.index.nbytes
        self._reader = AttributeReader(self.index)

    def prepare(self, workload: Workload, count: int) -> AttributePairs:
        """The first `count` events, read."""
        return self.read(filter_texts.event_table(workload, workload.events[:count]))

    def read(self, events: pa.Table) -> AttributePairs:
        """Events as the index knows them, from JSON texts."""
        return self._reader.pairs(read_events(events, self._reader.wanted), lambda _: {})

    def match(self, prepared: AttributePairs) -> Ints:
        """Pairs (event, expression)."""
        matches = self.index.match(prepared)
        return np.column_stack([matches.event, matches.row])


def expression_table(workload: Workload) -> FilterTable:
    """The rows of arbitrary expressions over numbers, each with a shape of its own."""
    table, names = FilterTable(), workload.names
    values = len(names.values[0])
    for name in names.attributes:
        table.keys[Key(PLAIN, name)] = len(table.keys)
    constants = np.array(
        [table.constants.number(ntriples(Literal(str(v), XSD + "integer"))) for v in range(values)], np.int32
    )
    first, trees = workload.expressions.first, workload.expressions.trees
    count = len(workload.expressions)
    lengths, widths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    table_kernels.measure(first, trees, values, lengths, widths)
    words, slots = np.zeros(lengths.sum(), np.int32), np.zeros(widths.sum(), np.int32)
    table_kernels.write(first, trees, values, constants, words, slots)
    rows = np.arange(count, dtype=np.int32)
    table.trees.frombytes(words.tobytes())
    table.tree_first.frombytes(np.cumsum(lengths).tobytes())
    table.slots.frombytes(slots.tobytes())
    table.slot_first.frombytes(np.cumsum(widths).tobytes())
    table.row_shape.frombytes(rows.tobytes())
    return table


def conjunction_table(workload: Conjunctions) -> FilterTable:
    """The rows of conjunctions, form by form."""
    table = FilterTable()
    texts = [[ntriples(filter_texts.literal(value)) for value in values] for values in workload.names.values]
    for form, template in zip(workload.forms, filter_texts.templates(workload), strict=True):
        shape = compile_filter(parse(template).where)
        columns = {
            f"p{i}": (form.constants[:, i].astype(np.int64), texts[attribute])
            for attribute, column in zip(form.attributes, form.columns, strict=True)
            for i in range(column.start, column.stop)
        }
        assert form.first == len(table)
        table.add_many(table.add_shape(shape), shape, columns, len(form.constants))
    return table
