"""Builds the HTTP application: middleware, routers, the page, and the OpenAPI description.

The caller starts and stops the service; the application has no state of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp

import tidings
from tidings.service.telemetry.logs import RequestLog
from tidings.service.telemetry.metrics import RequestMetrics
from tidings.service.web import pages, problems, websub
from tidings.service.web.api import (
    bulk,
    definitions,
    events,
    feeds,
    health,
    links,
    match,
    notifications,
    preview,
    received,
    sources,
    subscriptions,
    tables,
    tokens,
    xmlrpc,
)
from tidings.service.web.api.callers import PROBLEM
from tidings.service.web.api.channels import routes as channels
from tidings.service.web.api.models import ProblemDetails
from tidings.service.web.middleware import with_middleware
from tidings.service.web.streaming import StreamingLayer

if TYPE_CHECKING:
    from tidings.service.service import Service

ROUTERS = (
    events.api,
    match.api,
    subscriptions.api,
    bulk.api,
    tables.api,
    notifications.api,
    received.api,
    channels.api,
    preview.api,
    definitions.api,
    sources.api,
    health.api,
    tokens.api,
    links.api,
    feeds.api,
    websub.api,
    xmlrpc.api,
    health.open_api,
)
TAGS = {
    "subscriptions": "Add, edit, renew, pause and cancel subscriptions.",
    "notifications": "Read the notifications of subscriptions, by page or as a stream.",
    "channels": "Send the notifications of several subscriptions to one address, as often as wanted.",
    "events": "Publish events, or see what they would match.",
    "tables": "Read the tables that subscriptions join.",
    "sources": "Follow feeds.",
    "texts": "Check, try and complete the text of a subscription before it is added.",
    "definitions": "Read and change what subscriptions refer to: taxonomy, prefixes, networks.",
    "feeds": "Read a subscription as a feed.",
    "websub": "Have feeds pushed (WebSub).",
    "tokens": "Manage access tokens; for admins.",
    "service": "Read the state of the service.",
    "relays": "Link relays to this service.",
    "xml-rpc": "Call the service by XML-RPC.",
}


class Application(FastAPI):
    """A FastAPI whose middleware stands before everything, its own error answers included."""

    def build_middleware_stack(self) -> ASGIApp:
        service: Service = self.state.service
        stack: ASGIApp = events.PublishFirst(super().build_middleware_stack())
        if service.settings.log_format == "json":  # a line for each request is for machines to read
            stack = RequestLog(stack)
        return StreamingLayer(RequestMetrics(with_middleware(stack, service.settings), service.metrics))

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = describe(self)
        return self.openapi_schema


def create_app(service: Service) -> FastAPI:
    app = Application(
        title="Tidings",
        summary="Content-based publish/subscribe: every event is matched against all subscriptions.",
        version=tidings.__version__,
        openapi_tags=[{"name": name, "description": about} for name, about in TAGS.items()],
        servers=[{"url": service.settings.address}],
        lifespan=service.lifespan,
        docs_url=None,  # they would load their scripts from elsewhere
        redoc_url=None,
        responses={"default": PROBLEM},
        separate_input_output_schemas=False,
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    pages.register(app)
    problems.install(app, pages.problem_page)
    return app


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the errors that every operation may answer with."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        routes=app.routes,
        tags=app.openapi_tags,
        servers=app.servers,
        separate_input_output_schemas=app.separate_input_output_schemas,
    )
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(schema.pop("$defs", {}))
    schemas["ProblemDetails"] = schema
    return document
