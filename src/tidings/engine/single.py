"""One event against filters alone: the same answers as a batch of one, without the columns around it.

A batch pays for its tables once for thousands of events; an event that comes by itself would wait for them longer
than for its matches.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidings.engine.layer import Layer
from tidings.engine.routing import Routes
from tidings.formats.kernels.json import occurrences_of
from tidings.kinds.filters.columns import ENVELOPE
from tidings.kinds.networks.network import Network
from tidings.model.event import Event
from tidings.model.notification import Notification
from tidings.model.values import instant


def publish_one(event: Event, layers: Sequence[Layer], networks: Mapping[str, Network]) -> list[Notification]:
    """The notifications of an event for layers without patterns."""
    given = _attributes(event)
    routes = Routes(networks, lambda row: event.source, lambda row: given)
    found: list[Notification] = []
    for layer in layers:
        if not layer.has_filters:
            continue
        reader = layer.reader
        pairs = reader.pairs(occurrences_of([given], reader.wanted.table), lambda row: given)
        owner = layer.filter_owner[reader.index.match(pairs).row]
        if len(owner):
            found += [
                Notification(layer.ids[number], event.source, event.id, "match", {})
                for number in _kept(owner, layer, event, routes)
            ]
    return found


def _attributes(event: Event) -> Mapping[str, Any]:
    """Everything a filter may name, as `stages.event_attributes` has it for a row."""
    envelope = {name: value for name in ENVELOPE if (value := getattr(event, name))}
    twice = {
        name: [value, event.attributes[name]] for name, value in envelope.items() if name in event.attributes
    }
    return {**envelope, **event.attributes, **twice}


def _kept(owner: np.ndarray, layer: Layer, event: Event, routes: Routes) -> list[int]:
    """The subscriptions that are live, valid, and reached where they have a place, once each."""
    if layer.several_ways is not None:
        owner = np.unique(owner)
    numbers: list[int] = owner.tolist()
    live = layer.live
    numbers = [number for number in numbers if live[number]]
    if layer.some_end:
        moment = instant(event.time.replace(" ", "T")) if event.time else None
        now = time.time() if moment is None else moment / 1e6
        numbers = [number for number in numbers if layer.valid_until[number] >= now]
    if layer.places and numbers:
        chosen = np.array(numbers)
        arrived = routes.arrive(
            np.zeros(len(chosen), np.int64), np.asarray(layer.place)[chosen], list(layer.places)
        )
        numbers = chosen[arrived].tolist()
    return numbers
