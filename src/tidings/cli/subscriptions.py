"""Reads files of subscriptions: a plain text format, or a table with the columns `id` and `text`.

    # A comment. Prefixes first, then the subscriptions; indented lines continue the one before.
    @prefix ex: <http://example.org/>
    @tables tables.toml

    goals: SELECT ?title WHERE (?item, rss:title, ?title) AND ?title CONTAINS 'goal'

    cheap bicycles:
        SELECT ?title, ?price
        WHERE (?item, rss:title, ?title), (?item, ex:price, ?price) AND ?price < 200

An id ends at the first colon that a space or the end of the line follows. A refused text is reported with its
file, line and column, and the others are loaded. Likely mistakes are reported alike.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import terminal
from tidings.errors import EventError, SubscriptionError, TidingsError, check_columns
from tidings.formats.strict_json import StrictJson
from tidings.language.faults import line_and_column
from tidings.language.likely_mistakes import Known, likely_mistakes, tested_attributes
from tidings.language.parser import parse
from tidings.model.observed_attributes import ObservedAttributes

if TYPE_CHECKING:
    from tidings.engine.engine import Engine
    from tidings.kinds.operators.functions.operator import Operator

_HEAD = re.compile(r"(\S.*?)\s*:(?:\s+|$)")
_PREFIX = re.compile(r"@prefix\s+([\w.-]*):\s*<([^<>\s]*)>\s*\.?\s*")
_TABLES = re.compile(r"@tables\s+(\S.*?)\s*")
_JOIN = re.compile(r"\bJOIN\b", re.IGNORECASE)
_WARNINGS_SHOWN = 5
_TEXTS_CHECKED = 1_000  # for likely mistakes: a file of more is made by a program, and would take long
_TEXT_SUFFIXES = "a text file, or .csv, .parquet or .ndjson with the columns id and text"


@dataclass(slots=True)
class Entry:
    """One subscription of a file. `spots` gives for each line of the text its position in the file."""

    id: str
    text: str
    row: int
    spots: list[tuple[int, int]] = field(default_factory=list)

    def error_at(self, path: str, error: TidingsError) -> str:
        """The error as FILE:LINE:COLUMN: sentence."""
        line, column = getattr(error, "line", None), getattr(error, "column", None)
        if not self.spots:
            return f"{path}:{self.row}: {self.id}: {error}"
        if line is None or column is None or line > len(self.spots):
            return f"{path}:{self.spots[0][0]}: {self.id}: {error}"
        at, shift = self.spots[line - 1]
        return f"{path}:{at}:{column + shift}: {self.id}: {str(error).replace(f' at {line}:{column}', '', 1)}"


@dataclass(slots=True)
class SubscriptionFile:
    """The contents of a file: its entries in order, its own prefixes, and the file that declares its tables."""

    path: str
    entries: list[Entry]
    prefixes: dict[str, str] = field(default_factory=dict)
    tables: Path | None = None

    @classmethod
    def read(cls, path: Path) -> SubscriptionFile:
        """Reads a file: a table by its extension, or else the plain text format."""
        readers = {".csv": _csv, ".parquet": _parquet, ".ndjson": _ndjson, ".jsonl": _ndjson}
        if path.is_dir():
            raise TidingsError(f"{path} is a folder but no index; name {_TEXT_SUFFIXES}")
        try:
            if reader := readers.get(path.suffix.lower()):
                return cls(str(path), list(reader(path)))
            return _plain(str(path), path.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise TidingsError(f"{path} is not UTF-8 text; subscriptions are in {_TEXT_SUFFIXES}") from None

    @classmethod
    def read_rules(cls, path: Path, refused: list[str]) -> SubscriptionFile:
        """Reads rules with EventBridge's patterns, translated to our own language; refused ones go to `refused`."""
        from tidings.kinds.filters.eventbridge import read_rules
        from tidings.language.printer import to_text
        from tidings.language.query import Query

        file = cls(str(path), [])
        try:
            for row, (id, condition) in enumerate(read_rules(path.read_bytes()), 1):
                if isinstance(condition, SubscriptionError):
                    refused.append(f"{path}: {id}: {condition}")
                else:
                    file.entries.append(Entry(id, to_text(Query(condition)), row))
        except SubscriptionError as error:
            raise SubscriptionError(f"{path}: {error}") from None
        return file


