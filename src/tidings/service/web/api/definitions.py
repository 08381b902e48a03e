"""Operations on what subscriptions refer to: the taxonomy, the prefixes, the networks; read by all, changed by admins.

A delegate without a scope replaces the taxonomy and the prefixes: a content management system has those of its pages. With a scope
it does not, because a class may then be made one of what the scope names.
A version is an ETag: with If-Match, a definition is replaced only if it is still the one that was read.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tidings.feeds.write.channel import moment
from tidings.formats.rdf import is_rdf
from tidings.service import model
from tidings.service.model import DefinitionKind, Role
from tidings.service.subscriptions.definitions import NETWORK_NAME
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.models import Moment, RequestModel, ResponseModel, Text
from tidings.service.web.problems import Problem

api = router("definitions")
MAX_ROWS = 1_000_000
MAX_CHANGES = 10_000
_RDF = ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json")
_ERRORS = problems(403, 412, 413, 415, 422, 503)

Name = Annotated[str, Path(pattern=NETWORK_NAME, description="The name of a network, as VIA has it.")]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=100, description="The ETag of the version that is to be replaced."),
]
Where = Annotated[Text, Field(max_length=64 << 10, description="What an event must satisfy to pass.")]
Cost = Annotated[float, Field(ge=0, allow_inf_nan=False)]
EdgeEnds = Annotated[list[Text], Field(min_length=2, max_length=2)]
NodeName = Annotated[Text, Field(max_length=1_000)]


class Definition(ResponseModel):
    kind: DefinitionKind
    name: str = Field(description="Of a network; empty otherwise.")
    version: int = Field(description="Counts from 1, each kind and name by itself; 0: there is none.")
    origin: Literal["start", "request", "change"] | None = Field(
        description="Given to `tidings serve`, sent whole, or changed."
    )
    time: Moment | None
    author: str = Field(description="The name of the token that sent it.")
    index_version: str | None = Field(description="Of the index as it is now.")


class Definitions(ResponseModel):
    items: list[Definition]


class Prefixes(ResponseModel):
    version: int
    prefixes: dict[str, str]


class NetworkNode(RequestModel):
    id: NodeName
    where: Where | None = None
    cost: Cost | None = None


class NetworkEdge(RequestModel):
    source: NodeName
    target: NodeName
    where: Where | None = None
    cost: Cost | None = None


class NetworkRows(RequestModel):
    nodes: list[NetworkNode] | None = Field(
        default=None, max_length=MAX_ROWS, description="Those that edges name, if they are left out."
    )
    edges: list[NetworkEdge] = Field(max_length=MAX_ROWS)


class NetworkAnswer(NetworkRows):
    name: str
    version: int


class NetworkChange(RequestModel):
    action: Literal["add_node", "add_edge", "remove_node", "remove_edge", "set_where"]
    arguments: list[Text | Cost | EdgeEnds | None] = Field(
        min_length=1,
        max_length=4,
        description="add_node: name, where?, cost?; add_edge: source, target, where?, cost?; remove_node: name; remove_edge:"
        " source, target; set_where: name or [source, target], and where.",
        examples=[["acme", "berlin", "topic = 'oil'"]],
    )


class NetworkChanges(RequestModel):
    changes: list[NetworkChange] = Field(min_length=1, max_length=MAX_CHANGES)


@api.get("/definitions", operation_id="get_definitions", summary="List the definitions with their versions")
def get_definitions(caller: CurrentCaller) -> Definitions:
    """The newest version of each definition."""
    found = caller.service.definitions.all()
    return Definitions(items=[_answer(caller, definition) for definition in found])


@api.put(
    "/taxonomy",
    operation_id="set_taxonomy",
    summary="Replace the taxonomy",
    responses=_ERRORS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string"}} for kind in _RDF},
        }
    },
)
async def set_taxonomy(
    request: Request, response: Response, caller: CurrentCaller, if_match: IfMatch = None
) -> Definition:
    """RDFS in any RDF syntax. Events are matched by it from the next micro-batches on when the answer comes."""
    _need_definer(caller)
    body = await request.body()  # first: what nobody reads is not bounded
    replaces, kind = _replaces(if_match), request.headers.get("content-type", "").partition(";")[0].strip()
    if not ("/" in kind and is_rdf(kind)):
        raise Problem(415, f"a taxonomy is RDF; send it as one of {', '.join(_RDF)}")
    if not body.strip():
        raise Problem(
            400, "the body is empty; send the taxonomy, from a file with curl --data-binary @taxonomy.ttl"
        )
    made = await run_in_threadpool(
        caller.service.definitions.set_taxonomy, caller.principal, body, kind, replaces=replaces
    )
    return _made(caller, response, made)


@api.get("/prefixes", operation_id="get_prefixes", summary="Get the prefixes that subscriptions may use")
def get_prefixes(caller: CurrentCaller, response: Response) -> Prefixes:
    """Without those that are always there, such as rdf and rss."""
    definitions = caller.service.definitions
    version, prefixes = definitions.version(DefinitionKind.PREFIXES), definitions.engine.prefixes
    response.headers["ETag"] = f'"{version}"'
    return Prefixes(version=version, prefixes=prefixes)


@api.put("/prefixes", operation_id="set_prefixes", summary="Replace the prefixes", responses=_ERRORS)
def set_prefixes(
    caller: CurrentCaller,
    response: Response,
    prefixes: dict[Text, Text],
    if_match: IfMatch = None,
) -> Definition:
    _need_definer(caller)
    made = caller.service.definitions.set_prefixes(caller.principal, prefixes, replaces=_replaces(if_match))
    return _made(caller, response, made)


@api.get("/networks", operation_id="get_networks", summary="List the networks")
def get_networks(caller: CurrentCaller) -> Definitions:
    found = caller.service.definitions.all()
    return Definitions(items=[_answer(caller, each) for each in found if each.kind is DefinitionKind.NETWORK])


@api.get(
    "/networks/{name}",
    operation_id="get_network",
    summary="Get a network, in the form that can be sent back",
    response_model_exclude_none=True,
    responses=problems(404),
)
def get_network(caller: CurrentCaller, response: Response, name: Name) -> NetworkAnswer:
    definitions = caller.service.definitions
    network, version = definitions.network(name), definitions.version(DefinitionKind.NETWORK, name)
    response.headers["ETag"] = f'"{version}"'
    return NetworkAnswer.model_validate({"name": name, "version": version, **network.rows()})


@api.put(
    "/networks/{name}", operation_id="set_network", summary="Add or replace a network", responses=_ERRORS
)
def set_network(
    caller: CurrentCaller, response: Response, name: Name, network: NetworkRows, if_match: IfMatch = None
) -> Definition:
    """A subscription at a node that is not there any more becomes unanswerable, until it is there again."""
    caller.need(Role.ADMIN)
    rows = network.model_dump(exclude_none=True)
    made = caller.service.definitions.set_network(caller.principal, name, rows, replaces=_replaces(if_match))
    return _made(caller, response, made)


@api.patch(
    "/networks/{name}",
    operation_id="change_network",
    summary="Change a network",
    responses={**problems(404), **_ERRORS},
)
def change_network(
    caller: CurrentCaller, response: Response, name: Name, wanted: NetworkChanges, if_match: IfMatch = None
) -> Definition:
    """All changes are made, in their order, or none. Nothing is built anew, unless a node is removed."""
    caller.need(Role.ADMIN)
    changes = [change.model_dump() for change in wanted.changes]
    made = caller.service.definitions.change_network(
        caller.principal, name, changes, replaces=_replaces(if_match)
    )
    return _made(caller, response, made)


def _need_definer(caller: Caller) -> None:
    caller.need(Role.DELEGATE)
    if caller.principal.role is Role.DELEGATE:
        caller.service.scopes.need_all(caller.principal)


def _replaces(if_match: str | None) -> int | None:
    """The version that If-Match names; None without it, or for any."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'(?:W/)?"?([0-9]{1,15})"?', if_match.strip(), re.ASCII)
    if found is None:
        raise Problem(412, f'If-Match is {if_match!r}; give the ETag of one version, such as "3"')
    return int(found[1])


def _made(caller: Caller, response: Response, made: model.Definition) -> Definition:
    response.headers["ETag"] = f'"{made.version}"'
    return _answer(caller, made)


def _answer(caller: Caller, definition: model.Definition) -> Definition:
    values: dict[str, Any] = {"kind": definition.kind, "name": definition.name}
    return Definition(
        **values,
        version=definition.version,
        origin=definition.origin.value,
        time=moment(definition.at),
        author=definition.author,
        index_version=caller.service.definitions.index_version(),
    )
