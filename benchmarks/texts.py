"""A workload in the forms that users write: subscription texts, tables of parameters, RDF documents, SPARQL.

Nodes and labels are names in the default prefix, n12 and p4; a node that stands for a number is written as one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from benchmarks.workloads import GREATER, NO_TEST, NO_VALUE, Edges, Workload
from tidings.formats.namespaces import RDF, XSD
from tidings.language.syntax.prefixes import WELL_KNOWN

BASE = WELL_KNOWN[""]
_VARIABLES = "abcdefghijklmnop"


def subscription_text(workload: Workload, row: int) -> str:
    """Subscription `row` in our language: SELECT * WHERE (n12, p4, n7), (?a, p5, n7) AND ?a > 10."""
    edges = workload.subscriptions
    triples = zip(
        edges.subject[row].tolist(), edges.label[row].tolist(), edges.object[row].tolist(), strict=True
    )
    text = ", ".join(f"({_name(s)}, p{p}, {_name(o)})" for s, p, o in triples)
    return f"SELECT * WHERE {text}{_test(workload, row, ' AND ?a {} {}')}"


def subscription_texts(workload: Workload) -> list[tuple[str, str]]:
    """(id, text) of every subscription."""
    return [(f"s{row}", subscription_text(workload, row)) for row in range(len(workload.subscriptions))]


def sparql_text(workload: Workload, row: int) -> str:
    """Subscription `row` as an ASK query."""
    edges = workload.subscriptions
    triples = zip(
        edges.subject[row].tolist(), edges.label[row].tolist(), edges.object[row].tolist(), strict=True
    )
    text = " . ".join(
        f"{_name(s) if s < 0 else _iri(s)} <{BASE}p{p}> {_name(o) if o < 0 else _iri(o)}"
        for s, p, o in triples
    )
    return f"ASK {{ {text}{_test(workload, row, ' . FILTER(?a {} {})')} }}"


def tables_by_shape(workload: Workload) -> list[tuple[str, pa.Table]]:
    """A template for each shape and a table of its subscriptions' constants, as `subscribe_table` takes them."""
    edges, tables = workload.subscriptions, []
    order = np.argsort(workload.shape, kind="stable")
    bounds = np.flatnonzero(np.diff(workload.shape[order], prepend=-1, append=-1))
    names = np.array([BASE + _name(n) for n in range(len(workload.value))], dtype=object)
    labels = np.array([f"{BASE}p{p}" for p in range(workload.parameters.labels + 1)], dtype=object)
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[first:last]
        columns: dict[str, pa.Array] = {"id": pa.array([f"s{row}" for row in rows.tolist()])}
        triples = []
        for j in range(edges.subject.shape[1]):
            ends = []
            for role, column in (("s", edges.subject), ("o", edges.object)):
                if column[rows[0], j] < 0:
                    ends.append(_name(int(column[rows[0], j])))
                else:
                    ends.append(f"${role}{j}")
                    columns[f"{role}{j}"] = pa.array(names[column[rows, j]])
            columns[f"p{j}"] = pa.array(labels[edges.label[rows, j]])
            triples.append(f"({ends[0]}, $p{j}, {ends[1]})")
        tables.append((f"SELECT * WHERE {', '.join(triples)}", pa.table(columns)))
    return tables


def alerts(count: int, seed: int = 2007) -> tuple[str, pa.Table]:
    """A price alert for each of `count` users: one template, two parameters."""
    rng = np.random.default_rng(seed)
    names = np.array([f"{BASE}item{n}" for n in range(50_000)], dtype=object)
    table = pa.table(
        {
            "id": pa.array([f"u{i}" for i in range(count)]),
            "item": pa.array(names[rng.integers(0, len(names), count)]),
            "limit": pa.array(rng.integers(1, 100_000, count)),
        }
    )
    return "SELECT ?price WHERE (?offer, item, $item), (?offer, price, ?price) AND ?price < $limit", table


def ntriples(workload: Workload, row: int) -> bytes:
    lines = [
        f"{_iri(s)} <{BASE}p{p}> {_object(workload, o)} .\n"
        for s, p, o in _triples(workload.publications, row)
    ]
    return "".join(lines).encode()


def turtle(workload: Workload, row: int) -> bytes:
    """As people write it: prefixes, and the statements about a subject together."""
    about: dict[int, list[str]] = {}
    for s, p, o in _triples(workload.publications, row):
        about.setdefault(s, []).append(f":p{p} {_object(workload, o, short=True)}")
    body = [f":n{s} " + " ;\n    ".join(facts) + " .\n" for s, facts in about.items()]
    return f"@prefix : <{BASE}> .\n@prefix xsd: <{XSD}> .\n\n{''.join(body)}".encode()


def rdf_xml(workload: Workload, row: int) -> bytes:
    """One description for each subject."""
    about: dict[int, list[str]] = {}
    for s, p, o in _triples(workload.publications, row):
        value = workload.value[o]
        if value == NO_VALUE:
            about.setdefault(s, []).append(f'    <t:p{p} rdf:resource="{BASE}n{o}"/>\n')
        else:
            about.setdefault(s, []).append(f'    <t:p{p} rdf:datatype="{XSD}integer">{value}</t:p{p}>\n')
    body = [
        f'  <rdf:Description rdf:about="{BASE}n{s}">\n{"".join(facts)}  </rdf:Description>\n'
        for s, facts in about.items()
    ]
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:t="{BASE}">\n'
    return f"{head}{''.join(body)}</rdf:RDF>\n".encode()


SYNTAXES = {"nt": ntriples, "turtle": turtle, "rdfxml": rdf_xml}


def documents(workload: Workload, syntax: str) -> Sequence[bytes]:
    """All publications as documents in one of SYNTAXES."""
    return [SYNTAXES[syntax](workload, row) for row in range(len(workload.publications))]


def _triples(edges: Edges, row: int) -> list[tuple[int, int, int]]:
    return list(
        dict.fromkeys(
            zip(
                edges.subject[row].tolist(),
                edges.label[row].tolist(),
                edges.object[row].tolist(),
                strict=True,
            )
        )
    )


def _name(node: int) -> str:
    return f"n{node}" if node >= 0 else f"?{_VARIABLES[-1 - node]}"


def _iri(node: int) -> str:
    return f"<{BASE}n{node}>"


def _object(workload: Workload, node: int, short: bool = False) -> str:
    value = int(workload.value[node])
    if value == NO_VALUE:
        return f":n{node}" if short else _iri(node)
    return str(value) if short else f'"{value}"^^<{XSD}integer>'


def _test(workload: Workload, row: int, form: str) -> str:
    operator = workload.operator[row]
    return (
        "" if operator == NO_TEST else form.format(">" if operator == GREATER else "<", workload.bound[row])
    )
