"""The route of XML-RPC, for the clients of the paper; G-ToPSS, Section 6."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response, Security
from starlette.concurrency import run_in_threadpool

from tidings.service.web.api.callers import bearer, caller, problems
from tidings.service.web.problems import Problem
from tidings.service.web.xmlrpc import dispatch

api = APIRouter(tags=["xml-rpc"], dependencies=[Security(bearer)])
_XML = {"text/xml": {"schema": {"type": "string"}}}


@api.post(
    "/xmlrpc",
    operation_id="call_xmlrpc",
    summary="Call the service by XML-RPC",
    response_class=Response,
    responses={
        200: {"description": "A methodResponse, or a fault.", "content": _XML},
        **problems(401, 413, 415),
    },
    openapi_extra={"requestBody": {"required": True, "content": _XML}},
)
async def call_xmlrpc(request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("text/xml", "application/xml"):
        raise Problem(
            415, "a methodCall is XML; send it as Content-Type: text/xml", headers={"Accept": "text/xml"}
        )
    known = await caller(request)
    body = await request.body()
    answer = await run_in_threadpool(dispatch, body, known.service, known.principal)
    return Response(answer, media_type="text/xml")
