"""Changes what subscriptions refer to while the service runs: the taxonomy, the prefixes, the networks.

A definition is checked, stored as the next version in the registry, and then used: the index gets a new base, or the change
of a network at the end of its tail, so every micro-batch is matched by exactly one version. Afterwards texts are checked,
completed and explained by it too. What was given at the start is the first version; it is a new one when other contents
are given at a later start. What was sent stays until then.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, SubscriptionError, TidingsError
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.kinds.networks.files.sources import network_of_rows
from tidings.kinds.networks.network import Network
from tidings.model.taxonomy import Taxonomy
from tidings.service.matching.engine_settings import (
    engine_with,
    fingerprint,
    given_at_start,
    load_engine,
    network_changes,
)
from tidings.service.matching.index_writer import IndexTimeout, IndexWriter
from tidings.service.model import Definition, DefinitionKind, Origin, Principal
from tidings.service.settings import Settings
from tidings.service.store.registry import Registry
from tidings.service.subscriptions.access_control import NotFound
from tidings.storage import versions
from tidings.storage.tail_changes import apply

NETWORK_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}|")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_JSON = "application/json"


class VersionChanged(TidingsError):
    """The definition has another version than the one that was to be replaced."""

    status = 412


class Definitions:
    """The definitions that are in use. Call `connect` once there is an index. Thread-safe."""

    def __init__(
        self, registry: Registry, settings: Settings, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._registry, self._settings, self._clock = registry, settings, clock
        self._lock = threading.Lock()
        self._take_given()
        self._stored = registry.definitions()
        self.engine = load_engine(settings, self._stored)

    def _take_given(self) -> None:
        """Stores the next version of what was not given at the last start, or with other contents. What was given then
        and is not now ends, unless something else was sent meanwhile."""
        given = given_at_start(self._settings)
        last = {(stored.kind, stored.name): stored for stored in self._registry.definitions()}
        for key in sorted({*given, *last}):
            hash, before = given.get(key, ""), last.get(key)
            if before is None or (hash != before.given and (hash or before.origin is not Origin.REQUEST)):
                number = 1 if before is None else before.version + 1
                self._registry.define(Definition(*key, number, Origin.START, self._clock(), hash))

    def connect(self, index_writer: IndexWriter, on_change: Callable[[Engine], None]) -> None:
        """`on_change` is called with an engine that has the new definitions."""
        self._index_writer, self._on_change = index_writer, on_change

    @property
    def hash(self) -> str:
        """Of everything that an index is built with beside subscriptions."""
        return fingerprint(self._settings, self._stored)

    # --- which there are

    def all(self) -> list[Definition]:
        """The newest version of each definition. One that was given at an earlier start alone is not there."""
        newest = {(stored.kind, stored.name): stored for stored in self._stored}
        return [found for found in newest.values() if found.origin is not Origin.START or found.given]

    def find(self, kind: DefinitionKind, name: str = "") -> Definition | None:
        return next((found for found in self.all() if (found.kind, found.name) == (kind, name)), None)

    def version(self, kind: DefinitionKind, name: str = "") -> int:
        """The number of the newest version; 0 if there is none."""
        found = self.find(kind, name)
        return 0 if found is None else found.version

    def index_version(self) -> str | None:
        with suppress(IndexFileError):
            return str(versions.current(self._index_writer.root))
        return None

    def versions(self) -> dict[str, Any]:
        """The version of the index, and those of all definitions."""
        networks = [found for found in self.all() if found.kind is DefinitionKind.NETWORK]
        return {
            "index": self.index_version(),
            "taxonomy": self.version(DefinitionKind.TAXONOMY),
            "prefixes": self.version(DefinitionKind.PREFIXES),
            "networks": {found.name: found.version for found in networks},
        }

    def described(self, index: str | None = None) -> str:
        """The versions in words: "index v3+17, taxonomy version 2". `index` are other words for that of the index."""
        words = (f"{found.kind} {found.name}".strip() + f" version {found.version}" for found in self.all())
        return ", ".join([f"index {index or self.index_version()}", *words])

    def network(self, name: str) -> Network:
        found = self.engine.networks.get(name)
        if found is None:
            known = ", ".join(sorted(self.engine.networks)) or "none"
            raise NotFound(f"there is no network {name[:60]!r}; the networks are: {known}")
        return found

    # --- how they change

    def set_taxonomy(
        self, principal: Principal, content: bytes, media_type: str, *, replaces: int | None = None
    ) -> Definition:
        """Replaces the taxonomy by an RDF document. With `replaces` only if that is the present version."""
        taxonomy = Taxonomy.from_rdf(content, media_type)
        new = self._new(DefinitionKind.TAXONOMY, "", principal, content, media_type)
        return self._change(
            new, replaces, lambda store: self._build(engine_with(self.engine, taxonomy=taxonomy), store)
        )

    def set_prefixes(
        self, principal: Principal, prefixes: Mapping[str, str], *, replaces: int | None = None
    ) -> Definition:
        """Replaces all prefixes, but for the built-in ones."""
        _check_prefixes(prefixes)
        new = self._new(DefinitionKind.PREFIXES, "", principal, json.dumps(dict(prefixes)).encode(), _JSON)
        return self._change(
            new, replaces, lambda store: self._build(engine_with(self.engine, prefixes=prefixes), store)
        )

    def set_network(
        self, principal: Principal, name: str, rows: Mapping[str, Any], *, replaces: int | None = None
    ) -> Definition:
        """Adds or replaces a network, given as `Network.rows` gives one; nodes may be left out."""
        content = {"nodes": rows.get("nodes"), "edges": rows["edges"]}
        network = network_of_rows(**content)
        new = self._new(DefinitionKind.NETWORK, name, principal, json.dumps(content).encode(), _JSON)
        networks = {name: network}
        return self._change(
            new, replaces, lambda store: self._build(engine_with(self.engine, networks=networks), store)
        )

    def set_tables(self, file: Path) -> None:
        """Replaces the tables by those that a file declares, which the settings name at the next start."""
        tables = read_tables(file)
        with self._lock:
            if {table.name: table for table in tables} == dict(self.engine.joins.tables):
                return

            def store() -> str:
                self._settings = replace(self._settings, tables=file)
                self._stored = self._registry.definitions()
                return self.hash

            self._build(engine_with(self.engine, tables=tables), store)

    def change_network(
        self,
        principal: Principal,
        name: str,
        changes: Sequence[Mapping[str, Any]],
        *,
        replaces: int | None = None,
    ) -> Definition:
        """Makes changes of a network, given as {"action", "arguments"}, all or none."""
        new = self._new(DefinitionKind.NETWORK, name, principal, json.dumps(list(changes)).encode(), _JSON)
        new = replace(new, origin=Origin.CHANGE)
        made = network_changes(new)

        def use(store: Callable[[], str]) -> None:
            network = self.network(name)
            if any(change.action == "remove_node" for change in made):
                # Subscriptions may be placed at the node: a new base is made, which refuses them.
                changed = engine_with(self.engine, networks={name: _copy(network)})
                for change in made:
                    apply(change, changed)
                self._build(changed, store)
            else:
                self._index_writer.change_network(made, store)

        return self._change(new, replaces, use)

    def _new(
        self, kind: DefinitionKind, name: str, principal: Principal, content: bytes, media_type: str
    ) -> Definition:
        at, author = self._clock(), principal.name
        return Definition(
            kind, name, 0, Origin.REQUEST, at, content=content, media_type=media_type, author=author
        )

    def _change(
        self, new: Definition, replaces: int | None, use: Callable[[Callable[[], str]], None]
    ) -> Definition:
        """Gives a definition the next version, stores it and uses it. `use` is called with what stores it."""
        with self._lock:
            present = self.version(new.kind, new.name)
            if replaces is not None and replaces != present:
                raise VersionChanged(
                    f"version {replaces} is not the present one, which is {present}; read it again, then change it"
                )
            before = [stored for stored in self._stored if (stored.kind, stored.name) == (new.kind, new.name)]
            if before:
                new = replace(new, version=before[-1].version + 1, given=before[-1].given)
            else:
                new = replace(new, version=1)

            def store() -> str:
                self._registry.define(new)
                self._stored = self._registry.definitions()
                return self.hash

            try:
                use(store)
            except OSError as error:
                raise IndexTimeout(
                    f"the index could not be written ({error.strerror}); if version {new.version} is shown as the"
                    " present one, it is used as soon as there is an index with it"
                ) from error
            return new

    def _build(self, engine: Engine, store: Callable[[], str]) -> None:
        before = self._stored
        try:
            self._index_writer.define(engine, store)
        finally:
            if self._stored is not before:  # it is stored: it will be used
                self.engine = engine
                self._on_change(engine)


def _copy(network: Network) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        network.save(folder)
        return Network.load(folder)


def _check_prefixes(prefixes: Mapping[str, str]) -> None:
    for prefix, iri in prefixes.items():
        if not _PREFIX.fullmatch(prefix):
            raise SubscriptionError(
                f"{prefix[:60]!r} is no prefix; give letters, digits, '-' and '_', a letter first"
            )
        if not _IRI.fullmatch(iri):
            raise SubscriptionError(
                f"the prefix {prefix!r} stands for {iri[:200]!r}, which is no IRI; give one like http://example.org/"
            )
