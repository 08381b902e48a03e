"""Converts Arrow tables to the columns of a network, without a Python object for each node or edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import check_columns
from tidings.kinds.networks.expressions import NONE, Expressions
from tidings.kinds.networks.faults import NetworkError, first_names
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.index.names import NodeNames
from tidings.kinds.networks.labels import labels_condition

Namer = Callable[[int], str]


def read_tables(
    nodes: pa.Table, edges: pa.Table, match: str, labels: str
) -> tuple[NodeNames, Expressions, Columns]:
    """Names, expressions and columns from the tables; a `NetworkError` counts what is wrong with them."""
    check_columns(nodes.column_names, "the table of nodes has", NetworkError)
    check_columns(edges.column_names, "the table of edges has", NetworkError)
    ids, ends = _texts(nodes, "id", "node"), [_texts(edges, name, "edge") for name in ("source", "target")]

    def node(i: int) -> str:
        return f"node {ids[i].as_py()!r}"

    def edge(i: int) -> str:
        return f"edge {ends[0][i].as_py()!r} -> {ends[1][i].as_py()!r}"

    names = _names(ids)
    source, target = _numbers(names, ends)
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
    return names, expressions, columns


def _texts(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        have = ", ".join(table.column_names) or "none"
        raise NetworkError(f"a table of {what}s needs a column {name!r}; its columns are: {have}")
    column = table[name]
    if column.null_count:
        raise NetworkError(f"{column.null_count:,} {what}s have no {name}; give one to each")
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _spans(column: pa.ChunkedArray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The bytes of each piece of a column, and where its texts start in them: nothing is copied but the starts."""
    for piece in column.chunks:
        _, offsets, data = piece.buffers()
        if len(piece):
            start = np.frombuffer(offsets, dtype=np.int32)[piece.offset : piece.offset + len(piece) + 1]
            yield np.frombuffer(data if data is not None else b"", dtype=np.uint8), start.astype(np.int64)


def _names(ids: pa.ChunkedArray) -> NodeNames:
    """Names for the nodes, refused if one is given twice."""
    pieces = list(_spans(ids))
    blob = np.concatenate([np.zeros(0, dtype=np.uint8), *(texts[s[0] : s[-1]] for texts, s in pieces)])
    start = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([np.zeros(0, np.int64), *(np.diff(s) for _, s in pieces)]), out=start[1:])
    names = NodeNames(blob, start)
    again = np.flatnonzero(names.find_all(blob, start) != np.arange(len(ids)))
    if len(again):
        repeated = pc.unique(ids.take(pa.array(again)))
        raise NetworkError(
            f"{len(repeated):,} ids are given to more than one node: "
            f"{first_names(repeated[:3].to_pylist(), len(repeated))}; give each node its own"
        )
    return names


def _numbers(names: NodeNames, ends: list[pa.ChunkedArray]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the edges' ends."""
    none = np.zeros(0, dtype=np.int32)
    source, target = (np.concatenate([none, *(names.find_all(*s) for s in _spans(end))]) for end in ends)
    if len(wrong := np.flatnonzero((source < 0) | (target < 0))):
        unknown = [
            end.take(pa.array(np.flatnonzero(n < 0))) for end, n in zip(ends, (source, target), strict=True)
        ]
        missing = pc.unique(pa.chunked_array([*unknown[0].chunks, *unknown[1].chunks], pa.string()))
        raise NetworkError(
            f"{len(wrong):,} edges name nodes that are not there: {first_names(missing[:3].to_pylist(), len(missing))};"
            " add them to the nodes or leave these edges out"
        )
    return source, target


def _refuse_repeated_edges(source: np.ndarray, target: np.ndarray, edge: Namer) -> None:
    key = (source.astype(np.int64) << 32) | target
    in_order = np.sort(key)
    again = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(again):
        raise NetworkError(
            f"{len(again):,} edges are given more than once, such as {edge(int(np.flatnonzero(key == again[0])[0]))};"
            " join their expressions with OR, or leave all but one out"
        )


def _where(table: pa.Table, expressions: Expressions, location: Namer) -> np.ndarray:
    """The numbers of the expressions, each distinct text read once; null and blank texts are none."""
    if "where" not in table.column_names:
        return np.full(table.num_rows, NONE, dtype=np.int32)
    column = table["where"].cast(pa.string()).dictionary_encode().unify_dictionaries()
    distinct = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    pieces = (piece.indices.fill_null(NONE).to_numpy(zero_copy_only=False) for piece in column.chunks)
    row = np.concatenate([np.zeros(0, dtype=np.int32), *pieces]).astype(np.int32, copy=False)
    numbers = np.full(len(distinct) + 1, NONE, dtype=np.int32)  # the last is for null, at -1
    for i, text in enumerate(distinct):
        if not text.isspace() and text:
            numbers[i] = expressions.number(text, _LazyLocation(location, row, i))
    return numbers[row]


class _LazyLocation:
    """The name of the first row that has a value, looked up only when it is needed."""

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


def _cost(table: pa.Table, location: Namer) -> np.ndarray:
    if "cost" not in table.column_names:
        return np.zeros(table.num_rows)
    try:
        column = table["cost"].cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise NetworkError(f"the column 'cost' is not of numbers: {error}") from None
    cost = column.fill_null(0.0).to_numpy()
    wrong = np.flatnonzero(~((cost >= 0) & np.isfinite(cost)))
    if len(wrong):
        raise NetworkError(
            f"{len(wrong):,} costs are no numbers from 0 up, such as {cost[wrong[0]]:g} of {location(int(wrong[0]))}"
        )
    return cost
