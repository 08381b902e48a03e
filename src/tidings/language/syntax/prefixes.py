"""The prefixes that every subscription may use without declaring them.

The empty prefix is the default one: a bare word of a triple, such as `project` or `RSS Filter`, is a name in it.
A user's own prefixes override these.
"""

from __future__ import annotations

from tidings.formats.namespaces import RDF, RDFS, XSD

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
