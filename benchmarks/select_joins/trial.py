"""Schemes side by side: the same changes through each of them, what it sends for a change and how long that takes.

All schemes of a trial look at one server, and take turns at every step of every change, so that what disturbs one
disturbs all. What is written to a wire, or compressed on it, is not measured here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.select_joins.workload import Rows, Workload
from tidings.dissemination.schemes.message import Skyline
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.server import Change, Server
from tidings.dissemination.schemes.signature import Semijoin, Signature, signature_of
from tidings.kinds.joins.schema.shape import outline
from tidings.kinds.joins.schema.table import Row
from tidings.language.parser import parse

Decomposition = Mapping[Signature, Sequence[Semijoin]]


@dataclass(slots=True)
class Tally:
    """What one scheme sent for some changes."""

    changes: int = 0
    seconds: float = 0.0
    messages: int = 0
    bytes: int = 0
    skylines: int = 0
    skyline_bytes: int = 0

    @property
    def description(self) -> float:
        """Bytes of a skyline, on average over the messages that have one."""
        return self.skyline_bytes / max(1, self.skylines)

    def each(self, total: float) -> float:
        """A total as an average over all changes, also over those that nobody is told of."""
        return total / max(1, self.changes)


class Trial:
    """A workload's subscriptions and rows in a server, and its changes for the schemes to tell."""

    def __init__(
        self,
        workload: Workload,
        decomposition: Decomposition | None = None,
        centre: str | None = None,
        bare: Sequence[str] = (),
        payload: int | None = None,
    ) -> None:
        """`decomposition` says which semijoins are chosen where there is a choice. With a `centre`, tables are only
        joined with that one. Rows of the tables in `bare` have no payload; those of others have `payload` bytes."""
        self.workload = workload
        self.server = Server(workload.declared())
        self.signatures = [signature_in(workload, number, centre) for number in range(len(workload.groups))]
        for signature, group in zip(self.signatures, workload.groups, strict=True):
            ends = []
            for table, column in zip(signature.tables, signature.selections, strict=True):
                assert column is not None
                name = self.server.tables[table].names[column]
                ends.append((group.columns[f"{name}_low"], group.columns[f"{name}_high"]))
            self.server.subscribe(signature, ends, decomposition[signature] if decomposition else None)
        self._rows = {rows.name: _rows(rows, rows.name not in bare, payload) for rows in workload.tables}
        for rows in workload.tables:
            self.server.load(rows.name, self._rows[rows.name][: rows.initial])
        self.server.build()

    def changes(self, first: int = 0, last: int | None = None) -> list[Change]:
        stream = self.workload.stream[first:last]
        names = [rows.name for rows in self.workload.tables]
        found = []
        for table_number, new, old in zip(
            stream.table.tolist(), stream.new.tolist(), stream.old.tolist(), strict=True
        ):
            rows = self._rows[names[table_number]]
            found.append(
                Change(names[table_number], rows[new] if new >= 0 else None, rows[old] if old >= 0 else None)
            )
        return found

    def run(
        self,
        schemes: Sequence[type[Scheme]],
        changes: Sequence[Change],
        clock: Callable[[], float] = time.thread_time,
    ) -> dict[str, Tally]:
        """Applies the changes; of each scheme, by its name, what it sent."""
        asked = [(scheme(self.server), Tally(len(changes))) for scheme in schemes]
        for change in changes:
            for step in self.server.steps(change):
                for scheme, tally in asked:
                    start = clock()
                    messages = scheme.step(step)
                    tally.seconds += clock() - start
                    tally.messages += sum(
                        1 if message.targets is None else len(message.targets) for message in messages
                    )
                    tally.bytes += sum(message.bytes for message in messages)
                    for message in messages:
                        if isinstance(message.description, Skyline):
                            tally.skylines += 1
                            tally.skyline_bytes += message.description.size
        return {scheme.name: tally for scheme, tally in asked}


def signature_in(workload: Workload, number: int, centre: str | None = None) -> Signature:
    """The signature of a workload's group of subscriptions."""
    tables = {table.name: table for table in workload.declared()}
    shape, _ = outline(parse(workload.groups[number].template), tables)
    signature = signature_of(shape, lambda _, columns: columns[0])
    if centre is None:
        return signature
    middle = signature.tables.index(centre)
    return signature._replace(edges=tuple(edge for edge in signature.edges if middle in edge[:2]))


def _rows(rows: Rows, has_payload: bool, size: int | None) -> list[Row]:
    columns = rows.arrow().to_pydict()
    if not has_payload:
        columns["payload"] = [None] * len(rows)
    elif size is not None:
        columns["payload"] = [
            text.lstrip(rows.name).lstrip(".").rjust(size, ".")[-size:] for text in columns["payload"]
        ]
    return list(zip(*columns.values(), strict=True))
