"""Keyword sets: what counts as mentioned, and that a text is read once."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import SubscriptionError, TidingsError
from tidings.kinds.operators.library import text
from tidings.language.query import Call, Variable
from tidings.model.event import Event
from tidings.model.terms import Literal

SETS = {
    "fruit": ["apple", "Passion Fruit", "fig"],
    "makers": ["Apple", "C++", "Größe"],
    "none": [],
}


def made(sets=SETS, **options):
    return {each.name: each for each in text.operators(sets, **options)}


@pytest.fixture(scope="module")
def ask():
    return made()


def saying(content):
    return Event(attributes={"text": content})


@pytest.mark.parametrize(
    ("content", "fruit", "makers"),
    [
        ("An APPLE a day", ["apple"], ["Apple"]),
        ("pineapple and apples", [], []),
        ("fig, Fig; fig_tree figs", ["fig"], []),
        ("passion\n   fruit", ["Passion Fruit"], []),
        ("fig before apple", ["fig", "apple"], ["Apple"]),
        ("we write C++17 and C++.", [], ["C++"]),
        ("OC++", [], []),
        ("GRÖSSE, gro\u0308ße", [], ["Größe"]),
        ("", [], []),
        (None, [], []),
        (5, [], []),
        (["no", "a fig", "an apple"], ["fig", "apple"], ["Apple"]),
        (["passion", "fruit"], [], []),
    ],
)
def test_whole_words(ask, content, fruit, makers):
    for name, wanted in (("fruit", fruit), ("makers", makers), ("none", [])):
        assert list(ask["mentioned"](saying(content), name)) == wanted
        assert ask["mentions"](saying(content), name) is bool(wanted)


def test_parts_of_words():
    ask = made(whole_words=False)
    assert list(ask["mentioned"](saying("Pineapples: 3 figments"), "fruit")) == ["apple", "fig"]
    assert made({"京": ["東京"]}, whole_words=False)["mentions"](saying("私は東京都に住む"), "京")


def test_several_attributes():
    ask = made(attributes=["title", "article.body"])
    event = Event(attributes={"title": "A fig", "article": {"body": "and an apple"}, "text": "passion fruit"})
    assert list(ask["mentioned"](event, "fruit")) == ["fig", "apple"]
    assert ask["mentions"](Event(source="feed"), "fruit") is False


def test_a_text_is_read_once_for_all_sets_and_operators(ask):
    keywords = ask["mentions"].function.__self__
    before = keywords.found.cache_info().misses
    event = saying("read once: fig and apple")
    for name in SETS:
        ask["mentions"](event, name)
        list(ask["mentioned"](event, name))
    assert keywords.found.cache_info().misses == before + 1
    assert keywords.found.cache_info().maxsize == text.REMEMBERED


def test_unknown_sets_are_refused(ask):
    ask["mentions"].check(Call("mentions", (Literal("fruit"),)))
    with pytest.raises(SubscriptionError, match="unknown keyword set 'friut'; did you mean 'fruit'?"):
        ask["mentions"].check(Call("mentions", (Literal("friut"),)))
    with pytest.raises(SubscriptionError, match="unknown keyword set 'zzz'; there are fruit, makers, none"):
        ask["mentioned"].check(Call("mentioned", (Literal("zzz"), Variable("x"))))
    with pytest.raises(SubscriptionError, match="unknown keyword set"):
        ask["mentions"](saying("x"), "zzz")


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ({"a": "apple"}, "is one text; give a list"),
        ({"a": ["x", " "]}, "empty or no text"),
        ({"a": ["x", 5]}, "empty or no text"),
    ],
)
def test_what_is_no_set_is_refused(sets, told):
    with pytest.raises(TidingsError, match=told):
        text.operators(sets)


def test_operators_go_to_other_processes(ask):
    mentions, mentioned = pickle.loads(pickle.dumps(list(ask.values())))
    assert mentions(saying("a fig"), "fruit") is True
    assert list(mentioned(saying("a fig"), "fruit")) == ["fig"]
    assert mentioned.signature == "mentioned(keyword_set: str, keyword: Out[str])"


words = st.text("abß é-", min_size=1, max_size=4).filter(str.strip)


@given(
    st.dictionaries(st.sampled_from("xyz"), st.lists(words, max_size=4), min_size=1),
    st.text("abßé- \n", max_size=30),
)
def test_agrees_with_regular_expressions(sets, content):
    """One keyword at a time, as one would write it without an automaton."""

    def mentions(keyword):
        word, read = text.folded(keyword), text.folded(content)
        before = r"(?<!\w)" if word[0].isalnum() else ""
        after = r"(?!\w)" if word[-1].isalnum() else ""
        return re.search(before + re.escape(word) + after, read) is not None

    ask = made(sets)
    for name, keywords in sets.items():
        found = {text.folded(keyword) for keyword in ask["mentioned"](saying(content), name)}
        assert found == {text.folded(keyword) for keyword in keywords if mentions(keyword)}
