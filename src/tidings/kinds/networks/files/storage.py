"""Saves and loads a network as a folder of arrays: names, texts of expressions, and the columns of nodes and edges.

Nothing derived is stored, so the folder cannot contradict itself. Numbers that lead out of their columns are refused
when it is opened, like any other damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays import folders
from tidings.arrays.vocabulary import StoredTexts, join_texts, thaw_texts
from tidings.errors import IndexFileError
from tidings.kinds.networks.expressions import NONE, Expressions
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.index.names import NodeNames
from tidings.kinds.networks.labels import MATCHES

Arrays = dict[str, np.ndarray]
_TYPES = {
    "name_blob": np.uint8,
    "name_start": np.int64,
    "text_blob": np.uint8,
    "text_start": np.int64,
    "node_where": np.int32,
    "node_cost": np.float64,
    "source": np.int32,
    "target": np.int32,
    "edge_where": np.int32,
    "edge_cost": np.float64,
}


def save_network(
    folder: Path, names: NodeNames, expressions: Expressions, columns: Columns, facts: dict[str, Any]
) -> None:
    used, where = np.unique(np.concatenate([columns.node_where, columns.edge_where]), return_inverse=True)
    numbers = (where - np.count_nonzero(used == NONE)).astype(np.int32)  # NONE is the first, if it is there
    name_blob, name_start = join_texts(names.texts(columns.node.tolist()))
    text_blob, text_start = join_texts(expressions.texts[i] for i in used[used != NONE].tolist())
    nodes = len(columns.node)
    arrays = {
        "name_blob": name_blob,
        "name_start": name_start,
        "text_blob": text_blob,
        "text_start": text_start,
        "node_where": numbers[:nodes],
        "node_cost": columns.node_cost,
        "source": columns.source,
        "target": columns.target,
        "edge_where": numbers[nodes:],
        "edge_cost": columns.edge_cost,
    }
    folders.save(folder, arrays, {"kind": "network", **facts})


def load_network(folder: Path) -> tuple[NodeNames, Expressions, Columns, dict[str, Any]]:
    arrays, facts = folders.load(folder)
    if facts.get("kind") != "network":
        raise IndexFileError(f"{folder} holds something else than a network; name the folder of one")
    for name, right in _checks(arrays, facts):
        if not right:
            raise IndexFileError(
                f"{folder} is damaged: {name} has values that cannot be right; save the network anew"
            )
    expressions = Expressions()
    try:
        for i, text in enumerate(StoredTexts(arrays["text_blob"], arrays["text_start"])):
            expressions.number(text, f"number {i}")
    except NetworkError as error:
        raise IndexFileError(f"{folder} is damaged: {error}; save the network anew") from None
    nodes = np.arange(len(arrays["node_where"]), dtype=np.int32)
    numbered = ("node_where", "node_cost", "source", "target", "edge_where", "edge_cost")
    columns = Columns(nodes, *(arrays[name].copy() for name in numbered))
    return NodeNames(arrays["name_blob"].copy(), arrays["name_start"].copy()), expressions, columns, facts


def _checks(arrays: Arrays, facts: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The checks of the arrays; each relies on those before it."""
    for name, kind in _TYPES.items():
        yield name, name in arrays and arrays[name].dtype == kind and arrays[name].ndim == 1
    yield "manifest.json", facts.get("match") in MATCHES and isinstance(facts.get("labels"), str)
    for name in ("name", "text"):
        start, blob = arrays[f"{name}_start"], arrays[f"{name}_blob"]
        yield f"{name}_start", len(start) > 0 and start[0] == 0 and start[-1] == len(blob)
        yield f"{name}_start", bool((np.diff(start) >= 0).all())
        yield f"{name}_blob", _are_distinct_texts(blob, start)
    nodes, texts = len(arrays["name_start"]) - 1, len(arrays["text_start"]) - 1
    edges = len(arrays["source"])
    for name, size in (
        ("node_where", nodes),
        ("node_cost", nodes),
        ("target", edges),
        ("edge_where", edges),
        ("edge_cost", edges),
    ):
        yield name, len(arrays[name]) == size
    for name, low, high in (
        ("node_where", NONE, texts),
        ("edge_where", NONE, texts),
        ("source", 0, nodes),
        ("target", 0, nodes),
    ):
        yield name, bool(((arrays[name] >= low) & (arrays[name] < high)).all())
    for name in ("node_cost", "edge_cost"):
        yield name, bool(((arrays[name] >= 0) & np.isfinite(arrays[name])).all())
    keys = np.sort((arrays["source"].astype(np.int64) << 32) | arrays["target"])
    yield "target", bool((np.diff(keys) > 0).all())


def _are_distinct_texts(blob: np.ndarray, start: np.ndarray) -> bool:
    try:
        texts = thaw_texts({"blob": blob, "start": start})
    except UnicodeDecodeError:
        return False
    return len(set(texts)) == len(texts)
