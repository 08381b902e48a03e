"""Operations on tables: which there are, their rows, and snapshots of subscriptions over them."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Path, Response

from tidings.model.event import Event
from tidings.service.model import SERVICE, Role
from tidings.service.web.api.callers import CurrentCaller, Ticket, problems, router
from tidings.service.web.api.cursors import Cursor, Limit, link, read_id_cursor
from tidings.service.web.api.models import SnapshotRequested, Table, TableRows, Tables, Ticketed
from tidings.service.web.api.subscriptions import Id
from tidings.service.web.problems import Problem

api = router("tables")
Name = Annotated[str, Path(max_length=200, description="The name of a table.")]


@api.get("/tables", operation_id="list_tables", summary="List the tables")
def list_tables(caller: CurrentCaller) -> Tables:
    """Those that subscriptions may join: what the service was started with, or at a relay those of the upstream service."""
    return Tables(
        items=[
            Table(
                name=table.name,
                columns=dict(table.columns),
                key=list(table.key),
                payload=list(table.payload),
            )
            for table in caller.service.preview.tables
        ]
    )


@api.get(
    "/tables/{name}/rows",
    operation_id="list_rows",
    summary="List the rows of a table",
    responses=problems(403, 404, 503),
)
def list_rows(
    caller: CurrentCaller, name: Name, response: Response, cursor: Cursor = None, limit: Limit = 50
) -> TableRows:
    """As the stream has them: changes that wait to be matched are not in them yet. They come in no order that means
    anything; a row that is there all the time is on one page."""
    caller.need(Role.SUBSCRIBER)
    caller.service.scopes.need_all(caller.principal)
    service, after = caller.service, read_id_cursor(cursor)
    table = next((table for table in service.preview.tables if table.name == name), None)
    if table is None:
        raise Problem(404, f"there is no table {name[:60]!r}; /api/tables lists those there are")
    page = service.table_rows.page(table, after, limit)
    response.headers.update(link(service.settings, f"/api/tables/{name}/rows", page.next, {"limit": limit}))
    return TableRows(table=name, total=page.total, items=page.rows, next=page.next)


@api.post(
    "/subscriptions/{id}/snapshot",
    operation_id="request_snapshot",
    summary="Request all rows of a subscription over tables",
    status_code=202,
    responses=problems(403, 404, 409, 410, 422, 503),
)
def request_snapshot(
    caller: CurrentCaller, id: Id, with_ticket: Ticketed | None = None, ticket: Ticket = None
) -> SnapshotRequested:
    """It comes as notifications of the kind "snapshot", one of each part, of the event with this id."""
    service = caller.service
    given = ticket or (None if with_ticket is None else with_ticket.ticket)
    found = service.lifecycle.changeable(caller.principal, id, given)
    service.lifecycle.check_asked(found)
    if not service.preview.is_over_tables(found.text):
        raise Problem(422, f"subscription {id} is over no tables; a snapshot is of one that joins tables")
    event = Event.snapshot(id, source=SERVICE, id=uuid.uuid4().hex)
    service.log_writer.accept([event])
    return SnapshotRequested(event=event.id)
