"""/status: the state of the service, with charts first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.service.delivery.notification_json import moment as stamp
from tidings.service.model import READERS, Role, State
from tidings.service.telemetry.rates import Window
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.health import status_of
from tidings.service.web.pages.figures import WINDOWS, figures_of
from tidings.service.web.pages.links import links_of
from tidings.service.web.pages.rendering import render
from tidings.service.web.pages.visitor import Visiting
from tidings.service.web.pages.wording import duration, size
from tidings.storage import versions
from tidings.storage.part_visits import COUNTS, no_visits, total
from tidings.storage.versions import Version

if TYPE_CHECKING:
    from tidings.service.service import Service

pages = APIRouter()

BATCHES = 10
PARTS = 100  # that are shown
_TAIL = 1 << 20  # bytes of changes that are counted


@pages.get("/status")
def show(
    request: Request,
    visiting: Visiting,
    part: Annotated[str, Query(max_length=20)] = "",
    window: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    service, visitor = visiting.service, visiting.principal
    chosen: Window = next((known for known in WINDOWS if known == window), "5m")
    charts = {"figures": figures_of(service, chosen), "window": chosen}
    if part == "charts":
        return render(request, "charts.html", charts, visitor=visitor, windows=WINDOWS)
    if part == "links":
        return render(request, "links.html", {"links": links_of(service)}, visitor=visitor)
    status = status_of(visiting, chosen).model_dump(mode="json")
    index = IndexWords(service.settings.data / "index")
    counts = {state.value: status["subscriptions"].get(state.value, 0) for state in State}
    data: dict[str, Any] = {
        "status": status,
        **charts,
        "counts": counts,
        "batches": [
            {
                "ended": stamp(batch.ended),
                "seconds": batch.ended - batch.began,
                "events": batch.events,
                "notifications": batch.notifications,
                "errors": batch.errors,
                "version": batch.version,
                "index": index.words(batch.version),
            }
            for batch in service.mailbox.batches(BATCHES)
        ],
        "webhooks": _webhooks(visiting),
        "links": links_of(service),
        "parts_of_index": _parts(service, status["index_version"]),
    }
    return render(
        request,
        "status.html",
        data,
        visitor=visitor,
        most=max(1, *counts.values()),
        facts=_facts(visiting, status),
        index_version=index.words(status["index_version"]),
        windows=WINDOWS,
    )


class IndexWords:
    """Puts versions of the index into words. A version such as v3+1234 counts bytes of changes; people count changes,
    which are the lines of a file that only grows."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tails: dict[int, bytes | None] = {}

    def words(self, version: str | None) -> str:
        if version is None:
            return "not built yet"
        base, offset = Version.parse(version)
        if not offset:
            return f"version {base} with no changes"
        if base not in self._tails:
            self._tails[base] = self._tail(base)
        tail = self._tails[base]
        if tail is None or offset > len(tail):
            return f"version {base} with {size(offset)} of changes"
        count = tail.count(b"\n", 0, offset)
        return f"version {base} with {count:,} change{'s' * (count != 1)}"

    def _tail(self, base: int) -> bytes | None:
        try:
            with (self._root / f"v{base}.tail").open("rb") as file:
                return file.read(_TAIL)
        except OSError:  # it was dropped with its base
            return None


def _facts(visiting: Caller, status: dict[str, Any]) -> list[tuple[str, str]]:
    service, driver = visiting.service, status["driver"]
    restarts = driver["restarts"]
    matching = driver["status"] + (f", {driver['message']}" if driver["message"] else "")
    log = sum(file.stat().st_size for file in (service.settings.data / "log").glob("*") if file.is_file())
    return [
        ("Version", status["version"]),
        ("Matching", matching + (f"; restarted {restarts} time{'s' * (restarts != 1)}" if restarts else "")),
        ("Events read", f"{status['events']:,}"),
        ("Notifications", f"{status['notifications']:,}"),
        ("Oldest waiting", duration(status["lag_seconds"]) if status["waiting_events"] else "nothing waits"),
        ("Channels", _channels(service)),
        ("Event log", size(log)),
    ]


def _channels(service: Service) -> str:
    counts, waiting = service.channels.counts(), service.channel_messages.count()
    said = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items())) or "none"
    return said + (f"; {waiting:,} message{'s' * (waiting != 1)} waiting" if waiting else "")


def _parts(service: Service, version: str | None) -> list[dict[str, Any]]:
    """The parts of a divided index, and what they were visited for since the service has started."""
    try:
        division = version and versions.division(service.settings.data / "index", Version.parse(version))
    except TidingsError:  # it is being built anew
        division = None
    if not division:
        return []
    visits = total([service.metrics.visits, no_visits(len(division.parts))])
    counts = [dict(zip(COUNTS, column, strict=True)) for column in visits.counts.T.tolist()]
    return [
        {
            "subscriptions": piece.subscriptions,
            "size": size(piece.bytes),
            **counts[number],
        }
        for number, piece in enumerate(division.parts[:PARTS])
    ]


def _webhooks(visiting: Caller) -> list[dict[str, Any]]:
    """The webhooks of subscriptions that the visitor may see. Only the host of an address is shown: the rest may be
    a secret."""
    service, visitor = visiting.service, visiting.principal
    if visitor.role not in READERS:
        return []
    if visitor.role is Role.ADMIN:
        deliveries = service.registry.deliveries()
    else:
        mine = [
            service.registry.delivery(delivery.id) for delivery in service.lifecycle.page(visitor, limit=200)
        ]
        deliveries = [delivery for delivery in mine if delivery is not None]
    return [
        {
            "subscription": delivery.subscription,
            "host": urlsplit(delivery.url).hostname or "",
            "failures": delivery.failures,
            "error": delivery.error,
            "disabled": delivery.disabled,
            "next_try": stamp(delivery.next_try) if delivery.failures else None,
        }
        for delivery in deliveries[:100]
    ]
