"""The taxonomy, the prefixes, the networks and the tables of an upstream service, which a relay takes over: ISA and VIA mean the
same at the relay as there. They are looked at when a hello says that they are others than before."""

from __future__ import annotations

import logging
from pathlib import Path

from tidings.errors import TidingsError
from tidings.formats.rdf import NTRIPLES
from tidings.kinds.networks.files.sources import network_of_rows
from tidings.model.taxonomy import Taxonomy
from tidings.service.model import Principal, Role
from tidings.service.relay.parent import Parent, Welcome
from tidings.service.relay.upstream_tables import tables_of
from tidings.service.subscriptions.definitions import Definitions

_AUTHOR = Principal("the upstream service", Role.ADMIN)

logger = logging.getLogger(__name__)


class UpstreamDefinitions:
    """Follows the definitions of the parent in use: another one may have others."""

    def __init__(self, definitions: Definitions, data: Path) -> None:
        self._definitions, self._data = definitions, data
        self._seen = ""

    def follow(self, parent: Parent, welcome: Welcome) -> None:
        """Takes over what is different there. What cannot be used is logged, and the rest is."""
        if welcome.definitions == self._seen:
            return
        try:
            self._take(parent.get("/api/links/definitions"))
            if (tables := tables_of(parent, self._data)) is not None:
                self._definitions.set_tables(tables)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            logger.error("the definitions of %s cannot be read: %r", parent.url, error)
        except TidingsError as error:
            logger.error("the definitions of %s cannot be used: %s", parent.url, error)
            return  # they are tried again
        self._seen = welcome.definitions

    def _take(self, declared: dict[str, object]) -> None:
        engine = self._definitions.engine
        triples = str(declared["taxonomy"]).encode()
        taxonomy = Taxonomy.from_rdf(triples, NTRIPLES) if triples.strip() else Taxonomy()
        if taxonomy != engine.taxonomy and triples.strip():
            self._definitions.set_taxonomy(_AUTHOR, triples, NTRIPLES)
        prefixes = {str(name): str(iri) for name, iri in dict(declared["prefixes"]).items()}  # type: ignore[call-overload]
        if prefixes != dict(engine.prefixes):
            self._definitions.set_prefixes(_AUTHOR, prefixes)
        for name, rows in dict(declared["networks"]).items():  # type: ignore[call-overload]
            known = engine.networks.get(name)
            if known is None or known.rows() != network_of_rows(**rows).rows():
                self._definitions.set_network(_AUTHOR, str(name), rows)