def load(
    path: Path | str,
    taxonomy: Path | None,
    prefixes: Mapping[str, str],
    *,
    patterns: str | None = None,
    networks: Mapping[str, Path] | None = None,
    operators: Iterable[Operator] = (),
    tables: Path | None = None,
    entries: list[Entry] | None = None,
) -> Engine:
    """An engine with the subscriptions of a file, of an index, or of one text. Refused ones are reported on standard
    error. With `patterns`, the file holds rules in that form; `networks` are the files of networks by name;
    `tables` replaces the file that the subscriptions name themselves. A caller who reads events gives `entries`, gets those
    of the file in it, and warns of likely mistakes in them itself, when it knows the events."""
    from tidings.engine.options import engine_of_files
    from tidings.storage import remote_index, versions

    if remote_index.is_address(path) or (isinstance(path, Path) and remote_index.has_index(path)):
        if taxonomy or prefixes or patterns or networks or tables:
            raise TidingsError(
                f"{path} is an index, with its own taxonomy, prefixes, networks and tables; leave the options out"
            )
        return versions.open(path, versions.current(path), operators=operators)
    refused: list[str] = []
    if isinstance(path, str) and patterns:
        raise TidingsError(
            f"{path[:60]!r} is no file; with --patterns, -s names a file of rules: leave --patterns out to give a text"
        )
    if isinstance(path, str):
        file = SubscriptionFile("-s", [Entry("subscription", path, 1, [(1, 0)])])
    else:
        file = SubscriptionFile.read_rules(path, refused) if patterns else SubscriptionFile.read(path)
    engine = engine_of_files(
        taxonomy=taxonomy,
        prefixes={**file.prefixes, **prefixes},
        networks=networks or {},
        operators=operators,
        tables=tables or file.tables,
    )
    _subscribe(file, engine, refused)
    if entries is not None:
        entries += file.entries
    elif not patterns:  # rules have no text of their own
        warn_of_mistakes(file.path, file.entries, engine)
    if not len(engine):
        if isinstance(path, str):
            raise TidingsError("the text given by -s is not a valid subscription, and no file has that name")
        raise TidingsError(
            f"{path} holds no subscription that can be used; see 'tidings match --help' for its form"
        )
    return engine


def _subscribe(file: SubscriptionFile, engine: Engine, refused: list[str]) -> None:
    """Adds the subscriptions of a file, and reports those that are refused, with the ones before, and the doubtful ones."""
    from tidings.engine.engine import BroadSubscription, EmptySubscription

    undeclared = False
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", BroadSubscription)
        warnings.simplefilter("always", EmptySubscription)
        for entry in terminal.tracked(file.entries, len(file.entries), "reading subscriptions"):
            if entry.id in engine:
                refused.append(f"{file.path}:{entry.row}: {entry.id} is there twice; this one counts")
            try:
                engine.subscribe(entry.id, entry.text)
            except TidingsError as error:
                refused.append(entry.error_at(file.path, error))
                undeclared = undeclared or (not engine.joins.tables and bool(_JOIN.search(entry.text)))
    if undeclared:
        refused.append(
            "no tables are declared; name a file that does by --tables FILE, or by a line @tables FILE"
        )
    terminal.warn_all(refused, "subscriptions with a fault")
    terminal.warn_all(
        [f"{file.path}: {remark.message}" for remark in remarks], "subscriptions so broad, or empty"
    )


def warn_of_mistakes(
    path: str, entries: Sequence[Entry], engine: Engine, attributes: ObservedAttributes | None = None
) -> None:
    """Warns of the first few, and counts the others. Without `attributes` of events, the names that the file tests stand
    for them: a name that is only compared with is probably a text without quotes."""
    checked = [
        entry
        for entry in entries[:_TEXTS_CHECKED]
        # Of two with one id, the other may be used.
        if entry.id in engine and engine.text(entry.id) == entry.text
    ]
    by_events = attributes is not None
    if attributes is None:
        attributes = _tested([entry.text for entry in checked], engine)
    known = _known(engine, attributes, by_events)
    errors = [(entry, error) for entry in checked for error in _mistakes(entry.text, known)]
    terminal.warn_all([entry.error_at(path, error) for entry, error in errors], "warnings", _WARNINGS_SHOWN)


def warn_of_mistakes_in(id: str, text: str, engine: Engine) -> None:
    """The same for one text that is in no file."""
    errors = _mistakes(text, _known(engine, _tested([text], engine), by_events=False))
    terminal.warn_all([f"{id}: {error}" for error in errors], "warnings", _WARNINGS_SHOWN)


