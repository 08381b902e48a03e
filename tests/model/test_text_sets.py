"""All text tests at once agree with each one alone."""

from __future__ import annotations

import re
import time

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.model.text_sets import TextTests
from tidings.model.text_tests import regular_expression, text_holds

_text = st.text(st.sampled_from("abc%_\\.*[(é😀\n\0 "), max_size=10)
_expressions = st.sampled_from(
    [
        "",
        "a",
        "^a",
        "b$",
        "^$",
        "a.c",
        "(?i)B",
        "[a-b]+c",
        "(a|b)*c",
        r"\\",
        r"\.",
        "é",
        "^.$",
        r"\bab\b",
        "(?s)a.b",
        r"\x00",
    ]
)
_tests = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["LIKE", "CONTAINS", "ENDS"]), _text),
        st.tuples(st.just("MATCHES"), _expressions),
    ),
    max_size=12,
)


def alone(tests: list[tuple[str, str]], text: str) -> list[int]:
    return [number for number, (op, pattern) in enumerate(tests) if text_holds(text, op, pattern)]


@examples(100)
@given(_tests, st.lists(_text, min_size=1, max_size=5))
def test_together_as_alone(tests: list[tuple[str, str]], texts: list[str]) -> None:
    together = TextTests(tests)
    for text in texts:
        assert together.satisfied(text) == alone(tests, text)


@given(_text, _text)
@example("100%", r"100\%")
@example("a\\b", r"a\b")
@example("a\\", "a\\")
@example("a\\%", r"a\\\%")
@example("", "")
@example("", "%")
@example("a\nb", "a%b")
@example("a\nb", "a_b")
def test_like_means_what_the_language_says(text: str, pattern: str) -> None:
    """Against Python's expressions: % any run, _ one character, a backslash before %, _ or itself is not there."""
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\[%_\\]|.", pattern, re.DOTALL)
    expected = re.fullmatch("".join(wild.get(p) or re.escape(p[-1]) for p in parts), text, re.DOTALL)
    assert text_holds(text, "LIKE", pattern) == (expected is not None)


def test_more_expressions_than_one_automaton_takes() -> None:
    tests = [("MATCHES", f"^number {i}[05]?$") for i in range(600)]
    tests += [("LIKE", f"%{i}_") for i in range(600)] + [("CONTAINS", f"r {i}") for i in range(600)]
    together = TextTests(tests)
    for text in ("number 7", "number 35", "number 599", "", "r 12"):
        assert together.satisfied(text) == alone(tests, text)


@pytest.mark.parametrize("expression", ["a.{1000}b%d", "(a|b)*a(a|b){50}c%d", "(?i)x{500}y{400}%d"])
def test_large_expressions_are_not_given_up(expression: str) -> None:
    tests = [("MATCHES", expression.replace("%d", str(i))) for i in range(256)]
    texts = ["a" + "é" * 1000 + "b77", "ab" * 60 + "c5", "X" * 500 + "y" * 400 + "12", "nothing"]
    together = TextTests(tests)
    for text in texts:
        assert together.satisfied(text) == alone(tests, text)


def test_half_a_character_is_no_reason_to_stop() -> None:
    assert not text_holds("\ud800", "MATCHES", "x")
    assert text_holds("x\ud800", "LIKE", "x_")
    assert not text_holds("\ud800", "CONTAINS", "x")


def test_expressions_that_do_not_fit_together_are_tried_apart() -> None:
    tests = [("MATCHES", rf"\pL{{{length}}}") for length in range(300, 306)]
    assert TextTests(tests).satisfied("b" * 302) == [0, 1, 2]


def test_long_patterns_and_endings_are_not_slow() -> None:
    long = "x" * 40_000
    tests = [("LIKE", f"%{long}"), ("LIKE", f"y{long}%z"), ("ENDS", long), ("ENDS", ""), ("ENDS", f"{long}x")]
    begun = time.process_time()
    assert TextTests(tests).satisfied(f"y{long}") == [0, 2, 3]
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("pattern", "text", "held"),
    [
        ("a%b%c", "abc", True),
        ("a%b%c", "a--b--c", True),
        ("a%b%c", "ac", False),
        ("ab%ba", "aba", False),
        ("%", "", True),
        ("", "", True),
        ("", "a", False),
        ("%%", "a", True),
        (r"100\%", "100%", True),
        (r"100\%", "1000", False),
        (r"a\\%", "a\\b", True),
        ("a_c%", "abcd", True),
    ],
)
def test_like_in_pieces_is_like(pattern: str, text: str, held: bool) -> None:
    assert text_holds(text, "LIKE", pattern) is held
    assert (re2.compile(regular_expression("LIKE", pattern)).search(text) is not None) is held
