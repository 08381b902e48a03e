"""Converts RDF in any syntax to the canonical N-Triples bytes that the rest of Tidings works on.

`documents` bounds the size, encoding and entities of a document before a parser reads it. Plain Turtle is read by a
compiled loop. Named graphs are merged: an event is one graph.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyoxigraph as ox

from tidings.errors import EventError
from tidings.formats.documents import MAX_BYTES, safe_text, safe_xml

NTRIPLES = "application/n-triples"

_FORMATS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "turtle": ox.RdfFormat.TURTLE,
    "ttl": ox.RdfFormat.TURTLE,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "rdf": ox.RdfFormat.RDF_XML,
    "owl": ox.RdfFormat.RDF_XML,
    "xml": ox.RdfFormat.RDF_XML,
    "nquads": ox.RdfFormat.N_QUADS,
    "nq": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "n3": ox.RdfFormat.N3,
    "jsonld": ox.RdfFormat.JSON_LD,
    NTRIPLES: ox.RdfFormat.N_TRIPLES,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/x-turtle": ox.RdfFormat.TURTLE,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "application/trig": ox.RdfFormat.TRIG,
    "text/n3": ox.RdfFormat.N3,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}
_WITH_NAMED_GRAPHS = frozenset({ox.RdfFormat.N_QUADS, ox.RdfFormat.TRIG, ox.RdfFormat.JSON_LD})
_TRIPLE_TERM = re.compile(rb"^\S+ <[^>]*> <<\(", re.MULTILINE)
_READERS = {
    name: (
        syntax,
        safe_xml if syntax == ox.RdfFormat.RDF_XML else safe_text,
        syntax in _WITH_NAMED_GRAPHS,
        syntax == ox.RdfFormat.TURTLE,
    )
    for name, syntax in _FORMATS.items()
}


def is_rdf(media_type: str | None) -> bool:
    """Whether `media_type` (or a short name such as "turtle") is an RDF syntax."""
    return media_type is not None and _bare(media_type) in _FORMATS


def canonical(data: str | bytes, media_type: str, base: str | None = None) -> bytes:
    """The graph in `data` as canonical N-Triples; an `EventError` says what is wrong with it."""
    reader = _READERS.get(_bare(media_type))
    if reader is None:
        known = ", ".join(sorted(name for name in _FORMATS if "/" not in name))
        raise EventError(f"unknown RDF format {media_type!r}; use one of {known}, or a media type")
    syntax, safe, has_named_graphs, is_turtle = reader
    raw = data.encode() if isinstance(data, str) else data
    if is_turtle and base is None and len(raw) <= MAX_BYTES:
        from tidings.formats.kernels.turtle import (
            plain_turtle,  # here, so that only Turtle waits for Numba's import
        )

        if (plain := plain_turtle(raw)) is not None:
            return plain
    raw = safe(raw)
    try:
        statements = ox.parse(raw, format=syntax, base_iri=base)
        if has_named_graphs:
            triples = dict.fromkeys(quad.triple for quad in statements)
            written = ox.serialize(triples, format=ox.RdfFormat.N_TRIPLES)
        else:
            written = ox.serialize(statements, format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError, OSError) as error:
        raise EventError(f"not readable as {syntax.name}: {error}") from None
    assert written is not None
    if b"(" in written and _TRIPLE_TERM.search(written):  # the rarer byte is looked for first: most have none
        raise EventError("triple terms (RDF 1.2) are not supported; state the inner triple on its own")
    return written


@lru_cache(maxsize=256)
def _bare(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
