"""/api: the description of the HTTP API for people, made of the OpenAPI document, with a form to try each operation.

The ready-made pages that were looked at bring more than a megabyte of scripts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tidings.service.model import Principal
from tidings.service.subscriptions.access_control import AccessError
from tidings.service.web.api.callers import principal_of
from tidings.service.web.pages.rendering import render

pages = APIRouter()

_DEEPEST = 4  # models within models of an example
Schemas = Mapping[str, Mapping[str, Any]]


@pages.get("/api")
async def show(request: Request) -> Response:
    return await run_in_threadpool(_show, request, await _visitor(request))


def _show(request: Request, visitor: Principal | None) -> Response:
    document = request.app.openapi()
    schemas = document["components"]["schemas"]
    by_tag: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag[operation["tags"][0]].append(_operation(method, path, operation, schemas))
    groups = [
        {"name": tag["name"], "about": tag["description"], "items": by_tag[tag["name"]]}
        for tag in document["tags"]
    ]
    data = {"version": document["info"]["version"], "groups": groups}
    return render(request, "api.html", data, visitor=visitor)


async def _visitor(request: Request) -> Principal | None:
    """Whoever looks at it; the page needs no token, as the document needs none."""
    try:
        return await principal_of(request)
    except AccessError:
        return None


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Schemas) -> dict[str, Any]:
    bodies = operation.get("requestBody", {}).get("content", {})
    good = next((status for status in sorted(operation["responses"]) if status.startswith("2")), "200")
    answers = operation["responses"][good].get("content", {})
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "about": operation.get("description", ""),
        "parameters": [_parameter(given, schemas) for given in operation.get("parameters", ())],
        "body_kinds": list(bodies),
        "body": _body(bodies, schemas),
        "body_fields": list(_fields(bodies.get("application/json", {}).get("schema", {}), schemas)),
        "status": good,
        "answer_kinds": list(answers),
        "answer_fields": list(_fields(answers.get("application/json", {}).get("schema", {}), schemas)),
        "endless": "text/event-stream" in answers,
    }


def _parameter(given: Mapping[str, Any], schemas: Schemas) -> dict[str, Any]:
    schema = given["schema"]
    choices: list[Any] = next(
        (option["enum"] for option in _options(schema, schemas) if "enum" in option), []
    )
    return {
        "name": given["name"],
        "place": given["in"],
        "required": given.get("required", False),
        "type": _type(schema, schemas),
        "about": given.get("description") or schema.get("description", ""),
        "choices": choices,
        "many": any(option.get("type") == "array" for option in _options(schema, schemas)),
    }


def _body(bodies: Mapping[str, Any], schemas: Schemas) -> str:
    """An example of the body; empty if there is none, or if it is not JSON."""
    if not bodies:
        return ""
    kind, content = next(iter(bodies.items()))
    if "example" in content:
        given = content["example"]
        return given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
    if kind != "application/json":
        return ""
    return json.dumps(_example(content.get("schema", {}), schemas), indent=2, ensure_ascii=False)


def _example(schema: Mapping[str, Any], schemas: Schemas, depth: int = 0) -> Any:
    """A value that the schema allows: its example where it has one, and else the required members only."""
    options = [option for option in _options(schema, schemas) if option.get("type") != "null"]
    if schema.get("examples"):
        return schema["examples"][0]
    if not options or depth > _DEEPEST:
        return None
    first = options[0]
    if first.get("examples"):
        return first["examples"][0]
    if "enum" in first or "const" in first:
        return first.get("enum", [first.get("const")])[0]
    if first.get("type") == "object":
        members = first.get("properties", {})
        return {name: _example(members[name], schemas, depth + 1) for name in first.get("required", ())}
    if first.get("type") == "array":
        return [_example(first.get("items", {}), schemas, depth + 1)]
    return {"string": "", "integer": 1, "number": 1, "boolean": False}.get(str(first.get("type")))


def _fields(schema: Mapping[str, Any], schemas: Schemas) -> Iterator[dict[str, Any]]:
    """The members of an object, or of the objects of a list."""
    found = next(iter(_options(schema, schemas)), {})
    if found.get("type") == "array":
        found = next(iter(_options(found.get("items", {}), schemas)), {})
    for name, member in found.get("properties", {}).items():
        about = member.get("description", "")
        yield {
            "name": name,
            "type": _type(member, schemas),
            "about": about
            or next(
                (
                    o["description"]
                    for o in _options(member, schemas)
                    if "description" in o and "$ref" not in member
                ),
                "",
            ),
            "required": name in found.get("required", ()),
        }


def _options(schema: Mapping[str, Any], schemas: Schemas) -> list[Mapping[str, Any]]:
    """What a schema allows, with references followed: several where it is a choice."""
    if "$ref" in schema:
        return _options(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return [option for part in schema[choice] for option in _options(part, schemas)]
    return [schema]


def _type(schema: Mapping[str, Any], schemas: Schemas) -> str:
    """The type in words: "text", "list of Notification", "number or null"."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        choices = schemas[name].get("enum")
        return " or ".join(map(json.dumps, choices)) if choices else str(name)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part, schemas) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), schemas)}"
    if schema.get("format") == "date-time":
        return "time"
    words = {"string": "text", "boolean": "true or false", "object": "object", "null": "null"}
    kind = str(schema.get("type", "anything"))
    return words.get(kind, kind)
