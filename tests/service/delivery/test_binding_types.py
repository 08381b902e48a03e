"""Bindings of operators' outputs in JSON, with the types that their signatures declare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.conftest import Running
from tidings import Client, Engine, Event, Out, operator
from tidings.service.delivery.binding_types import BindingTypes, output_types

OPERATORS = """
from tidings import Out, operator

@operator
def measured(event, people: Out[int], share: Out[float], is_loud: Out[bool], name: Out[str], anything: Out):
    yield 60, 0.5, True, "5", 7
"""
TEXT = "{measured(?people, ?share, ?is_loud, ?name, ?anything), (?people>50)}"
TYPED = {"people": 60, "share": 0.5, "is_loud": True, "name": "5", "anything": "7"}


@operator
def several(event: Event, number: Out[int | float], mixed: Out[int | str]) -> object:
    yield 1.5, "x"


def test_they_are_typed_wherever_they_are_told(tmp_path: Path, running: Callable[..., Running]) -> None:
    (tmp_path / "measuring_operators.py").write_text(OPERATORS)
    with (
        running(operators=(str(tmp_path / "measuring_operators.py"),)) as served,
        Client(served.url) as client,
    ):
        measured, other = client.subscribe(TEXT), client.subscribe("SELECT ?t WHERE (?i, rss:title, ?t)")
        assert client.match({"a": 1}).items[0].bindings == TYPED
        client.publish({"a": 1})
        assert next(client.listen(measured, after=0)).bindings == TYPED
        assert next(client.notifications(measured)).bindings == TYPED
        client.publish("<http://example.org/1> <http://purl.org/rss/1.0/title> '5' .", format="ttl")
        assert next(client.listen(other, after=0)).bindings == {"t": "5"}


@pytest.mark.parametrize(
    ("text", "read"), [("5", 5), ("1.5", 1.5), ("1e+300", 1e300), ("1e999", "1e999"), ("many", "many")]
)
def test_what_is_no_value_of_the_type_stays_a_text(text: str, read: object) -> None:
    engine = Engine(operators=[several])
    types = BindingTypes(lambda: engine, lambda id: "{several(?n, ?m)}")
    assert types.convert("s", {"n": text, "m": "5", "other": "5"}) == {"n": read, "m": "5", "other": "5"}
    assert set(output_types("{several(?n, ?m)}", engine)) == {"n"}


def test_without_its_operator_or_its_subscription_bindings_are_texts() -> None:
    engine = Engine(operators=[several])
    for text in ("{gone(?n)}", None, "no text"):
        assert BindingTypes(lambda: engine, lambda id, text=text: text).convert("s", {"n": "5"}) == {"n": "5"}
