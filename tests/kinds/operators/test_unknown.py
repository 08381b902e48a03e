"""What an operator that fails leaves unknown, and what it does not."""

from __future__ import annotations

import pytest

from tidings import Engine, Event, Out, operator


@operator
def link(event: Event, place: str, x: Out[int]) -> None:
    raise ValueError("the service is away")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("WHERE link('Bronx', ?x) AND (b <= a OR (a >= 3 AND ?x = 3))", None),
        ("WHERE NOT (link('Bronx', ?x) AND (b <= a OR (a >= 3 AND ?x = 3)))", "match"),
        ("WHERE link('Bronx', ?x) AND (b >= a OR ?x = 3)", "undecided"),
        ("WHERE link('Bronx', ?x) AND ?x > a", "undecided"),
        ("WHERE link('Bronx', ?x) AND b < a", None),
        ("WHERE link('Bronx', 3) OR b > a", "match"),
    ],
)
def test_attributes_decide_what_they_can(text: str, verdict: str | None) -> None:
    engine = Engine(operators=[link])
    engine.subscribe("s", text)
    found = engine.publish(Event(attributes={"a": 2, "b": 3}))
    assert [one.verdict for one in found] == ([verdict] if verdict else [])
    assert all(one.message == "link failed: ValueError: the service is away" for one in found if one.message)
