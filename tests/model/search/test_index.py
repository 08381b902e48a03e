"""The index of searches: stems, many answers, odd texts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.model.search.test_definition import WORDS, searches, texts
from tidings.arrays.vocabulary import join_texts
from tidings.model.search.expression import search_fault, search_holds
from tidings.model.search.index import SearchIndex


def satisfied(asked: list[str], text: str, language: str = "") -> list[int]:
    return SearchIndex.build(asked, language).satisfied_by([text])[0]


@pytest.mark.parametrize("language", ["english", "german", "russian"])
def test_stems_are_found_as_defined(language: str) -> None:
    rng = random.Random(language)
    names = [*WORDS, "running", "runs", "run", "Läufer", "laufen", "красивый", "красивая"]
    asked = [searches(rng, names) for _ in range(60)]
    told = [" ".join(rng.choices(names, k=rng.choice([1, 5, 12]))) for _ in range(40)] + [
        texts(rng),
        "\u0301",
        "",
    ]
    found = SearchIndex.build(asked, language).satisfied_by(told)
    for text, numbers in zip(told, found, strict=True):
        assert numbers == [i for i, search in enumerate(asked) if search_holds(text, search, language)], text
    assert any(found)


def test_more_answers_than_there_is_room_for() -> None:
    asked = [f"common -w{i}" if i % 2 else f'common OR "w{i} x"' for i in range(3_000)]
    index = SearchIndex.build(asked)
    told = ["common", "nothing", "a common w7 x", "w8 x"]
    found = index.satisfied_by(told)
    assert [len(numbers) for numbers in found] == [3_000, 0, 2_999, 1]
    assert index.satisfied_by(told) == found  # the scratch is clean


def test_odd_texts() -> None:
    long = "x" * 5_000
    asked = ["x", long, f'"{long} y"', "\ud800x", "é"]
    assert satisfied(asked, f"{long} Y") == [1, 2]
    assert satisfied(asked, f"{long}x y") == []
    assert satisfied(asked, "a\ud800b x\u00e9 \u00c9 x") == [0, 3, 4]
    assert satisfied(asked, "") == []
    assert SearchIndex.build([]).satisfied_by(["a"]) == [[]]
    assert SearchIndex.build(["a"]).satisfied_by([]) == []


def test_a_word_that_is_very_long_is_its_own_stem() -> None:
    long = "running" * 20
    asked = [long, f"{long}s", "runnings"]
    index = SearchIndex.build(asked, "english")
    assert index.satisfied_by([long, f"{long}s running"]) == [[0], [1, 2]]
    assert search_holds(f"{long}s", asked[1], "english")
    assert not search_holds(f"{long}s", asked[0], "english")


def test_a_search_that_says_the_same_twice_is_found_once() -> None:
    assert satisfied(["a a", "a OR a", '"a b" OR a', "a OR b OR (a b)", '"a a"'], "b a b") == [0, 1, 2, 3]


def test_phrases_lie_within_one_text() -> None:
    blob, start = join_texts(["wind", "power wind", "power"])
    found = SearchIndex.build(['"wind power"', '"power wind"']).satisfied(blob, start[:-1], start[1:])
    assert (found.text.tolist(), found.search.tolist()) == ([1], [1])


def test_few_searches_are_looked_at() -> None:
    """Each search is filed under the rarest of its words: a text that has all other words leads to none."""
    asked = [f"common often w{i}" for i in range(1_000)]
    arrays = SearchIndex.build(asked).arrays
    entries = np.diff(arrays.first)
    assert entries.max() == 4  # search, two more words, of which each has its number
    assert (entries > 0).sum() == 1_000


def test_plain_words_need_no_reading() -> None:
    """What is taken for words alone reads the same."""
    for text in ("a", "solar power", "or and not", "0 1 a1"):
        assert search_fault(text) is None
        assert satisfied([text], text) == [0]
