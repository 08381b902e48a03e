"""Joins as a kind: subscriptions over tables, their rows, and the deltas that changes of rows give; saved and loaded
together.

tables.json        the declared tables, and the last sequence of each source
subscriptions      ranges by number, and the texts that they compare with
sources.arrow      of each subscription its id, and its text if it is not of a template
templates          the tables of templates, by number
index              the base index
rows.arrow         the rows of all tables
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from tidings.errors import SubscriptionError
from tidings.kinds.joins.changes.changes import read_changes
from tidings.kinds.joins.changes.row_images import typed
from tidings.kinds.joins.changes.sequences import Sequences
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.explain import explain
from tidings.kinds.joins.index import storage
from tidings.kinds.joins.index.correlator import Correlator
from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.integrity import refuse_damaged_subscriptions
from tidings.kinds.joins.index.levels import Levels
from tidings.kinds.joins.index.subscriptions import ALWAYS, Subscriptions
from tidings.kinds.joins.rows.texts import Texts
from tidings.kinds.joins.schema.declarations import saved_tables
from tidings.kinds.joins.schema.ranges import is_empty, range_of
from tidings.kinds.joins.schema.shape import JoinShape, Selection, outline
from tidings.kinds.joins.schema.table import Table, by_name
from tidings.kinds.joins.schema.templates import fill
from tidings.language.parameter_columns import fill_template
from tidings.language.parameters import substitute
from tidings.language.query import And, KindCondition, Query
from tidings.model.event import Event, to_table
from tidings.model.explanation import Explanation
from tidings.model.notification import Notification
from tidings.model.terms import from_ntriples

_identity = id
_JSON = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.string(),
    "timestamp": pa.string(),
}


class Template(NamedTuple):
    """Subscriptions of one text: the number of the first, and a row of parameters for each."""

    text: str
    first: int
    table: pa.Table


class JoinKind:
    """The kind of subscription that joins tables. It takes subscriptions whole, and needs all changes in order."""

    name, role = "joins", "state"
    conditions: tuple[type[KindCondition], ...] = ()

    def __init__(self, tables: Iterable[Table], prefixes: Mapping[str, str]) -> None:
        self._tables, self._prefixes = tables, prefixes

    def builder(self) -> Joins:
        return Joins(self._tables, self._prefixes)

    def load(self, folder: Path) -> Joins:
        return Joins.load(folder, self._prefixes)


class Joins:
    """Tables and the subscriptions over them; `apply` takes events."""

    def __init__(self, tables: Iterable[Table] = (), prefixes: Mapping[str, str] | None = None) -> None:
        self.tables = by_name(tables)
        self._prefixes = prefixes or {}
        self.subscriptions = Subscriptions(list(self.tables.values()), Texts())
        self.levels = Levels(self.subscriptions)
        self.correlator = Correlator(self.subscriptions.tables, self.subscriptions, self.levels)
        self.numbering = (
            ""  # names the assignment of numbers to subscriptions, by which streams count sequences
        )
        self._texts: dict[int, str] = {}
        self._templates: list[Template] = []
        self._outlines: dict[int, tuple[Query, JoinShape, Sequence[Selection]]] = {}

    def __len__(self) -> int:
        return int(np.count_nonzero(self.subscriptions.live))

    def __contains__(self, id: str) -> bool:
        return self.subscriptions.find(id) >= 0

    @property
    def reads_events(self) -> bool:
        return bool(self.tables)

    def takes(self, query: Query) -> bool:
        """Whether a query is over declared tables."""
        return bool(query.joined) or query.stream in self.tables

    def subscribe(
        self, id: str, text: str, query: Query, constants: Sequence[str], until: float = ALWAYS
    ) -> str | None:
        """Adds a subscription by the query of its shape and its constants; if it can never match, why."""
        if _identity(query) not in self._outlines:
            self._outlines[_identity(query)] = (query, *outline(query, self.tables))
        _, shape, selections = self._outlines[_identity(query)]
        values: Any = {str(i): from_ntriples(constant) for i, constant in enumerate(constants)}
        ranges = []
        for name, kind, conditions in selections:
            where = substitute(Query(And(conditions)), values).where if values else And(conditions)
            ranges.append(range_of(where.parts, kind, name))  # type: ignore[union-attr,arg-type]
        before = self.subscriptions.find(id)
        number = self.subscriptions.add(id, shape, ranges, until)
        self._texts.pop(before, None)
        self._texts[number] = text
        self.levels.added([number])
        return "one of its ranges is empty" if any(map(is_empty, ranges)) else None

    def subscribe_table(self, text: str, query: Query, ids: Sequence[str], table: pa.Table) -> None:
        """Adds a subscription for each row of a table of the template's parameters."""
        shape, selections = outline(query, self.tables)
        bounds = self.subscriptions.bounds_of_columns(shape, fill(selections, table))
        if not selections:
            bounds = np.zeros((len(ids), 0), dtype=bounds.dtype)
        numbers = self.subscriptions.add_many(ids, shape, bounds, np.full(len(ids), ALWAYS))
        live = self.subscriptions.live
        self._texts = {number: text for number, text in self._texts.items() if live[number]}
        self._templates = [kept for kept in self._templates if live[kept.first :][: len(kept.table)].any()]
        self._templates.append(Template(text, int(numbers[0]) if len(ids) else 0, table))
        self.levels.added(numbers.tolist())

    def unsubscribe(self, id: str) -> bool:
        number = self.subscriptions.find(id)
        if number < 0:
            return False
        self.subscriptions.end(number)
        self._texts.pop(number, None)
        return True

    def text(self, id: str) -> str:
        """The text of a subscription; of one from a table, with its constants."""
        text, row = self.source(id)
        return text if row is None else fill_template(text, row, self._prefixes)

    def source(self, id: str) -> tuple[str, pa.Table | None]:
        """The text of a subscription; of one from a table, the template and its row."""
        number = self.subscriptions.find(id)
        if number in self._texts:
            return self._texts[number], None
        for template in self._templates:
            if template.first <= number < template.first + len(template.table):
                return template.text, _row(template.table, number - template.first)
        raise SubscriptionError(f"there is no subscription {id!r} over tables; look at its spelling")

    def snapshot(self, id: str) -> Notification:
        """All rows that a subscription has now."""
        request = to_table([Event.snapshot(id)])
        return next(Notification.from_table(self.apply(request).notifications(request)))

    def explain(self, id: str, query: Query, event: Event) -> Explanation:
        """Why a change is notified to a subscription, or not."""
        return explain(id, self, query, event)

    def apply(self, events: pa.Table, moments: np.ndarray | None = None, *, joined: bool = False) -> Deltas:
        """What the changes among events do."""
        changes = read_changes(events, self.subscriptions.tables)
        return self.correlator.apply(changes, moments, joined=joined)

    def save(self, folder: Path) -> None:
        """Writes everything to a folder, subscriptions in one index."""
        folder.mkdir(parents=True, exist_ok=True)
        self.levels.fold().save(folder / "index")
        subscriptions = self.subscriptions
        arrays = {**subscriptions.freeze(), **subscriptions.texts.freeze()}
        storage.save(folder / "subscriptions", arrays, {"shapes": subscriptions.shapes})
        texts = pa.array([self._texts.get(number) for number in range(len(subscriptions))], pa.string())
        _write(folder / "sources.arrow", pa.table({"id": subscriptions.id_column, "text": texts}))
        (folder / "templates").mkdir(exist_ok=True)
        for number, template in enumerate(self._templates):
            _write(folder / "templates" / f"{number}.arrow", template.table)
        rows, tables = self.correlator.rows, range(len(self.tables))
        numbers = [np.array(rows.of(number), dtype=np.int64) for number in tables]
        table = np.repeat(np.arange(len(numbers)), [len(rows_of_table) for rows_of_table in numbers])
        contents = rows.contents.texts(np.concatenate([np.empty(0, dtype=np.int64), *numbers]))
        _write(folder / "rows.arrow", pa.table({"table": table, "row": contents}))
        facts = {
            "tables": [asdict(table) for table in self.tables.values()],
            "templates": [(template.text, template.first) for template in self._templates],
            "sequences": rows.ledger.sequences.last,
            "numbering": self.numbering,
        }
        (folder / "tables.json").write_text(json.dumps(facts, indent=1))

    @classmethod
    def load(cls, folder: Path, prefixes: Mapping[str, str] | None = None) -> Joins:
        """What was saved there; the index is mapped into memory, not read."""
        facts = json.loads((folder / "tables.json").read_text())
        joins = cls(saved_tables(facts["tables"]), prefixes)
        joins.numbering = facts.get("numbering", "")
        arrays, shared = storage.load(folder / "subscriptions")
        subscriptions = joins.subscriptions
        sources, shapes = _read(folder / "sources.arrow"), list(map(_shape, shared["shapes"]))
        refuse_damaged_subscriptions(
            folder / "subscriptions", arrays, shapes, subscriptions.tables, len(sources)
        )
        subscriptions.texts.number(list(Texts.thaw(arrays)))
        subscriptions.thaw(arrays, shapes, sources["id"].to_pylist())
        joins._texts = {
            number: text for number, text in enumerate(sources["text"].to_pylist()) if text is not None
        }
        joins._templates = [
            Template(text, first, _read(folder / "templates" / f"{number}.arrow"))
            for number, (text, first) in enumerate(facts["templates"])
        ]
        joins.levels.base = JoinIndex.load(folder / "index", subscriptions.tables, len(subscriptions))
        rows, ledger = _read(folder / "rows.arrow"), joins.correlator.rows.ledger
        joins.levels.indexes(joins.correlator.rows)  # first: rows get cells in the columns that it looks at
        for number, table in enumerate(joins.tables.values()):
            texts = rows.filter(pc.equal(rows["table"], number))["row"].combine_chunks()
            joins.correlator.rows.load(number, read_texts(table, texts), texts)
        ledger.sequences = Sequences(facts["sequences"])
        return joins


