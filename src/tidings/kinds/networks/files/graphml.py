"""Reads GraphML into the two tables of a network.

A node's and an edge's `where`, `cost` and labels are data with these names; an undirected edge becomes two. Hyperedges and
graphs inside nodes are refused, and so are documents that nest deep, expand entities or are larger than `MAX_GRAPHML`.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from lxml import etree

from tidings.errors import EventError
from tidings.formats.documents import safe_xml
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.files.label_columns import label_columns, refuse_misspelled
from tidings.kinds.networks.files.sources import LocatedTable

MAX_GRAPHML = 256 * 1024 * 1024
_DATA = ("where", "cost")


def read_graphml(path: Path) -> tuple[LocatedTable, LocatedTable]:
    """Nodes and edges, each with its line number."""
    size = path.stat().st_size
    if size > MAX_GRAPHML:
        raise NetworkError(f"{path} has {size:,} bytes; a network that large is better kept in Parquet")
    try:
        document = safe_xml(path.read_bytes(), MAX_GRAPHML)
    except EventError as error:
        raise NetworkError(f"{path} is not readable as GraphML: {error}") from None
    graph = _Graph(path)
    try:
        graph.read(document)
    except etree.XMLSyntaxError as error:
        raise NetworkError(f"{path} is not readable as GraphML: {error}") from None
    return graph.rows("node"), graph.rows("edge")


class _Graph:
    """The nodes and edges read so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys: dict[str, tuple[str, str]] = {}  # id -> for what, which of the data
        self._defaults: dict[tuple[str, str], str] = {}
        self._directed = True
        self._columns: dict[str, dict[str, list[Any]]] = {
            "node": {"id": [], "where": [], "cost": [], "line": []},
            "edge": {"source": [], "target": [], "where": [], "cost": [], "line": []},
        }

    def read(self, document: bytes) -> None:
        parts = etree.iterparse(
            BytesIO(document), events=("start", "end"), resolve_entities=False, no_network=True
        )
        depth = graphs = 0
        for event, element in parts:
            kind = etree.QName(element).localname if isinstance(element.tag, str) else ""
            if event == "start":
                depth += 1
                if depth == 1 and kind != "graphml":
                    raise NetworkError(f"{self._path} is <{kind}>, not GraphML; it must begin with <graphml>")
                if kind == "graph":
                    graphs += 1
                    self._directed = element.get("edgedefault") != "undirected"
                if graphs > 1 or kind == "hyperedge":
                    what = "a hyperedge" if kind == "hyperedge" else "more than one graph"
                    raise self._wrong(element, f"{what} is no network; leave one graph of nodes and edges")
                continue
            depth -= 1
            if kind == "key":
                self._key(element)
            elif kind in ("node", "edge"):
                self._add(kind, element)
                element.clear()
                while element.getprevious() is not None:  # what is done with need not stay in memory
                    del element.getparent()[0]

    def rows(self, kind: str) -> LocatedTable:
        columns = dict(self._columns[kind])
        lines = columns.pop("line")
        return LocatedTable(
            pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}),
            lambda row: f"{self._path}:{lines[row]}",
        )

    def _key(self, element: Any) -> None:
        name = element.get("attr.name") or element.get("id")
        refuse_misspelled([name or ""], self._path)
        if name not in _DATA and not label_columns([name or ""]):
            return
        for kind in ("node", "edge") if element.get("for") in (None, "all") else (element.get("for"),):
            self._keys[f"{kind} {element.get('id')}"] = (kind, name)
            if (columns := self._columns.get(kind)) is not None:
                columns.setdefault(name, [None] * len(columns["line"]))
            default = next((child for child in element if etree.QName(child).localname == "default"), None)
            if default is not None and default.text:
                self._defaults[kind, name] = default.text

    def _add(self, kind: str, element: Any) -> None:
        data = {name: self._defaults.get((kind, name)) for name in self._columns[kind]}
        for child in element:
            if isinstance(child.tag, str) and etree.QName(child).localname == "data":
                _, name = self._keys.get(f"{kind} {child.get('key')}", (kind, ""))
                if name:
                    data[name] = (child.text or "").strip() or None
        for ends in self._ends(kind, element):
            row = {**data, **ends, "line": element.sourceline}
            for name, column in self._columns[kind].items():
                column.append(row[name])

    def _ends(self, kind: str, element: Any) -> Iterator[dict[str, str]]:
        names = ("id",) if kind == "node" else ("source", "target")
        ends = {name: element.get(name) for name in names}
        for name, value in ends.items():
            if not value:
                raise self._wrong(element, f"a <{kind}> has no {name}; give it one")
        yield ends
        directed = {"true": True, "false": False}.get(element.get("directed"), self._directed)
        if kind == "edge" and not directed and ends["source"] != ends["target"]:
            yield {"source": ends["target"], "target": ends["source"]}

    def _wrong(self, element: Any, sentence: str) -> NetworkError:
        return NetworkError(f"{self._path}:{element.sourceline}: {sentence}")
