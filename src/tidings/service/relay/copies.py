"""What a relay saves: how much the notifications of its subscribers would be if each was sent by itself, from upstream.

A copy is the event with its payloads, or the rows of a join; what a protocol adds to it is left out, so the saving is never
overstated. The filters of relays below are no subscribers: what these make of an event is counted by them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidings.service.model import HIDDEN, MEMBERS

_SENT = ("id", "source", "type", "time", "datacontenttype", "data", "attributes")  # of an event


@dataclass(frozen=True, slots=True)
class Copies:
    """How many, and their bytes together."""

    notifications: int = 0
    bytes: int = 0

    def __add__(self, other: Copies) -> Copies:
        return Copies(self.notifications + other.notifications, self.bytes + other.bytes)

    def since(self, before: Copies) -> Copies:
        """What was added to a count since; all of it if it began anew meanwhile."""
        if self.notifications < before.notifications or self.bytes < before.bytes:
            return self
        return Copies(self.notifications - before.notifications, self.bytes - before.bytes)


NO_COPIES = Copies()


def copies_of(notifications: pa.Table, events: pa.Table) -> Copies:
    """The copies that notifications of events stand for."""
    of = notifications["subscription"]
    own = pc.invert(pc.or_(pc.starts_with(of, MEMBERS), pc.starts_with(of, HIDDEN)))
    notifications = notifications.filter(own)  # without those of errors, too, which have no subscription
    keys = pc.binary_join_element_wise(notifications["source"], notifications["event"], "\0")
    at = pc.index_in(keys, value_set=pc.binary_join_element_wise(events["source"], events["id"], "\0"))
    of_event = pc.equal(pc.fill_null(pc.list_value_length(notifications["changes"]), 0), 0)
    lengths = [pc.fill_null(pc.binary_length(events[name]), 0) for name in _SENT]
    total = lengths[0].cast(pa.int64())
    for length in lengths[1:]:
        total = pc.add(total, length)
    rows = pc.struct_field(pc.list_flatten(notifications["changes"]), "row")
    size = (pc.sum(pc.take(total, at.filter(of_event))).as_py() or 0) + (
        pc.sum(pc.binary_length(rows)).as_py() or 0
    )
    return Copies(len(notifications), size)
