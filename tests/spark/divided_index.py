"""Indexes of the same subscriptions, divided and not, and events that visit their parts, for the tests of two stages."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyoxigraph as ox
import pytest

from tidings import Engine, Event
from tidings.storage import versions
from tidings.storage.division import Placement

from .conftest import BROKEN, TITLE, words

PARTS = 3
_ALPHA = f"SELECT ?item WHERE (?item, <{TITLE}>, 'alpha')"
TEXTS = {
    "n": "WHERE n > 2",
    "alpha": _ALPHA,
    **{f"n{number}": f"WHERE n > 2 AND n > {number}" for number in range(8)},
    **{f"alpha{number}": f"{_ALPHA} AND n > {number}" for number in range(8)},
}
PARENTS = [-1, -1, *[0] * 8, *[1] * 8]
"""The first two contain the others."""


def engine() -> Engine:
    made = Engine()
    for id, text in TEXTS.items():
        made.subscribe(id, text)
    return made


def publish(root: Path, place: str, monkeypatch: pytest.MonkeyPatch, parts: int = PARTS) -> versions.Version:
    monkeypatch.setitem(
        sys.modules, "tidings.containment.forest", SimpleNamespace(parents=lambda engine: np.array(PARENTS))
    )
    return versions.publish(root, engine(), placement=Placement(place, parts))


def events(first: int, count: int) -> list[Event]:
    """Each has a word in its graph and a number, and every other one is RDF/XML; one cannot be read."""
    numbered = [
        replace(event, attributes={"n": int(event.id) % 10, "padding": "." * 9_000})
        for event in words(first, count)
    ]
    numbered[::2] = [_as_rdf_xml(event) for event in numbered[::2]]
    return [*numbered, replace(BROKEN, id=f"broken {first}")]


def _as_rdf_xml(event: Event) -> Event:
    data = ox.serialize(ox.parse(event.data, format=ox.RdfFormat.N_TRIPLES), format=ox.RdfFormat.RDF_XML)
    assert data is not None
    return replace(event, datacontenttype="application/rdf+xml", data=data)
