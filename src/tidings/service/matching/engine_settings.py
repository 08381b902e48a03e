"""Loads what an engine needs beside subscriptions (taxonomy, prefixes, networks, operators, tables), and
fingerprints it.

The fingerprint tells whether an index was built with the same definitions. It covers contents, not file names or
times: a file that was moved or touched gives the same fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tidings.engine.engine import Engine
from tidings.engine.options import engine_of_files
from tidings.errors import TidingsError
from tidings.kinds.operators.functions.catalogue import from_modules
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.parser import parse
from tidings.service.settings import Settings


def load_engine(settings: Settings) -> Engine:
    """An engine with everything but subscriptions."""
    return engine_of_files(
        taxonomy=settings.taxonomy,
        prefixes=settings.prefixes,
        networks=settings.networks,
        operators=load_operators(settings),
        tables=settings.tables,
    )


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


def fingerprint(settings: Settings) -> str:
    """A hash of everything that an index is built with beside subscriptions, and of the Tidings release."""
    digest = blake2b(digest_size=16)
    try:
        for part in _parts(settings):
            digest.update(len(part).to_bytes(8, "little") + part)
    except OSError as error:
        raise TidingsError(f"{error.filename}: {error.strerror}; look at the settings that name it") from None
    return digest.hexdigest()


def _parts(settings: Settings) -> Iterator[bytes]:
    yield version("tidings").encode()
    yield json.dumps(sorted(settings.prefixes.items())).encode()
    for path in (settings.taxonomy, settings.tables):
        yield b"" if path is None else path.suffix.encode() + path.read_bytes()
    for name, path in sorted(settings.networks.items()):
        yield name.encode()
        yield from _contents(path)
    for where in settings.operators:
        yield where.encode()
        yield from _contents(_origin(where))


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
