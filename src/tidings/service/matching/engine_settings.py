"""Loads what an engine needs beside subscriptions (taxonomy, prefixes, networks, operators, tables), and
fingerprints it.

The fingerprint tells whether an index was built with the same definitions. It covers contents, not file names or
times: a file that was moved or touched gives the same fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidings.engine.engine import Engine
from tidings.engine.options import engine_of_files
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.kinds.networks.files.sources import network_of_rows
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.catalogue import from_modules
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.parser import parse
from tidings.model.taxonomy import Taxonomy
from tidings.service.model import Definition, DefinitionKind, Origin
from tidings.service.settings import Settings
from tidings.storage.tail_changes import NetworkChange, apply


def load_engine(settings: Settings, definitions: Sequence[Definition] = ()) -> Engine:
    """An engine with everything but subscriptions: with what was given at the start, or with what was sent instead."""
    sent = {(given.kind, given.name): given for given in definitions if given.origin is Origin.REQUEST}
    taxonomy = sent.get((DefinitionKind.TAXONOMY, ""))
    prefixes = sent.get((DefinitionKind.PREFIXES, ""))
    networks = {name: given for (kind, name), given in sent.items() if kind is DefinitionKind.NETWORK}
    files = {name: path for name, path in settings.networks.items() if name not in networks}
    engine = engine_with(
        engine_of_files(
            taxonomy=None if taxonomy is not None else settings.taxonomy,
            prefixes=settings.prefixes,
            networks=files,
            operators=load_operators(settings),
            tables=settings.tables,
        ),
        taxonomy=None if taxonomy is None else Taxonomy.from_rdf(taxonomy.content, taxonomy.media_type),
        prefixes=None if prefixes is None else json.loads(prefixes.content),
        networks={name: network_of_rows(**json.loads(given.content)) for name, given in networks.items()},
    )
    for given in definitions:
        if given.origin is Origin.CHANGE:
            for change in network_changes(given):
                apply(change, engine)
    return engine


def engine_with(
    engine: Engine,
    *,
    taxonomy: Taxonomy | None = None,
    prefixes: Mapping[str, str] | None = None,
    networks: Mapping[str, Network] | None = None,
    tables: Sequence[Table] | None = None,
) -> Engine:
    """An engine without subscriptions that has other definitions, where they are given, and else the same."""
    return Engine(
        taxonomy=engine.taxonomy if taxonomy is None else taxonomy,
        prefixes=engine.prefixes if prefixes is None else prefixes,
        networks={**engine.networks, **(networks or {})},
        operators=engine.operators,
        tables=engine.joins.tables.values() if tables is None else tables,
    )


def network_changes(definition: Definition) -> list[NetworkChange]:
    """The changes that a definition of a network has as its content."""
    changes = json.loads(definition.content)
    return [
        NetworkChange(definition.name, change["action"], tuple(map(_frozen, change["arguments"])))
        for change in changes
    ]


def _frozen(argument: Any) -> Any:
    return tuple(argument) if isinstance(argument, list) else argument


def load_operators(settings: Settings) -> list[Operator]:
    return from_modules(settings.operators)


def missing_table(engine: Engine, text: str) -> str | None:
    """Why the text of a subscription over tables is none with this engine; None if it is, or is wrong anyhow."""
    try:
        query = parse(text, engine.prefixes)
    except TidingsError:
        return None
    if query.stream is None or engine.joins.takes(query):
        return None
    known = ", ".join(sorted(engine.joins.tables)) or "none"
    return f"there is no table {query.stream!r}; the tables are {known}"


def fingerprint(settings: Settings, definitions: Sequence[Definition] = ()) -> str:
    """A hash of everything that an index is built with beside subscriptions, and of the Tidings release."""
    return _digest(_parts(settings, definitions))


def given_at_start(settings: Settings) -> dict[tuple[DefinitionKind, str], str]:
    """The hash of each definition that was given at the start."""
    given = {
        (DefinitionKind.NETWORK, name): _digest(_contents(path)) for name, path in settings.networks.items()
    }
    if settings.taxonomy is not None:
        given[DefinitionKind.TAXONOMY, ""] = _digest([_document(settings.taxonomy)])
    if settings.prefixes:
        given[DefinitionKind.PREFIXES, ""] = _digest([_prefixes(settings)])
    return given


def _digest(parts: Iterable[bytes]) -> str:
    digest = blake2b(digest_size=16)
    try:
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part)
    except OSError as error:
        raise TidingsError(f"{error.filename}: {error.strerror}; look at the settings that name it") from None
    return digest.hexdigest()


def _parts(settings: Settings, definitions: Sequence[Definition]) -> Iterator[bytes]:
    yield version("tidings").encode()
    yield _prefixes(settings)
    if settings.parts is not None:
        yield f"{settings.parts} {settings.place} {settings.merge} {settings.apart}".encode()
    for path in (settings.taxonomy, settings.tables):
        yield b"" if path is None else _document(path)
    for name, path in sorted(settings.networks.items()):
        yield name.encode()
        yield from _contents(path)
    for given in definitions:
        if given.origin is not Origin.START:
            yield f"{given.kind} {given.name} {given.version}".encode()
            yield given.content
    for where in settings.operators:
        yield where.encode()
        yield from _contents(_origin(where))


def _prefixes(settings: Settings) -> bytes:
    return json.dumps(sorted(settings.prefixes.items())).encode()


def _document(path: Path) -> bytes:
    return path.suffix.encode() + path.read_bytes()


def _contents(path: Path | None) -> Iterator[bytes]:
    if path is None:
        return
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield str(file.relative_to(path)).encode()
            yield file.read_bytes()


def _origin(where: str) -> Path | None:
    """The file of a module of operators. What the module imports is not part of the fingerprint."""
    if where.endswith(".py"):
        return Path(where)
    found = find_spec(where)
    return Path(found.origin) if found is not None and found.origin and Path(found.origin).exists() else None
