"""Advises on a text that is only words, such as `storm`: what to write to find them in the titles of events.

The title is the attribute or the property that the observed events have, so that the advice can be used as it is.
"""

from __future__ import annotations

import re

from tidings.errors import SubscriptionError
from tidings.language.faults import error_at, quoted
from tidings.language.printer import condition_text
from tidings.language.property_names import PropertyNames
from tidings.language.query import Attribute, Folded, TextTest
from tidings.language.syntax.tokens import WORDS
from tidings.model.observed_attributes import ObservedAttributes
from tidings.model.terms import Literal
from tidings.model.values import TEXT

_BARE = re.compile(
    r"""\s*+(?:WHERE\s++)?('[^']++'|"[^"]++"|[\w-]++(?:\s++[\w-]++){0,5}+)\s*+""", re.IGNORECASE
)
_TITLES = ("title", "headline", "name", "subject", "label", "summary", "description", "text", "message")


def bare_words_error(
    text: str, observed: ObservedAttributes, properties: PropertyNames
) -> SubscriptionError | None:
    """The error for a text that is only words; None for any other, and while a name or a keyword is being typed."""
    found = _BARE.fullmatch(text)
    if found is None:
        return None
    words = found[1].strip("'\"")
    begun = words.casefold()
    if any(word.upper() in WORDS for word in words.split()) or any(
        name.casefold().startswith(begun) for name in (*observed.names(), *WORDS)
    ):
        return None
    advice = f"to find it in titles write {title_with(words, observed, properties)}"
    return error_at(text, found.start(1), f"found only {quoted(words)}", advice)


def title_with(words: str, observed: ObservedAttributes, properties: PropertyNames) -> str:
    """A subscription to events with words in their titles."""
    for name in _TITLES:
        iri = properties.of_attribute(name)
        is_attribute = TEXT in observed.kinds(name)
        if iri is not None and (observed.are_mostly_graphs or not is_attribute):
            return f"WHERE {properties.pattern(iri, _contains(name, words))}"
        if is_attribute:
            return f"WHERE {condition_text(_contains(name, words))}"
    return f"WHERE {condition_text(_contains(_TITLES[0], words))}"


def _contains(name: str, words: str) -> TextTest:
    return TextTest(Folded(Attribute(name)), "CONTAINS", Literal(words))
