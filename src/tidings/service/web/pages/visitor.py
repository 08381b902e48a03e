"""Resolves the visitor of a page and reads forms. A form is read only after its CSRF token was checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from tidings.service.web.api.callers import Caller, caller
from tidings.service.web.csrf import FIELD, check_csrf
from tidings.service.web.problems import Problem

Visiting = Annotated[Caller, Depends(caller)]

_FIELDS, _FILES = 20, 1


async def form_of(request: Request) -> Mapping[str, str | UploadFile]:
    service = request.app.state.service
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and (await request.body()).count(b"&") > _FIELDS:
        # The parser counts fields that have names; millions that have none would hold up everybody.
        raise Problem(400, f"a form has at most {_FIELDS} fields; leave some out")
    # A field may be as large as a body: that of a form to publish something has all of it in one.
    form = await request.form(max_files=_FILES, max_fields=_FIELDS, max_part_size=service.settings.max_body)
    check_csrf(service.access, request, form.get(FIELD))
    return form


Form = Annotated[Mapping[str, "str | UploadFile"], Depends(form_of)]


def text_of(form: Mapping[str, str | UploadFile], name: str) -> str:
    """The text of a field, with the CR LF that browsers send replaced by LF."""
    value = form.get(name, "")
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def ticket_of(form: Mapping[str, str | UploadFile]) -> str | None:
    return text_of(form, "ticket").strip()[:200] or None
