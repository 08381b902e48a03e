"""Documents that grow, nest or never end, by their media types."""

from __future__ import annotations

import json

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE x [<!ENTITY l0 "lolololol">{LAUGHS}]>'
QUADRATIC = f'<!DOCTYPE x [<!ENTITY a "{"a" * 50_000}">]>'
PARAMETER = '<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>'
SELF = '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]>'


def outside(target: str) -> str:
    return f'<!DOCTYPE x [<!ENTITY secret SYSTEM "{target}">]>'


# Where the entities are put into a document of each kind.
SHAPES = {
    "rdf": (
        "application/rdf+xml",
        (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:d="http://d.example/">'
            '<rdf:Description rdf:about="http://a.example/"><d:t>{}</d:t></rdf:Description></rdf:RDF>'
        ),
    ),
    "rss": (
        "application/rss+xml",
        "<rss version='2.0'><channel><title>t</title><item><guid>1</guid><title>{}</title></item></channel></rss>",
    ),
    "rss1": (
        "application/xml",
        (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
            '<channel rdf:about="http://c.example/"><title>c</title></channel>'
            '<item rdf:about="http://i.example/"><title>{}</title></item></rdf:RDF>'
        ),
    ),
    "atom": (
        "application/atom+xml",
        "<feed xmlns='http://www.w3.org/2005/Atom'><id>f</id><entry><id>e</id><title>{}</title></entry></feed>",
    ),
}
OPML = "<opml version='2.0'><body><outline xmlUrl='http://o.invalid/{}' title='{}'/></body></opml>"
CALL = "<methodCall><methodName>tidings.{}</methodName><params><param><value>{}</value></param></params></methodCall>"


def nested_json(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


NESTED = {
    "objects": nested_json(100_000),
    "lists": b"[" * 100_000 + b"]" * 100_000,
    "open": b"[" * 1_000_000,
    "mixed": b'[{"a":' * 50_000 + b"1" + b"}]" * 50_000,
    "in a member": b'{"text":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "numbers": b"[" + b"9" * 500_000 + b"]",
    "not utf-8": b'{"text": "\xff"}',
    "utf-16": json.dumps({"text": "WHERE a = 1"}).encode("utf-16"),
    "halves": b'{"text": "\\ud83d"}',
    "nothing": b"",
    "nan": b'{"text": NaN}',
}
