"""Computes joined rows: all combinations that one row of a signature's table joins with, without selections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tidings.dissemination.schemes.message import Image
from tidings.dissemination.schemes.server import Server
from tidings.dissemination.schemes.signature import Edge, Side, Signature
from tidings.dissemination.schemes.sizes import size_of_all

JoinedRow = tuple[Image, ...]


def joined_with(server: Server, signature: Signature, image: Image) -> Iterator[JoinedRow]:
    """The joined rows that hold this row, each with its parts in the order of the signature's tables."""
    start = signature.tables.index(image.table)
    yield from _extended(server, signature, {start: image})


def joined_size(signature: Signature, rows: JoinedRow) -> int:
    """The bytes of a joined row; equated columns count once."""
    size = sum(image.size for image in rows)
    for slot, columns in _repeated(signature):
        row = rows[slot].row
        size -= size_of_all([row[column] for column in columns])
    return size


@lru_cache(maxsize=1024)
def _repeated(signature: Signature) -> list[tuple[int, tuple[int, ...]]]:
    """For each table but the first the columns that tables before it have as well."""
    found: dict[int, set[int]] = {}
    for edge in _from(0, signature):
        found.setdefault(edge.right, set()).update(edge.right_columns)
    return [(slot, tuple(columns)) for slot, columns in found.items()]


@lru_cache(maxsize=1024)
def _from(start: int, signature: Signature) -> list[Edge]:
    """The edges in an order in which each leads on from tables that were reached, written in that direction."""
    reached, left, found = {start}, list(signature.edges), []
    while left:
        for edge in left:
            if edge.left in reached or edge.right in reached:
                left.remove(edge)
                towards = (
                    edge
                    if edge.left in reached
                    else Edge(edge.right, edge.left, edge.right_columns, edge.left_columns)
                )
                reached.add(towards.right)
                found.append(towards)
                break
    return found


def _extended(server: Server, signature: Signature, parts: dict[int, Image]) -> Iterator[JoinedRow]:
    if len(parts) == len(signature.tables):
        yield tuple(parts[slot] for slot in range(len(parts)))
        return
    start = next(iter(parts))
    edge = next(edge for edge in _from(start, signature) if edge.left in parts and edge.right not in parts)
    side = Side(signature.tables[edge.right], edge.right_columns, signature.selections[edge.right])
    for image in list(server.rows(side).joining(parts[edge.left], edge.left_columns).images):
        if all(_equated(other, parts, edge.right, image) for other in signature.edges):
            yield from _extended(server, signature, parts | {edge.right: image})


def _equated(edge: Edge, parts: dict[int, Image], slot: int, image: Image) -> bool:
    """Whether a row fits an edge between its slot and a part that is there."""
    for here, there, own, other in (
        (edge.left, edge.right, edge.left_columns, edge.right_columns),
        (edge.right, edge.left, edge.right_columns, edge.left_columns),
    ):
        if here == slot and there in parts:
            value = [image.row[column] for column in own]
            return None not in value and value == [parts[there].row[column] for column in other]
    return True
