"""Resolves the visitor of a page and reads forms. A form is read only after its CSRF token was checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from tidings.service.web.api.callers import Caller, caller
from tidings.service.web.csrf import FIELD, check_csrf
from tidings.service.web.problems import Problem

Visiting = Annotated[Caller, Depends(caller)]

_FIELDS, _FILES = 20, 1
_ENCODED = 4 << 20  # bytes of a form that is no file


async def form_of(request: Request) -> Mapping[str, str | UploadFile]:
    service = request.app.state.service
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form: Mapping[str, str | UploadFile]
    if kind == "application/x-www-form-urlencoded":
        form = await run_in_threadpool(_decoded, await request.body())
    else:
        # A field may be as large as a body: that of a form to publish something has all of it in one.
        form = await request.form(
            max_files=_FILES, max_fields=_FIELDS, max_part_size=service.settings.max_body
        )
    check_csrf(service.access, request, form.get(FIELD))
    return form


def _decoded(body: bytes) -> dict[str, str]:
    """The fields of a form. Decoding a megabyte takes up to a second, so it is kept off the event loop."""
    if len(body) > _ENCODED:
        raise Problem(
            413, f"a form has at most {_ENCODED:,} bytes; send what is larger to the API, or as a file"
        )
    if body.count(b"&") > _FIELDS:
        raise Problem(400, f"a form has at most {_FIELDS} fields; leave some out")
    if body.count(b"%") * 3 > len(body):
        raise Problem(400, "the form has percents that encode nothing; encode it as browsers do")
    return dict(parse_qsl(body.decode("latin-1"), keep_blank_values=True))


Form = Annotated[Mapping[str, "str | UploadFile"], Depends(form_of)]


def text_of(form: Mapping[str, str | UploadFile], name: str) -> str:
    """The text of a field, with the CR LF that browsers send replaced by LF."""
    value = form.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def ticket_of(form: Mapping[str, str | UploadFile]) -> str | None:
    return text_of(form, "ticket").strip()[:200] or None
