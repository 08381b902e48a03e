"""/definitions: what subscriptions can refer to: tables, networks, operators, the taxonomy and the prefixes.

A table and a network have pages of their own: counting the rows of a table asks the stream for them.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.kinds.networks.drawing.excerpt import Excerpt, excerpt
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.service.delivery.notification_json import moment
from tidings.service.model import DefinitionKind, Role
from tidings.service.service import Service
from tidings.service.web.api.tables import list_rows, list_tables
from tidings.service.web.pages.admin.network_drawing import draw_network
from tidings.service.web.pages.rendering import render, sentence
from tidings.service.web.pages.status import IndexWords
from tidings.service.web.pages.visitor import Visiting
from tidings.service.web.problems import Problem
from tidings.storage import versions
from tidings.storage.operator_feedback import OperatorCalls, calls_by_operator

pages = APIRouter()

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)", re.IGNORECASE)
_NETWORK = re.compile(r"\bVIA\s+([\w-]+)", re.IGNORECASE)
_OPERATOR = re.compile(r"(\w+)\s*\(")
LISTED = 100  # nodes, edges
ROWS = 20


@pages.get("/definitions")
def show(request: Request, visiting: Visiting) -> Response:
    service = visiting.service
    definitions, engine = service.definitions, service.preview.engine
    measured = _measured(service)
    known = {(found.kind, found.name): found for found in definitions.all()}

    def version(kind: DefinitionKind, name: str = "") -> dict[str, Any] | None:
        found = known.get((kind, name))
        return (
            None if found is None else {"number": found.version, "time": moment(found.at), "by": found.author}
        )

    data: dict[str, Any] = {
        "tables": list_tables(visiting).model_dump(mode="json")["items"],
        "networks": [
            {"name": name, "nodes": len(network), "version": version(DefinitionKind.NETWORK, name)}
            for name, network in sorted(engine.networks.items())
        ],
        "operators": [_operator(operator, measured.get(operator.name)) for operator in engine.operators],
        "classes": len(service.class_search),
        "taxonomy": version(DefinitionKind.TAXONOMY),
        "prefixes": dict(sorted(engine.prefixes.items())),
        "prefixes_version": version(DefinitionKind.PREFIXES),
        "index_version": definitions.index_version(),
        "index": IndexWords(service.settings.data / "index").words(definitions.index_version()),
    }
    return render(
        request, "definitions.html", data, visitor=visiting.principal, built_in=sorted(WELL_KNOWN.items())
    )


@pages.get("/definitions/tables/{name}")
def show_table(request: Request, visiting: Visiting, name: str) -> Response:
    visiting.need(Role.SUBSCRIBER)
    visiting.service.scopes.need_all(visiting.principal)
    tables = list_tables(visiting).model_dump(mode="json")["items"]
    table = next((known for known in tables if known["name"] == name), None)
    if table is None:
        raise Problem(404, f"there is no table {name[:60]!r}; the page Definitions lists those there are")
    data: dict[str, Any] = {"table": table, "total": None, "rows": [], "missing": ""}
    try:
        found = list_rows(visiting, name, Response(), None, ROWS)
        data |= {"total": found.total, "rows": found.items}
    except TidingsError as error:  # the stream has not answered yet
        data["missing"] = sentence(str(error))
    return render(request, "table.html", data, visitor=visiting.principal)


@pages.get("/definitions/networks/{name}")
def show_network(
    request: Request,
    visiting: Visiting,
    name: str,
    around: Annotated[str, Query(max_length=1_000)] = "",
) -> Response:
    network = visiting.service.definitions.network(name)
    edges = islice(network.edges(), LISTED)
    data: dict[str, Any] = {
        "name": name,
        "network_version": visiting.service.definitions.version(DefinitionKind.NETWORK, name),
        "size": len(network),
        "nodes": [{"name": node, "where": where} for node, where in islice(network.nodes(), LISTED)],
        "edges": [{"source": a, "target": b, "where": where} for a, b, where in edges],
        "around": around,
    }
    drawn, undrawn = "", ""
    try:
        part = _part(network, around)
        label = (
            f"The network {name}: {len(part.nodes)} nodes and {len(part.edges)} edges, which are listed below"
        )
        drawn = draw_network(part, label)
    except NetworkError as error:
        undrawn = sentence(str(error).replace(" (--around NODE)", "").replace(" (--depth)", ""))
    return render(
        request, "network.html", data, visitor=visiting.principal, drawn=drawn, undrawn=undrawn, listed=LISTED
    )


def references(text: str, engine: Engine) -> list[dict[str, str]]:
    """The tables, networks and operators that a text names, each with the address of its description."""
    bare = _QUOTED.sub("''", text)
    known = {
        "table": ({table.name for table in engine.joins.tables.values()}, _TABLE, "/definitions/tables/"),
        "network": (set(engine.networks), _NETWORK, "/definitions/networks/"),
        "operator": ({operator.name for operator in engine.operators}, _OPERATOR, "/definitions#operator-"),
    }
    return [
        {"kind": kind, "name": name, "address": address + quote(name)}
        for kind, (names, pattern, address) in known.items()
        for name in dict.fromkeys(pattern.findall(bare))
        if name in names
    ]


def _part(network: Network, around: str) -> Excerpt:
    """Two steps around a node, or one where those are too many."""
    if not around:
        return excerpt(network)
    try:
        return excerpt(network, around)
    except NetworkError:
        return excerpt(network, around, 1)


def _operator(operator: Operator, calls: OperatorCalls | None) -> dict[str, Any]:
    return {
        "name": operator.name,
        "signature": operator.signature,
        "about": " ".join((operator.__doc__ or "").split()),
        "declared": operator.cost,
        "timeout": operator.timeout,
        "calls": 0 if calls is None else calls.calls,
        "failures": 0 if calls is None else calls.failures,
        "measured": None if calls is None else calls.seconds / calls.calls,
    }


def _measured(service: Service) -> dict[str, OperatorCalls]:
    root = service.settings.data / "index"
    try:
        return calls_by_operator(root, versions.current(root).base)
    except (TidingsError, OSError):  # there is no index yet, or it is just being replaced
        return {}
