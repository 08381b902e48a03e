"""Arrow tables -> the columns of a network, without an object for each node or edge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.network.columns import Columns
from tidings.network.expressions import NONE, Expressions
from tidings.network.faults import NetworkError, some
from tidings.network.labels import labels_condition
from tidings.network.names import Names

Namer = Callable[[int], str]


def read_tables(
    nodes: pa.Table, edges: pa.Table, match: str, labels: str
) -> tuple[Names, Expressions, Columns]:
    """What the tables say; a `NetworkError` counts what is wrong with them."""
    ids, ends = _texts(nodes, "id", "node"), [_texts(edges, name, "edge") for name in ("source", "target")]
    _refuse_repeated(ids)
    source, target = _numbers(ids, ends)

    def node(i: int) -> str:
        return f"node {ids[i].as_py()!r}"

    def edge(i: int) -> str:
        return f"edge {ends[0][i].as_py()!r} -> {ends[1][i].as_py()!r}"

    _refuse_repeated_edges(source, target, edge)
    expressions = Expressions()
    if match != "expression" and "labels" in nodes.column_names:
        node_where = _labels(nodes["labels"], expressions, match, labels, node)
    else:
        node_where = _where(nodes, expressions, node)
    columns = Columns(
        np.arange(len(ids), dtype=np.int32),
        node_where,
        _cost(nodes, node),
        source,
        target,
        _where(edges, expressions, edge),
        _cost(edges, edge),
    )
    return _names(ids), expressions, columns


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _texts(table: pa.Table, name: str, what: str) -> pa.Array:
    if name not in table.column_names:
        have = ", ".join(table.column_names) or "none"
        raise NetworkError(f"a table of {what}s needs a column {name!r}; its columns are: {have}")
    column = _whole(table[name].cast(pa.large_string()))
    if column.null_count:
        raise NetworkError(f"{column.null_count:,} {what}s have no {name}; give one to each")
    return column


def _names(ids: pa.Array) -> Names:
    _, offsets, data = ids.buffers()
    if not len(ids):
        return Names(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
    start = np.frombuffer(offsets, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
    blob = np.frombuffer(data if data is not None else b"", dtype=np.uint8)
    return Names(blob[start[0] : start[-1]].copy(), start - start[0])


def _refuse_repeated(ids: pa.Array) -> None:
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(repeated):
        raise NetworkError(
            f"{len(repeated):,} ids are given to more than one node: "
            f"{some(repeated[:3].to_pylist(), len(repeated))}; give each node its own"
        )


def _numbers(ids: pa.Array, ends: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """The places of the edges' ends among the nodes."""
    found = [pc.index_in(column, value_set=ids) for column in ends]
    unknown = [column.filter(pc.is_null(number)) for column, number in zip(ends, found, strict=True)]
    names = pc.unique(pa.concat_arrays(unknown))
    if len(names):
        edges = pc.sum(pc.or_(pc.is_null(found[0]), pc.is_null(found[1]))).as_py()
        raise NetworkError(
            f"{edges:,} edges name nodes that are not there: {some(names[:3].to_pylist(), len(names))};"
            " add them to the nodes or leave these edges out"
        )
    source, target = (number.to_numpy(zero_copy_only=False).astype(np.int32) for number in found)
    return source, target


def _refuse_repeated_edges(source: np.ndarray, target: np.ndarray, edge: Namer) -> None:
    key = (source.astype(np.int64) << 32) | target
    order = np.argsort(key)
    again = order[1:][key[order[1:]] == key[order[:-1]]]
    if len(again):
        raise NetworkError(
            f"{len(again):,} edges are given more than once, such as {edge(int(again[0]))};"
            " join their expressions with OR, or leave all but one out"
        )


def _where(table: pa.Table, expressions: Expressions, place: Namer) -> np.ndarray:
    """The numbers of the expressions, each distinct text read once; null and blank texts are none."""
    if "where" not in table.column_names:
        return np.full(table.num_rows, NONE, dtype=np.int32)
    texts = _whole(table["where"].cast(pa.large_string()))
    encoded = texts.dictionary_encode()
    row = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int32)
    distinct = encoded.dictionary.to_pylist()
    numbers = np.full(len(distinct) + 1, NONE, dtype=np.int32)  # the last is for null, at -1
    for i, text in enumerate(distinct):
        if not text.isspace() and text:
            numbers[i] = expressions.number(text, _Place(place, row, i))
    return numbers[row]


class _Place:
    """The name of the first place that has a value, looked for only when it is needed."""

    def __init__(self, name: Namer, row: np.ndarray, value: int) -> None:
        self._name, self._row, self._value = name, row, value

    def __str__(self) -> str:
        return self._name(int(np.flatnonzero(self._row == self._value)[0]))


def _labels(
    column: pa.ChunkedArray, expressions: Expressions, match: str, labels: str, node: Namer
) -> np.ndarray:
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise NetworkError(f"the column 'labels' is a list of texts for each node, not {column.type}")
    known: dict[tuple[str, ...], int] = {}
    numbers = np.full(len(column), NONE, dtype=np.int32)
    for i, given in enumerate(column.to_pylist()):
        if given is None:
            continue
        key = tuple(given)
        if key not in known:
            known[key] = expressions.number(labels_condition(match, labels, key), node(i))
        numbers[i] = known[key]
    return numbers


def _cost(table: pa.Table, place: Namer) -> np.ndarray:
    if "cost" not in table.column_names:
        return np.zeros(table.num_rows)
    try:
        column = _whole(table["cost"].cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise NetworkError(f"the column 'cost' is not of numbers: {error}") from None
    cost = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    wrong = np.flatnonzero(~((cost >= 0) & np.isfinite(cost)))
    if len(wrong):
        raise NetworkError(
            f"{len(wrong):,} costs are no numbers from 0 up, such as {cost[wrong[0]]:g} of {place(int(wrong[0]))}"
        )
    return cost
