"""tests/fixtures/filters.txt: events, and the conditions that hold for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tidings.kinds.filters import naive
from tidings.language.condition_tree import clauses
from tidings.language.parser import parse

FIXTURE = Path(__file__).parents[2] / "fixtures" / "filters.txt"


@dataclass
class Case:
    name: str
    event: str = ""
    asked: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def attributes(self) -> dict[str, Any]:
        return json.loads(self.event.replace("<megabyte>", "x" * 1_000_000))


def cases() -> Iterator[Case]:
    case = Case("")
    for line in FIXTURE.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if word == "==":
            if case.name:
                yield case
            case = Case(rest)
        elif word == "event":
            case.event = rest
        elif word in ("yes", "no"):
            case.asked.append((rest, word == "yes"))
        elif word == "" and not case.asked:
            case.event += line
        else:
            pytest.fail(f"{FIXTURE}: {line!r}")
    yield case


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixture(case: Case) -> None:
    attributes = case.attributes
    for text, expected in case.asked:
        condition = parse(f"WHERE {text}").where
        assert naive.matches(condition, attributes) == expected, text
        # The parts of an AND at the top stand side by side.
        held = [clause.held for clause in clauses(condition, attributes) if clause.depth == 0]
        assert all(held) == expected, text


def test_the_fixture_is_read() -> None:
    assert len(CASES) > 20
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(len(case.asked) for case in CASES) > 300
