"""tests/fixtures/patterns.txt: events, subscriptions and what they get, by the index and by the definition."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tidings import Engine, Event, Taxonomy
from tidings.language.syntax.prefixes import WELL_KNOWN

FIXTURE = Path(__file__).parents[2] / "fixtures" / "patterns.txt"
PREFIXES = {"ex": "http://example.org/", "uni": "http://example.org/uni#"}
_TURTLE = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in {**WELL_KNOWN, **PREFIXES}.items())
Answer = frozenset[tuple[str, str]]


@dataclass
class Case:
    name: str
    classes: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    event: str = ""
    asked: list[tuple[str, set[Answer]]] = field(default_factory=list)


def cases() -> Iterator[Case]:
    case, section = Case(""), ""
    for line in FIXTURE.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if line.startswith(("#", " " * 2)) or not line:
            if section in ("classes", "event"):
                setattr(case, section, getattr(case, section) + line + "\n")
            elif section == "ask" and line:
                case.asked[-1] = (f"{case.asked[-1][0]}\n{line}", set())
            continue
        section = word
        if word == "==":
            if case.name:
                yield case
            case = Case(rest)
        elif word == "attributes":
            case.attributes = json.loads(rest)
        elif word == "ask":
            case.asked.append((rest, set()))
        elif word == "get":
            if rest != "nothing":
                case.asked[-1][1].add(_answer(rest))
        else:
            assert word in ("classes", "event"), f"{FIXTURE}: {line!r}"
    yield case


def _answer(text: str) -> Answer:
    if text == "yes":
        return frozenset()
    pairs = (part.split(" = ", 1) for part in text.split(" | "))
    return frozenset((name.strip(), json.loads(f'"{_unquoted(value)}"').strip()) for name, value in pairs)


def _unquoted(value: str) -> str:
    return value.replace('"', '\\"')


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixture(case: Case) -> None:
    assert case.asked
    taxonomy = Taxonomy.from_rdf(_TURTLE + case.classes, "turtle")
    if case.event:
        event = Event.from_rdf(_TURTLE + case.event, "turtle", attributes=case.attributes)
    else:
        event = Event(attributes=case.attributes)
    engine = Engine(taxonomy=taxonomy, prefixes=PREFIXES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, (text, _) in enumerate(case.asked):
            engine.subscribe(str(i), text)
    every = engine.publish(event, all_bindings=True)
    first = {n.subscription: frozenset(n.bindings.items()) for n in engine.publish(event)}
    for i, (text, expected) in enumerate(case.asked):
        found = {frozenset(n.bindings.items()) for n in every if n.subscription == str(i)}
        assert found == expected, text
        assert (first[str(i)] in expected) if expected else (str(i) not in first), text
        explanation = engine.explain(str(i), event)
        assert explanation.verdict == ("match" if expected else "no match"), f"{text}\n{explanation}"


def test_the_fixture_is_read() -> None:
    assert len(CASES) > 20
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(len(case.asked) for case in CASES) > 60
