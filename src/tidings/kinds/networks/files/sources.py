"""Reads a network from files: two tables in CSV or Parquet, GraphML, or a folder that `Network.save` has written.

The tables are nodes (id, where, cost) and edges (source, target, where, cost), both also with columns of labels; all but the names
may be left out, and so may the nodes, which are then those that edges name. Tables are processed as columns; rows are examined only to find
the file and line of an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError, check_columns, nearest
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.label_columns import label_columns, refuse_misspelled, with_expressions

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.kinds.networks.network import Network

NODE_COLUMNS, EDGE_COLUMNS = ("id", "where", "cost"), ("source", "target", "where", "cost")
_TABLES = (".csv", ".parquet")
_FORMS = "give nodes.csv or edges.csv, their folder, the same as .parquet, a .graphml, or a folder that a network was saved to"


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """A table, and a function that gives the location (file and line) of a row."""

    table: pa.Table
    location: Callable[[int], str]


def read_network(path: str | Path) -> Network:
    """The network in a file or a folder; a `NetworkError` says what is wrong with it, and where."""
    path = Path(path)
    if not path.exists():
        raise NetworkError(f"there is no file or folder {str(path)!r}; {_FORMS}")
    if path.is_dir() and not _tables_in(path):
        return _saved(path)
    if path.suffix.lower() in (".graphml", ".xml"):
        from tidings.kinds.networks.files.graphml import read_graphml

        nodes, edges = read_graphml(path)
    else:
        nodes, edges = _tables(path)
    return _network(_without_labels(nodes), _without_labels(edges), str(path))


def _without_labels(rows: LocatedTable) -> LocatedTable:
    return LocatedTable(with_expressions(rows.table, rows.location), rows.location)


def network_of_rows(nodes: Sequence[Mapping[str, Any]] | None, edges: Sequence[Mapping[str, Any]]) -> Network:
    """The network of rows that are dicts; without nodes, they are those that edges name."""
    read = _rows(edges, "edges", EDGE_COLUMNS)
    return _network(
        _named(read) if nodes is None else _rows(nodes, "nodes", NODE_COLUMNS), read, "the network"
    )


def _rows(rows: Sequence[Mapping[str, Any]], name: str, columns: tuple[str, ...]) -> LocatedTable:
    import pyarrow as pa

    table = {
        column: pa.array([row.get(column) for row in rows], pa.float64() if column == "cost" else pa.string())
        for column in columns
    }
    return LocatedTable(pa.table(table), lambda row: f"{name}[{row}]")


def _network(nodes: LocatedTable, edges: LocatedTable, what: str) -> Network:
    from tidings.kinds.networks.network import Network

    try:
        return Network.from_tables(nodes.table, edges.table)
    except NetworkError as error:
        raise _first_error(nodes, edges) or NetworkError(f"{what}: {error}") from None


def _saved(folder: Path) -> Network:
    from tidings.kinds.networks.network import Network

    drawn = sorted([*folder.glob("*.graphml")])
    if len(drawn) == 1:
        return read_network(drawn[0])
    if not any(folder.iterdir()):
        raise NetworkError(f"{folder} is empty; {_FORMS}")
    try:
        return Network.load(folder)
    except TidingsError as error:
        raise NetworkError(f"{folder} holds no network: {error}; {_FORMS}") from None


# -- tables


def _tables_in(folder: Path) -> Path | None:
    names = (f"{name}{suffix}" for name in ("edges", "nodes") for suffix in _TABLES)
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _tables(path: Path) -> tuple[LocatedTable, LocatedTable]:
    found = _tables_in(path) if path.is_dir() else path
    assert found is not None
    suffix = found.suffix.lower()
    if suffix not in _TABLES:
        raise NetworkError(f"{path} is no network by its name; {_FORMS}")
    read = _csv if suffix == ".csv" else _parquet
    stem = found.stem
    if "nodes" in stem:
        others = found.with_stem(stem.replace("nodes", "edges"))
        if not others.is_file():
            raise NetworkError(f"there is no {others.name} beside {found}; a network has edges too")
        return read(found, NODE_COLUMNS, ("id",)), read(others, EDGE_COLUMNS, ("source", "target"))
    edges = read(found, EDGE_COLUMNS, ("source", "target"))
    beside = found.with_stem(stem.replace("edges", "nodes"))
    if "edges" in stem and beside.is_file():
        return read(beside, NODE_COLUMNS, ("id",)), edges
    return _named(edges), edges


def _named(edges: LocatedTable) -> LocatedTable:
    """The nodes that edges name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = [edges.table[name].combine_chunks().drop_null() for name in ("source", "target")]
    return LocatedTable(pa.table({"id": pc.unique(pa.concat_arrays(ends))}), lambda row: edges.location(0))


def _csv_error(path: Path, error: Exception) -> str:
    """What is wrong with a file, with its line. Only a single thread knows which line it reads, so it is read again."""
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        pc.read_csv(path, pc.ReadOptions(use_threads=False), pc.ParseOptions(newlines_in_values=True))
    except pa.ArrowInvalid as again:
        error = again
    reason = str(error).removeprefix("CSV parse error: ")
    found = re.match(r"Row #(\d+): (.*)", reason, re.DOTALL)
    line, reason = (f":{found[1]}", found[2]) if found else ("", reason)
    return f"{path}{line} is not readable as CSV: {reason[:1].lower()}{reason[1:]}"


