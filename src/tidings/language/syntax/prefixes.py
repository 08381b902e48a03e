"""The prefixes that every subscription may use without declaring them, and IRIs written with prefixes.

The empty prefix is the default one: a bare word of a triple, such as `project` or `RSS Filter`, is a name in it.
A user's own prefixes override these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.formats.namespaces import RDF, RDFS, XSD

_LOCAL = re.compile(r"[\w-](?:[\w.-]*[\w-])?")

WELL_KNOWN: dict[str, str] = {
    "": "urn:tidings:",
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "rss": "http://purl.org/rss/1.0/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "enc": "http://purl.oclc.org/net/rss_2.0/enc#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "https://schema.org/",
    "atom": "http://www.w3.org/2005/Atom",
}


def shortened(iri: str, prefixes: Mapping[str, str]) -> tuple[str, str] | None:
    """The longest prefix that fits an IRI, and the name behind it; None if none leaves a plain name."""
    fitting = (
        prefix
        for prefix, start in prefixes.items()
        if iri.startswith(start) and _LOCAL.fullmatch(iri, len(start))
    )
    prefix = max(fitting, key=lambda prefix: len(prefixes[prefix]), default=None)
    return None if prefix is None else (prefix, iri[len(prefixes[prefix]) :])
