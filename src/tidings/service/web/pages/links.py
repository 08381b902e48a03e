"""The links of a service as its status page shows them: to the services above, and to relays below, with what crossed each
and what would have crossed it without relays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidings.service.delivery.notification_json import moment as stamp
from tidings.service.relay.copies import NO_COPIES, Copies
from tidings.service.relay.relays_below import About, RelayBelow
from tidings.service.relay.upstream import ParentState
from tidings.service.web.pages.wording import size

if TYPE_CHECKING:
    from tidings.service.service import Service


def links_of(service: Service) -> dict[str, Any]:
    """The rows of the table, those to services above first, and a sentence on what relays save."""
    above = [] if service.upstream is None else service.upstream.states
    below = service.downstream.relays.all()
    counted: list[ParentState | RelayBelow] = [*below] if below else [*above]
    return {
        "rows": [*map(_above, above), *map(_below, below)],
        "saving": _saving(
            sum(link.bytes for link in counted), sum((link.copies for link in counted), NO_COPIES)
        ),
    }


def _above(parent: ParentState) -> dict[str, Any]:
    again = f"{parent.duplicates:,} came again" if parent.duplicates else ""
    row = {
        "direction": "up",
        "name": urlsplit(parent.url).netloc,
        "address": parent.url,
        "id": parent.service,
    }
    state = {"state": parent.status, "message": parent.message or again, "since": stamp(parent.since)}
    return row | state | {"where": ""} | _crossed(parent)


def _below(relay: RelayBelow) -> dict[str, Any]:
    about = relay.about or About()
    where = urlsplit(about.address).netloc
    row = {"direction": "down", "name": about.name or where or relay.relay, "address": about.address}
    filters = f"asks for {relay.filters:,} filter{'s' * (relay.filters != 1)}"
    state = {"state": "connected" if relay.links else "gone", "message": filters, "since": stamp(relay.since)}
    return row | state | {"id": relay.relay, "where": where} | _crossed(relay)


def _crossed(link: ParentState | RelayBelow) -> dict[str, Any]:
    copies = link.copies
    return {
        "messages": link.messages,
        "bytes": size(link.bytes),
        "stripped": link.stripped,
        "copies": copies.notifications,
        "copied": size(copies.bytes),
        "share": 100 * link.bytes / copies.bytes if copies.bytes else None,
    }


def _saving(crossed: int, copies: Copies) -> str | None:
    """In words; None if there is none."""
    if not crossed or copies.bytes <= crossed:
        return None
    times = copies.bytes / crossed
    return (
        f"{size(crossed)} crossed in place of {size(copies.bytes)}: without relays each of the {copies.notifications:,}"
        f" notifications would have crossed by itself, {times:,.{0 if times >= 10 else 1}f} times as much."
    )