def read_texts(table: Table, texts: pa.Array) -> list[pa.Array]:
    """The typed columns of rows in canonical JSON."""
    if not len(texts):
        return typed(table, {}, 0)
    schema = pa.schema([(name, _JSON[kind]) for name, kind in table.columns.items()])
    size = int(pc.max(pc.binary_length(texts)).as_py())
    found = pa_json.read_json(
        io.BytesIO("\n".join(texts.to_pylist()).encode()),
        read_options=pa_json.ReadOptions(block_size=max(1 << 20, 2 * size)),
        parse_options=pa_json.ParseOptions(explicit_schema=schema),
    ).combine_chunks()
    columns = {name: found[name].combine_chunks() for name in found.column_names}
    return typed(table, columns, len(texts))


def _row(table: pa.Table, number: int) -> pa.Table:
    """One row of a table, without the dictionaries of its columns: they have the values of all rows."""
    row = table.slice(number, 1)
    plain = [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in row.schema]
    return row.cast(pa.schema(plain))


def _shape(written: Any) -> JoinShape:
    """A shape out of JSON, where every tuple is a list."""
    tables, variables, selections = written
    return JoinShape(
        tuple(tables),
        tuple(tuple(map(tuple, places)) for places in variables),
        tuple(map(tuple, selections)),
    )


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()