def _csv(path: Path, columns: tuple[str, ...], needed: tuple[str, ...]) -> LocatedTable:
    import pyarrow as pa
    import pyarrow.csv as pc

    parsing = pc.ParseOptions(newlines_in_values=True)
    try:
        with pc.open_csv(path, parse_options=parsing) as file:
            columns += label_columns(file.schema.names)
        table = pc.read_csv(
            path,
            parse_options=parsing,
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
    except pa.ArrowInvalid as error:
        raise NetworkError(_csv_error(path, error)) from None

    def location(row: int) -> str:
        with path.open("rb") as file:
            lines = sum(1 for line in file if line.strip())
        # A text over several lines moves those after it.
        return f"{path}:{row + 2}" if lines == table.num_rows + 1 else f"{path}: row {row + 1}"

    return LocatedTable(_checked(path, table, columns, needed), location)


def _parquet(path: Path, columns: tuple[str, ...], needed: tuple[str, ...]) -> LocatedTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        _check_columns(path, names, needed)
        columns += label_columns(names)
        table = pq.read_table(path, columns=[name for name in columns if name in names])
    except (pa.ArrowException, OSError) as error:
        raise NetworkError(f"{path} is not readable as Parquet: {error}") from None
    return LocatedTable(_checked(path, table, columns, needed), lambda row: f"{path}: row {row + 1}")


def _checked(path: Path, table: pa.Table, columns: tuple[str, ...], needed: tuple[str, ...]) -> pa.Table:
    """The columns that count, names and expressions as texts, costs as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _check_columns(path, table.column_names, needed)
    kept = table.select([name for name in columns if name in table.column_names])
    for position, name in enumerate(kept.column_names):
        if name == "cost":
            if pa.types.is_string(kept[name].type):
                kept = kept.set_column(position, name, pc.utf8_trim_whitespace(kept[name]))
            continue
        if pa.types.is_nested(kept[name].type) and label_columns([name]):
            continue
        try:
            kept = kept.set_column(position, name, kept[name].cast(pa.string()))
        except pa.ArrowException:
            raise NetworkError(f"{path}: the column {name!r} is {kept[name].type}; give texts") from None
    return kept


def _check_columns(path: Path, names: list[str], needed: tuple[str, ...]) -> None:
    check_columns(names, f"{path} has", NetworkError)
    refuse_misspelled(names, path)
    for name in needed:
        if name not in names:
            near = nearest(name, names, likeness=0.5)
            advice = (
                f"is {near!r} it?" if near is not None else f"its columns are {', '.join(names) or 'none'}"
            )
            raise NetworkError(f"{path} has no column {name!r}; {advice}")


# -- what is wrong, and where


def _first_error(nodes: LocatedTable, edges: LocatedTable) -> NetworkError | None:
    """The first error of a row, with its location."""
    known: dict[str, int] = {}
    for row, id in enumerate(nodes.table["id"].to_pylist()):
        if id is None:
            return NetworkError(f"{nodes.location(row)}: the node has no id; give it one")
        if id in known:
            first = nodes.location(known[id])
            return NetworkError(
                f"{nodes.location(row)}: the node {id!r} is there already, at {first}; leave one out"
            )
        known[id] = row
    seen: dict[tuple[str, str], int] = {}
    for row, ends in enumerate(
        zip(*(edges.table[name].to_pylist() for name in ("source", "target")), strict=True)
    ):
        for name, end in zip(("source", "target"), ends, strict=True):
            if end is None:
                return NetworkError(f"{edges.location(row)}: the edge has no {name}; name a node")
            if end not in known:
                near = nearest(end, known) if len(known) < 100_000 else None
                advice = (
                    f"is {near!r} meant?"
                    if near is not None
                    else "add it to the nodes, or leave the edge out"
                )
                return NetworkError(f"{edges.location(row)}: the edge's {name} {end!r} is no node; {advice}")
        if ends in seen:
            first = edges.location(seen[ends])
            return NetworkError(
                f"{edges.location(row)}: the edge {ends[0]!r} -> {ends[1]!r} is there already, at {first};"
                " join their expressions with OR"
            )
        seen[ends] = row
    return next(_wrong_values(nodes), None) or next(_wrong_values(edges), None)


def _wrong_values(rows: LocatedTable) -> Iterator[NetworkError]:
    from tidings.kinds.networks.expressions import read_condition

    columns = {
        name: rows.table[name].to_pylist() for name in ("cost", "where") if name in rows.table.column_names
    }
    read: set[str] = set()
    for row in range(rows.table.num_rows):
        if (cost := columns.get("cost", {row: None})[row]) is not None and not _is_cost(cost):
            yield NetworkError(
                f"{rows.location(row)}: the cost {cost!r} is not a number from 0 up; correct or omit it"
            )
        where = columns.get("where", {row: None})[row]
        if where is None or not where.strip() or where in read:
            continue
        read.add(where)
        try:
            read_condition(where, "this row")
        except NetworkError as error:
            yield NetworkError(f"{rows.location(row)}: {error}")


def _is_cost(cost: Any) -> bool:
    try:
        return 0 <= float(cost) < float("inf")
    except (TypeError, ValueError):
        return False
