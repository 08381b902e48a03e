"""LANGUAGE.md and the fixture files are the specification: what they show must be so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidings.errors import SubscriptionError
from tidings.kinds.filters.naive import matches
from tidings.language.parameters import lift, substitute
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Between, Comparison, OneOf, TextTest
from tidings.language.shapes import Shapes
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.language.syntax.units import UNITS
from tidings.model import values
from tidings.model.terms import from_ntriples
from tidings.model.text_tests import text_holds

ROOT = Path(__file__).parents[2]
PREFIXES = {"ex": "http://example.org/", "uni": "http://example.org/uni#"}


def cases(name: str) -> list[tuple[str, str]]:
    """The (text, expected) pairs of a fixture file."""
    blocks = (ROOT / "tests/fixtures" / name).read_text("utf-8").strip().split("\n\n")[1:]
    return [(text, expected) for text, expected in (block.rsplit("\n=> ", 1) for block in blocks)]


GUIDE = (ROOT / "LANGUAGE.md").read_text("utf-8")
EXAMPLES = re.findall(r"```(?:tidings|sparql)\n(.*?)```", GUIDE, re.DOTALL)
PRINTED = cases("language.txt")
REFUSED = cases("language_errors.txt")


def table(heading: str) -> list[list[str]]:
    """The rows of the last table in a section of LANGUAGE.md, without its head."""
    section = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def test_the_specification_is_there() -> None:
    assert len(EXAMPLES) > 15
    assert len(PRINTED) > 30
    assert len(REFUSED) > 60


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_read_and_printed_back(text: str) -> None:
    query = parse(text, PREFIXES)
    assert parse(to_text(query)) == query


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_texts_are_printed_canonically(text: str, printed: str) -> None:
    assert to_text(parse(text, PREFIXES)) == printed
    assert to_text(parse(printed)) == printed


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_refused_texts_say_why_and_where(text: str, sentence: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        parse(text, PREFIXES)
    assert str(caught.value) == sentence
    assert f"{caught.value.line}:{caught.value.column}" in sentence


@pytest.mark.parametrize("text", [*EXAMPLES, *(text for text, _ in PRINTED)])
def test_shapes_read_the_same(text: str) -> None:
    expected = parse(text, PREFIXES)
    shapes = Shapes(PREFIXES)
    for _ in range(2):
        query, constants = shapes.read(text)
        assert substitute(query, {str(i): from_ntriples(c) for i, c in enumerate(constants)}) == expected
        assert not constants or query == lift(expected)[0]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_shapes_refuse_the_same(text: str, sentence: str) -> None:
    shapes = Shapes(PREFIXES)
    for good, _ in PRINTED:
        shapes.read(good)
    with pytest.raises(SubscriptionError, match=re.escape(sentence)):
        shapes.read(text)


@pytest.mark.parametrize(("value", "condition", "answer"), table("What values mean"))
def test_values_mean_what_the_guide_says(value: str, condition: str, answer: str) -> None:
    term = from_ntriples(value.strip("`"))
    leaf = parse(f"WHERE x {condition.strip('`')}", PREFIXES).where
    match leaf:
        case Comparison(_, op, constant):
            holds = values.compare(term, op, constant)
        case Between(_, low, high):
            holds = values.between(term, low, high)
        case OneOf(_, options, negated):
            holds = values.none_of(term, options) if negated else values.one_of(term, options)
        case TextTest(_, op, pattern):
            holds = text_holds(values.text_of(term) or "", op, pattern.text)
    assert holds == (answer == "yes")


DOCUMENTS: dict[str, list[dict[str, object]]] = {
    "no `a`": [{}, {"b": 5}],
    '`"a": null` or `[]`': [{"a": None}, {"a": []}],
    '`"a": 5` or `[5]`': [{"a": 5}, {"a": [5]}],
    '`"a": {"b": 5}`': [{"a": {"b": 5}}, {"a": [{"b": 5}]}],
}


def test_what_is_there_is_what_the_guide_says() -> None:
    section = GUIDE.split("\n### What is there\n")[1].split("\n### ")[0]
    head, _, *rows = (line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|"))
    columns = [DOCUMENTS[cell.strip()] for cell in head[1:]]
    assert len(rows) == 7
    for asked, *answers in rows:
        for text in re.findall("`(.*?)`", asked):
            condition = parse(f"WHERE {text}").where
            for documents, answer in zip(columns, answers, strict=True):
                assert [matches(condition, document) for document in documents] == [
                    answer.strip() == "yes"
                ] * 2, (text, documents)


def test_prefixes_are_listed() -> None:
    listed = {name.strip("`").replace("(none)", ""): iri.strip("`") for name, iri in table("Prefixes")}
    assert listed == WELL_KNOWN


def test_units_are_listed() -> None:
    section = GUIDE.split("\n### Units\n")[1].split("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    listed = {of: (base.strip("`"), re.findall("`(.*?)`", units)) for of, base, units in rows}
    assert listed == {
        of: (next(unit for unit, factor in units.items() if factor == "1"), list(units))
        for of, units in UNITS.items()
    }


@pytest.mark.parametrize(("text", "sentence"), table("When a text is refused"))
def test_shown_errors_are_so(text: str, sentence: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        parse(text.strip("`"))
    assert str(caught.value) == sentence