def _known(engine: Engine, attributes: ObservedAttributes, by_events: bool) -> Known:
    tables, networks = engine.joins.tables, engine.networks
    return Known(
        attributes, engine.prefixes, engine.taxonomy, networks, tables, by_events, from_all_sources=False
    )


def _mistakes(text: str, known: Known) -> list[SubscriptionError]:
    return [
        SubscriptionError(warning.message, *line_and_column(text, warning.start))
        for warning in likely_mistakes(text, known)
    ]


def _tested(texts: Sequence[str], engine: Engine) -> ObservedAttributes:
    attributes = ObservedAttributes("subscription of the file")
    for text in texts:
        for name in tested_attributes(parse(text, engine.prefixes)):
            attributes.add(name)
    return attributes


def prefix_options(options: tuple[str, ...]) -> dict[str, str]:
    """`ex=http://…` as a dictionary."""
    prefixes = {}
    for option in options:
        name, equals, iri = option.partition("=")
        if not equals or ":" not in iri:
            raise TidingsError(f"--prefix {option!r} is not NAME=IRI, such as ex=http://example.org/")
        prefixes[name.strip().rstrip(":")] = iri.strip()
    return prefixes


def network_options(options: tuple[str, ...]) -> dict[str, Path]:
    """`exchange=folder` as a dictionary."""
    networks = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise TidingsError(f"--network {option!r} is not NAME=PATH, such as exchange=examples/exchange")
        if name.strip() in networks:
            raise TidingsError(f"--network gives {name.strip()!r} twice; give each network its own name")
        networks[name.strip()] = Path(path.strip())
    return networks


def operator_options(modules: Iterable[str]) -> list[Operator]:
    """The operators of files and modules."""
    from tidings.kinds.operators.functions.catalogue import from_modules

    return from_modules(modules)


def _plain(path: str, content: str) -> SubscriptionFile:
    file = SubscriptionFile(path, [])
    current: Entry | None = None
    lines: list[str] = []

    def close() -> None:
        if current is not None:
            current.text = "\n".join(lines)
            file.entries.append(current)

    for number, line in enumerate(content.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if line[0].isspace():
            if current is None:
                raise SubscriptionError(
                    f"{path}:{number}: an indented line continues a subscription, and none is before it"
                )
            lines.append(bare)
            current.spots.append((number, len(line) - len(line.lstrip())))
        elif found := _PREFIX.fullmatch(bare):
            file.prefixes[found[1]] = found[2]
        elif found := _TABLES.fullmatch(bare):
            file.tables = Path(path).parent / found[1]
        elif found := _HEAD.match(line):
            close()
            current, lines = Entry(found[1], "", number), []
            if line[found.end() :].strip():
                lines.append(line[found.end() :].strip())
                current.spots.append((number, found.end()))
        elif bare.startswith("@"):
            raise SubscriptionError(
                f"{path}:{number}: {terminal.brief(bare)!r} is not known; write @prefix name: <IRI> or @tables FILE"
            )
        else:
            raise SubscriptionError(
                f"{path}:{number}: {terminal.brief(bare)!r} begins no subscription; write 'id: text',"
                " indent lines that go on, and begin comments with #"
            )
    close()
    return file


def _csv(path: Path) -> Iterator[Entry]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        _check_columns(path, rows.fieldnames or [])
        first = rows.line_num + 1  # a text may go over several lines
        for row in rows:
            yield Entry(row["id"] or "", row["text"] or "", first)
            first = rows.line_num + 1


def _parquet(path: Path) -> Iterator[Entry]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise TidingsError(f"{path} is not readable as Parquet: {error}") from None
    _check_columns(path, table.schema_arrow.names)
    row = 0
    for batch in table.iter_batches(columns=["id", "text"]):
        for id, text in zip(*batch.to_pydict().values(), strict=True):
            row += 1
            yield Entry(str(id), text or "", row)


def _ndjson(path: Path) -> Iterator[Entry]:
    strict = StrictJson()
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = strict.read(line.encode())
                if (fault := strict.fault(row)) is not None:
                    raise TidingsError(f"{path}:{number}: {fault}")
                yield Entry(str(row["id"]), str(row["text"]), number)
            except (EventError, KeyError, TypeError):
                raise TidingsError(
                    f'{path}:{number}: write {{"id": "…", "text": "…"}} in each line'
                ) from None


def _check_columns(path: Path, names: Sequence[str]) -> None:
    check_columns(names, f"{path} has")
    missing = [name for name in ("id", "text") if name not in names]
    if missing:
        raise TidingsError(f"{path} has no column {missing[0]!r}; it needs the columns id and text")
